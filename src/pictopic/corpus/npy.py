"""NumPy files: written bit by bit, and mapped into memory."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np


def map_npy(path: str | Path) -> np.ndarray:
    """The array in a ``.npy`` file, mapped into memory; a ValueError names the file, whatever is in it.

    Archives and arrays of Python objects are refused, so that nothing is unpacked or unpickled.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pictopic.corpus.npy import map_npy
    >>> path = tempfile.mkdtemp() + "/a.npy"
    >>> np.save(path, [1, 2])
    >>> map_npy(path).tolist()
    [1, 2]
    """
    try:
        return np.lib.format.open_memmap(path, mode="r")
    except Exception as error:  # NumPy raises a dozen kinds
        raise ValueError(f"{path} cannot be read as an array: {' '.join(str(error).split())}") from None


class NpyWriter:
    """A ``.npy`` file that grows row by row: only the rows that are being added are in memory.

    The header, which says how many rows there are, is written last; a file that was left before is no valid one.

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
    >>> from pictopic.corpus.npy import NpyWriter
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
