"""What every format gives: a `Source` of rows, listed one after the other, and the files that they name."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import unicodedata
import warnings
from abc import ABC, abstractmethod
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from pictopic.files import is_inside
from pictopic.words.tags import (
    MAX_TAG_LENGTH,
    MAX_TAGS,
    TagRules,
    all_tags,
    cell_list,
    cell_text,
    split_cell,
    within_limits,
)

SCHEMA = pa.schema(
    {
        "file_name": pa.string(),
        "tags": pa.list_(pa.string()),
        "labels": pa.list_(pa.string()),  # null: unlabelled; an empty list: none of the labels
        "split": pa.string(),
    }
)

# Hugging Face's names of train, validation and test.
SPLITS = frozenset({"train", "training", "validation", "valid", "val", "dev", "test", "testing", "eval", "evaluation"})

_CHUNK = 1 << 16  # rows that are Python objects at a time
_MAX_NAME = 4096  # characters
_MAX_ROWS = 100_000_000  # a Parquet file of some kilobytes can have more


@dataclass(frozen=True)
class Columns:
    """Which columns of a table are read, and how; see `read_source` for what the options mean."""

    label_column: str | None = "label"
    tags_column: str | None = "tags"
    split_column: str | None = None
    tag_rules: TagRules | None = None
    look_for_pictures: bool = True

    def tags(self, cell: Any) -> list[str]:
        """The tags of a cell, after the rules; `Listing` cuts what is beyond the limits."""
        tags = all_tags(cell)
        return self.tag_rules.apply(tags) if self.tag_rules else tags

    def required(self, with_tags: bool = True) -> list[str]:
        """The columns that must be there: those with other names than the usual ones."""
        tags_column = self.tags_column if with_tags else None
        pairs = ((self.label_column, "label"), (tags_column, "tags"), (self.split_column, None))
        return [name for name, usual in pairs if name is not None and name != usual]


def labels_of(cell: Any, several: bool) -> list[str] | None:
    """The labels of a cell, as they are written; None if it is empty: unlabelled.

    Examples
    --------
    >>> from pictopic.corpus.sources.listing import labels_of
    >>> labels_of("Sea; sky", several=True), labels_of("Sea; sky", several=False)
    (['Sea', 'sky'], ['Sea; sky'])
    >>> labels_of([], several=True), labels_of("", several=True)
    ([], None)
    """
    if cell_list(cell) is None:
        text = cell_text(cell)
        if text is None:
            return None
        if not several:
            return [text]
    return list(dict.fromkeys(split_cell(cell)))


class Counts(ABC):
    """Counts that a source has already: read block by block, in the order of its rows.

    The columns are `n_visual_words` visual words, then the `annotations`.
    """

    n_visual_words: int
    annotations: tuple[str, ...] | None

    @property
    def n_words(self) -> int:
        """Number of columns."""
        return self.n_visual_words + len(self.annotations or ())

    @abstractmethod
    def blocks(self, n_rows: int) -> Iterator[tuple[sparse.csr_array, np.ndarray | None]]:
        """Counts (int32) and global features (float32, or None) of the next rows, at most `n_rows` at a time."""


@dataclass(frozen=True)
class Source:
    """Where pictures, tags, labels or counts come from.

    Parameters
    ----------
    folder : Path
        File names are relative to it.
    rows : pyarrow.Table
        With the columns ``file_name`` (string), ``tags`` (list of strings), ``labels`` (list of strings; null:
        unlabelled) and ``split`` (string or null).
    multi_label : bool
        Whether a row can have several labels.
    pictures : bool
        Whether there are pictures to read.
    skipped : list of (file_name, reason)
        Rows that are listed but cannot be used: missing, outside the folder, duplicate row.
    fingerprint : str
        SHA-256 of the rows and file sizes: the same on any machine.
    counts : Counts or None
        For sources that hold counts already.
    listed : array of int, optional
        Number of each row, from 0, among all that are listed, including skipped ones; default: none is skipped.
    """

    folder: Path
    rows: pa.Table
    multi_label: bool
    pictures: bool
    skipped: list[tuple[str, str]]
    fingerprint: str
    counts: Counts | None = None
    listed: np.ndarray = field(default=None, compare=False)  # type: ignore[arg-type]

    def __post_init__(self) -> None:
        if self.listed is None:
            object.__setattr__(self, "listed", np.arange(len(self)))

    def __len__(self) -> int:
        return self.rows.num_rows

    def take(self, rows: np.ndarray) -> Source:
        """A source of its own with the rows of these numbers.

        Examples
        --------
        >>> from pathlib import Path
        >>> import numpy as np
        >>> from pictopic.corpus.sources.listing import Listing
        >>> listing = Listing()
        >>> _ = listing.add("a.jpg"), listing.add("b.jpg")
        >>> source = listing.source(Path("photos"), multi_label=False, pictures=True).take(np.array([1]))
        >>> source.rows["file_name"].to_pylist()
        ['b.jpg']
        """
        if self.counts is not None:
            raise ValueError(f"{self.folder}: rows with counts cannot be taken apart before the corpus is built")
        digest = hashlib.sha256(self.fingerprint.encode() + np.asarray(rows, "<i8").tobytes()).hexdigest()
        return Source(self.folder, self.rows.take(pa.array(rows)), self.multi_label, self.pictures, [], digest)

    def without(self, file_names: Set[str]) -> Source:
        """The source without the rows of these names; the fingerprint stays that of the whole."""
        stays = np.array([name not in file_names for name in self.rows["file_name"].to_pylist()], dtype=bool)
        return replace(self, rows=self.rows.filter(pa.array(stays)), listed=self.listed[stays])


class Listing:
    """Collects rows one by one; a million take hundreds of megabytes.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pictopic.corpus.sources.listing import Listing
    >>> listing = Listing()
    >>> listing.add("a.jpg", tags=["sea"], content=1234), listing.add("a.jpg")
    (True, False)
    >>> source = listing.source(Path("photos"), multi_label=False, pictures=True)
    >>> source.rows.to_pylist(), source.skipped
    ([{'file_name': 'a.jpg', 'tags': ['sea'], 'labels': None, 'split': None}], [('a.jpg', 'duplicate row')])
    """

    def __init__(self) -> None:
        self.skipped: list[tuple[str, str]] = []
        self._n_listed = 0
        self._n_cut, self._first_cut = 0, ""
        self._listed = array("q")
        self._names: set[str] = set()
        self._columns: tuple[list, ...] = ([], [], [], [])
        self._chunks: list[pa.RecordBatch] = []
        self._digest = hashlib.sha256()

    def add(
        self,
        file_name: str,
        tags: Sequence[str] = (),
        labels: Sequence[str] | None = None,
        split: str | None = None,
        content: Any = None,
    ) -> bool:
        """Add a row unless there is one with this name; return whether it was added.

        `content` (the size of a file, counts) becomes part of the fingerprint.  Tags and labels beyond
        the limits of `within_limits` are cut.
        """
        if len(file_name) > _MAX_NAME:
            self.skip(file_name, f"its name is longer than {_MAX_NAME:,} characters")
            return False
        if file_name in self._names:
            self.skip(file_name, "duplicate row")
            return False
        self._names.add(file_name)
        if not (_is_within_limits(tags) and _is_within_limits(labels or ())):
            tags, labels = within_limits(tags), None if labels is None else within_limits(labels)
            self._first_cut = self._first_cut or file_name
            self._n_cut += 1
        self._listed.append(self._n_listed)
        self._count()
        for column, value in zip(self._columns, (file_name, tags, labels, split), strict=True):
            column.append(value)
        self.include(json.dumps([file_name, tags, labels, split, content]))
        if len(self._columns[0]) == _CHUNK:
            self._pack()
        return True

    def include(self, text: str) -> None:
        """Add a text to the fingerprint."""
        self._digest.update(text.encode() + b"\n")

    def skip(self, file_name: str, reason: str) -> None:
        """Record a row that is listed but cannot be used."""
        self._count()
        name = printable(file_name)
        self.skipped.append((name if len(name) <= _MAX_NAME else name[:_MAX_NAME] + "...", reason))

    def _count(self) -> None:
        self._n_listed += 1
        if self._n_listed > _MAX_ROWS:
            raise ValueError(f"there are more than {_MAX_ROWS:,} rows")

    def _pack(self) -> None:
        arrays = [pa.array(column, field.type) for column, field in zip(self._columns, SCHEMA, strict=True)]
        self._chunks.append(pa.record_batch(arrays, schema=SCHEMA))
        for column in self._columns:
            column.clear()

    def source(self, folder: Path, *, multi_label: bool, pictures: bool, counts: Counts | None = None) -> Source:
        """All rows that were added; one warning says how many were cut."""
        self._pack()
        if self._n_cut:
            have = "1 picture has" if self._n_cut == 1 else f"{self._n_cut:,} pictures have"
            warnings.warn(
                f"{have} more than {MAX_TAGS:,} tags or labels, or some of more than {MAX_TAG_LENGTH} characters: "
                f"what is beyond that is left out (the first: {printable(self._first_cut)})",
                stacklevel=2,
            )
        rows = pa.Table.from_batches(self._chunks, SCHEMA)
        if not rows.num_rows:
            reasons = Counter(reason for _, reason in self.skipped)
            why = ": " + ", ".join(f"{n} {reason}" for reason, n in reasons.items()) if reasons else ""
            raise ValueError(f"{folder} has no row that can be used{why}")
        self.include(json.dumps([multi_label, pictures]))
        listed = np.array(self._listed, np.int64)
        return Source(folder, rows, multi_label, pictures, self.skipped, self._digest.hexdigest(), counts, listed)


def _is_within_limits(words: Sequence[str]) -> bool:
    return len(words) <= MAX_TAGS and all(len(word) <= MAX_TAG_LENGTH for word in words)


def printable(name: str) -> str:
    """A file name that can be written to a file, whatever bytes the file system has in it."""
    return name.encode("utf-8", "backslashreplace").decode("utf-8")


class PictureFolder:
    """Finds files by their names, inside a folder only.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.corpus.sources.listing import PictureFolder
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.jpg").write_bytes(b"1234")
    >>> files = PictureFolder(folder)
    >>> files.find("./a.jpg"), files.find("b.jpg"), files.find("../a.jpg")
    (('a.jpg', 4), 'missing', 'outside the folder')
    """

    def __init__(self, folder: Path):
        self._root = os.path.realpath(folder)
        self._inside = {"": True}  # for each sub-folder: to ask the system a million times takes long

    def find(self, name: str) -> tuple[str, int] | str:
        """The file's name relative to the folder and its size in bytes, or the reason why it cannot be used."""
        reason = "missing"
        for spelling in _spellings(name):
            file = self._look(os.path.normpath(spelling))
            if not isinstance(file, str):
                return file
            if file != "missing":
                reason = file
        return reason

    def _look(self, name: str) -> tuple[str, int] | str:
        if not self._is_inside(name if name == os.pardir else os.path.dirname(name)):
            return "outside the folder"
        path = os.path.join(self._root, name)
        try:
            # A folder that is inside has no files outside, except for links.
            if stat.S_ISLNK(os.lstat(path).st_mode) and not is_inside(self._root, name):
                return "outside the folder"
            status = os.stat(path)
        except ValueError:  # a zero byte in the name
            return "missing"
        except OSError as error:
            return reason_of(error)
        if not stat.S_ISREG(status.st_mode):
            return "not a file"
        return name.replace(os.sep, "/"), status.st_size

    def _is_inside(self, folder: str) -> bool:
        if folder not in self._inside:
            self._inside[folder] = is_inside(self._root, folder)
        return self._inside[folder]


def reason_of(error: OSError) -> str:
    """Why a file or folder cannot be used, for the list of those that were skipped."""
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return "missing"
    return f"cannot be opened: {error.strerror}"


def _spellings(name: str) -> list[str]:
    """The name as it is written, then as Windows would mean it, then with accents composed and decomposed."""
    spellings = [name, name.replace("\\", "/")]
    if not name.isascii():
        spellings += [unicodedata.normalize(form, spellings[1]) for form in ("NFC", "NFD")]
    return list(dict.fromkeys(spellings))
