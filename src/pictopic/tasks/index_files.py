"""A search index on disk: ``index.json``, ``vectors-HASH.npy`` and perhaps ``clusters-HASH.safetensors``.

Large files are named by their hash.  The index changes when ``index.json``, which names them, is replaced: readers see
the old index or the new one, never a mixture.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import save as tensor_bytes

from pictopic.checks import MAX_COUNT, read_arrays
from pictopic.corpus.readers import NpyWriter, map_rows
from pictopic.files import read_json, write_bytes, write_text
from pictopic.storage import sha256
from pictopic.tasks.candidates import Clusters

FORMAT_VERSION = 2
_META = "index.json"
_VECTORS, _CLUSTERS = re.compile(r"vectors-[0-9a-f]{16}\.npy"), re.compile(r"clusters-[0-9a-f]{16}\.safetensors")
_DIGEST = re.compile(r"[0-9a-f]{64}")
# Half-written files, too, and those of faiss, which earlier versions wrote.
_OURS = re.compile(
    r"\.?(vectors-[0-9a-f]+\.npy|clusters-[0-9a-f]+\.safetensors|faiss-[0-9a-f]+\.index|index\.json)(\.\w+)?"
    r"|\.[a-z0-9_]{8}\.tmp"
)
_MAX_DIMENSIONS = 1 << 20


class Saved(NamedTuple):
    """Everything that is saved of an index except its vectors."""

    kind: str
    recall: float
    clusters: Clusters | None = None  # of "ivf"
    n_probes: int = 1  # number of clusters to search


class IndexFiles:
    """Writer of an index: `prepare` the folder, `write_vectors`, then `commit`."""

    def __init__(self, folder: Path):
        self.folder = folder
        self._meta: dict[str, Any] = {"format_version": FORMAT_VERSION}

    @classmethod
    def prepare(cls, folder: str | Path) -> IndexFiles:
        """Make the folder; raise a ValueError if it holds something else."""
        folder = Path(folder)
        if folder.exists() and not _is_free(folder):
            raise ValueError(f"{folder} exists and is not a search index; choose another folder")
        folder.mkdir(parents=True, exist_ok=True)
        return cls(folder)

    def write_vectors(self, blocks: Iterable[np.ndarray], shape: tuple[int, int]) -> np.ndarray:
        """Write the vectors block by block, and map them."""
        temporary = self.folder / f".vectors-{os.getpid():x}.npy"
        try:
            with NpyWriter(temporary, "<f4", columns=shape[1]) as file:
                for block in blocks:
                    file.append(block)
            with temporary.open("rb+") as written:
                os.fsync(written.fileno())
                digest = hashlib.file_digest(written, "sha256").hexdigest()
            name = f"vectors-{digest[:16]}.npy"
            self._meta |= {"shape": list(shape), "vectors": name, "vectors_sha256": digest}
            os.replace(temporary, self.folder / name)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        return _map(self.folder / name, shape)

    def commit(self, saved: Saved) -> None:
        """Write everything else, and make this the folder's index."""
        self._meta |= {"kind": saved.kind, "recall": saved.recall, "clusters": None, "n_probes": saved.n_probes}
        if saved.clusters is not None:
            content = tensor_bytes(
                {name: np.ascontiguousarray(value) for name, value in saved.clusters._asdict().items()}
            )
            digest = hashlib.sha256(content).hexdigest()
            name = f"clusters-{digest[:16]}.safetensors"
            write_bytes(self.folder / name, content)
            self._meta |= {"clusters": name, "clusters_sha256": digest}
        write_text(self.folder / _META, json.dumps(self._meta, indent=1) + "\n")
        named = {_META, self._meta["vectors"], self._meta["clusters"]}
        for path in self.folder.iterdir():
            if _OURS.fullmatch(path.name) and path.name not in named:
                with suppress(OSError):  # Windows keeps files that are open; the next save removes them
                    path.unlink()

    @staticmethod
    def read(folder: str | Path, verify: bool) -> tuple[np.ndarray, Saved]:
        """Return the mapped vectors and everything else, checked; a ValueError says what is wrong."""
        folder = Path(folder)
        meta = _read_meta(folder / _META)
        path = folder / meta["vectors"]
        vectors = _map(path, (meta["shape"][0], meta["shape"][1]))
        if verify:
            with path.open("rb") as file:
                _compare(path, hashlib.file_digest(file, "sha256").hexdigest(), meta["vectors_sha256"])
        if meta["kind"] != "ivf":
            return vectors, Saved(meta["kind"], float(meta["recall"]) if meta["kind"] == "8bit" else 1.0)
        path = folder / meta["clusters"]
        if not path.is_file():
            raise ValueError(f"{folder} is damaged: there is no {path.name} in it")
        arrays, _ = read_arrays(path)
        _compare(path, sha256(path), meta["clusters_sha256"])
        try:
            clusters = Clusters.from_arrays(arrays, vectors.shape)
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        return vectors, Saved("ivf", float(meta["recall"]), clusters, min(meta["n_probes"], len(clusters.centres)))


def _is_free(folder: Path) -> bool:
    """Return whether a folder is empty, or holds an index or the remains of one after a crash."""
    if not folder.is_dir():
        return False
    return (folder / _META).is_file() or all(_OURS.fullmatch(path.name) for path in folder.iterdir())


def _map(path: Path, shape: tuple[int, int]) -> np.ndarray:
    if not path.is_file():
        raise ValueError(f"{path.parent} is damaged: there is no {path.name} in it")
    # A plain view: slicing a numpy.memmap costs more than reading a small block.
    return map_rows(path, shape, "<f4").array.view(np.ndarray)


def _compare(path: Path, digest: str, expected: str) -> None:
    if digest != expected:
        raise ValueError(f"{path} is damaged or was changed: it is not the file that was saved with {_META}")


def _read_meta(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise ValueError(f"{path.parent} is not a search index: there is no {_META} in it")
    meta = read_json(path)
    if not _is_count(meta.get("format_version")):
        raise ValueError(f"{path} is not a search index's: it has no format_version")
    if meta["format_version"] > FORMAT_VERSION:
        raise ValueError(f"{path} has format {meta['format_version']}, this pictopic reads up to {FORMAT_VERSION}")
    wrong = [key for key, is_right in _CHECKS.items() if not is_right(meta.get(key))]
    if not wrong and meta["kind"] == "ivf":
        if meta["format_version"] < FORMAT_VERSION:
            raise ValueError(f"{path} was written by an older pictopic: make the index again")
        wrong = [key for key, is_right in _CLUSTER_CHECKS.items() if not is_right(meta.get(key))]
    if wrong:
        raise ValueError(f"{path} is damaged: {wrong[0]!r} is missing or wrong")
    return meta


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT


def _is_shape(value: Any) -> bool:
    return (
        isinstance(value, list) and len(value) == 2 and all(map(_is_count, value)) and 0 < value[1] <= _MAX_DIMENSIONS
    )


def _matches(pattern: re.Pattern[str]) -> Any:
    # The pattern rules out names that lead out of the folder.
    return lambda value: isinstance(value, str) and pattern.fullmatch(value) is not None


_CHECKS = {
    "kind": lambda value: value in ("exact", "8bit", "ivf"),
    "recall": lambda value: isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1,
    "shape": _is_shape,
    "vectors": _matches(_VECTORS),
    "vectors_sha256": _matches(_DIGEST),
}
_CLUSTER_CHECKS = {
    "clusters": _matches(_CLUSTERS),
    "clusters_sha256": _matches(_DIGEST),
    "n_probes": lambda value: _is_count(value) and value > 0,
}
