import numpy as np
import pytest
from scipy import sparse

from pictopic import Corpus
from pictopic.tasks.fitting import Rows, choose_parts, known_rows, usable_labels


def rows():
    X = sparse.csr_array(np.array([[2, 0, 1, 1], [0, 3, 0, 1]], np.int32))
    return Rows(X, np.array([[1.0], [2.0]]), n_annotation_words=2)


def test_hiding_tags_leaves_the_rows_as_they_were():
    given = rows()
    hidden = given.without_tags()
    np.testing.assert_array_equal(hidden.X.toarray(), [[2, 0, 0, 0], [0, 3, 0, 0]])
    np.testing.assert_array_equal(given.X.toarray(), [[2, 0, 1, 1], [0, 3, 0, 1]])
    assert hidden.X.nnz == 2


def test_rows_of_tags_alone_keep_them():
    given = Rows(rows().X, None, n_annotation_words=4)
    np.testing.assert_array_equal(given.without_tags().X.toarray(), given.X.toarray())


def test_which_tags_a_picture_has():
    assert rows().has_tag().tolist() == [[True, True], [False, True]]


def test_some_rows_have_their_own_features():
    assert rows()[np.array([1])].features.tolist() == [[2.0]]


def tagged(tmp_path, lines, **options):
    (tmp_path / "metadata.csv").write_text("\n".join(lines))
    return Corpus.build(tmp_path, tmp_path / "corpus", pictures="none", **options)


def test_labels_of_one_class_are_no_labels(tmp_path):
    assert usable_labels(tagged(tmp_path, ["tags,label", "a,x", "b,x"])) is None


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (np.array(["a", None], dtype=object), [True, False]),
        (np.array([[1, 0], [np.nan, np.nan]]), [True, False]),
        (np.array([[1, 0], [0, 0]]), [True, True]),
    ],
)
def test_which_rows_have_labels(labels, expected):
    assert known_rows(labels).tolist() == expected


def test_own_split_is_used_and_test_rows_in_no_part(tmp_path):
    parts = ["train", "val", "test"]
    corpus = tagged(tmp_path, ["tags,part", *(f"t{k},{parts[k % 3]}" for k in range(9))], split_column="part")
    train, held_out = choose_parts(corpus)
    assert train.tolist() == [0, 3, 6]
    assert held_out.tolist() == [1, 4, 7]


def test_parts_of_a_part_are_numbered_within_it(tmp_path):
    corpus = tagged(tmp_path, ["tags", *(f"t{k}" for k in range(300))])
    train, held_out = choose_parts(corpus[100:])
    assert sorted([*train, *held_out]) == list(range(200))
    assert len(held_out) == 30


def test_a_small_collection_has_no_held_out_part(tmp_path):
    train, held_out = choose_parts(tagged(tmp_path, ["tags", "a", "b", "c"]))
    assert len(train) == 3
    assert len(held_out) == 0
