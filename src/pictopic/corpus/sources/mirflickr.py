"""MIR Flickr as the authors of SupDocNADE used it: arrays on disk, read block by block."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
from scipy import sparse

from pictopic.corpus.readers import MappedRows, map_npy
from pictopic.corpus.sources.counts_files import read_words
from pictopic.corpus.sources.listing import Columns, Counts, Listing, Source

_MAX_SIDE = 100_000_000  # rows or columns of the tags
_PARTS = ("labelled", "unlabelled")
_SPLITS = {"train": "train", "valid": "validation", "test": "test"}


def matches(path: Path, columns: Columns) -> bool:
    """Whether a path is a folder with the authors' data."""
    return is_mirflickr(path)


def read(path: Path, columns: Columns) -> Source:
    """The rows of the folder; the split column is the number of the split."""
    return read_mirflickr(path, split=columns.split_column)


def is_mirflickr(folder: Path) -> bool:
    """Whether a folder is laid out as the authors' data."""
    return (folder / "labels.npy").is_file() and _text_file(folder, "labelled").is_file()


def read_mirflickr(folder: Path, *, n_visual_words: int = 2000, split: str | None = None) -> Source:
    """Rows of MIR Flickr: the labelled pictures, then the unlabelled ones.

    ``image/{labelled,unlabelled}/combined-*.npy`` have the global features, then the counts of the visual words,
    ``text/text_all_2000_*.npz`` the counts of the tags and ``text/vocab.txt`` their names, ``labels.npy`` the labels.
    Labels are named after the numbers of their columns.

    The last `n_visual_words` columns are visual words; `split`, "1" (as None) to "5", is one of the ``splits``.
    """
    counts = MirFlickrCounts(folder, n_visual_words)
    labels = map_npy(folder / "labels.npy")
    if labels.ndim != 2 or labels.dtype.kind not in "biuf":
        raise ValueError(
            f"{folder / 'labels.npy'} must hold numbers, with one row per picture and one column per label"
        )
    if len(labels) != counts.n_rows["labelled"]:
        raise ValueError(f"{folder}: {counts.n_rows['labelled']} labelled pictures, but {len(labels)} rows of labels")
    splits = _splits(folder, split, len(labels))
    listing = Listing()
    for i, row in enumerate(labels):
        listing.add(f"labelled/{i}", [], [str(k) for k in np.flatnonzero(row)], splits.get(i), None)
    for i in range(counts.n_rows["unlabelled"]):
        listing.add(f"unlabelled/{i}", [], None, None, None)
    # A checksum of gigabytes would take minutes; names and sizes tell copies from other data.
    listing.include(json.dumps([(path.name, path.stat().st_size) for path in counts.files()]))
    return listing.source(folder, multi_label=True, pictures=False, counts=counts)


def _splits(folder: Path, split: str | None, n_rows: int) -> dict[int, str]:
    number = split or "1"
    split_of_row: dict[int, str] = {}
    for name, meaning in _SPLITS.items():
        path = folder / "splits" / f"{name}_indices_{number}.npy"
        if path.is_file():
            rows = map_npy(path).ravel()
            if rows.dtype.kind not in "iu":
                raise ValueError(f"{path} must hold whole numbers")
            if len(rows) and (rows.min() < 0 or rows.max() >= n_rows):
                raise ValueError(f"{path} has numbers outside of 0..{n_rows - 1}")
            split_of_row.update(dict.fromkeys(rows.tolist(), meaning))
        elif split is not None:
            raise ValueError(f"{folder} has no split {split!r}: there is no {path.relative_to(folder)}")
    return split_of_row


class MirFlickrCounts(Counts):
    """Counts and global features of MIR Flickr's pictures."""

    def __init__(self, folder: Path, n_visual_words: int):
        self.folder, self.n_visual_words = folder, n_visual_words
        shapes = {part: [map_npy(path).shape for path in self._pictures(part)] for part in _PARTS}
        self.n_rows = {part: sum(shape[0] for shape in part_shapes) for part, part_shapes in shapes.items()}
        widths = {shape[1] if len(shape) == 2 else 0 for shape in chain.from_iterable(shapes.values())}
        if len(widths) != 1 or max(widths) < n_visual_words:
            raise ValueError(f"{folder}/image: all arrays need the same number of columns, {n_visual_words} or more")
        self.n_features = max(widths) - n_visual_words
        self.annotations: tuple[str, ...] = self._tags()

    def _tags(self) -> tuple[str, ...]:
        n_tags = set()
        for part in _PARTS:
            if _text_file(self.folder, part).is_file():
                shape = _text_shape(_text_file(self.folder, part))
                if shape[0] != self.n_rows[part]:
                    raise ValueError(f"{_text_file(self.folder, part)} has {shape[0]} rows, not {self.n_rows[part]}")
                n_tags.add(shape[1])
            elif self.n_rows[part]:
                raise ValueError(f"{_text_file(self.folder, part)} is missing")
        if len(n_tags) != 1:
            raise ValueError(f"{self.folder}/text: different numbers of tags: {sorted(n_tags)}")
        n = n_tags.pop()
        vocabulary = self.folder / "text" / "vocab.txt"
        if not vocabulary.is_file():
            return tuple(f"tag {k}" for k in range(n))
        words = read_words(vocabulary)
        if len(words) < n:
            raise ValueError(f"{vocabulary} has {len(words)} words, but there are {n} tags")
        return words[:n]

    def _pictures(self, part: str) -> list[Path]:
        return sorted((self.folder / "image" / part).glob("combined-*.npy"))

    def files(self) -> list[Path]:
        """All files that are read."""
        texts = (_text_file(self.folder, part) for part in _PARTS)
        return [*chain.from_iterable(map(self._pictures, _PARTS)), *(path for path in texts if path.is_file())]

    def blocks(self, n_rows: int) -> Iterator[tuple[sparse.csr_array, np.ndarray | None]]:
        """Counts and global features of the next rows, at most `n_rows` at a time; a block ends where a file ends."""
        for part in _PARTS:
            if not self.n_rows[part]:
                continue
            with zipfile.ZipFile(_text_file(self.folder, part)) as text:
                tags = _StreamedRows(text, len(self.annotations))
                for path in self._pictures(part):
                    values = MappedRows(map_npy(path))
                    for start in range(0, values.shape[0], n_rows):
                        block = values[start : start + n_rows]
                        visual = _whole(block[:, self.n_features :], path)
                        counts = sparse.hstack([visual, tags.read(len(block))], format="csr", dtype=np.int32)
                        features = block[:, : self.n_features].astype(np.float32) if self.n_features else None
                        yield counts, features


class _StreamedRows:
    """Rows of a CSR matrix in an npz file, one block after the other, without unpacking all of it."""

    def __init__(self, text: zipfile.ZipFile, n_columns: int):
        self._n_columns, self._path = n_columns, text.filename
        with _damage_named(self._path):
            self._row_ends, self._columns = _Stream(text, "indptr", "iu"), _Stream(text, "indices", "iu")
            self._values = _Stream(text, "data", "biuf")
            self._end = int(self._row_ends.read(1)[0])
            if self._end != 0:
                raise ValueError("its rows do not start at 0")

    def read(self, n_rows: int) -> sparse.csr_array:
        with _damage_named(self._path):
            ends = np.concatenate([[self._end], self._row_ends.read(n_rows).astype(np.int64)])
            steps = np.diff(ends)
            if ((steps < 0) | (steps > self._n_columns)).any():
                raise ValueError("its rows end before they start, or have more entries than there are tags")
            self._end = int(ends[-1])
            columns, values = (stream.read(int(steps.sum())) for stream in (self._columns, self._values))
            if len(columns) and (columns.min() < 0 or columns.max() >= self._n_columns):
                raise ValueError(f"it has tags outside of 0..{self._n_columns - 1}")
            parts = (_int32(values), columns.astype(np.int32), (ends - ends[0]).astype(np.int32))
            return sparse.csr_array(parts, shape=(n_rows, self._n_columns))


class _Stream:
    """An npy array of one dimension in an archive, read from its start to its end; `kinds` are those of its dtype."""

    def __init__(self, archive: zipfile.ZipFile, name: str, kinds: str):
        self._file: IO[bytes] = archive.open(f"{name}.npy")
        version = np.lib.format.read_magic(self._file)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        _, _, self._dtype = header(self._file)
        if self._dtype.kind not in kinds:
            raise ValueError(f"{name} holds {self._dtype}")

    def read(self, n: int) -> np.ndarray:
        content = self._file.read(n * self._dtype.itemsize)
        if len(content) < n * self._dtype.itemsize:
            raise ValueError("an array ends too early")
        return np.frombuffer(content, self._dtype)


@contextmanager
def _damage_named(path: Path | str | None) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # archives raise a dozen kinds
        raise ValueError(f"{path} is damaged: {' '.join(str(error).split())[:200]}") from None


def _text_file(folder: Path, part: str) -> Path:
    return folder / "text" / f"text_all_2000_{part}.npz"


def _text_shape(path: Path) -> tuple[int, int]:
    with _damage_named(path), zipfile.ZipFile(path) as text:
        rows, columns = _Stream(text, "shape", "iu").read(2).tolist()
        if not (0 <= rows <= _MAX_SIDE and 0 <= columns <= _MAX_SIDE):
            raise ValueError(f"it has {rows} rows and {columns} columns")
    return rows, columns


def _whole(counts: np.ndarray, path: Path) -> sparse.csr_array:
    try:
        return sparse.csr_array(_int32(counts))
    except ValueError:
        raise ValueError(f"{path} has visual words with counts that are no whole numbers from 0 on") from None


def _int32(counts: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # what is no number is found below
        whole = counts.astype(np.int32)
    if (whole != counts).any() or (whole < 0).any():
        raise ValueError("it has counts that are no whole numbers from 0 on")
    return whole
