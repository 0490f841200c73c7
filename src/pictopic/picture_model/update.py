"""Update of a model's collection with new pictures and decisions about tags, in a copy of the corpus."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.sources import Source, read_source
from pictopic.corpus.store import MANIFEST
from pictopic.files import read_json, sync_tree, write_text
from pictopic.picture_model.files import copy_corpus
from pictopic.tasks.decisions import Decisions, decided_tags
from pictopic.tasks.fit import Fitted, holds_some_out

_STATE = "update.json"
_COLUMNS = ("label_column", "tags_column", "split_column", "pictures", "tag_rules")


class Update(NamedTuple):
    """The corpus of an update, and how much of it is new."""

    corpus: Corpus  # the model's rows, in their order, then the new ones
    n_new: int
    n_retagged: int
    checkpoints: Path  # folder for checkpoints of training on just this corpus


def updated_corpus(
    corpus: Corpus,
    fitted: Fitted,
    source: str | os.PathLike[str] | Source | None,
    decisions: Decisions | None,
    folder: Path,
    **options: Any,
) -> Update:
    """Add pictures and decisions about tags to a linked copy of a model's corpus.

    An interrupted update of the same model in the folder is resumed.

    Parameters
    ----------
    corpus : Corpus
        Corpus of the model, which is not changed.
    fitted : Fitted
        The fitted model, for the classes that it knows.
    source : path or Source, optional
        New pictures.
    decisions : Decisions, optional
    folder : Path
        Work folder; the copy is its sub-folder ``corpus``.
    **options
        Options of `Corpus.append`, and the columns of `read_source`.

    Returns
    -------
    Update

    Raises
    ------
    ValueError
        If a new picture has a class that the model does not know, before anything is written.
    """
    if source is not None and not isinstance(source, Source):
        source = read_source(source, **{name: options.pop(name) for name in _COLUMNS if name in options})
    if source is not None:
        _check_classes(source, fitted, corpus)
    whole_corpus = Corpus.open(corpus.folder)
    n_before = len(whole_corpus)
    copy = _working_copy(corpus, n_before, source, folder)
    state = read_json(folder / _STATE)
    if source is not None and not state.get("appended"):
        # Rows that exist already were appended by a run that was killed before it could record that.
        copy = copy.append(source.without(set(copy.file_names[n_before:])), resume=True, **options)
        write_text(folder / _STATE, json.dumps(state | {"appended": True}) + "\n")
    tags = dict(zip(copy.file_names, _tags_before(copy, whole_corpus, source), strict=True))
    decided = {} if decisions is None else decided_tags(decisions, tags.keys(), tags.values())
    # All tags, not only decided ones: an interrupted run may have used decisions that were taken back since.
    new_tags = tags | decided
    changes = {
        name: new_tags[name]
        for name, current in zip(copy.file_names, copy.tags, strict=True)
        if new_tags[name] != current
    }  # fmt: skip
    copy, n_retagged = copy.retag(changes), len(decided)
    rows = np.concatenate([corpus.row_numbers, np.arange(n_before, len(copy))])
    digest = hashlib.sha256((copy.folder / MANIFEST).read_bytes()).hexdigest()[:16]
    return Update(copy[rows], len(copy) - n_before, n_retagged, folder / "checkpoints" / digest)


def _check_classes(source: Source, fitted: Fitted, corpus: Corpus) -> None:
    if fitted.head is None:
        return
    new_rows = source.without(set(corpus.file_names)).rows
    if fitted.held_out is None and holds_some_out([*corpus.splits, *new_rows["split"].to_pylist()]):
        return  # large enough now to start over (`refit`), with other classes
    labels = {label for row_labels in source.rows["labels"].to_pylist() for label in row_labels or ()}
    unknown = sorted(labels - set(fitted.head.classes))
    if unknown:
        raise ValueError(f"the model does not know the class {unknown[0]!r}: fit a new model with pictopic fit")


def _tags_before(copy: Corpus, whole: Corpus, source: Source | None) -> list[list[str]]:
    """Return the tags of the copy's rows before any decision: those of the model, then those of the source."""
    if source is None:
        return whole.tags
    new_tags = dict(zip(source.rows["file_name"].to_pylist(), source.rows["tags"].to_pylist(), strict=True))
    return [*whole.tags, *(new_tags[name] or [] for name in copy.file_names[len(whole) :])]


def _working_copy(corpus: Corpus, n_rows: int, source: Source | None, folder: Path) -> Corpus:
    """Return the copy that an earlier run with the same corpus and source has left, or a new one.

    If the source has changed since, a copy to which its pictures were already appended is not used.
    """
    copy = folder / "corpus"
    digest = hashlib.sha256((corpus.folder / MANIFEST).read_bytes() + np.ascontiguousarray(corpus.row_numbers).data)
    state = {
        "corpus": digest.hexdigest(),
        "folder": None if source is None else os.path.realpath(source.folder),
        "source": None if source is None else source.fingerprint,
    }
    before = read_json(folder / _STATE) if (folder / _STATE).is_file() and copy.is_dir() else {}
    if all(before.get(key) == state[key] for key in ("corpus", "folder")):
        if before.get("source") == state["source"]:
            return Corpus.open(copy)
        if len(Corpus.open(copy)) == n_rows:
            write_text(folder / _STATE, json.dumps(state) + "\n")
            return Corpus.open(copy)
    (folder / _STATE).unlink(missing_ok=True)
    copying = folder / "copying"
    for leftover in (copy, copying, folder / "checkpoints"):
        shutil.rmtree(leftover, ignore_errors=True)
    copy_corpus(corpus, copying, copy)
    sync_tree(copying)
    os.rename(copying, copy)
    write_text(folder / _STATE, json.dumps(state) + "\n")
    return Corpus.open(copy)
