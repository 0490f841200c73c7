"""The stages of a build: learn the codebook, count the words, and what comes out of it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import warnings
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from pictopic.corpus.pieces import Piece, Workers, count_words, draw_descriptors, is_whole, learn_codebook, read_piece
from pictopic.corpus.source import Source
from pictopic.corpus.store import CODEBOOK, MANIFEST, Block
from pictopic.files import read_json, write_bytes, write_text
from pictopic.storage import sha256
from pictopic.words.codebook import Codebook, Sample, sample_size
from pictopic.words.extract import Extractor, WordOptions
from pictopic.words.pictures import PictureError
from pictopic.words.regions import Regions
from pictopic.words.vocabulary import Vocabulary

BUILDING = "building"  # folder of what an unfinished build has come to
_OWN_FILE = re.compile(rf"piece-[0-9a-f]+\.npz|{re.escape(CODEBOOK)}|\..*\.tmp")  # but for the plan, in that folder
PIECE = 32  # pictures, on average
CODEBOOK_PICTURES = 2_000  # pictures that a codebook is learnt from, at most
_ROWS_AT_A_TIME = 4096  # of sources that need no pictures read

Progress = Callable[[str, int, int], None]  # stage, done, of how many


def silent(stage: str, done: int, total: int) -> None:
    """No progress is shown."""


@dataclass(frozen=True)
class Settings:
    """What a build does, apart from where it comes from and goes to; the same settings give the same bytes."""

    words: WordOptions
    min_tag_count: int = 1
    max_tags: int | None = None
    seed: int = 0


class Build:
    """One run of the stages.

    Parameters
    ----------
    source : Source
    folder : Path
        Of the corpus.
    settings : Settings
    workers : Workers
        Who does the work.
    progress : callable
        Called with the stage, how much of it is done and of how much.
    """

    def __init__(self, source: Source, folder: Path, settings: Settings, workers: Workers, progress: Progress):
        self.source, self.folder, self.settings, self.workers = source, folder, settings, workers
        self.progress = progress
        self.building = folder / BUILDING
        self.names: list[str] = source.rows["file_name"].to_pylist()

    # ---- stages ------------------------------------------------------------------------------------------------------

    def plan(self, resume: bool, extra: dict[str, Any]) -> None:
        """Begin, or go on with what an interrupted build of the same folder with the same options has left.

        The folder itself may have changed meanwhile: pieces are named after their pictures, and only those whose
        pictures have changed are counted again.  A codebook that was learnt already stays.
        """
        plan = {
            "folder": os.path.realpath(self.source.folder), "words": self.settings.words.to_dict(),
            "seed": self.settings.seed, "piece": PIECE, **extra,
        }  # fmt: skip
        path, base = self.building / "plan.json", self._base()
        before = read_json(path) if path.is_file() else None
        if before is not None and before.pop("base", None) != base:
            before = None  # the corpus has changed since: that build was finished, but for clearing up
        if before is not None:
            if not resume:
                raise ValueError(f"{self.folder} holds an unfinished build: resume it (--resume), or delete it first")
            source = before.pop("source", None)
            if before != json.loads(json.dumps(plan)):
                raise ValueError(
                    f"{self.folder} holds an unfinished build of another source, or with other options: "
                    "delete the folder first"
                )
            if source != self.source.fingerprint and (self.building / CODEBOOK).is_file():
                warnings.warn(
                    f"{self.source.folder} has changed since the build was begun: its visual words stay those of the "
                    "pictures that were there then",
                    stacklevel=2,
                )
        else:
            self._clear()
        plan |= {"source": self.source.fingerprint, "base": base}
        write_text(path, json.dumps(plan, ensure_ascii=False) + "\n")

    def _clear(self) -> None:
        """Remove what an earlier build has left; an error, if it is something else that has the folder's name."""
        names = [path.name for path in self.building.iterdir()] if self.building.is_dir() else []
        if "plan.json" not in names and not all(map(_OWN_FILE.fullmatch, names)):
            raise ValueError(f"{self.building} is in the way: it is not of an unfinished build; choose another folder")
        shutil.rmtree(self.building, ignore_errors=True)

    def _base(self) -> str | None:
        """Hash of the corpus that is added to; None: there is none yet."""
        path = self.folder / MANIFEST
        return sha256(path) if path.is_file() else None

    def codebook(self, rows: np.ndarray) -> None:
        """Learn the codebook from the pictures of these rows."""
        path = self.building / CODEBOOK
        if path.is_file():
            return
        settings = self.settings
        if len(rows) > CODEBOOK_PICTURES:
            chosen = np.random.default_rng(settings.seed).choice(len(rows), CODEBOOK_PICTURES, replace=False)
            rows = rows[np.sort(chosen)]
        sample = Sample(sample_size(settings.words.n_words))
        groups = [rows[k : k + PIECE] for k in range(0, len(rows), PIECE)]
        calls = (
            (self._paths(group), group.tolist(), settings.words, settings.seed, sample.size, sample.limit, self._root)
            for group in groups
        )
        done = 0
        self.progress("looking for visual words", done, len(rows))
        for group, parts in zip(groups, self.workers(draw_descriptors, calls), strict=True):
            sample.add(parts)
            done += len(group)
            self.progress("looking for visual words", done, len(rows))
        drawn = sample.drawn()
        if not len(drawn.keys):
            raise ValueError(f"no visual words can be learnt: {self._why_not(rows[0])}")
        self.progress("learning visual words", 0, 1)
        names = {int(row): self.names[row] for row in rows}
        ((codebook, told),) = self.workers(learn_codebook, [(drawn, settings.words.n_words, names, settings.seed)])
        for message in told:
            warnings.warn(message, stacklevel=2)
        codebook.save(path)
        self.progress("learning visual words", 1, 1)

    def count(self) -> None:
        """Count the words of all pictures."""
        n = len(self.names)
        todo = [(rows, path) for rows, path in self._pieces if not is_whole(path)]
        done = n - sum(len(rows) for rows, _ in todo)
        centres = Codebook.load(self.building / CODEBOOK).centres
        calls = ((self._paths(rows), self.settings.words, centres, self._root) for rows, _ in todo)
        self.progress("counting words", done, n)
        for (rows, path), content in zip(todo, self.workers(count_words, calls), strict=True):
            write_bytes(path, content)
            done += len(rows)
            self.progress("counting words", done, n)

    # ---- what comes out ----------------------------------------------------------------------------------------------

    @cached_property
    def unreadable(self) -> dict[int, str]:
        """Numbers of the rows whose pictures could not be read, and why."""
        return {int(rows[number]): reason for rows, piece in self._counted() for number, reason in piece.skipped}

    def skipped(self) -> list[tuple[str, str]]:
        """(file_name, reason) of everything that is left out."""
        return [*self.source.skipped, *((self.names[row], reason) for row, reason in self.unreadable.items())]

    def kept(self) -> np.ndarray:
        """Numbers of the rows that are left."""
        return np.delete(np.arange(len(self.names)), list(self.unreadable))

    def vocabulary(self, known: Vocabulary | None = None, extend: bool = True) -> Vocabulary:
        """The words: of the codebook or the source's counts, and the tags of the rows that are left.

        Tags that are `known` keep their columns; with `extend` new ones follow.
        """
        if self.source.counts is not None:
            counts = self.source.counts
            return Vocabulary(counts.n_visual_words, 1, counts.annotations or ())
        if known is not None and not extend:
            return known
        settings = self.settings
        kept = self.source.rows.take(self.kept())["tags"]
        tags = (row.as_py() or [] for chunk in kept.chunks for row in chunk)
        found = Vocabulary.from_tags(tags, min_count=settings.min_tag_count, max_words=settings.max_tags).annotations
        if known is not None:
            new = [tag for tag in found if tag not in known]
            return Vocabulary(known.n_visual_words, known.n_regions, (*known.annotations, *new))
        if not self.source.pictures:
            return Vocabulary(0, 1, found)
        n_words = len(Codebook.load(self.building / CODEBOOK))
        return Vocabulary(n_words, len(Regions.parse(settings.words.regions)), found)

    def blocks(self, vocabulary: Vocabulary, own_features: np.ndarray | None) -> Iterator[Block]:
        """Everything, block by block; `own_features` are the user's, a row for each row of the source."""
        if self.source.counts is not None:
            yield from self._blocks_of_counts()
        elif self.source.pictures:
            for piece_rows, piece in self._counted():
                rows = piece_rows[piece.kept]
                sizes = {"width": piece.sizes[:, 0], "height": piece.sizes[:, 1], "picture_hash": piece.hashes}
                yield self._block(rows, piece.counts, piece.features, sizes, vocabulary, own_features)
        else:
            for start in range(0, len(self.names), _ROWS_AT_A_TIME):
                rows = np.arange(start, min(start + _ROWS_AT_A_TIME, len(self.names)))
                nothing = sparse.csr_array((len(rows), 0), dtype=np.int32)
                yield self._block(rows, nothing, np.zeros((len(rows), 0), np.float32), {}, vocabulary, own_features)

    def _block(self, rows, visual, features, sizes, vocabulary, own_features) -> Block:
        table = _with_sizes(self.source.rows.take(rows), sizes)
        counts = [visual, vocabulary.count_tags([tags or [] for tags in table["tags"].to_pylist()])]
        if own_features is not None:
            features = np.hstack([features, own_features[rows]])
        return Block(sparse.csr_array(sparse.hstack(counts, format="csr", dtype=np.int32)), features, table)

    def _blocks_of_counts(self) -> Iterator[Block]:
        start = 0
        assert self.source.counts is not None  # noqa: S101
        for counts, features in self.source.counts.blocks(_ROWS_AT_A_TIME):
            rows = self.source.rows.slice(start, counts.shape[0])
            start += counts.shape[0]
            yield Block(counts, features, _with_sizes(rows, {}))

    def _why_not(self, row: int) -> str:
        """Why not a single patch was found."""
        try:
            width, height = Extractor(self.settings.words).open(self.source.folder / self.names[row]).size
        except PictureError as error:
            return f"no picture can be read; the first, {self.names[row]}: {error}"
        return f"all pictures are smaller than a patch; the first, {self.names[row]}, has {width} x {height} pixels"

    # ---- pieces ------------------------------------------------------------------------------------------------------

    @property
    def _root(self) -> str:
        return str(self.source.folder.absolute())  # a worker may have another working folder

    def _paths(self, rows: np.ndarray) -> list[str]:
        return [os.path.join(self._root, self.names[row]) for row in rows]

    @cached_property
    def _pieces(self) -> list[tuple[np.ndarray, Path]]:
        """Rows of each piece, and its file, whose name stands for its pictures as they are now."""
        if not self.source.pictures:
            return []
        return [(rows, self.building / f"piece-{self._identity(rows)}.npz") for rows in _cut(self.names)]

    def _identity(self, rows: np.ndarray) -> str:
        pictures = []
        for row, path in zip(rows, self._paths(rows), strict=True):
            try:
                about = os.stat(path)
            except OSError:
                pictures.append([self.names[row]])
            else:
                pictures.append([self.names[row], about.st_size, about.st_mtime_ns])
        return hashlib.sha256(json.dumps(pictures).encode()).hexdigest()[:32]

    def _counted(self) -> Iterator[tuple[np.ndarray, Piece]]:
        """Rows and contents of each piece."""
        return ((rows, read_piece(path)) for rows, path in self._pieces)


def _cut(names: list[str]) -> list[np.ndarray]:
    """Cut rows into pieces where the names say so: a picture more or fewer changes the piece it is in, and no other.

    Examples
    --------
    >>> from pictopic.corpus.stages import _cut
    >>> names = [f"{k}.jpg" for k in range(1000)]
    >>> pieces = {tuple(names[row] for row in rows) for rows in _cut(names)}
    >>> without_one = names[:500] + names[501:]
    >>> len(pieces - {tuple(without_one[row] for row in rows) for rows in _cut(without_one)})
    1
    """
    pieces, first = [], 0
    for row, name in enumerate(names, 1):
        is_cut = zlib.crc32(name.encode("utf-8", "surrogatepass")) % PIECE == 0
        if is_cut or row - first == 4 * PIECE or row == len(names):
            pieces.append(np.arange(first, row))
            first = row
    return pieces


def _with_sizes(rows: pa.Table, sizes: dict[str, np.ndarray]) -> pa.Table:
    for name, kind in (("width", pa.int32()), ("height", pa.int32()), ("picture_hash", pa.uint64())):
        values = pa.array(sizes[name], kind) if name in sizes else pa.nulls(rows.num_rows, kind)
        rows = rows.append_column(name, values)
    return rows
