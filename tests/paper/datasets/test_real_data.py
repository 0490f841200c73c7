"""The real data sets, where they are at hand."""

import pytest

from pictopic.paper.datasets import (
    find_text_corpora,
    read_corel5k,
    read_labelme,
    read_mirflickr25k,
    read_splits,
    read_text,
)


def _need(folder, name):
    if not (folder / name).exists():
        pytest.skip(f"there is no {name} in PICTOPIC_DATA")


def test_labelme_has_eight_classes_and_five_splits(real_data):
    _need(real_data, "labelme8")
    source = read_labelme(real_data)
    labels = [label for (label,) in source.rows["labels"].to_pylist()]
    assert (len(source), source.skipped, len(set(labels))) == (1600, [], 8)
    splits = read_splits(real_data, source)
    assert [int(train.sum()) for train in splits] == 5 * [800]


def test_corel_has_tags_and_groups(real_data):
    _need(real_data, "corel5k")
    source = read_corel5k(real_data)
    assert (len(source), source.skipped) == (4500, [])
    assert len({tag for tags in source.rows["tags"].to_pylist() for tag in tags}) == 371
    assert len({group for (group,) in source.rows["labels"].to_pylist()}) == 50


def test_mirflickr_has_tags_and_several_labels(real_data):
    _need(real_data, "mirflickr_tags")
    source = read_mirflickr25k(real_data)
    assert (len(source), source.multi_label) == (12_000, True)
    assert len({label for labels in source.rows["labels"].to_pylist() for label in labels or ()}) == 24


def test_text_has_the_known_sizes(real_data):
    _need(real_data, "text")
    corpora = {path.name: read_text(path) for path in find_text_corpora(real_data)}
    shapes = {name: [part.X.shape for part in parts.values()] for name, parts in corpora.items()}
    assert shapes == {
        "20NSshort": [(1245, 1448), (100, 1448), (438, 1448)],
        "TMN": [(22_802, 2000), (1999, 2000), (7775, 2000)],
    }
    assert corpora["TMN"]["test"].labels[0] == "entertainment"
