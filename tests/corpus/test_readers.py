import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from pictopic import CountsOnDisk
from pictopic.corpus.readers import MappedRows, NpyWriter


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


@pytest.mark.parametrize(
    ("name", "place", "value", "message"),
    [
        ("indices", 2, 5, "a word is not one of the 5"),
        ("indices", 0, -1, "a word is not one of the 5"),
        ("counts", 3, -7, "a count is below 0"),
        ("indptr", 2, 4_000_000_000, "does not rise from 0 to 5"),
        ("indptr", 5, 9, "does not rise from 0 to 5"),
    ],
)
@pytest.mark.parametrize("read", [lambda counts: counts.whole(), lambda counts: counts[np.arange(5)]])
def test_arrays_that_would_lead_out_of_memory_are_refused(tmp_path, name, place, value, message, read):
    write(tmp_path, sparse.csr_array(np.eye(5, dtype=int)))
    array = np.load(tmp_path / f"{name}.npy")
    array[place] = value
    np.save(tmp_path / f"{name}.npy", array)
    with pytest.raises(ValueError, match=message):
        read(CountsOnDisk(tmp_path))


@pytest.mark.parametrize("meta", ["[]", '{"shape": [5, 5]}', '{"shape": [5, -1], "n_entries": 5}', "[" * 9999])
def test_a_description_that_makes_no_sense_is_refused(tmp_path, meta):
    write(tmp_path, sparse.csr_array(np.eye(5, dtype=int)))
    (tmp_path / "counts.json").write_text(meta)
    with pytest.raises(ValueError, match=r"counts\.json is damaged"):
        CountsOnDisk(tmp_path)


def test_a_header_that_is_no_python_literal_is_refused(tmp_path):
    CountsOnDisk.write(tmp_path, [sparse.csr_array([[1, 2]])], 2)
    path = tmp_path / "indptr.npy"
    path.write_bytes(path.read_bytes().replace(b"}", b"]", 1))
    with pytest.raises(ValueError, match=r"indptr\.npy is damaged"):
        CountsOnDisk(tmp_path)


def test_a_header_that_claims_more_than_the_file_has_is_refused_before_memory_is_asked_for(tmp_path):
    write(tmp_path, sparse.csr_array(np.eye(5, dtype=int)))
    (tmp_path / "counts.json").write_text('{"shape": [5, 5], "n_entries": 200000000000}')
    with (tmp_path / "counts.npy").open("wb") as file:
        header = {"descr": "<i4", "fortran_order": False, "shape": (200_000_000_000,)}
        np.lib.format.write_array_header_1_0(file, header)
    with pytest.raises(ValueError, match=r"\.npy is damaged"):
        CountsOnDisk(tmp_path)


def test_a_small_file_that_is_cut_off_while_it_is_open_does_no_harm(tmp_path):
    counts = write(tmp_path, sparse.csr_array(np.eye(5, dtype=int)))
    for name in ("indptr", "indices", "counts"):
        (tmp_path / f"{name}.npy").open("rb+").truncate(0)
    assert counts[[4, 1]].toarray().tolist() == [[0, 0, 0, 0, 1], [0, 1, 0, 0, 0]]


def test_maps_can_be_made_and_freed_while_others_are_read(tmp_path):
    np.save(tmp_path / "a.npy", np.zeros((64, 4096), np.float32))

    def read(_):
        for _ in range(60):
            assert not MappedRows(np.load(tmp_path / "a.npy", mmap_mode="r"))[np.arange(64)].any()
        return True

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(read, range(8)))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path):
    write(tmp_path, sparse.csr_array(np.eye(5, dtype=int)))
    (tmp_path / "indices.npy").unlink()
    os.mkfifo(tmp_path / "indices.npy")
    with pytest.raises(ValueError, match=r"indices\.npy is damaged: it is missing"):
        CountsOnDisk(tmp_path)


# ---- NpyWriter ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("columns", [None, 3])
def test_rows_that_were_appended_are_read_by_numpy(tmp_path, columns):
    shape = () if columns is None else (columns,)
    blocks = [np.arange(n * (columns or 1), dtype=np.int32).reshape(n, *shape) for n in (2, 0, 300)]
    with NpyWriter(tmp_path / "a.npy", "<i4", columns) as file:
        for block in blocks:
            file.append(block)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy", mmap_mode="r"), np.concatenate(blocks))


def test_a_file_without_rows_is_an_empty_array(tmp_path):
    with NpyWriter(tmp_path / "a.npy", "<f4", 5):
        pass
    assert np.load(tmp_path / "a.npy").shape == (0, 5)


def test_a_file_that_was_left_before_the_end_is_no_array(tmp_path):
    def leave():
        with NpyWriter(tmp_path / "a.npy", "<f4") as file:
            file.append(np.ones(4))
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError):
        leave()
    with pytest.raises(ValueError, match="pickled"):
        np.load(tmp_path / "a.npy", allow_pickle=False)


def test_rows_of_another_width_are_refused(tmp_path):
    with NpyWriter(tmp_path / "a.npy", "<f4", 2) as file, pytest.raises(ValueError, match="do not fit"):
        file.append(np.ones((1, 3)))
