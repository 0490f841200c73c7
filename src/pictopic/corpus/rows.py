"""Counts that are read row by row: the interface of what the deep models train from, and a matrix on disk."""

from __future__ import annotations

import json
import mmap
from abc import ABC, abstractmethod
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from scipy import sparse

from pictopic.files import write_text

_META = "counts.json"
_ARRAYS = {"indptr": "<i8", "indices": "<i4", "data": "<i4"}


_RELEASE = 64 << 20  # bytes read from a map before its pages are given back


class MappedRows:
    """Rows of a mapped array, read without keeping what was read in memory.

    Parameters
    ----------
    array : numpy.memmap
        Of one or more dimensions.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pictopic.corpus.rows import MappedRows
    >>> path = tempfile.mkdtemp() + "/features.npy"
    >>> np.save(path, np.arange(6).reshape(3, 2))
    >>> MappedRows(np.load(path, mmap_mode="r"))[[2, 0]].tolist()
    [[4, 5], [0, 1]]
    """

    def __init__(self, array: np.memmap):
        self.array, self.shape, self.ndim = array, array.shape, array.ndim
        self._read = 0

    def __getitem__(self, rows: np.ndarray | slice) -> np.ndarray:
        found = np.array(self.array[rows])
        # Pages that were touched count as the process's memory until they are given back; they stay in the system's
        # cache.  A reader cannot know which ones it needs again.
        self._read += found.nbytes
        if self._read > _RELEASE:
            self._read = 0
            self.array._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]
        return found


class RowReader(ABC):
    """Counts from which any rows can be read, in any order; they need not fit into memory.

    `fit` and all methods that take X take one, too.  A scipy CSR array does the same and needs no reader.
    """

    shape: tuple[int, int]

    @abstractmethod
    def __getitem__(self, rows: np.ndarray) -> sparse.csr_array:
        """Counts of the rows with these numbers, in this order: whole numbers from 0 on, as int32."""

    def __len__(self) -> int:
        return self.shape[0]


class CountsOnDisk(RowReader):
    """A CSR matrix in a folder, mapped into memory: only the rows that are asked for are read.

    Parameters
    ----------
    folder : path
        As `write` made it.

    Examples
    --------
    >>> import tempfile
    >>> from scipy import sparse
    >>> from pictopic.corpus.rows import CountsOnDisk
    >>> blocks = (sparse.csr_array([[2, 0, 1], [0, 1, k]]) for k in range(3))
    >>> folder = tempfile.mkdtemp()
    >>> counts = CountsOnDisk.write(folder, blocks, n_words=3)
    >>> counts.shape
    (6, 3)
    >>> counts[[5, 0]].toarray().tolist()
    [[0, 1, 2], [2, 0, 1]]
    """

    def __init__(self, folder: str | Path):
        folder = Path(folder)
        if not (folder / _META).is_file():
            raise ValueError(f"{folder} holds no counts: there is no {_META} in it")
        meta = json.loads((folder / _META).read_text(encoding="utf-8"))
        self.shape = (int(meta["shape"][0]), int(meta["shape"][1]))
        self.indptr = self._map(folder, "indptr", self.shape[0] + 1)
        n_entries = int(self.indptr[slice(self.shape[0], None)][0])
        self.indices = self._map(folder, "indices", n_entries)
        self.data = self._map(folder, "data", n_entries)

    @staticmethod
    def _map(folder: Path, name: str, size: int) -> MappedRows | np.ndarray:
        path = folder / f"{name}.bin"
        dtype = np.dtype(_ARRAYS[name])
        found = path.stat().st_size if path.is_file() else 0
        if found != size * dtype.itemsize:
            raise ValueError(f"{path} is damaged: it should have {size * dtype.itemsize} bytes, but has {found}")
        return MappedRows(np.memmap(path, dtype, mode="r", shape=(size,))) if size else np.zeros(0, dtype)

    @classmethod
    def write(cls, folder: str | Path, blocks: Iterable[sparse.csr_array], n_words: int) -> CountsOnDisk:
        """Write blocks of rows, one after the other, and open what was written.

        Parameters
        ----------
        folder : path
            Made if it does not exist.
        blocks : iterable of csr_array of shape (any, n_words)
            Held in memory one at a time.
        n_words : int

        Returns
        -------
        CountsOnDisk
        """
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _META).unlink(missing_ok=True)  # until all is written, this is not a matrix
        n_rows = n_entries = 0
        files = {name: (folder / f"{name}.bin").open("wb") for name in _ARRAYS}
        try:
            files["indptr"].write(np.zeros(1, _ARRAYS["indptr"]).tobytes())
            for block in blocks:
                part = sparse.csr_array(block)
                if part.shape[1] != n_words:
                    raise ValueError(f"a block has {part.shape[1]} columns instead of {n_words}")
                part.sum_duplicates()
                files["indptr"].write((part.indptr[1:] + n_entries).astype(_ARRAYS["indptr"]).tobytes())
                files["indices"].write(part.indices.astype(_ARRAYS["indices"]).tobytes())
                files["data"].write(part.data.astype(_ARRAYS["data"]).tobytes())
                n_rows, n_entries = n_rows + part.shape[0], n_entries + part.nnz
        finally:
            for file in files.values():
                file.close()
        write_text(folder / _META, json.dumps({"shape": [n_rows, n_words]}) + "\n")
        return cls(folder)

    def __getitem__(self, rows: np.ndarray) -> sparse.csr_array:
        rows = np.asarray(rows, dtype=np.int64)
        starts, ends = self.indptr[rows], self.indptr[rows + 1]
        indptr = np.concatenate([[0], np.cumsum(ends - starts)])
        # Where each entry of the answer lies on disk.
        places = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], ends - starts)
        index_type = np.int32 if indptr[-1] < 2**31 else np.int64
        return sparse.csr_array(
            (self.data[places], self.indices[places], indptr.astype(index_type)),
            shape=(len(rows), self.shape[1]),
        )
