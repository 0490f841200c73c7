"""Files of counts: CSV with one column per word, or LDA-C."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path

import numpy as np
from scipy import sparse

from pictopic.corpus.sources.listing import Columns, Counts, Listing, PictureFolder, Source, labels_of
from pictopic.corpus.sources.metadata import CsvTable, TextLines, list_columns
from pictopic.words.tags import MAX_TAG_LENGTH, cell_text

_LARGEST = 2**31 - 1  # of a count, and of all counts of a row: they are added up as int32
_MAX_WORDS = 10_000_000  # a single word of a higher number would need a matrix of as many columns
LDAC_EXTENSIONS = (".ldac", ".dat")


def matches(path: Path, columns: Columns) -> bool:
    """Whether a path is LDA-C by its extension, or a CSV file of counts by its contents."""
    if _is_ldac(path):
        return path.is_file()
    is_csv = path.suffix.lower() == ".csv" and path.stem != "metadata" and path.is_file()
    return is_csv and _holds_counts(CsvTable(path), columns)


def read(path: Path, columns: Columns) -> Source:
    """The rows of a file of counts."""
    return read_ldac(path) if _is_ldac(path) else read_csv_counts(path, columns)


def _is_ldac(path: Path) -> bool:
    return path.suffix.lower() in LDAC_EXTENSIONS


def _holds_counts(table: CsvTable, columns: Columns) -> bool:
    """Whether a table has no tags, but other columns with whole numbers in the first row.

    Numbers beside the names of pictures that are there, such as their width and height, are no counts of words.
    """
    if columns.tags_column in table.columns:
        return False
    others = _not_words(columns)
    _, cells = next(table.body(), (0, []))
    counts = [cell.strip() for name, cell in zip(table.columns, cells, strict=False) if name and name not in others]
    if not counts or not all(cell.removesuffix(".0").isdecimal() or not cell for cell in counts):
        return False
    files = PictureFolder(table.path.parent)
    is_named = "file_name" in table.columns
    return not (is_named and any(not isinstance(files.find(name), str) for _, (name,) in table.rows(["file_name"])))


def _not_words(columns: Columns) -> set[str]:
    return {"file_name", "label", "labels", *filter(None, (columns.label_column, columns.split_column))}


class CountsFile(Counts):
    """Counts in a text file, read row by row."""

    left_out: frozenset[int] = frozenset()  # numbers, from 0, of the rows that are not in the source

    @abstractmethod
    def rows(self) -> Iterator[tuple[list[int], list[int]]]:
        """Columns and counts of each row."""

    def blocks(self, n_rows: int) -> Iterator[tuple[sparse.csr_array, np.ndarray | None]]:
        """Counts of the next rows, at most `n_rows` at a time."""
        rows = (row for i, row in enumerate(self.rows()) if i not in self.left_out)
        while batch := list(islice(rows, n_rows)):
            data, indices = (np.array([*chain.from_iterable(row[k] for row in batch)], np.int32) for k in (1, 0))
            ends = np.cumsum([0, *(len(columns) for columns, _ in batch)], dtype=np.int32)
            block = sparse.csr_array((data, indices, ends), shape=(len(batch), self.n_words))
            block.sum_duplicates()
            block.eliminate_zeros()
            yield block, None


class CsvCounts(CountsFile):
    """A CSV file with one column per word, apart from `others`."""

    n_visual_words = 0

    def __init__(self, table: CsvTable, others: set[str]):
        self._table = table
        # pandas writes its index as a column without a name.
        self._places = [i for i, name in enumerate(table.columns) if name and name not in others]
        self.annotations: tuple[str, ...] = tuple(table.columns[i] for i in self._places)
        check_words(self.annotations, table.path)

    def rows(self) -> Iterator[tuple[list[int], list[int]]]:
        """Columns and counts of each row."""
        for number, cells in self._table.body():
            filled = [(k, cells[i]) for k, i in enumerate(self._places) if cells[i] not in ("0", "")]
            entries = [(k, _whole(cell, self._table.path, number, self.annotations[k])) for k, cell in filled]
            _check_total([count for _, count in entries], self._table.path, number)
            yield [k for k, count in entries if count], [count for _, count in entries if count]


class LdacCounts(CountsFile):
    """LDA-C: one document per line, as the number of its distinct words and ``word:count`` for each of them.

    The numbers stand for `words`, if they are known.
    """

    def __init__(self, path: Path, words: tuple[str, ...] | None):
        self._lines = TextLines(path)
        self.annotations = words
        self.n_visual_words = 0
        if words is None:
            self.n_visual_words = 1 + max((max(columns, default=-1) for columns, _ in self.rows()), default=-1)

    def rows(self) -> Iterator[tuple[list[int], list[int]]]:
        """Columns and counts of each row."""
        empty = None
        for number, line in enumerate(self._lines, 1):
            if not line.strip():
                empty = empty or number
                continue
            if empty:
                raise ValueError(f"{self._lines.path}, row {empty}: an empty line; a document without words is 0")
            yield self._parse(line, number)

    def _parse(self, line: str, number: int) -> tuple[list[int], list[int]]:
        where = f"{self._lines.path}, row {number}"
        try:
            n, *pairs = line.split()
            columns, counts = ([int(pair.split(":")[k]) for pair in pairs] for k in (0, 1))
            is_valid = len(pairs) == int(n) and all(pair.count(":") == 1 for pair in pairs)
        except (ValueError, IndexError):
            is_valid = False
        if not is_valid:
            raise ValueError(f"{where}: not a number of words, followed by as many word:count: {line.strip()[:60]}")
        n_words = None if self.annotations is None else len(self.annotations)
        for column, count in zip(columns, counts, strict=True):
            if not 0 <= column < (_MAX_WORDS if n_words is None else n_words):
                raise ValueError(f"{where}: there is no word {str(column)[:40]}, only {n_words or _MAX_WORDS}")
            if not 0 <= count <= _LARGEST:
                raise ValueError(f"{where}: word {column} has the count {str(count)[:40]}, not 0 to {_LARGEST:,}")
        _check_total(counts, self._lines.path, number)
        return columns, counts


def _whole(cell: str, path: Path, number: int, word: str) -> int:
    try:
        value = float(cell)
        if 0 <= value <= _LARGEST and value.is_integer():
            return int(value)
    except ValueError:
        pass
    raise ValueError(
        f"{path}, row {number}: {word!r} has the count {cell[:40]!r}, no whole number of 0 to {_LARGEST:,}"
    )


def _check_total(counts: list[int], path: Path, number: int) -> None:
    if sum(counts) > _LARGEST:
        raise ValueError(f"{path}, row {number}: {sum(counts):,} words, more than {_LARGEST:,}")


def check_words(words: tuple[str, ...], path: Path) -> None:
    """Refuse a word that is there twice, or is longer than a tag can be."""
    for word in words:
        if len(word) > MAX_TAG_LENGTH:
            raise ValueError(f"{path} has a word of more than {MAX_TAG_LENGTH} characters: {word[:40]}...")
    if len(set(words)) < len(words):
        seen: set[str] = set()
        twice = next(word for word in words if word in seen or seen.add(word))  # type: ignore[func-returns-value]
        raise ValueError(f"{path}: the word {twice!r} is there twice")


def read_csv_counts(path: Path, columns: Columns) -> Source:
    """Rows of a CSV file of counts; it may have the columns ``file_name`` and ``label`` or ``labels``."""
    table = CsvTable(path)
    counts = CsvCounts(table, _not_words(columns))
    label = next((name for name in (columns.label_column, "labels") if name in table.columns), None)
    read_columns = [name if name in table.columns else None for name in ("file_name", label, columns.split_column)]
    for name in columns.required(with_tags=False):
        if name not in table.columns:
            raise ValueError(f"{path} has no column {name!r}; its columns are {list_columns(table.columns)}")
    listing, left_out, several = Listing(), set(), label == "labels"
    for i, ((_, (name, cell, split)), content) in enumerate(zip(table.rows(read_columns), counts.rows(), strict=True)):
        labels = labels_of(cell, label == "labels")
        several = several or (labels is not None and len(labels) != 1)
        if not listing.add(cell_text(name) or str(i + 1), [], labels, cell_text(split), content):
            left_out.add(i)
    counts.left_out = frozenset(left_out)
    return listing.source(path.parent, multi_label=several, pictures=False, counts=counts)


def read_ldac(path: Path) -> Source:
    """Rows of an LDA-C file.

    Beside it may be the words, one per line (``name.vocab`` or ``vocab.txt``), and the labels of the documents, one per
    line (``name.labels``, ``labels.txt`` or ``labels``).
    """
    vocabulary = _beside(path, f"{path.stem}.vocab", "vocab.txt")
    counts = LdacCounts(path, read_words(vocabulary) if vocabulary else None)
    label_file = _beside(path, f"{path.stem}.labels", "labels.txt", "labels")
    labels = [labels_of(line, several=False) for line in TextLines(label_file)] if label_file else None
    listing, n = Listing(), 0
    for n, content in enumerate(counts.rows(), 1):
        listing.add(str(n), [], labels[n - 1] if labels is not None and n <= len(labels) else None, None, content)
    if labels is not None and len(labels) != n:
        raise ValueError(f"{label_file} has {len(labels)} rows, but {path} has {n}")
    return listing.source(path.parent, multi_label=False, pictures=False, counts=counts)


def _beside(path: Path, *names: str) -> Path | None:
    return next((file for name in names if (file := path.with_name(name)).is_file()), None)


def read_words(path: Path) -> tuple[str, ...]:
    """The words of a vocabulary file: each line is a word, or its number, the word and how often it occurs."""
    rows = [line.strip() for line in TextLines(path)]
    if rows and all(len(row.split()) == 3 and row.split()[0] == str(i) for i, row in enumerate(rows)):
        rows = [row.split()[1] for row in rows]
    if "" in rows:
        raise ValueError(f"{path}, row {rows.index('') + 1}: there is no word")
    check_words(tuple(rows), path)
    return tuple(rows)
