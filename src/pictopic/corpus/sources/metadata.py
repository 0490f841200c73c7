"""Metadata files, as in Hugging Face's ImageFolder: tables in CSV, JSON lines or Parquet with tags and labels."""

from __future__ import annotations

import csv
import io
import json
import os
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

from pictopic.corpus.sources.listing import SPLITS, Columns, Listing, PictureFolder, Source, labels_of
from pictopic.corpus.sources.picture_folder import keywords
from pictopic.words.tags import cell_text

METADATA_EXTENSIONS = (".csv", ".jsonl", ".parquet")
_MAX_LINE = 64 << 20  # bytes
_BATCH = 1 << 8  # rows; a Parquet file of kilobytes can have megabytes in each
_MAX_BATCH = 256 << 20  # bytes of text in so many rows
_MAX_SHOWN = 300  # characters
_END = "\0end of the table\0"


class Table(ABC):
    """A table in a file, of which some columns are read."""

    def __init__(self, path: Path):
        self.path = path

    @property
    @abstractmethod
    def columns(self) -> list[str]:
        """Names of all columns."""

    @abstractmethod
    def rows(self, columns: Sequence[str | None]) -> Iterator[tuple[int, list[Any]]]:
        """For each row its number in the file and its cells; the cells of a column None are None."""

    def _check_unique(self, columns: Sequence[str | None]) -> None:
        for column in columns:
            if column is not None and self.columns.count(column) > 1:
                raise ValueError(f"{self.path}: there are two columns {column!r}")


def open_table(path: Path) -> Table:
    """Open the table in a file, whose format follows from the extension.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.corpus.sources.metadata import open_table
    >>> path = Path(tempfile.mkdtemp(), "metadata.csv")
    >>> print("file_name,tags", "a.jpg,sea;sky", sep=chr(10), file=path.open("w"), flush=True)
    >>> list(open_table(path).rows(["tags", "file_name"]))
    [(2, ['sea;sky', 'a.jpg'])]
    """
    tables: tuple[Callable[[Path], Table], ...] = (CsvTable, JsonTable, ParquetTable)
    if path.suffix.lower() not in METADATA_EXTENSIONS:
        raise ValueError(f"{path}: a table is a file with one of the extensions {', '.join(METADATA_EXTENSIONS)}")
    return tables[METADATA_EXTENSIONS.index(path.suffix.lower())](path)


def list_columns(names: Iterable[str]) -> str:
    """Names of columns on one line of limited length, for an error message.

    Examples
    --------
    >>> from pictopic.corpus.sources.metadata import list_columns
    >>> list_columns(["file_name", "a" + chr(10) + "b"])
    'file_name, a b'
    """
    text = " ".join(", ".join(names).split())
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "..."


class TextLines:
    """Lines of a text file in UTF-8, or in UTF-16 with a byte order mark.

    A line that is not UTF-8 is read as Windows-1252 so that the others are not lost; a warning names the first one.
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
        """Names in the header."""
        for _, names in self.cells():
            return [name.strip() for name in names]
        raise ValueError(f"{self.path} is empty")

    def cells(self) -> Iterator[tuple[int, list[str]]]:
        """All cells of all rows, including the header; empty lines are left out."""
        # csv.reader accepts a last cell with an unclosed quote and puts the rest of the file in it.
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
        """All cells of all rows below the header, padded to the length of the header."""
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
    """A file with one JSON object per line."""

    def __init__(self, path: Path):
        super().__init__(path)
        self._lines = TextLines(path)

    @cached_property
    def columns(self) -> list[str]:
        """Names in any of the objects, in order of appearance."""
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
        """Names in the schema."""
        with self._open() as file:
            return list(file.schema_arrow.names)

    @contextmanager
    def _open(self, texts: Sequence[str] = ()) -> Iterator[pq.ParquetFile]:
        """The open file; values of the columns `texts` that many rows share are in memory once."""
        try:
            with pq.ParquetFile(self.path, read_dictionary=list(texts)) as file:
                yield file
        except (pa.ArrowException, OSError, UnicodeError) as error:
            raise ValueError(f"{self.path} cannot be read as Parquet: {' '.join(str(error).split())}") from None

    def rows(self, columns: Sequence[str | None]) -> Iterator[tuple[int, list[Any]]]:
        """For each row its number, from 1, and its cells."""
        self._check_unique(columns)
        names = list(dict.fromkeys(column for column in columns if column is not None))
        number = 0
        with self._open() as file:
            schema, texts = file.schema_arrow, _text_paths(file, names)
        with self._open(texts) as file:
            for batch in file.iter_batches(batch_size=_BATCH, columns=names):
                if sum(map(_n_bytes, batch.columns)) > _MAX_BATCH:
                    rows = f"rows {number + 1:,} to {number + batch.num_rows:,}"
                    raise ValueError(f"{self.path}, {rows}: more than {_MAX_BATCH >> 20} MB in {', '.join(names)}")
                plain = {name: batch.column(name).cast(schema.field(name).type) for name in names}
                cells = {name: self._cells(plain[name], number) for name in names}
                for i in range(batch.num_rows):
                    number += 1
                    yield number, [None if column is None else cells[column][i] for column in columns]

    def _cells(self, column: pa.Array, before: int) -> list[Any]:
        """Cells as Python objects, or as text where Python has no object for the value."""
        try:
            return column.to_pylist()
        except Exception:  # Arrow raises a dozen kinds: for dates after the year 9999, unknown time zones, ...
            return [self._cell(cell, before + i) for i, cell in enumerate(column, 1)]

    def _cell(self, cell: pa.Scalar, number: int) -> Any:
        if isinstance(cell, pa.ListScalar) and cell.is_valid:
            return [self._cell(item, number) for item in cell.values]
        for convert in (
            pa.Scalar.as_py, lambda cell: cell.as_buffer().to_pybytes(), lambda cell: cell.cast(pa.string()).as_py()
        ):  # fmt: skip
            try:
                return convert(cell)
            except Exception as error:
                reason = error
        what = " ".join(str(reason).split())
        raise ValueError(f"{self.path}, row {number}: a cell of type {cell.type} cannot be read: {what}")


def _text_paths(file: pq.ParquetFile, names: list[str]) -> list[str]:
    """Parquet's paths of the columns that hold texts or lists of texts."""
    kinds = {name: file.schema_arrow.field(name).type for name in names}
    texts = {
        name
        for name, kind in kinds.items()
        if (kind.value_type if pa.types.is_list(kind) else kind) in (pa.string(), pa.binary())
    }
    paths = (file.schema.column(i).path for i in range(len(file.schema)))
    return [path for path in paths if path in texts or path.split(".")[0] in texts]


def _n_bytes(column: pa.Array) -> int:
    """Bytes of a column if every row had its own copy of shared values."""
    if pa.types.is_list(column.type):
        column = column.flatten()
    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    lengths = pc.binary_length(column.dictionary).take(column.indices)
    return int(pc.sum(lengths.cast(pa.int64())).as_py() or 0)


def matches(path: Path, columns: Columns) -> bool:
    """Whether a path is a table, or a folder with a metadata file or with sub-folders that have one each."""
    return path.suffix.lower() in METADATA_EXTENSIONS if path.is_file() else bool(find_metadata(path))


def read(path: Path, columns: Columns) -> Source:
    """The rows of one table, or of the metadata files in a folder."""
    folder, files = (path.parent, [path]) if path.is_file() else (path, find_metadata(path))
    return read_metadata(folder, files, columns)


def find_metadata(folder: Path) -> list[Path]:
    """The metadata file of a folder, or those of its sub-folders; an empty list if there are none.

    Raises
    ------
    ValueError
        If there are two in the same folder, or one split has one and another has none.
    """
    top = _metadata_in(folder)
    if top:
        return [top]
    inside = sorted(sub for sub in folder.iterdir() if os.path.isdir(sub) and not sub.name.startswith("."))
    files = {sub: path for sub in inside if (path := _metadata_in(sub))}
    without = [sub.name for sub in inside if sub.name in SPLITS and sub not in files]
    if files and without:
        raise ValueError(f"{folder}: {next(iter(files.values()))} exists, but {without[0]} has no metadata file")
    return list(files.values())


def _metadata_in(folder: Path) -> Path | None:
    # Unlike Path.is_file, os.path.isfile is False where there is no permission.
    paths = [folder / f"metadata{extension}" for extension in METADATA_EXTENSIONS]
    files = [path for path in paths if os.path.isfile(path)]
    if len(files) > 1:
        raise ValueError(f"{folder} has {' and '.join(path.name for path in files)}: give the path of one of them")
    return files[0] if files else None


def read_metadata(folder: Path, files: list[Path], columns: Columns) -> Source:
    """Rows of metadata files, whose file names are relative to the files' own folders; pictures must be in `folder`."""
    tables = [_Metadata(folder, open_table(path), columns) for path in files]
    names = list(dict.fromkeys(name for table in tables for name in table.table.columns))
    for name in columns.required():
        if name not in names:
            raise ValueError(f"{files[0]} has no column {name!r}; its columns are {list_columns(names)}")
    place = PictureFolder(folder)
    # One picture is enough to know that the others are missing; without any, the rows are all there is.
    pictures = columns.look_for_pictures and any(
        not isinstance(place.find(name), str) for table in tables if table.is_named for name in table.names()
    )
    has_tags = any(table.tags for table in tables)
    if not pictures and not has_tags:
        where = f"none of the files is in {folder}" if columns.look_for_pictures else "pictures are not to be read"
        raise ValueError(f"{files[0]}: {where}, and there are no tags; the columns are {list_columns(names)}")
    look_into_files = pictures and not has_tags and columns.tags_column is not None
    listing = Listing()
    several = any(table.several for table in tables)
    for table in tables:
        for name, tags, labels, split in table.rows():
            size = None
            if pictures:
                file = place.find(name)
                if isinstance(file, str):
                    listing.skip(name, file)
                    continue
                name, size = file
                if look_into_files:
                    tags = columns.tags(keywords(folder / name))
            several = several or (labels is not None and len(labels) != 1)
            listing.add(name, tags, labels, split, size)
    return listing.source(folder, multi_label=several, pictures=pictures)


class _Metadata:
    """A metadata file and its columns that are read."""

    def __init__(self, folder: Path, table: Table, columns: Columns):
        self.table, self._options = table, columns
        self._prefix = table.path.parent.relative_to(folder).as_posix()
        self.is_named = "file_name" in table.columns
        self.tags = self._column(columns.tags_column)
        self.label = self._column(columns.label_column)
        if self.label is None and columns.label_column == "label":
            self.label = self._column("labels")
        self.split = self._column(columns.split_column)
        self.several = self.label == "labels"
        self._split_of_folder = self._prefix if columns.split_column is None and self._prefix in SPLITS else None

    def _column(self, name: str | None) -> str | None:
        return name if name in self.table.columns else None

    def names(self) -> Iterator[str]:
        """File names, relative to the whole folder."""
        for number, (name,) in self.table.rows(["file_name"]):
            yield self._name(name, number)

    def _name(self, cell: Any, number: int) -> str:
        name = cell_text(cell)
        if name is None:
            raise ValueError(f"{self.table.path}, row {number}: there is no file_name")
        # An absolute name stays one.
        return name if self._prefix == "." else os.path.join(self._prefix, name)

    def rows(self) -> Iterator[tuple[str, list[str], list[str] | None, str | None]]:
        """Name, tags, labels and split of each row."""
        cells = self.table.rows(["file_name" if self.is_named else None, self.tags, self.label, self.split])
        for i, (number, (name, tags, label, split)) in enumerate(cells, 1):
            yield (
                self._name(name if self.is_named else i, number),
                self._options.tags(tags),
                labels_of(label, self.several),
                cell_text(split) or self._split_of_folder,
            )
