"""The collection of a model with more pictures and other tags, made beside it: the model's own stays as it is."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.source import Source, read_source
from pictopic.corpus.store import MANIFEST
from pictopic.files import read_json, write_text
from pictopic.picture_model.files import copy_corpus
from pictopic.tasks.decision_files import decided_tags
from pictopic.tasks.decisions import Decisions
from pictopic.tasks.fitting import Fitted

_STATE = "update.json"
_COLUMNS = ("label_column", "tags_column", "split_column", "pictures", "tag_rules")


class Update(NamedTuple):
    """What an update has to learn from."""

    corpus: Corpus  # the model's rows, in their order, then the new ones
    n_new: int
    n_retagged: int
    checkpoints: Path  # folder for those of learning from just this corpus


def updated_corpus(
    corpus: Corpus,
    fitted: Fitted,
    source: str | os.PathLike[str] | Source | None,
    decisions: Decisions | None,
    folder: Path,
    **options: Any,
) -> Update:
    """Add pictures and decisions about tags to a linked copy of a model's corpus.

    What an update of the same model that was stopped has left in the folder is used again.

    Parameters
    ----------
    corpus : Corpus
        Of the model; not changed.
    fitted : Fitted
        Of the model, for the classes that it knows.
    source : path or Source, optional
        New pictures.
    decisions : Decisions, optional
    folder : Path
        To work in: ``corpus`` in it is the copy.
    **options
        Of `Corpus.append`, and the columns of `read_source`.

    Returns
    -------
    Update

    Raises
    ------
    ValueError
        If a new picture has a class that the model does not know; nothing is written then.
    """
    if source is not None and not isinstance(source, Source):
        source = read_source(source, **{name: options.pop(name) for name in _COLUMNS if name in options})
    if source is not None:
        _check_classes(source, fitted)
    n_before = len(Corpus.open(corpus.folder))
    copy = _working_copy(corpus, folder)
    state = read_json(folder / _STATE)
    if source is not None and state.get("appended") != source.fingerprint:
        # What is there already was appended by a run that was killed before it could say so.
        copy = copy.append(source.without(set(copy.file_names[n_before:])), resume=True, **options)
        write_text(folder / _STATE, json.dumps(state | {"appended": source.fingerprint}) + "\n")
    n_retagged = 0
    if decisions is not None:
        tags = decided_tags(decisions, copy.file_names, copy.tags)
        copy, n_retagged = copy.retag(tags), len(tags)
    rows = np.concatenate([corpus.row_numbers, np.arange(n_before, len(copy))])
    digest = hashlib.sha256((copy.folder / MANIFEST).read_bytes()).hexdigest()[:16]
    return Update(copy[rows], len(copy) - n_before, n_retagged, folder / "checkpoints" / digest)


def _check_classes(source: Source, fitted: Fitted) -> None:
    if fitted.head is None or fitted.held_out is None:  # without either, learning may start over, with other classes
        return
    labels = {label for row_labels in source.rows["labels"].to_pylist() for label in row_labels or ()}
    unknown = sorted(labels - set(fitted.head.classes))
    if unknown:
        raise ValueError(f"the model does not know the class {unknown[0]!r}: learn anew with pictopic fit")


def _working_copy(corpus: Corpus, folder: Path) -> Corpus:
    """The copy of the same corpus that an earlier run has left, or a new one."""
    copy = folder / "corpus"
    digest = hashlib.sha256((corpus.folder / MANIFEST).read_bytes() + np.ascontiguousarray(corpus.row_numbers).data)
    state = {"corpus": digest.hexdigest()}
    if (folder / _STATE).is_file() and copy.is_dir() and read_json(folder / _STATE).get("corpus") == state["corpus"]:
        return Corpus.open(copy)
    (folder / _STATE).unlink(missing_ok=True)
    copying = folder / "copying"
    for leftover in (copy, copying, folder / "checkpoints"):
        shutil.rmtree(leftover, ignore_errors=True)
    copy_corpus(corpus, copying, copy)
    os.rename(copying, copy)
    write_text(folder / _STATE, json.dumps(state) + "\n")
    return Corpus.open(copy)
