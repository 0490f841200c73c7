"""Building a corpus from a source: learn the codebook, count the words, write the shards.

The pictures that a codebook is learnt from, at most `CODEBOOK_PICTURES`, are decoded and described twice: to sample
their descriptors, and to count their words.  On made-up scenes the first pass takes 1.5 of the 4.9 CPU seconds of
building 500 pictures (of 49 in `pictopic fit`), 2.7 of 9.5 for 2,000, and hardly more for larger collections.  Keeping
the descriptors would take 0.5 MB per picture (34 MB with the preset "flickr") on their way from the process that
samples them to the one that counts; keeping the pixels would save the decoding only, 0.4 and 1.1 of those seconds.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from pictopic.corpus import chunks
from pictopic.corpus.chunks import Chunk, Workers, count_words, draw_descriptors, is_whole, learn_codebook, read_chunk
from pictopic.corpus.sources import Source
from pictopic.corpus.store import (
    BUILDING,
    CODEBOOK,
    MANIFEST,
    SKIPPED,
    VOCABULARY,
    Block,
    Manifest,
    corpus_lock,
    damaged,
    sweep,
    write_shards,
    write_skipped,
)
from pictopic.files import read_json, write_bytes, write_text
from pictopic.storage import sha256
from pictopic.words.codebook import Codebook, Sample, sample_size
from pictopic.words.extract import Extractor, WordOptions
from pictopic.words.global_features import n_features
from pictopic.words.pictures import PictureError
from pictopic.words.regions import Regions
from pictopic.words.vocabulary import Vocabulary

CODEBOOK_PICTURES = 2_000  # pictures that a codebook is learnt from, at most
_PLAN = "plan.json"  # in the folder of an unfinished build: what it builds
_LEFTOVER = re.compile(rf"piece-[0-9a-f]+\.npz|{re.escape(CODEBOOK)}|\..*\.tmp")  # all other files in that folder
_ROWS_AT_A_TIME = 4096  # of sources without pictures to read
_PACKAGES = ("pictopic", "numpy", "scipy", "scikit-learn", "numba", "pillow", "pyarrow")

Progress = Callable[[str, int, int], None]  # stage, done, of how many


def silent(stage: str, done: int, total: int) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class BuildOptions:
    """What a build does, apart from where it reads and writes; the same settings give the same bytes."""

    words: WordOptions
    min_tag_count: int = 1
    max_tags: int | None = None
    seed: int = 0


def build(
    source: Source,
    folder: Path,
    settings: BuildOptions,
    *,
    codebook: Codebook | None,
    codebook_rows: Any,
    extra_features: np.ndarray | None,
    vocabulary: Vocabulary | None,
    workers: Workers,
    resume: bool,
    strict: bool,
    progress: Progress,
) -> None:
    """Build a corpus from a source; see `Corpus.build`."""
    rows = choose_rows(source, codebook_rows)
    refuse_skipped(source.skipped, strict)
    with corpus_lock(folder):
        work = Build(source, folder, settings, workers, progress)
        if (folder / MANIFEST).exists():
            finished = Manifest.read(folder)
            if not (resume and is_same(finished, source, settings)):
                of_what = " of other pictures or options" if resume else ""
                raise ValueError(f"{folder} holds a corpus{of_what} already: choose another folder, or delete it first")
            if wrong := damaged(folder, finished.shards):
                raise ValueError(f"{folder / wrong[0]} is damaged: it is not what was written; delete {folder}")
            shutil.rmtree(work.building, ignore_errors=True)  # killed when everything was done but this
            return
        names_or_hash = codebook_rows if isinstance(codebook_rows, str) else _digest(codebook_rows)
        centres = None if codebook is None else codebook.centres
        work.begin(resume, {"codebook_rows": names_or_hash, "codebook": _digest(centres)})
        if source.pictures:
            if codebook is not None:
                codebook.save(work.building / CODEBOOK)
            work.learn_codebook(rows)
            work.count()
        skipped = work.skipped()
        refuse_skipped(skipped, strict)
        if len(work.unreadable) == len(work.names):
            first = ": ".join(skipped[0])
            raise ValueError(f"none of the {len(work.names)} pictures could be read; the first: {first}")
        vocabulary = work.vocabulary() if vocabulary is None or source.counts is not None else vocabulary
        manifest = Manifest(
            n_words=len(vocabulary), n_features=_n_features(work, extra_features), multi_label=source.multi_label,
            words=settings.words.to_dict() if source.pictures else None, source=source.fingerprint,
            options=_options(settings), versions={name: version(name) for name in _PACKAGES},
        )  # fmt: skip
        finish(work, manifest, vocabulary, extra_features, skipped)


class Build:
    """The stages of building a corpus in a folder, and what comes out of them."""

    def __init__(self, source: Source, folder: Path, settings: BuildOptions, workers: Workers, progress: Progress):
        self.source, self.folder, self.settings, self.workers = source, folder, settings, workers
        self.progress = progress
        self.building = folder / BUILDING
        self.names: list[str] = source.rows["file_name"].to_pylist()

    # ---- stages ------------------------------------------------------------------------------------------------------

    def begin(self, resume: bool, extra: dict[str, Any]) -> None:
        """Begin, or continue what an interrupted build of the same folder with the same options has left.

        The folder of pictures may have changed meanwhile: chunks are named after their pictures, and only those whose
        pictures have changed are counted again.  A codebook that was learnt already stays.
        """
        plan = {
            "folder": os.path.realpath(self.source.folder), "words": self.settings.words.to_dict(),
            "seed": self.settings.seed, "piece": chunks.CHUNK_SIZE, **extra,
        }  # fmt: skip
        path, base = self.building / _PLAN, self._base()
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
        """Remove what an earlier build has left; an error if something else has the folder's name."""
        names = [path.name for path in self.building.iterdir()] if self.building.is_dir() else []
        if _PLAN not in names and not all(map(_LEFTOVER.fullmatch, names)):
            raise ValueError(f"{self.building} is in the way: it is not of an unfinished build; choose another folder")
        shutil.rmtree(self.building, ignore_errors=True)

    def _base(self) -> str | None:
        """Hash of the corpus that is added to; None if there is none yet."""
        path = self.folder / MANIFEST
        return sha256(path) if path.is_file() else None

    def learn_codebook(self, rows: np.ndarray) -> None:
        """Learn the codebook from the pictures of these rows."""
        path = self.building / CODEBOOK
        if path.is_file():
            return
        settings = self.settings
        if len(rows) > CODEBOOK_PICTURES:
            chosen = np.random.default_rng(settings.seed).choice(len(rows), CODEBOOK_PICTURES, replace=False)
            rows = rows[np.sort(chosen)]
        sample = Sample(sample_size(settings.words.n_words))
        groups = [rows[k : k + chunks.CHUNK_SIZE] for k in range(0, len(rows), chunks.CHUNK_SIZE)]
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
            raise ValueError(f"no visual words can be learnt: {self._why_no_words(rows[0])}")
        self.progress("learning visual words", 0, 1)
        names = {int(row): self.names[row] for row in rows}
        ((codebook, messages),) = self.workers(learn_codebook, [(drawn, settings.words.n_words, names, settings.seed)])
        for message in messages:
            warnings.warn(message, stacklevel=2)
        codebook.save(path)
        self.progress("learning visual words", 1, 1)

    def _why_no_words(self, row: int) -> str:
        """Why not a single patch was found; `row` is that of the first picture."""
        try:
            width, height = Extractor(self.settings.words).open(self.source.folder / self.names[row]).size
        except PictureError as error:
            return f"no picture can be read; the first, {self.names[row]}: {error}"
        return f"all pictures are smaller than a patch; the first, {self.names[row]}, has {width} x {height} pixels"

    def count(self) -> None:
        """Count the words of all pictures."""
        n = len(self.names)
        todo = [(rows, path) for rows, path in self._chunks if not is_whole(path)]
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
        return {int(rows[number]): reason for rows, chunk in self._counted() for number, reason in chunk.skipped}

    def skipped(self) -> list[tuple[str, str]]:
        """(file_name, reason) of everything that is left out."""
        return [*self.source.skipped, *((self.names[row], reason) for row, reason in self.unreadable.items())]

    def vocabulary(self, known: Vocabulary | None = None) -> Vocabulary:
        """The words: of the codebook or the source's counts, and the tags of all readable rows.

        Those that are `known` keep their columns, and new tags follow.
        """
        if self.source.counts is not None:
            counts = self.source.counts
            return Vocabulary(counts.n_visual_words, 1, counts.annotations or ())
        settings = self.settings
        readable = np.delete(np.arange(len(self.names)), list(self.unreadable))
        column = self.source.rows.take(readable)["tags"]
        row_tags = (row.as_py() or [] for chunk in column.chunks for row in chunk)
        tags = Vocabulary.from_tags(row_tags, min_count=settings.min_tag_count, max_words=settings.max_tags).annotations
        if known is not None:
            new = [tag for tag in tags if tag not in known]
            return Vocabulary(known.n_visual_words, known.n_regions, (*known.annotations, *new))
        if not self.source.pictures:
            return Vocabulary(0, 1, tags)
        n_words = len(Codebook.load(self.building / CODEBOOK))
        return Vocabulary(n_words, len(Regions.parse(settings.words.regions)), tags)

    def blocks(self, vocabulary: Vocabulary, extra_features: np.ndarray | None) -> Iterator[Block]:
        """All rows, block by block; `extra_features` are the user's own, one row for each row of the source."""
        if self.source.counts is not None:
            start = 0
            for counts, features in self.source.counts.blocks(_ROWS_AT_A_TIME):
                rows = self.source.rows.slice(start, counts.shape[0])
                start += counts.shape[0]
                yield Block(counts, features, _with_sizes(rows, {}))
        elif self.source.pictures:
            for chunk_rows, chunk in self._counted():
                sizes = {"width": chunk.sizes[:, 0], "height": chunk.sizes[:, 1], "picture_hash": chunk.hashes}
                rows = chunk_rows[chunk.readable]
                yield self._block(rows, chunk.counts, chunk.features, sizes, vocabulary, extra_features)
        else:
            for start in range(0, len(self.names), _ROWS_AT_A_TIME):
                rows = np.arange(start, min(start + _ROWS_AT_A_TIME, len(self.names)))
                nothing = sparse.csr_array((len(rows), 0), dtype=np.int32)
                yield self._block(rows, nothing, np.zeros((len(rows), 0), np.float32), {}, vocabulary, extra_features)

    def _block(self, rows, visual, features, sizes, vocabulary, extra_features) -> Block:
        table = _with_sizes(self.source.rows.take(rows), sizes)
        counts = [visual, vocabulary.count_tags([tags or [] for tags in table["tags"].to_pylist()])]
        if extra_features is not None:
            features = np.hstack([features, extra_features[rows]])
        return Block(sparse.csr_array(sparse.hstack(counts, format="csr", dtype=np.int32)), features, table)

    # ---- chunks ------------------------------------------------------------------------------------------------------

    @property
    def _root(self) -> str:
        return str(self.source.folder.absolute())  # a worker may have another working folder

    def _paths(self, rows: np.ndarray) -> list[str]:
        return [os.path.join(self._root, self.names[row]) for row in rows]

    @cached_property
    def _chunks(self) -> list[tuple[np.ndarray, Path]]:
        """Rows and file of each chunk; the file's name stands for the pictures as they are now."""
        if not self.source.pictures:
            return []
        return [(rows, self.building / f"piece-{self._identity(rows)}.npz") for rows in chunks.cut(self.names)]

    def _identity(self, rows: np.ndarray) -> str:
        pictures = []
        for row, path in zip(rows, self._paths(rows), strict=True):
            try:
                status = os.stat(path)
            except OSError:
                pictures.append([self.names[row]])
            else:
                pictures.append([self.names[row], status.st_size, status.st_mtime_ns])
        return hashlib.sha256(json.dumps(pictures).encode()).hexdigest()[:32]

    def _counted(self) -> Iterator[tuple[np.ndarray, Chunk]]:
        """Rows and contents of each chunk."""
        return ((rows, read_chunk(path)) for rows, path in self._chunks)


def finish(
    work: Build,
    manifest: Manifest,
    vocabulary: Vocabulary,
    extra_features: np.ndarray | None,
    skipped: list[tuple[str, str]],
) -> None:
    """Write the shards, then what belongs to them, and the manifest last."""
    folder = work.folder
    written = write_shards(folder, manifest, _with_progress(work, work.blocks(vocabulary, extra_features)))
    # Both without links: seen from there, Corpus.paths finds the pictures again.
    root = os.path.realpath(work.source.folder)
    pictures = os.path.relpath(root, os.path.realpath(folder)) if work.source.pictures else None
    manifest.shards += [shard | {"pictures": pictures} for shard in written]
    if work.source.pictures and manifest.codebook_sha256 is None:  # appended pictures have the codebook already
        os.replace(work.building / CODEBOOK, folder / CODEBOOK)
        manifest.codebook_sha256 = sha256(folder / CODEBOOK)
    vocabulary.save(folder / VOCABULARY)
    manifest.vocabulary_sha256 = vocabulary.sha256
    write_skipped(folder / SKIPPED, skipped)
    manifest.write(folder)
    sweep(folder, manifest)
    shutil.rmtree(work.building, ignore_errors=True)


def _with_progress(work: Build, blocks: Iterator[Block]) -> Iterator[Block]:
    done = 0
    work.progress("writing", done, len(work.names))
    for block in blocks:
        yield block
        done += block.counts.shape[0]
        work.progress("writing", done, len(work.names))


def choose_rows(source: Source, codebook_rows: Any) -> np.ndarray:
    """Numbers of the source's rows that `codebook_rows` names: a split, file names, listed rows or a mask of them."""
    if codebook_rows is None:
        return np.arange(len(source))
    if isinstance(codebook_rows, str):
        rows = np.flatnonzero(np.array(source.rows["split"].to_pylist(), dtype=object) == codebook_rows)
        if not len(rows):
            raise ValueError(f"codebook_rows: no row is in a split {codebook_rows!r}; is split_column set?")
        return rows
    values = np.asarray(codebook_rows)
    if values.dtype.kind in "US" or (values.dtype == object and len(values) and isinstance(values[0], str)):
        names = set(values.tolist())
        rows = np.flatnonzero([name in names for name in source.rows["file_name"].to_pylist()])
    else:
        listed = np.flatnonzero(values) if values.dtype == bool else values.astype(np.int64)
        rows = np.flatnonzero(np.isin(source.listed, listed))
    if not len(rows):
        raise ValueError("codebook_rows names no row of the source that can be used")
    return rows


def is_same(manifest: Manifest, source: Source, settings: BuildOptions) -> bool:
    """Whether a corpus is what these settings make of this source."""
    words = settings.words.to_dict() if source.pictures else None
    same_words = json.loads(json.dumps(words)) == manifest.words
    return same_words and manifest.source == source.fingerprint and manifest.options == _options(settings)


def refuse_skipped(skipped: Sequence[tuple[str, str]], strict: bool) -> None:
    """If `strict`, raise a ValueError that names the first picture that is left out."""
    if strict and skipped:
        more = f" ({len(skipped) - 1} more)" if len(skipped) > 1 else ""
        raise ValueError(f"{skipped[0][0]}: {skipped[0][1]}{more}; without strict such pictures are skipped")


def _options(settings: BuildOptions) -> dict[str, Any]:
    return {"min_tag_count": settings.min_tag_count, "max_tags": settings.max_tags, "seed": settings.seed}


def _n_features(work: Build, extra_features: np.ndarray | None) -> int:
    if work.source.counts is not None:
        _, features = next(iter(work.source.counts.blocks(1)))
        return 0 if features is None else features.shape[1]
    computed = n_features(work.settings.words.features) if work.source.pictures else 0
    return computed + (0 if extra_features is None else extra_features.shape[1])


def _digest(array: Any) -> str | None:
    if array is None:
        return None
    values = np.asarray(array)
    content = (
        json.dumps(values.tolist()).encode() if values.dtype.kind in "OU" else np.ascontiguousarray(values).tobytes()
    )
    return hashlib.sha256(content).hexdigest()


def _with_sizes(rows: pa.Table, sizes: dict[str, np.ndarray]) -> pa.Table:
    for name, kind in (("width", pa.int32()), ("height", pa.int32()), ("picture_hash", pa.uint64())):
        values = pa.array(sizes[name], kind) if name in sizes else pa.nulls(rows.num_rows, kind)
        rows = rows.append_column(name, values)
    return rows
