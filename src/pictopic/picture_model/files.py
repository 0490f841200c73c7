"""A whole picture model in one folder: nothing in it is ever executed, and it appears whole or not at all."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.stages import BUILDING
from pictopic.corpus.store import Manifest
from pictopic.files import umask, write_text
from pictopic.models.persistence import load as load_network
from pictopic.tasks.annotate import TagThresholds
from pictopic.tasks.classify import ClassHead
from pictopic.tasks.fitting import Fitted, HeldOut, Network
from pictopic.tasks.retrieve import Index

FORMAT_VERSION = 1
CONFIG = "picture_model.json"
HELD_OUT = "held_out.safetensors"
_HASHED = ("head.skops", "rows.npy", HELD_OUT)
_ABSENT: dict[str, Any] = {"class_proba": None, "tag_proba": None}


def write_model(folder: Path, options: dict[str, Any], corpus: Corpus, fitted: Fitted, index: Index) -> None:
    """Write a model beside the place where it is to be, then put it there.

    Parameters
    ----------
    folder : Path
        If there is a model already, it is replaced; anything else is left alone, with an error.
    options : dict
        Of the PictureModel.
    corpus, fitted, index
        What it has learnt.
    """
    if folder.exists() and any(folder.iterdir()) and not (folder / CONFIG).is_file():
        raise ValueError(f"{folder} holds something that is not a picture model: choose another folder")
    folder.parent.mkdir(parents=True, exist_ok=True)
    new = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}."))
    try:
        _write_parts(new, folder, options, corpus, fitted, index)
        os.chmod(new, 0o777 & ~umask())
        _put_in_place(new, folder)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise


def _write_parts(new: Path, final: Path, options: dict[str, Any], corpus: Corpus, fitted: Fitted, index: Index) -> None:
    copy_corpus(corpus, new / "corpus", final / "corpus")
    np.save(new / "rows.npy", corpus.row_numbers)
    fitted.network.estimator.save(new / "network")
    index.save(new / "index")
    if fitted.head is not None:
        fitted.head.save(new)
    if fitted.held_out is not None:
        save_file(_arrays(fitted.held_out), new / HELD_OUT)
    content = {
        "format_version": FORMAT_VERSION,
        "options": options,
        "figures": fitted.figures,
        "head": None if fitted.head is None else fitted.head.to_dict(),
        "thresholds": None if fitted.thresholds is None else fitted.thresholds.to_dict(),
        "sha256": {name: _digest(new / name) for name in _HASHED if (new / name).is_file()},
    }
    write_text(new / CONFIG, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _arrays(held_out: HeldOut) -> dict[str, np.ndarray]:
    """Those that there are; of tags with three digits, for there may be a thousand."""
    found = {"rows": held_out.rows}
    if held_out.class_proba is not None:
        found["class_proba"] = np.ascontiguousarray(held_out.class_proba, dtype=np.float32)
    if held_out.tag_proba is not None:
        found["tag_proba"] = np.ascontiguousarray(held_out.tag_proba, dtype=np.float16)
    return found


def copy_corpus(corpus: Corpus, folder: Path, final: Path) -> None:
    """Copy a corpus' folder to `folder`, from where it will be moved to `final`; links, where the disk is the same.

    Its files are never changed in place, so a link is as good as a copy.
    """
    source = corpus.folder.resolve()
    shutil.copytree(source, folder, copy_function=_link_or_copy, ignore=shutil.ignore_patterns(BUILDING, ".*"))
    manifest = Manifest.read(source)
    for shard in manifest.shards:
        if shard["pictures"] is not None:
            pictures = os.path.normpath(source / shard["pictures"])
            shard["pictures"] = os.path.relpath(pictures, final.resolve())
    manifest.write(folder)


def _link_or_copy(source: str, target: str) -> str:
    try:
        os.link(source, target)
    except OSError:  # another disk, or a file system without links
        shutil.copy2(source, target)
    return target


def _put_in_place(new: Path, folder: Path) -> None:
    if not folder.exists():
        os.rename(new, folder)
        return
    # A folder cannot be replaced in one step: for a moment there is none, but never half of one.
    old = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.old."))
    os.rename(folder, old / "model")
    os.rename(new, folder)
    shutil.rmtree(old, ignore_errors=True)


def read_model(folder: Path, pictures: Path | None) -> tuple[dict[str, Any], Corpus, Fitted, Index]:
    """Read what `write_model` wrote: options, corpus, what was learnt, index."""
    path = folder / CONFIG
    if not path.is_file():
        raise ValueError(f"{folder} is not a picture model: it has no {CONFIG}; make one with pictopic fit")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["format_version"] > FORMAT_VERSION:
            raise ValueError("it was written by a newer pictopic; update pictopic to read it")
        for name, digest in content["sha256"].items():
            if not (folder / name).is_file() or _digest(folder / name) != digest:
                raise ValueError(f"{name} is missing or was changed")
        head = None if content["head"] is None else ClassHead.load(folder, content["head"])
        thresholds = None if content["thresholds"] is None else TagThresholds.from_dict(content["thresholds"])
    except (KeyError, TypeError, ValueError) as error:
        raise ValueError(f"{folder} cannot be read: {error}") from None
    corpus = Corpus.open(folder / "corpus", pictures=pictures)[np.load(folder / "rows.npy", allow_pickle=False)]
    network = Network(load_network(folder / "network"))
    held_out = HeldOut(**_ABSENT | load_file(folder / HELD_OUT)) if HELD_OUT in content["sha256"] else None
    fitted = Fitted(network, head, thresholds, content["figures"], held_out)
    return content["options"], corpus, fitted, Index.load(folder / "index")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
