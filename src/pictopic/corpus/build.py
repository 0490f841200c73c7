"""Building a corpus from a source, and adding to one."""

from __future__ import annotations

import csv
import hashlib
import io
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pictopic.corpus.features_file import read_features
from pictopic.corpus.pieces import Workers
from pictopic.corpus.source import Source
from pictopic.corpus.stages import Build, Progress, Settings
from pictopic.corpus.store import CODEBOOK, MANIFEST, SKIPPED, VOCABULARY, Block, Manifest, write_shards
from pictopic.files import write_text
from pictopic.words.codebook import Codebook
from pictopic.words.extract import WordOptions
from pictopic.words.global_features import n_features
from pictopic.words.vocabulary import Vocabulary


def build(
    source: Source,
    folder: Path,
    settings: Settings,
    *,
    codebook: Codebook | None,
    codebook_rows: np.ndarray,
    own_features: np.ndarray | None,
    vocabulary: Vocabulary | None,
    workers: Workers,
    resume: bool,
    strict: bool,
    progress: Progress,
) -> None:
    """Build a corpus from a source; see `Corpus.build`."""
    if (folder / MANIFEST).exists():
        raise ValueError(f"{folder} holds a corpus already: choose another folder, or delete it first")
    _refuse_skipped(source.skipped, strict)
    work = Build(source, folder, settings, workers, progress)
    work.plan(resume, {"codebook_rows": _digest(codebook_rows), "codebook": _digest(codebook and codebook.centres)})
    if source.pictures:
        if codebook is not None:
            codebook.save(work.building / CODEBOOK)
        work.codebook(codebook_rows)
        work.count()
    skipped = work.skipped()
    _refuse_skipped(skipped, strict)
    if not len(work.kept()):
        raise ValueError(f"none of the {len(work.names)} pictures could be read; the first: {': '.join(skipped[0])}")
    vocabulary = work.vocabulary(vocabulary, extend=False)
    manifest = Manifest(
        n_words=len(vocabulary), n_features=_n_features(work, own_features), multi_label=source.multi_label,
        words=settings.words.to_dict() if source.pictures else None, source=source.fingerprint,
        options={"min_tag_count": settings.min_tag_count, "max_tags": settings.max_tags, "seed": settings.seed},
        versions=_versions(),
    )  # fmt: skip
    finish(work, manifest, vocabulary, own_features, skipped)


def append(
    corpus: Any,
    source: Source,
    *,
    new_tags: bool,
    features_file: Any,
    workers: Workers,
    resume: bool,
    strict: bool,
    progress: Progress,
) -> None:
    """Add a source to a corpus; see `Corpus.append`."""
    manifest = Manifest.read(corpus.folder)
    if source.counts is not None or source.pictures != (manifest.words is not None):
        raise ValueError(f"{corpus.folder} {_KINDS[manifest.words is not None]}; the new source is of another kind")
    known = set(corpus.file_names)
    names = source.rows["file_name"].to_pylist()
    new = np.array([name not in known for name in names], dtype=bool)
    again = [(name, "already in the corpus") for name, is_new in zip(names, new, strict=True) if not is_new]
    source = replace(
        source, rows=source.rows.filter(pa.array(new)), skipped=[*source.skipped, *again], listed=source.listed[new]
    )
    _refuse_skipped(source.skipped, strict)
    words = WordOptions() if manifest.words is None else WordOptions.from_dict(manifest.words)
    work = Build(source, corpus.folder, Settings(words, seed=manifest.options["seed"]), workers, progress)
    work.plan(resume, {"append": True})
    if source.pictures:
        shutil.copy(corpus.folder / CODEBOOK, work.building / CODEBOOK)
        work.count()
    skipped = work.skipped()
    _refuse_skipped(skipped, strict)
    vocabulary = work.vocabulary(corpus.vocabulary, extend=new_tags)
    own_features = _appended_features(work, manifest.n_features, features_file)
    manifest.n_words = len(vocabulary)
    finish(work, manifest, vocabulary, own_features, [*read_skipped(corpus.folder / SKIPPED), *skipped])


_KINDS = {True: "was made from pictures", False: "was made without pictures"}


def _appended_features(work: Build, n_wanted: int, features_file: Any) -> np.ndarray | None:
    """The user's features of new rows: as many as the corpus has beside the computed ones, missing without a file."""
    n_own = n_wanted - (n_features(work.settings.words.features) if work.source.pictures else 0)
    if features_file is None:
        return np.full((len(work.names), n_own), np.nan, np.float32) if n_own else None
    own = read_features(features_file, work.names)
    if own.shape[1] != n_own:
        raise ValueError(f"{features_file} has {own.shape[1]} features, but the corpus has {n_own}")
    return own


def choose_rows(source: Source, wanted: Any) -> np.ndarray:
    """Numbers of the source's rows that `codebook_rows` names: a split, file names, listed rows or a mask of them."""
    if wanted is None:
        return np.arange(len(source))
    if isinstance(wanted, str):
        found = np.flatnonzero(np.array(source.rows["split"].to_pylist(), dtype=object) == wanted)
        if not len(found):
            raise ValueError(f"codebook_rows: no row is in a split {wanted!r}; is split_column set?")
        return found
    values = np.asarray(wanted)
    if values.dtype.kind in "US" or (values.dtype == object and len(values) and isinstance(values[0], str)):
        names = set(values.tolist())
        found = np.flatnonzero([name in names for name in source.rows["file_name"].to_pylist()])
    else:
        listed = np.flatnonzero(values) if values.dtype == bool else values.astype(np.int64)
        found = np.flatnonzero(np.isin(source.listed, listed))
    if not len(found):
        raise ValueError("codebook_rows names no row of the source that can be used")
    return found


def finish(
    work: Build,
    manifest: Manifest,
    vocabulary: Vocabulary,
    own_features: np.ndarray | None,
    skipped: list[tuple[str, str]],
) -> None:
    """Write shards, then what belongs to them, and last the manifest."""
    folder = work.folder
    new = write_shards(folder, manifest, _told(work, work.blocks(vocabulary, own_features)))
    where = os.path.relpath(work.source.folder.resolve(), folder.resolve()) if work.source.pictures else None
    manifest.shards += [shard | {"pictures": where} for shard in new]
    if (work.building / CODEBOOK).is_file() and not (folder / CODEBOOK).is_file():
        os.replace(work.building / CODEBOOK, folder / CODEBOOK)
    vocabulary.save(folder / VOCABULARY)
    write_skipped(folder / SKIPPED, skipped)
    manifest.write(folder)
    shutil.rmtree(work.building, ignore_errors=True)


def write_skipped(path: Path, skipped: Sequence[tuple[str, str]]) -> None:
    """The pictures that were left out, and why, as CSV."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows([("file_name", "reason"), *skipped])
    write_text(path, text.getvalue())


def read_skipped(path: Path) -> list[tuple[str, str]]:
    """What `write_skipped` wrote."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [(row["file_name"], row["reason"]) for row in csv.DictReader(file)]


def _told(work: Build, blocks: Iterator[Block]) -> Iterator[Block]:
    done = 0
    work.progress("writing", done, len(work.names))
    for block in blocks:
        yield block
        done += block.counts.shape[0]
        work.progress("writing", done, len(work.names))


def _refuse_skipped(skipped: Sequence[tuple[str, str]], strict: bool) -> None:
    if strict and skipped:
        more = f" ({len(skipped) - 1} more)" if len(skipped) > 1 else ""
        raise ValueError(f"{skipped[0][0]}: {skipped[0][1]}{more}; without strict such pictures are skipped")


def _n_features(work: Build, own_features: np.ndarray | None) -> int:
    if work.source.counts is not None:
        _, features = next(iter(work.source.counts.blocks(1)))
        return 0 if features is None else features.shape[1]
    computed = n_features(work.settings.words.features) if work.source.pictures else 0
    return computed + (0 if own_features is None else own_features.shape[1])


def _digest(array: Any) -> str | None:
    return None if array is None else hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def _versions() -> dict[str, str]:
    packages = ("pictopic", "numpy", "scipy", "scikit-learn", "numba", "pillow", "pyarrow")
    return {name: version(name) for name in packages}
