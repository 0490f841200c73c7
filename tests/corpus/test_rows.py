import numpy as np
import pytest
from scipy import sparse

from pictopic import CountsOnDisk, Rows
from pictopic.corpus.readers import MappedRows
from pictopic.corpus.rows import check_counts

N, N_WORDS, N_TAGS = 30, 5, 2


@pytest.fixture(params=["memory", "disk"])
def given(request, rng, tmp_path):
    """Counts, features and labels as arrays, and the same as rows."""
    X = rng.poisson(1, (N, N_WORDS))
    features, labels = rng.normal(5, 3, (N, 2)).astype(np.float32), np.arange(N) % 3
    if request.param == "memory":
        return X, features, labels, Rows(X, features, labels, n_annotation_words=N_TAGS)
    counts = CountsOnDisk.write(tmp_path, [sparse.csr_array(X[:20]), sparse.csr_array(X[20:])], N_WORDS)
    np.save(tmp_path / "f.npy", features)
    mapped = np.load(tmp_path / "f.npy", mmap_mode="r")
    return X, features, labels, Rows(counts, mapped, labels, n_annotation_words=N_TAGS)


def test_a_selection_of_a_selection_is_read_from_the_right_rows(given):
    X, features, labels, rows = given
    some = rows[10:][[3, 0, 7]]
    np.testing.assert_array_equal(some.numbers, [13, 10, 17])
    np.testing.assert_array_equal(some.read().toarray(), X[[13, 10, 17]])
    np.testing.assert_array_equal(some.read(np.array([2, 0])).toarray(), X[[17, 13]])
    np.testing.assert_array_equal(some.read_features(slice(1, 2)), features[[10]])
    np.testing.assert_array_equal(some.labels, labels[[13, 10, 17]])


def test_rows_without_tags_have_zeros_there_and_the_others_stay_as_they_were(given):
    X, _, _, rows = given
    hidden = rows.without_tags()[[7, 3]].read()
    np.testing.assert_array_equal(hidden.toarray(), X[[7, 3]] * [1, 1, 1, 0, 0])
    assert hidden.nnz == np.count_nonzero(X[[7, 3], :3])
    np.testing.assert_array_equal(rows.read().toarray(), X)


def test_rows_of_tags_alone_keep_them(rng):
    X = rng.poisson(1, (4, 3))
    np.testing.assert_array_equal(Rows(X, n_annotation_words=3).without_tags().read().toarray(), X)


def test_which_tags_a_picture_has_is_known_of_rows_without_them_too(given):
    X, _, _, rows = given
    np.testing.assert_array_equal(rows.without_tags()[4:9].has_tag(), X[4:9, 3:] > 0)


def test_words_are_counted_in_the_selected_rows(given):
    X, _, _, rows = given
    assert rows[[1, 5]].word_counts().tolist() == X[[1, 5]].sum(axis=0).tolist()


def test_a_selection_can_be_given_other_labels_and_features(given):
    X, features, _, rows = given
    some = rows[[8, 2]]
    named = some.with_labels(np.array(["a", "b"]))
    assert named[[1]].labels.tolist() == ["b"]
    np.testing.assert_array_equal(named[[1]].read().toarray(), X[[2]])
    np.testing.assert_array_equal(named.read_features(), features[[8, 2]])
    other = some.with_features(np.array([[1.0], [2.0]]))
    np.testing.assert_array_equal(other[[1]].read_features(), [[2.0]])
    assert other.without_features().read_features() is None


def test_loaded_rows_are_the_same_in_memory(given):
    X, features, labels, rows = given
    loaded = rows[[8, 2]].loaded()
    np.testing.assert_array_equal(loaded.read().toarray(), X[[8, 2]])
    np.testing.assert_array_equal(loaded.read_features(), features[[8, 2]])
    assert (loaded.labels.tolist(), loaded.n_annotation_words) == (labels[[8, 2]].tolist(), N_TAGS)


def test_chunks_cover_all_rows_once(given):
    *_, rows = given
    chunks = list(rows[:25].chunks(10))
    assert np.concatenate([np.arange(25)[chunk] for chunk in chunks]).tolist() == list(range(25))


@pytest.mark.parametrize("name", ["labels", "global_features"])
def test_what_has_another_number_of_rows_is_refused(name):
    with pytest.raises(ValueError, match=f"X has 2 rows, but {name} has 3"):
        Rows(np.eye(2, dtype=int), **{name: np.zeros((3, 1))})


def test_more_annotation_words_than_columns_are_refused():
    with pytest.raises(ValueError, match="n_annotation_words=3, but there are 2 columns only"):
        Rows(np.eye(2, dtype=int), n_annotation_words=3)


def test_a_mapped_array_is_read_without_being_held(tmp_path, rng, monkeypatch):
    monkeypatch.setattr("pictopic.corpus.readers._RELEASE", 100)
    array = rng.normal(size=(50, 8))
    np.save(tmp_path / "a.npy", array)
    mapped = MappedRows(np.load(tmp_path / "a.npy", mmap_mode="r"))
    for rows in (np.array([4, 2]), slice(10, 20), np.array([4])):
        np.testing.assert_array_equal(mapped[rows], array[rows])


def test_stored_zeros_and_duplicates_are_tidied_in_a_copy():
    X = sparse.csr_array(sparse.coo_matrix(([2, 0, 3], ([0, 0, 0], [1, 2, 1])), shape=(1, 3)))
    counts = check_counts(X, "Rows")
    assert counts.toarray().tolist() == [[0, 5, 0]]
    assert counts.nnz == 1
    counts.data[:] = 9
    assert X.toarray().tolist() == [[0, 5, 0]]
