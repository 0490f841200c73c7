"""Saving and loading of picture models: one folder, replaced as a whole, nothing in it ever executed.

The hashes of its files find accidents: bits that flipped, files that were cut off, parts of another model.  They do not
stop an attacker, who writes hashes of their own: whatever is read is checked all the same.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save_file

from pictopic.checks import array, mapping, read_arrays, section, shown, whole
from pictopic.corpus.corpus import Corpus
from pictopic.corpus.store import BUILDING, SHARDS, Manifest
from pictopic.files import (
    check_regular,
    fresh_folder,
    is_inside,
    read_json,
    read_unchanged,
    recovered,
    replace_folder,
    write_text,
)
from pictopic.models.persistence import TIMINGS
from pictopic.models.persistence import load as load_estimator
from pictopic.models.persistence import save_files as save_estimator
from pictopic.picture_model.parts import check_figures, check_options, check_together
from pictopic.processes import lock_beside
from pictopic.storage import sha256
from pictopic.tasks.annotate import TagThresholds
from pictopic.tasks.classify import ClassHead
from pictopic.tasks.fit import Fitted, HeldOut
from pictopic.tasks.search import Index

FORMAT_VERSION = 2
CONFIG = "picture_model.json"
HELD_OUT = "held_out.safetensors"
_SMALL, _QUICK = 8 << 20, 256 << 20  # bytes per file, and in all, that are hashed on loading
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class SavedModel:
    """A model as `read_model` returns it."""

    options: dict[str, Any]  # options of the PictureModel
    corpus: Corpus
    fitted: Fitted
    index: Index
    files: ModelFiles


def write_model(folder: Path, options: dict[str, Any], corpus: Corpus, fitted: Fitted, index: Index) -> ModelFiles:
    """Write a model to a folder, in one step: beside it first, then swapped in.

    Parameters
    ----------
    folder : Path
        A model there is replaced; anything else raises an error and stays.  A link stays a link: its target is
        replaced.
    options : dict
        Options of the PictureModel.
    corpus, fitted, index
        The learnt parts of the model.
    """
    folder = Path(os.path.realpath(folder))
    with lock_beside(folder):
        recovered(folder)
        if folder.exists() and not (folder / CONFIG).is_file() and (not folder.is_dir() or any(folder.iterdir())):
            raise ValueError(f"{folder} holds something that is not a picture model: choose another folder")
        new = fresh_folder(folder)
        try:
            _write_parts(new, folder, options, corpus, fitted, index)
            replace_folder(new, folder)
        except BaseException:
            recovered(folder)
            shutil.rmtree(new, ignore_errors=True)
            raise
        return ModelFiles.read(folder, CONFIG, sha256(folder / CONFIG), read_json(folder / CONFIG)["files"])


def _write_parts(new: Path, final: Path, options: dict[str, Any], corpus: Corpus, fitted: Fitted, index: Index) -> None:
    copy_corpus(corpus, new / "corpus", final / "corpus")
    np.save(new / "rows.npy", corpus.row_numbers)
    save_estimator(fitted.estimator, new / "network")
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
        "files": table_of(new, _known_hashes(new)),
    }
    content["checksum"] = checksum(json.loads(json.dumps(content)))
    write_text(new / CONFIG, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def _known_hashes(folder: Path) -> dict[str, str]:
    """Return the hashes of large files that were computed when they were written."""
    hashes = {
        f"corpus/{SHARDS}/{shard['name']}/{name}": digest
        for shard in Manifest.read(folder / "corpus").shards
        for name, digest in shard.get("sha256", {}).items()
    }
    for part, config, key in (("network", "config.json", "tensors"), ("index", "index.json", "vectors")):
        content = read_json(folder / part / config)
        hashes[f"{part}/{content[key]}"] = content[f"{key}_sha256"]
    return hashes


def _arrays(held_out: HeldOut) -> dict[str, np.ndarray]:
    """Return the arrays of held-out answers; those of tags in half precision, as there may be a thousand tags."""
    arrays = {"rows": held_out.rows}
    if held_out.class_proba is not None:
        arrays["class_proba"] = np.ascontiguousarray(held_out.class_proba, dtype=np.float32)
    if held_out.tag_proba is not None:
        arrays["tag_proba"] = np.ascontiguousarray(held_out.tag_proba, dtype=np.float16)
    return arrays


def copy_corpus(corpus: Corpus, folder: Path, final: Path) -> None:
    """Copy a corpus' folder to `folder`, from where it will be moved to `final`; with hard links on the same disk.

    Its files are never changed in place, so a link is as good as a copy.
    """
    source = corpus.folder.resolve()
    shutil.copytree(source, folder, copy_function=_link_or_copy, ignore=shutil.ignore_patterns(BUILDING, ".*"))
    manifest = Manifest.read(source)
    known = [(shard["name"], shard["n_rows"], shard.get("sha256")) for shard in corpus._manifest.shards]
    now = [(shard["name"], shard["n_rows"], shard.get("sha256")) for shard in manifest.shards]
    if now[: len(known)] != known:  # added pictures do no harm: the model knows the numbers of its rows
        raise ValueError(f"{source} was changed since the model was fitted or loaded: load or fit the model again")
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


def read_model(folder: Path, pictures: Path | None) -> SavedModel:
    """Read what `write_model` wrote.

    If another process replaces the model meanwhile, the result is the old or the new model, never a mixture.
    """
    folder = recovered(folder)
    return read_unchanged(lambda: _read_parts(folder, pictures), lambda: _identity(folder), str(folder))


def _identity(folder: Path) -> tuple[int, ...] | None:
    """Return what changes when a folder's model is replaced; None if there is none."""
    with suppress(OSError):
        status, config_status = folder.stat(), (folder / CONFIG).stat()
        return status.st_dev, status.st_ino, config_status.st_ino, config_status.st_mtime_ns, config_status.st_size
    return None


def _read_parts(folder: Path, pictures: Path | None) -> SavedModel:
    path = folder / CONFIG
    if not path.is_file():
        raise ValueError(f"{folder} is not a picture model: it has no {CONFIG}; make one with pictopic fit")
    content = read_json(path)
    try:
        files = _checked_files(folder, content)
        corpus = _read_corpus(folder, pictures)
        estimator = load_estimator(folder / "network")
        head = None if section(content, "head") is None else ClassHead.load(folder, content["head"])
        thresholds = section(content, "thresholds")
        thresholds = None if thresholds is None else TagThresholds.from_dict(thresholds)
        held_out = _read_held_out(folder / HELD_OUT, corpus, head) if HELD_OUT in files.table else None
        figures = check_figures(section(content, "figures"))
        # Without hashing its vectors, which is left to `ModelFiles.check`.
        index = Index.load(folder / "index", verify=False)
        fitted = Fitted(estimator, head, thresholds, figures, held_out)
        check_together(corpus, fitted, index)
        return SavedModel(check_options(section(content, "options")), corpus, fitted, index, files)
    except ValueError as error:
        raise ValueError(f"{folder} cannot be read: {error}") from None


def _read_corpus(folder: Path, pictures: Path | None) -> Corpus:
    """Read the rows of the collection that belong to the model."""
    try:
        whole_corpus = Corpus.open(folder / "corpus", pictures=pictures)
        rows = _read_rows(folder / "rows.npy", len(whole_corpus))
        corpus = whole_corpus[rows]
        # Read lazy attributes now: later, another model may be in the folder.
        _ = corpus.vocabulary, corpus.options, corpus.codebook, corpus.file_names, corpus.classes
    except ValueError:
        raise
    except Exception as error:  # a damaged table or manifest raises anything
        raise ValueError(f"{folder / 'corpus'} is damaged: {type(error).__name__}: {shown(str(error))}") from None
    return corpus


def _read_rows(path: Path, n_rows: int) -> np.ndarray:
    """Read and check row numbers of a corpus with `n_rows` rows."""
    check_regular(path)
    try:
        # Mapped: the header may promise more than the file holds, for which memory would be allocated.
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
    except Exception as error:  # the header is a Python literal: reading a damaged one raises anything
        raise ValueError(f"{path} is damaged: {shown(str(error))}") from None
    if not isinstance(rows, np.ndarray) or len(np.shape(rows)) != 1 or len(rows) > n_rows:
        raise ValueError(f"{path} is damaged: it should hold at most {n_rows} numbers")
    return np.array(array({"rows": rows}, "rows", "<i8", (None,), 0, n_rows - 1))


def _read_held_out(path: Path, corpus: Corpus, head: ClassHead | None) -> HeldOut:
    arrays, _ = read_arrays(path)
    try:
        rows = array(arrays, "rows", "<i8", (None,), 0, len(corpus) - 1)
        if len(np.unique(rows)) < len(rows):
            raise ValueError("'rows' has the same number twice")
        class_proba = tag_proba = None
        if "class_proba" in arrays:
            n_classes = 0 if head is None else len(head.classes)
            class_proba = array(arrays, "class_proba", "<f4", (len(rows), n_classes), 0, 1.0001)
        if "tag_proba" in arrays:
            n_tags = corpus.vocabulary.n_annotation_words
            tag_proba = array(arrays, "tag_proba", "<f2", (len(rows), n_tags), 0, 1.001)
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    return HeldOut(rows, class_proba, tag_proba)


def _checked_files(folder: Path, content: dict[str, Any]) -> ModelFiles:
    """Return the files of a model, after the quick checks."""
    version = whole(section(content, "format_version"), "format_version", 1, 2**31)
    if version > FORMAT_VERSION:
        raise ValueError("it was written by a newer pictopic; update pictopic to read it")
    if version < FORMAT_VERSION:
        raise ValueError("it was written by an older pictopic; make it again with pictopic fit")
    if section(content, "checksum") != checksum(content):
        raise ValueError(f"{CONFIG} was changed: its values are not those that were saved")
    files = ModelFiles.read(folder, CONFIG, sha256(folder / CONFIG), section(content, "files"))
    files.check_quickly()
    return files


# ---- hashes of the files ---------------------------------------------------------------------------------------------


class ModelFiles:
    """The files of a model, as its configuration lists them.

    Parameters
    ----------
    folder : Path
        Folder of the model.
    config : str
        Name of the configuration file.
    config_sha256 : str
        Its SHA-256 when it was read or written.
    table : mapping
        SHA-256 and size in bytes of each other file, by its name in the folder.
    """

    def __init__(self, folder: Path, config: str, config_sha256: str, table: Mapping[str, tuple[str, int]]):
        self.folder, self.config, self.config_sha256 = folder, config, config_sha256
        self.table = dict(table)

    @classmethod
    def read(cls, folder: Path, config: str, config_sha256: str, table: Any) -> ModelFiles:
        """Read a configuration's table; a ValueError if it is damaged, or a name leads out of the folder."""
        checked = {}
        for name, entry in mapping(table, "files").items():
            entry = mapping(entry, name)
            digest = section(entry, "sha256")
            if not isinstance(digest, str) or not _DIGEST.fullmatch(digest):
                raise ValueError(f"'files' has {shown(digest)} as the SHA-256 of {shown(name)}")
            if not is_inside(folder, name):
                raise ValueError(f"'files' names {shown(name)}, which is not a file inside the model")
            checked[name] = (digest, whole(section(entry, "bytes"), "bytes"))
        return cls(folder, config, config_sha256, checked)

    def check_quickly(self) -> None:
        """Check the sizes of all files and the hashes of small ones; a ValueError names the first damaged file."""
        total = 0
        for name, (digest, n_bytes) in sorted(self.table.items(), key=lambda entry: entry[1][1]):
            path = self.folder / name
            if not path.is_file():
                raise ValueError(f"{name} is missing")
            total += n_bytes
            hashed = n_bytes <= _SMALL and total <= _QUICK
            if path.stat().st_size != n_bytes or (hashed and sha256(path) != digest):
                raise ValueError(f"{name} was changed, or is of another model: it is not the file that was saved")

    def check(self) -> None:
        """Check every byte of every file; a ValueError names the first damaged one.

        Does nothing if another model has meanwhile replaced this one.
        """
        for name, (digest, _) in sorted(self.table.items()):
            path = self.folder / name
            try:
                damaged = sha256(path) != digest
            except OSError:
                damaged = True
            if damaged and self._is_there():
                raise ValueError(
                    f"{path} is damaged: it is not the file that was saved; restore a copy, or fit the model again"
                )

    def _is_there(self) -> bool:
        """Return whether the model in the folder is still this one."""
        try:
            return sha256(self.folder / self.config) == self.config_sha256
        except OSError:
            return not self.folder.exists()


def table_of(folder: Path, known: Mapping[str, str]) -> dict[str, dict[str, Any]]:
    """Return the table of all files below a folder, for its configuration.

    Parameters
    ----------
    folder : Path
    known : mapping
        Known hashes by file name, which are not computed again.
    """
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return {
        name: {"sha256": known.get(name) or sha256(folder / name), "bytes": (folder / name).stat().st_size}
        for name in names
        if not name.endswith(TIMINGS)
    }


def checksum(content: dict[str, Any]) -> str:
    """Return the SHA-256 of a configuration's values, without the checksum itself.

    Examples
    --------
    >>> from pictopic.picture_model.files import checksum
    >>> checksum({"a": 1, "b": 2, "checksum": "?"}) == checksum({"b": 2, "a": 1})
    True
    """
    values = {key: value for key, value in content.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(values, sort_keys=True).encode()).hexdigest()
