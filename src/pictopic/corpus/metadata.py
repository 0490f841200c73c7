"""Tables beside pictures: CSV, JSON lines and Parquet, read cell by cell."""

from __future__ import annotations

import csv
import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

METADATA_EXTENSIONS = (".csv", ".jsonl", ".parquet")


class Table(ABC):
    """A table in a file, of which some columns are read.

    Parameters
    ----------
    path : Path
    """

    def __init__(self, path: Path):
        self.path = path

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """The names of all columns."""

    @abstractmethod
    def rows(self, columns: Sequence[str | None]) -> Iterator[tuple[int, list[Any]]]:
        """For each row its number in the file and its cells; a column None has cells None."""


def open_table(path: Path) -> Table:
    """The table in a file; its extension says what it is.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.corpus.metadata import open_table
    >>> path = Path(tempfile.mkdtemp(), "metadata.csv")
    >>> print("file_name,tags", "a.jpg,sea;sky", sep=chr(10), file=path.open("w"), flush=True)
    >>> list(open_table(path).rows(["tags", "file_name"]))
    [(2, ['sea;sky', 'a.jpg'])]
    """
    kinds: dict[str, Callable[[Path], Table]] = {".csv": CsvTable, ".jsonl": JsonTable, ".parquet": ParquetTable}
    if path.suffix.lower() not in kinds:
        raise ValueError(f"{path}: a table is a file with one of the extensions {', '.join(kinds)}")
    return kinds[path.suffix.lower()](path)


class TextLines:
    """The lines of a text file, numbered from 1; UTF-8, or UTF-16 with a byte order mark.

    A line that is not UTF-8 is read as Windows-1252, so that the others are not lost; a warning names the first one.
    """

    def __init__(self, path: Path):
        self.path = path
        self._warned = False

    def __iter__(self) -> Iterator[str]:
        with self.path.open("rb") as file:
            start = file.read(2)
            file.seek(0)
            if start in (b"\xff\xfe", b"\xfe\xff"):
                file.close()
                with self.path.open(encoding="utf-16", newline="") as text:
                    yield from text
                return
            for number, line in enumerate(file, 1):
                yield self._decode(line, number)

    def _decode(self, line: bytes, number: int) -> str:
        try:
            return line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError:
            if not self._warned:
                self._warned = True
                warnings.warn(
                    f"{self.path}, row {number}: not UTF-8; this row and others like it are read as Windows-1252",
                    stacklevel=2,
                )
        try:
            return line.decode("cp1252")
        except UnicodeDecodeError:  # five bytes mean nothing in Windows-1252
            return line.decode("latin-1")


class CsvTable(Table):
    """A CSV file with a header; the separator is the first of ``,``, ``;`` and tab in it."""

    def __init__(self, path: Path):
        super().__init__(path)
        self._lines = TextLines(path)

    @cached_property
    def _separator(self) -> str:
        header = next(iter(self._lines), "")
        return next((mark for mark in ",;\t" if mark in header), ",")

    @cached_property
    def columns(self) -> list[str]:
        """The names in the header."""
        for _, names in self.cells():
            return [name.strip() for name in names]
        raise ValueError(f"{self.path} is empty")

    def cells(self) -> Iterator[tuple[int, list[str]]]:
        """All cells of all rows, the header too; empty lines are left out."""
        reader = csv.reader(self._lines, delimiter=self._separator)
        while True:
            try:
                row = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                raise ValueError(f"{self.path}, row {reader.line_num}: {error}") from None
            if row:
                yield reader.line_num, row

    def body(self) -> Iterator[tuple[int, list[str]]]:
        """All cells of all rows below the header, as many as the header has."""
        n = len(self.columns)
        rows = self.cells()
        next(rows)
        for number, row in rows:
            if len(row) > n:
                raise ValueError(
                    f"{self.path}, row {number}: {len(row)} cells, but {n} columns (quote a cell that has commas in it)"
                )
            yield number, row + [""] * (n - len(row))

    def rows(self, columns: Sequence[str | None]) -> Iterator[tuple[int, list[Any]]]:
        """For each row its number in the file and its cells."""
        for column in columns:
            if column is not None and self.columns.count(column) > 1:
                raise ValueError(f"{self.path}: there are two columns {column!r}")
        places = [None if column is None else self.columns.index(column) for column in columns]
        for number, row in self.body():
            yield number, [None if place is None else row[place] for place in places]


class JsonTable(Table):
    """A file with a JSON object a line."""

    def __init__(self, path: Path):
        super().__init__(path)
        self._lines = TextLines(path)

    @cached_property
    def columns(self) -> list[str]:
        """All names in any of the objects, in the order in which they occur."""
        return list(dict.fromkeys(name for _, row in self._objects() for name in row))

    def _objects(self) -> Iterator[tuple[int, dict[str, Any]]]:
        for number, line in enumerate(self._lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(f"{self.path}, row {number}: not JSON: {error}") from None
            if not isinstance(row, dict):
                raise ValueError(f"{self.path}, row {number}: not a JSON object, but {line.strip()[:40]}")
            yield number, row

    def rows(self, columns: Sequence[str | None]) -> Iterator[tuple[int, list[Any]]]:
        """For each row its number in the file and its cells."""
        for number, row in self._objects():
            yield number, [None if column is None else row.get(column) for column in columns]


class ParquetTable(Table):
    """A Parquet file."""

    @cached_property
    def columns(self) -> list[str]:
        """The names in the schema."""
        with self._open() as file:
            return list(file.schema_arrow.names)

    def _open(self) -> pq.ParquetFile:
        try:
            return pq.ParquetFile(self.path)
        except (pa.ArrowException, OSError) as error:
            raise ValueError(f"{self.path} cannot be read as Parquet: {error}") from None

    def rows(self, columns: Sequence[str | None]) -> Iterator[tuple[int, list[Any]]]:
        """For each row its number, from 1, and its cells."""
        wanted = [column for column in columns if column is not None]
        number = 0
        with self._open() as file:
            try:
                for batch in file.iter_batches(batch_size=1 << 14, columns=list(dict.fromkeys(wanted))):
                    cells = {name: batch.column(name).to_pylist() for name in batch.schema.names}
                    for i in range(batch.num_rows):
                        number += 1
                        yield number, [None if column is None else cells[column][i] for column in columns]
            except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
                raise ValueError(f"{self.path}, after row {number}: {error}") from None
