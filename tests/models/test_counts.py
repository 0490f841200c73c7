import numpy as np
import pytest
from scipy import sparse

from pictopic import DocNADE
from pictopic.models.counts import check_counts, document_lengths, fingerprint


def _with(value, dtype=float):
    X = np.ones((4, 3), dtype=dtype)
    X[2, 1] = value
    return X


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("output", ["tree", "softmax"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1, r"Negative values in data.*row 2, column 1: -1"),
        (0.5, r"fraction.*row 2, column 1: 0.5"),
        (np.nan, r"NaN.*row 2, column 1"),
        (np.inf, r"infinity.*row 2, column 1"),
        (3e9, r"count above.*row 2, column 1"),
    ],
)
def test_wrong_count_is_named_with_its_place(convert, output, value, message):
    with pytest.raises(ValueError, match=message):
        DocNADE(output=output).fit(convert(_with(value)))
    with pytest.raises(ValueError, match=message):
        DocNADE(output=output, max_iter=1).fit(_with(1)).transform(convert(_with(value)))


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float32, np.float64])
def test_whole_numbers_of_any_type_are_counts(rng, dtype):
    X = rng.randint(2, size=(5, 4)).astype(dtype)
    counts = check_counts(DocNADE(), sparse.coo_matrix(X), reset=True)
    assert counts.data.dtype == np.int32
    np.testing.assert_array_equal(counts.toarray(), X)


def test_stored_zeros_and_duplicates_are_tidied_in_a_copy():
    X = sparse.coo_matrix(([2, 0, 3], ([0, 0, 0], [1, 2, 1])), shape=(1, 3)).tocsr()
    counts = check_counts(DocNADE(), X, reset=True)
    assert counts.toarray().tolist() == [[0, 5, 0]]
    assert counts.nnz == 1
    counts.data[:] = 9
    assert X.toarray().tolist() == [[0, 5, 0]]


def test_lengths_count_repeated_words():
    assert document_lengths(sparse.csr_array([[2, 0, 3], [0, 0, 0]])).tolist() == [5, 0]


def test_fingerprint_tells_other_data_apart():
    X = sparse.csr_array([[2, 0, 3]])
    assert fingerprint(X) == fingerprint(X.copy())
    assert len({fingerprint(X), fingerprint(2 * X), fingerprint(X, np.array([1]))}) == 3
