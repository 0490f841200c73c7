"""Tables beside pictures: CSV, JSON lines and Parquet, read cell by cell."""

from __future__ import annotations

import csv
import io
import json
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

METADATA_EXTENSIONS = (".csv", ".jsonl", ".parquet")
_MAX_LINE = 64 << 20  # bytes
_BATCH = 1 << 8  # rows; a Parquet file of kilobytes can have megabytes in each
_MAX_BATCH = 256 << 20  # bytes of text in so many rows
_MAX_SHOWN = 300  # characters
_END = "\0end of the table\0"


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

    def _check_unique(self, columns: Sequence[str | None]) -> None:
        for column in columns:
            if column is not None and self.columns.count(column) > 1:
                raise ValueError(f"{self.path}: there are two columns {column!r}")


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


def list_columns(names: Iterable[str]) -> str:
    """Names of columns for an error, in one line that is not too long.

    Examples
    --------
    >>> from pictopic.corpus.metadata import list_columns
    >>> list_columns(["file_name", "a" + chr(10) + "b"])
    'file_name, a b'
    """
    text = " ".join(", ".join(names).split())
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."


class TextLines:
    """The lines of a text file, numbered from 1; UTF-8, or UTF-16 with a byte order mark.

    A line that is not UTF-8 is read as Windows-1252, so that the others are not lost; a warning names the first one.
    """

    def __init__(self, path: Path):
        self.path = path
        self._warned = False

    def __iter__(self) -> Iterator[str]:
        with self.path.open("rb") as file:
            is_utf16 = file.read(2) in (b"\xff\xfe", b"\xfe\xff")
        with self.path.open("rb") as file:
            if is_utf16:
                with io.TextIOWrapper(file, encoding="utf-16", newline="") as text:
                    yield from self._utf16_lines(text)
                return
            for number, line in enumerate(iter(lambda: file.readline(_MAX_LINE + 1), b""), 1):
                self._check_length(len(line), number)
                yield self._decode(line, number)

    def _utf16_lines(self, text: io.TextIOWrapper) -> Iterator[str]:
        try:
            for number, line in enumerate(iter(lambda: text.readline(_MAX_LINE + 1), ""), 1):
                self._check_length(len(line), number)
                yield line
        except UnicodeError as error:
            raise ValueError(f"{self.path}: not UTF-16, as its first two bytes say: {error}") from None

    def _check_length(self, length: int, number: int) -> None:
        if length > _MAX_LINE:
            raise ValueError(f"{self.path}, row {number}: longer than {_MAX_LINE:,} bytes")

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
        # The reader takes a last cell whose quote is not closed for a whole one, with the rest of the file in it.
        reader = csv.reader(chain(self._lines, [_END]), delimiter=self._separator)
        while True:
            start = reader.line_num + 1
            try:
                row = next(reader)
            except csv.Error as error:
                hint = "; is a quote not closed?" if reader.line_num > start else ""
                raise ValueError(f"{self.path}, row {reader.line_num}: {error}{hint}") from None
            if row == [_END]:
                return
            if row and row[-1].endswith(_END):
                raise ValueError(f"{self.path}, row {start}: a quote is not closed")
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
        self._check_unique(columns)
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

    @contextmanager
    def _open(self, texts: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
        """The file; of the columns `texts`, values that many rows share are in memory once."""
        try:
            with pq.ParquetFile(self.path, read_dictionary=list(texts)) as file:
                yield file
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise ValueError(f"{self.path} cannot be read as Parquet: {' '.join(str(error).split())}") from None

    def rows(self, columns: Sequence[str | None]) -> Iterator[tuple[int, list[Any]]]:
        """For each row its number, from 1, and its cells."""
        self._check_unique(columns)
        wanted = list(dict.fromkeys(column for column in columns if column is not None))
        number = 0
        with self._open() as file:
            schema, texts = file.schema_arrow, _texts(file, wanted)
        with self._open(texts) as file:
            for batch in file.iter_batches(batch_size=_BATCH, columns=wanted):
                if sum(map(_n_bytes, batch.columns)) > _MAX_BATCH:
                    rows = f"rows {number + 1:,} to {number + batch.num_rows:,}"
                    raise ValueError(f"{self.path}, {rows}: more than {_MAX_BATCH >> 20} MB in {', '.join(wanted)}")
                plain = {name: batch.column(name).cast(schema.field(name).type) for name in wanted}
                cells = {name: self._cells(plain[name], number) for name in wanted}
                for i in range(batch.num_rows):
                    number += 1
                    yield number, [None if column is None else cells[column][i] for column in columns]

    def _cells(self, column: pa.Array, before: int) -> list[Any]:
        """The cells of some rows as Python objects; the text of those that Python has no object for."""
        try:
            return column.to_pylist()
        except Exception:  # Arrow raises a dozen kinds: for dates after the year 9999, unknown time zones, ...
            return [self._cell(cell, before + i) for i, cell in enumerate(column, 1)]

    def _cell(self, cell: pa.Scalar, number: int) -> Any:
        if isinstance(cell, pa.ListScalar) and cell.is_valid:
            return [self._cell(item, number) for item in cell.values]
        for read in (pa.Scalar.as_py, _bytes, _text):
            try:
                return read(cell)
            except Exception as error:
                reason = error
        what = " ".join(str(reason).split())
        raise ValueError(f"{self.path}, row {number}: a cell of type {cell.type} cannot be read: {what}")


def _texts(file: pq.ParquetFile, wanted: list[str]) -> list[str]:
    """Parquet's paths of those of the columns that are texts or lists of texts."""
    kinds = {name: file.schema_arrow.field(name).type for name in wanted}
    texts = {
        name
        for name, kind in kinds.items()
        if (kind.value_type if pa.types.is_list(kind) else kind) in (pa.string(), pa.binary())
    }
    paths = (file.schema.column(i).path for i in range(len(file.schema)))
    return [path for path in paths if path in texts or path.split(".")[0] in texts]


def _n_bytes(column: pa.Array) -> int:
    """Bytes of a column when each row has its own copy of what it shares with others."""
    if pa.types.is_list(column.type):
        column = column.flatten()
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary).take(column.indices)
    return int(pc.sum(lengths.cast(pa.int64())).as_py() or 0)


def _bytes(cell: pa.Scalar) -> bytes:
    return cell.as_buffer().to_pybytes()


def _text(cell: pa.Scalar) -> str:
    return cell.cast(pa.string()).as_py()
