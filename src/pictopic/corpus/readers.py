"""Counts and features that are read row by row: the interfaces that models train from, and arrays on disk."""

from __future__ import annotations

import json
import mmap
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar
from weakref import WeakSet

import numpy as np
from scipy import sparse

from pictopic.files import read_json, write_text

_META = "counts.json"
_ARRAYS = {"indptr": "<i8", "indices": "<i4", "counts": "<i4"}

# Bytes up to which an array is read instead of mapped.  When a mapped file is cut short, SIGBUS kills the process; and
# what is in memory cannot change after it was checked.
_IN_MEMORY = 16 << 20
_RELEASE = (
    4 << 20
)  # bytes read from maps before their pages are given back; Linux maps 64 KB for each row that is touched


class DenseRows(ABC):
    """An array whose rows can be read in any order; it need not fit into memory."""

    shape: tuple[int, ...]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @abstractmethod
    def __getitem__(self, rows: np.ndarray | slice) -> np.ndarray:
        """The rows with these numbers, in this order."""

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self[np.arange(len(self))], dtype=dtype)


class MappedRows(DenseRows):
    """Rows of a mapped array, read without keeping them in memory.

    Parameters
    ----------
    array : numpy.memmap
        Of one or more dimensions; or an array in memory if there is nothing to map.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pictopic.corpus.readers import MappedRows
    >>> path = tempfile.mkdtemp() + "/features.npy"
    >>> np.save(path, np.arange(6).reshape(3, 2))
    >>> MappedRows(np.load(path, mmap_mode="r"))[[2, 0]].tolist()
    [[4, 5], [0, 1]]
    """

    _mapped: ClassVar[WeakSet[MappedRows]] = WeakSet()
    _lock: ClassVar[threading.RLock] = threading.RLock()  # reentrant: a map may be freed while one thread holds it
    _read: ClassVar[int] = 0  # bytes, from all of them

    def __init__(self, array: np.ndarray):
        self.array, self.shape = array, array.shape
        if isinstance(array, np.memmap) and getattr(array, "_mmap", None) is not None:
            with self._lock:
                self._mapped.add(self)

    def __getitem__(self, rows: np.ndarray | slice) -> np.ndarray:
        values = np.array(self.array[rows])
        # Pages that were touched count as the process's memory until they are given back; they stay in the system's
        # cache.  A reader cannot know which ones it needs again.  All maps together: a corpus has hundreds.
        with self._lock:
            MappedRows._read += values.nbytes
            if MappedRows._read > _RELEASE:
                MappedRows._read = 0
                for other in list(self._mapped):
                    other.array._mmap.madvise(mmap.MADV_DONTNEED)  # type: ignore[attr-defined]
        return values


class RowReader(ABC):
    """Counts whose rows can be read in any order; they need not fit into memory.

    All methods that take X accept one.  A scipy CSR array can do the same and needs no reader.
    """

    shape: tuple[int, int]

    @abstractmethod
    def __getitem__(self, rows: np.ndarray) -> sparse.csr_array:
        """Counts of the rows with these numbers, in this order: whole numbers from 0 on, as int32."""

    def __len__(self) -> int:
        return self.shape[0]


# ---- arrays on disk --------------------------------------------------------------------------------------------------


def map_npy(path: str | Path) -> np.ndarray:
    """Map the array in a ``.npy`` file into memory; a ValueError names the file, whatever is in it.

    Archives and arrays of Python objects are refused, so that nothing is unpacked or unpickled.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pictopic.corpus.readers import map_npy
    >>> path = tempfile.mkdtemp() + "/a.npy"
    >>> np.save(path, [1, 2])
    >>> map_npy(path).tolist()
    [1, 2]
    """
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # NumPy raises a dozen kinds
        raise ValueError(f"{path} cannot be read as an array: {' '.join(str(error).split())}") from None


def map_rows(path: Path, shape: tuple[int, ...], dtype: str) -> MappedRows:
    """Map the array in a ``.npy`` file, or read it if it is small; a ValueError if it has another shape or dtype."""
    expected = np.dtype(dtype)
    n_bytes = int(np.prod(shape, dtype=object)) * expected.itemsize
    try:
        if not path.is_file():  # a pipe would block
            raise ValueError("it is missing")
        with path.open("rb") as file:
            if np.lib.format.read_magic(file) != (1, 0):
                raise ValueError("its format is not known")
            file_shape, is_fortran, file_dtype = np.lib.format.read_array_header_1_0(file)
            if file_shape != shape or file_dtype != expected or is_fortran:
                raise ValueError(f"it should be of shape {shape}, but is of {file_shape}, {file_dtype}")
            start = file.tell()
            if path.stat().st_size != start + n_bytes:
                raise ValueError(f"it should have {start + n_bytes} bytes, but has {path.stat().st_size}")
            if n_bytes <= _IN_MEMORY:
                return MappedRows(np.fromfile(file, expected, n_bytes // expected.itemsize).reshape(shape))
        return MappedRows(np.memmap(path, expected, "r", start, shape))
    except Exception as error:  # the header is a Python literal: reading a damaged one raises anything
        raise ValueError(f"{path} is damaged: {' '.join(str(error).split())}") from None


class NpyWriter:
    """A ``.npy`` file that grows row by row: only the rows that are being added are in memory.

    The header with the number of rows is written last: an unfinished file is not valid.

    Parameters
    ----------
    path : path
    dtype : dtype
    columns : int, optional
        For an array of two dimensions.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pictopic.corpus.readers import NpyWriter
    >>> path = tempfile.mkdtemp() + "/a.npy"
    >>> with NpyWriter(path, "<f4", columns=2) as file:
    ...     file.append([[1, 2]])
    ...     file.append([[3, 4], [5, 6]])
    >>> np.load(path).tolist()
    [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    """

    def __init__(self, path: str | Path, dtype: Any, columns: int | None = None):
        self._dtype = np.dtype(dtype)
        self._tail = () if columns is None else (columns,)
        self._n_rows = 0
        self._file = Path(path).open("wb")  # noqa: SIM115 - closed by __exit__
        self._file.write(b"\0" * self._header_size())

    def _header_size(self) -> int:
        self._write_header()
        size = self._file.tell()
        self._file.seek(0)
        return size

    def _write_header(self) -> None:
        # NumPy leaves room for the first axis to grow: the header has the same size for any number of rows.
        header = {
            "descr": np.lib.format.dtype_to_descr(self._dtype),
            "fortran_order": False,
            "shape": (self._n_rows, *self._tail),
        }
        np.lib.format.write_array_header_1_0(self._file, header)

    def append(self, rows: Any) -> None:
        """Add rows at the end."""
        array = np.ascontiguousarray(rows, dtype=self._dtype)
        if array.shape[1:] != self._tail:
            raise ValueError(f"rows of shape {array.shape[1:]} do not fit {self._tail}")
        self._file.write(array.tobytes())
        self._n_rows += len(array)

    def __enter__(self) -> NpyWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if kind is None:
                self._file.seek(0)
                self._write_header()
        finally:
            self._file.close()


def _is_size(value: Any) -> bool:
    return type(value) is int and 0 <= value < 2**48


class CountsOnDisk(RowReader):
    """A CSR matrix in a folder, mapped into memory: only the rows that are asked for are read.

    Parameters
    ----------
    folder : path
        Written by `write`.

    Examples
    --------
    >>> import tempfile
    >>> from scipy import sparse
    >>> from pictopic.corpus.readers import CountsOnDisk
    >>> blocks = (sparse.csr_array([[2, 0, 1], [0, 1, k]]) for k in range(3))
    >>> folder = tempfile.mkdtemp()
    >>> counts = CountsOnDisk.write(folder, blocks, n_words=3)
    >>> counts.shape
    (6, 3)
    >>> counts[[5, 0]].toarray().tolist()
    [[0, 1, 2], [2, 0, 1]]
    """

    def __init__(self, folder: str | Path):
        self.folder = folder = Path(folder)
        if not (folder / _META).is_file():
            raise ValueError(f"{folder} holds no counts: there is no {_META} in it")
        meta = read_json(folder / _META)
        shape, n_entries = meta.get("shape"), meta.get("n_entries")
        if not (isinstance(shape, list) and len(shape) == 2 and all(_is_size(value) for value in (*shape, n_entries))):
            raise ValueError(f"{folder / _META} is damaged: shape or n_entries is missing or wrong")
        self.shape, n_entries = (int(shape[0]), int(shape[1])), int(meta["n_entries"])
        sizes = (self.shape[0] + 1, n_entries, n_entries)
        self.indptr, self.indices, self.counts = (
            map_rows(folder / f"{name}.npy", (size,), dtype)
            for (name, dtype), size in zip(_ARRAYS.items(), sizes, strict=True)
        )
        ends = self.indptr.array
        if ends[0] != 0 or ends[-1] != n_entries or (np.diff(ends) < 0).any():
            raise ValueError(f"{folder / 'indptr.npy'} is damaged: it does not rise from 0 to {n_entries}")

    @classmethod
    def write(cls, folder: str | Path, blocks: Iterable[sparse.csr_array], n_words: int) -> CountsOnDisk:
        """Write blocks of rows one after the other, and open the result.

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
        (folder / _META).unlink(missing_ok=True)  # an unfinished folder is not a matrix
        n_rows = n_entries = 0
        with ExitStack() as stack:
            files = {
                name: stack.enter_context(NpyWriter(folder / f"{name}.npy", dtype)) for name, dtype in _ARRAYS.items()
            }
            files["indptr"].append(np.zeros(1))
            for block in blocks:
                part = sparse.csr_array(block)
                if part.shape[1] != n_words:
                    raise ValueError(f"a block has {part.shape[1]} columns instead of {n_words}")
                part.sum_duplicates()
                files["indptr"].append(part.indptr[1:] + np.int64(n_entries))
                files["indices"].append(part.indices)
                files["counts"].append(part.data)
                n_rows, n_entries = n_rows + part.shape[0], n_entries + part.nnz
        write_text(folder / _META, json.dumps({"shape": [n_rows, n_words], "n_entries": n_entries}) + "\n")
        return cls(folder)

    def __getitem__(self, rows: np.ndarray) -> sparse.csr_array:
        rows = np.asarray(rows, dtype=np.int64)
        starts, ends = self.indptr[rows], self.indptr[rows + 1]
        indptr = np.concatenate([[0], np.cumsum(ends - starts)])
        # Where each entry of the result lies on disk.
        places = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], ends - starts)
        index_type = np.int32 if indptr[-1] < 2**31 else np.int64
        counts, indices = self._checked(self.counts[places], self.indices[places])
        return sparse.csr_array((counts, indices, indptr.astype(index_type)), shape=(len(rows), self.shape[1]))

    def whole(self) -> sparse.csr_array:
        """All rows as one matrix whose arrays stay on disk until they are used, if they are large."""
        counts, indices = self._checked(self.counts.array, self.indices.array)
        return sparse.csr_array((counts, indices, np.asarray(self.indptr.array)), shape=self.shape)

    def _checked(self, counts: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The arguments if they are safe: compiled code uses the indices as places in memory."""
        if len(indices) and not (indices.min() >= 0 and indices.max() < self.shape[1]):
            raise ValueError(f"{self.folder / 'indices.npy'} is damaged: a word is not one of the {self.shape[1]}")
        if len(counts) and counts.min() < 0:
            raise ValueError(f"{self.folder / 'counts.npy'} is damaged: a count is below 0")
        return counts, indices


# ---- several readers, or some of their rows --------------------------------------------------------------------------


class _Places:
    """Where rows lie that are spread over several readers, one after the other, or a selection of these rows."""

    def __init__(self, lengths: Sequence[int], rows: np.ndarray | None):
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        self.rows = rows

    def __len__(self) -> int:
        return int(self.starts[-1]) if self.rows is None else len(self.rows)

    def find(self, rows: np.ndarray | slice) -> tuple[list[tuple[int, np.ndarray]], np.ndarray]:
        """(reader, rows in it) for each reader that is needed, and the order to bring the answers into."""
        if self.rows is not None:
            rows = self.rows[rows]
        elif isinstance(rows, slice):
            rows = np.arange(len(self))[rows]
        rows = np.asarray(rows, dtype=np.int64)
        if rows.size and not (rows.min() >= 0 and rows.max() < self.starts[-1]):
            raise IndexError(f"row {rows.max() if rows.min() >= 0 else rows.min()} is outside 0..{self.starts[-1] - 1}")
        reader = np.searchsorted(self.starts, rows, side="right") - 1
        order = np.argsort(reader, kind="stable")
        places = [(int(k), rows[reader == k] - self.starts[k]) for k in np.unique(reader)]
        return places, np.argsort(order, kind="stable")


class CountsInParts(RowReader):
    """Counts in several readers, one after the other, or some of their rows.

    Parameters
    ----------
    parts : sequence of RowReader
        Those with fewer than `n_words` columns lack the last words.
    n_words : int
    rows : int array, optional
        Which rows, in this order; default: all.
    """

    def __init__(self, parts: Sequence[RowReader], n_words: int, rows: np.ndarray | None = None):
        self._readers, self._places = list(parts), _Places([len(part) for part in parts], rows)
        self.shape = (len(self._places), n_words)

    def __getitem__(self, rows: np.ndarray | slice) -> sparse.csr_array:
        places, order = self._places.find(rows)
        if not places:
            return sparse.csr_array((0, self.shape[1]), dtype=np.int32)
        blocks = [self._readers[k][part_rows] for k, part_rows in places]
        for block in blocks:
            block.resize(block.shape[0], self.shape[1])
        return blocks[0][order] if len(blocks) == 1 else sparse.vstack(blocks, format="csr")[order]


class RowsInParts(DenseRows):
    """Rows of several arrays, one after the other, or some of their rows; parameters as for `CountsInParts`."""

    def __init__(self, parts: Sequence[DenseRows], rows: np.ndarray | None = None):
        self._readers, self._places = list(parts), _Places([len(part) for part in parts], rows)
        self.shape = (len(self._places), *(parts[0].shape[1:] if parts else (0,)))

    def __getitem__(self, rows: np.ndarray | slice) -> np.ndarray:
        places, order = self._places.find(rows)
        if not places:
            return np.zeros((0, *self.shape[1:]), np.float32)
        return np.concatenate([self._readers[k][part_rows] for k, part_rows in places])[order]
