import os

import numpy as np
import pyarrow.parquet as pq
import pytest
from PIL import Image

from pictopic import Corpus, DeepDocNADE, SupDocNADE
from tests.corpus.conftest import WORDS, write_metadata, write_pictures
from tests.support.processes import alarm, pipe_in_place_of

# ---- contents --------------------------------------------------------------------------------------------------------


def test_an_opened_corpus_is_the_one_that_was_built(corpus):
    again = Corpus.open(corpus.folder)
    assert (again.X != corpus.X).nnz == 0
    assert again.tags == corpus.tags
    assert again.file_names == corpus.file_names == [f"{k}.jpg" for k in range(12)]
    assert again.options == corpus.options


def test_shards_change_nothing(corpus, sharded):
    assert len(list((sharded.folder / "shards").iterdir())) == 3
    assert (sharded.X != corpus.X).nnz == 0
    np.testing.assert_array_equal(np.asarray(sharded.global_features), np.asarray(corpus.global_features))
    assert sharded.file_names == corpus.file_names
    assert sharded.paths == corpus.paths


@pytest.mark.parametrize(
    "rows", [slice(2, 9, 3), [11, 0, 5, 5], np.arange(12) % 2 == 1, np.array([], int), slice(None)], ids=str
)
def test_a_part_has_the_rows_of_the_whole(sharded, rows):
    part, numbers = sharded[rows], np.arange(12)[rows]
    assert len(part) == len(numbers)
    np.testing.assert_array_equal(part.X.toarray(), sharded.X.toarray()[numbers])
    np.testing.assert_array_equal(np.asarray(part.global_features), np.asarray(sharded.global_features)[numbers])
    assert part.tags == [sharded.tags[k] for k in numbers]
    assert part.labels.tolist() == sharded.labels[numbers].tolist()


def test_parts_of_parts_are_parts(corpus):
    assert corpus[2:10][[1, 7]].file_names == ["3.jpg", "9.jpg"]


@pytest.mark.parametrize("rows", [[12], [-13]])
def test_rows_that_are_not_there_are_refused(corpus, rows):
    with pytest.raises(IndexError):
        corpus[rows]


def test_counts_of_one_large_shard_stay_on_disk(corpus, monkeypatch):
    monkeypatch.setattr("pictopic.corpus.readers._IN_MEMORY", 0)
    mapped = Corpus.open(corpus.folder)
    base = mapped.X.data
    while base is not None and not isinstance(base, np.memmap):
        base = base.base
    assert isinstance(base, np.memmap)
    assert (mapped.X != corpus.X).nnz == 0


def test_paths_lead_to_the_pictures(corpus):
    assert [Image.open(path).size for path in corpus.paths] == [(64, 48)] * 12


def test_pictures_are_found_after_corpus_and_pictures_have_moved_together(photos, corpus, tmp_path):
    (tmp_path / "new").mkdir()
    photos.rename(tmp_path / "new" / "photos")
    corpus.folder.rename(tmp_path / "new" / "corpus")
    assert all(path.is_file() for path in Corpus.open(tmp_path / "new" / "corpus").paths)


def test_sizes_are_those_of_the_files(photos, tmp_path):
    corpus = Corpus.build(photos, tmp_path / "corpus", **WORDS, max_side=30)
    assert corpus.table(["width", "height"]).to_pylist() == [{"width": 64, "height": 48}] * 12


def labelled(tmp_path, lines):
    (tmp_path / "metadata.csv").write_text("\n".join(lines))
    return Corpus.build(tmp_path, tmp_path / "corpus", pictures="none")


def test_unknown_labels_are_none(tmp_path):
    corpus = labelled(tmp_path, ["tags,label", "a,x", "b,", "c,y"])
    assert corpus.labels.tolist() == ["x", None, "y"]


def test_several_labels_are_a_matrix(tmp_path):
    corpus = labelled(tmp_path, ["tags,labels", "a,x;y", "b,y", "c,[]"])
    assert corpus.classes == ["x", "y"]
    assert corpus.labels.tolist() == [[1, 1], [0, 1], [0, 0]]


def test_several_unknown_labels_are_nan(tmp_path):
    labels = labelled(tmp_path, ["tags,labels", "a,x;y", "b,"]).labels
    assert np.isnan(labels[1]).all()
    assert labels[0].tolist() == [1, 1]


def test_without_labels_there_are_none(tmp_path):
    assert labelled(tmp_path, ["tags", "a", "b"]).labels is None


def test_classes_are_those_of_the_whole_in_every_part(tmp_path):
    corpus = labelled(tmp_path, ["tags,labels", "a,x", "b,y"])
    assert corpus[[1]].labels.tolist() == [[0, 1]]


def test_models_learn_from_a_corpus(corpus):
    model = SupDocNADE(n_components=4, max_iter=2, random_state=0).fit(corpus.X, corpus.labels)
    assert model.predict(corpus.X).shape == (12,)


def test_deep_models_read_a_corpus_from_disk_as_from_memory(sharded):
    features = np.asarray(sharded.global_features)
    options = {"n_components": 4, "max_iter": 2, "random_state": 0}
    on_disk = DeepDocNADE(**options).fit(sharded, global_features=sharded.global_features)
    in_memory = DeepDocNADE(**options).fit(sharded.X, global_features=features)
    np.testing.assert_array_equal(
        on_disk.transform(sharded, global_features=sharded.global_features),
        in_memory.transform(sharded.X, global_features=features),
    )


# ---- splitting -------------------------------------------------------------------------------------------------------


def test_split_by_column_gives_its_parts(corpus):
    parts = corpus.split(by="split")
    assert {name: len(part) for name, part in parts.items()} == {"a": 8, "b": 4}
    assert parts["b"].file_names == ["0.jpg", "3.jpg", "6.jpg", "9.jpg"]


def test_split_by_label_gives_the_classes(corpus):
    assert {name: len(part) for name, part in corpus.split(by="label").items()} == {"round": 6, "square": 6}


def test_split_by_chance_is_stratified_and_complete(corpus):
    parts = corpus.split(1 / 3)
    assert sorted(parts["test"].labels.tolist()) == ["round"] * 2 + ["square"] * 2
    assert sorted(parts["train"].file_names + parts["test"].file_names) == sorted(corpus.file_names)


def test_near_duplicates_stay_on_one_side(photos, tmp_path):
    rows = write_pictures(photos, 12)
    for k in range(12):
        Image.open(photos / f"{k}.jpg").resize((80, 60)).save(photos / f"copy{k}.jpg", quality=60)
    write_metadata(photos, [*rows, *(row | {"file_name": f"copy{row['file_name']}"} for row in rows)])
    parts = Corpus.build(photos, tmp_path / "corpus", **WORDS).split(0.5, random_state=3)
    names = set(parts["test"].file_names)
    assert len(names) == 12
    assert all((f"{k}.jpg" in names) == (f"copy{k}.jpg" in names) for k in range(12))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "either test_size or by"),
        ({"test_size": 0.5, "by": "split"}, "either test_size or by"),
        ({"test_size": 1.5}, "between 0 and 1"),
        ({"by": "colour"}, "'split' or 'label'"),
    ],
)
def test_wrong_splits_are_refused(corpus, options, message):
    with pytest.raises(ValueError, match=message):
        corpus.split(**options)


def test_a_split_that_no_picture_has_is_refused(photos, tmp_path):
    with pytest.raises(ValueError, match="split_column when you build"):
        Corpus.build(photos, tmp_path / "corpus", **WORDS).split(by="split")


def test_an_exported_corpus_has_everything(sharded, tmp_path):
    sharded.export(tmp_path / "all.parquet")
    table = pq.read_table(tmp_path / "all.parquet")
    rows = table.to_pylist()
    dense = np.zeros(sharded.X.shape, int)
    for k, row in enumerate(rows):
        dense[k, row["word_ids"]] = row["word_counts"]
    np.testing.assert_array_equal(dense, sharded.X.toarray())
    assert [row["tags"] for row in rows] == sharded.tags
    np.testing.assert_array_equal([row["global_features"] for row in rows], np.asarray(sharded.global_features))


# ---- damage ----------------------------------------------------------------------------------------------------------


def test_a_folder_that_is_no_corpus_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"is not a corpus: it has no corpus\.json"):
        Corpus.open(tmp_path)


@pytest.mark.parametrize("name", ["indptr.npy", "indices.npy", "counts.npy", "features.npy"])
def test_a_file_that_was_cut_off_is_found_out(corpus, name):
    path = next((corpus.folder / "shards").iterdir()) / name
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(ValueError, match="damaged"):
        Corpus.open(corpus.folder)


def test_a_vocabulary_in_which_a_word_was_changed_is_found_out(corpus):
    path = corpus.folder / "vocabulary.json"
    path.write_text(path.read_text().replace("tag1", "tag9"))
    with pytest.raises(ValueError, match=r"vocabulary\.json is damaged: it is not what was written"):
        Corpus.open(corpus.folder)


def test_a_codebook_in_which_a_bit_was_changed_is_found_out(corpus):
    path = corpus.folder / "codebook.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"codebook\.safetensors is damaged: it is not what was written"):
        _ = Corpus.open(corpus.folder).codebook


def test_a_codebook_that_is_missing_is_found_out(corpus):
    (corpus.folder / "codebook.safetensors").unlink()
    with pytest.raises(ValueError, match=r"codebook\.safetensors is missing"):
        _ = Corpus.open(corpus.folder).codebook


def read_everything(folder):
    opened = Corpus.open(folder)
    return opened.vocabulary, opened.codebook, opened.table(), opened.X, opened.global_features


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_in_place_of_any_file_is_not_waited_for(corpus):
    files = [path for path in corpus.folder.rglob("*") if path.is_file() and path.name not in (".lock", "skipped.csv")]
    assert len(files) == 9
    for path in files:
        with pipe_in_place_of(path), alarm(20), pytest.raises(ValueError, match=path.name):
            read_everything(corpus.folder)


def test_a_newer_corpus_is_refused(corpus):
    path = corpus.folder / "corpus.json"
    path.write_text(path.read_text().replace('"format_version": 2', '"format_version": 99'))
    with pytest.raises(ValueError, match="newer pictopic"):
        Corpus.open(corpus.folder)
