import numpy as np
import pytest

from pictopic.corpus.npy import NpyWriter


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
