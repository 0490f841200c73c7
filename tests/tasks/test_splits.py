from types import SimpleNamespace

import pytest

from pictopic import Corpus
from pictopic.tasks.splits import choose_parts, choose_rows, holds_some_out, rows_to_learn_from


def collection(folder, n, split=lambda k: ""):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "metadata.csv").write_text("\n".join(["tags,part", *(f"t{k},{split(k)}" for k in range(n))]) + "\n")
    return Corpus.build(folder, folder / "corpus", pictures="none", split_column="part")


@pytest.mark.parametrize(
    ("splits", "train", "held_out"),
    [
        (["train", "val", "test", "train"], [0, 3], [1]),
        (["train", "extra", "dev", None], [0], [2]),
        ([None, "valid", "test", "other"], [0, 3], [1]),
    ],
    ids=["usual names", "other parts beside train", "no train"],
)
def test_fit_and_pretrain_learn_from_the_same_rows_of_named_parts(splits, train, held_out):
    corpus = SimpleNamespace(splits=splits)
    for choose in (choose_parts, lambda corpus: choose_rows(corpus, 0)):
        rows, others = choose(corpus)
        assert (rows.tolist(), others.tolist()) == (train, held_out)
    assert sorted(rows_to_learn_from(corpus)) == sorted([*train, *held_out])
    assert holds_some_out(splits)


def test_rows_beside_train_are_held_out_from_neither(tmp_path):
    corpus = collection(tmp_path, 200, lambda k: "extra" if k % 2 else "train")
    for train, held_out in (choose_parts(corpus), choose_rows(corpus, 0)):
        assert all(row % 2 == 0 for row in [*train, *held_out])
        assert len(train) + len(held_out) == 100
        assert len(held_out) > 0


def test_parts_of_a_part_are_numbered_within_it(tmp_path):
    train, held_out = choose_parts(collection(tmp_path, 300)[100:])
    assert sorted([*train, *held_out]) == list(range(200))
    assert len(held_out) == 30


def test_a_small_collection_has_no_held_out_part(tmp_path):
    train, held_out = choose_parts(collection(tmp_path, 3))
    assert (len(train), len(held_out)) == (3, 0)


@pytest.mark.parametrize("splits", [["test", "test"], ["val", "test"]])
def test_nothing_to_pretrain_on_is_an_error(splits):
    with pytest.raises(ValueError, match="there is nothing to learn from"):
        choose_rows(SimpleNamespace(splits=splits), 0)
