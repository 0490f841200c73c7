import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pictopic import CountsOnDisk


def write(folder, X, size=3):
    return CountsOnDisk.write(folder, (X[k : k + size] for k in range(0, X.shape[0], size)), X.shape[1])


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_rows_read_are_those_of_the_matrix(tmp_path_factory, data):
    n, m = data.draw(st.integers(1, 9)), data.draw(st.integers(1, 5))
    X = sparse.csr_array(np.array(data.draw(st.lists(st.integers(0, 3), min_size=n * m, max_size=n * m))).reshape(n, m))
    counts = write(tmp_path_factory.mktemp("counts"), X, data.draw(st.integers(1, 4)))
    rows = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=12)), dtype=int)
    assert counts.shape == X.shape
    np.testing.assert_array_equal(counts[rows].toarray(), X[rows].toarray())


def test_a_folder_without_counts_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"there is no counts\.json"):
        CountsOnDisk(tmp_path)


def test_a_file_that_was_cut_off_is_found_out(tmp_path):
    write(tmp_path, sparse.csr_array(np.eye(5, dtype=int)))
    content = (tmp_path / "counts.npy").read_bytes()
    (tmp_path / "counts.npy").write_bytes(content[:-1])
    with pytest.raises(ValueError, match=r"counts\.npy is damaged"):
        CountsOnDisk(tmp_path)


def test_counts_whose_writing_failed_are_no_counts(tmp_path):
    def blocks():
        yield sparse.csr_array(np.eye(2, dtype=int))
        raise RuntimeError("the source broke")

    write(tmp_path, sparse.csr_array(np.eye(5, dtype=int)))
    with pytest.raises(RuntimeError, match="the source broke"):
        CountsOnDisk.write(tmp_path, blocks(), 2)
    with pytest.raises(ValueError, match="holds no counts"):
        CountsOnDisk(tmp_path)


def test_a_block_with_another_number_of_columns_is_refused(tmp_path):
    with pytest.raises(ValueError, match="3 columns instead of 2"):
        CountsOnDisk.write(tmp_path, [sparse.csr_array(np.eye(3, dtype=int))], 2)
