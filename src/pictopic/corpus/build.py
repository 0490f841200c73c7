"""Building a corpus from a source."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from pictopic.corpus.pieces import Workers
from pictopic.corpus.source import Source
from pictopic.corpus.stages import Build, Progress, Settings
from pictopic.corpus.store import (
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
)
from pictopic.files import csv_text, write_bytes
from pictopic.storage import sha256
from pictopic.words.codebook import Codebook
from pictopic.words.global_features import n_features
from pictopic.words.vocabulary import Vocabulary


def build(
    source: Source,
    folder: Path,
    settings: Settings,
    *,
    codebook: Codebook | None,
    codebook_rows: Any,
    own_features: np.ndarray | None,
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
            shutil.rmtree(work.building, ignore_errors=True)  # killed when everything was done, but for this
            return
        _build(work, codebook, codebook_rows, rows, own_features, vocabulary, resume, strict)


def _build(
    work: Build,
    codebook: Codebook | None,
    codebook_rows: Any,
    rows: np.ndarray,
    own_features: np.ndarray | None,
    vocabulary: Vocabulary | None,
    resume: bool,
    strict: bool,
) -> None:
    source, settings = work.source, work.settings
    wanted = codebook_rows if codebook_rows is None or isinstance(codebook_rows, str) else _digest(codebook_rows)
    work.plan(resume, {"codebook_rows": wanted, "codebook": _digest(None if codebook is None else codebook.centres)})
    if source.pictures:
        if codebook is not None:
            codebook.save(work.building / CODEBOOK)
        work.codebook(rows)
        work.count()
    skipped = work.skipped()
    refuse_skipped(skipped, strict)
    if not len(work.kept()):
        raise ValueError(f"none of the {len(work.names)} pictures could be read; the first: {': '.join(skipped[0])}")
    vocabulary = work.vocabulary(vocabulary, extend=False)
    manifest = Manifest(
        n_words=len(vocabulary), n_features=_n_features(work, own_features), multi_label=source.multi_label,
        words=settings.words.to_dict() if source.pictures else None, source=source.fingerprint,
        options=_options(settings),
        versions=_versions(),
    )  # fmt: skip
    finish(work, manifest, vocabulary, own_features, skipped)


def _options(settings: Settings) -> dict[str, Any]:
    return {"min_tag_count": settings.min_tag_count, "max_tags": settings.max_tags, "seed": settings.seed}


def is_same(built: Manifest, source: Source, settings: Settings) -> bool:
    """Whether a corpus is what these settings make of this source."""
    words = settings.words.to_dict() if source.pictures else None
    same_words = json.loads(json.dumps(words)) == built.words
    return same_words and built.source == source.fingerprint and built.options == _options(settings)


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
    # Both without links: seen from there, Corpus.paths finds the pictures again.
    root = os.path.realpath(work.source.folder)
    where = os.path.relpath(root, os.path.realpath(folder)) if work.source.pictures else None
    manifest.shards += [shard | {"pictures": where} for shard in new]
    if work.source.pictures and manifest.codebook_sha256 is None:  # pictures that are added have the codebook there is
        os.replace(work.building / CODEBOOK, folder / CODEBOOK)
        manifest.codebook_sha256 = sha256(folder / CODEBOOK)
    vocabulary.save(folder / VOCABULARY)
    manifest.vocabulary_sha256 = vocabulary.sha256
    write_skipped(folder / SKIPPED, skipped)
    manifest.write(folder)
    sweep(folder, manifest)
    shutil.rmtree(work.building, ignore_errors=True)


def write_skipped(path: Path, skipped: Sequence[tuple[str, str]]) -> None:
    """The pictures that were left out, and why, as CSV."""
    text = csv_text([("file_name", "reason"), *skipped])
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def read_skipped(path: Path) -> list[tuple[str, str]]:
    """What `write_skipped` wrote."""
    if not path.is_file():
        return []
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = csv.reader(file)
            if next(rows, None) != ["file_name", "reason"]:
                raise ValueError("its columns are not file_name and reason")
            return [(name, reason) for name, reason in rows]
    except (ValueError, csv.Error) as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def _told(work: Build, blocks: Iterator[Block]) -> Iterator[Block]:
    done = 0
    work.progress("writing", done, len(work.names))
    for block in blocks:
        yield block
        done += block.counts.shape[0]
        work.progress("writing", done, len(work.names))


def refuse_skipped(skipped: Sequence[tuple[str, str]], strict: bool) -> None:
    """Raise a ValueError that names the first picture that is left out, if `strict`."""
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
    if array is None:
        return None
    values = np.asarray(array)
    content = (
        json.dumps(values.tolist()).encode() if values.dtype.kind in "OU" else np.ascontiguousarray(values).tobytes()
    )
    return hashlib.sha256(content).hexdigest()


def _versions() -> dict[str, str]:
    packages = ("pictopic", "numpy", "scipy", "scikit-learn", "numba", "pillow", "pyarrow")
    return {name: version(name) for name in packages}
