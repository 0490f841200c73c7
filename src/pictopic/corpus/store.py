"""A corpus on disk: shards of mapped arrays, a table of pictures beside each, and one small file that lists them.

``corpus.json`` is written last and by a rename: whoever opens the folder sees all of a change, or nothing of it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

from pictopic.corpus.npy import NpyWriter
from pictopic.corpus.rows import CountsOnDisk, MappedRows, map_rows
from pictopic.files import write_text
from pictopic.storage import Store, cache_folder, locked, sha256

FORMAT_VERSION = 1
MANIFEST, VOCABULARY, CODEBOOK, SKIPPED, SHARDS = (
    "corpus.json", "vocabulary.json", "codebook.safetensors", "skipped.csv", "shards",
)  # fmt: skip
ROWS_PER_SHARD = 16_384

SCHEMA = pa.schema([
    ("file_name", pa.string()),
    ("tags", pa.list_(pa.string())),
    ("labels", pa.list_(pa.string())),  # null: not known
    ("split", pa.string()),
    ("width", pa.int32()),  # as in the file, upright
    ("height", pa.int32()),
    ("picture_hash", pa.uint64()),
])  # fmt: skip


class Block(NamedTuple):
    """Some pictures on their way to the disk."""

    counts: sparse.csr_array
    features: np.ndarray | None
    rows: pa.Table  # of SCHEMA


@dataclass
class Manifest:
    """What ``corpus.json`` says."""

    n_words: int  # columns of the counts
    n_features: int  # global features a picture
    multi_label: bool
    words: dict[str, Any] | None  # WordOptions; None: the counts were not made from pictures
    source: str  # fingerprint
    options: dict[str, Any] = field(default_factory=dict)  # all others of the build
    versions: dict[str, str] = field(default_factory=dict)
    # Of each: name, n_rows, sha256 of its files, and pictures, their folder as seen from the corpus' folder.
    shards: list[dict[str, Any]] = field(default_factory=list)
    next_shard: int = 0
    format_version: int = FORMAT_VERSION

    def write(self, folder: Path) -> None:
        """Make this the state of the corpus."""
        write_text(folder / MANIFEST, json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """The state of the corpus in a folder."""
        path = folder / MANIFEST
        if not path.is_file():
            hint = "" if folder.is_dir() else " (there is no such folder)"
            raise ValueError(f"{folder} is not a corpus: it has no {MANIFEST}{hint}; make one with pictopic build")
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["format_version"] > FORMAT_VERSION:
                raise ValueError("it was written by a newer pictopic; update pictopic to read it")
            return cls(**content)
        except (TypeError, KeyError, ValueError) as error:
            raise ValueError(f"{path} cannot be read: {error}") from None


def write_shards(folder: Path, manifest: Manifest, blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """Write blocks of pictures to new shards.

    Parameters
    ----------
    folder : Path
        Of the corpus.
    manifest : Manifest
        Its `next_shard` counts on; the shards it lists stay as they are.
    blocks : iterable of Block
        Held in memory one at a time.

    Returns
    -------
    list of dict
        For `Manifest.shards`.
    """
    written = []
    waiting = _NonEmpty(blocks)
    while waiting:
        name = f"{manifest.next_shard:06d}"
        manifest.next_shard += 1
        temporary, final = folder / SHARDS / f".{name}", folder / SHARDS / name
        for leftover in (temporary, final):  # of a run that was killed before its manifest was written
            shutil.rmtree(leftover, ignore_errors=True)
        n_rows = _write_shard(temporary, waiting, manifest.n_words, manifest.n_features)
        digests = {path.name: sha256(path) for path in sorted(temporary.iterdir())}
        os.rename(temporary, final)
        written.append({"name": name, "n_rows": n_rows, "sha256": digests})
    return written


class _NonEmpty:
    """An iterator that knows whether there is more."""

    def __init__(self, blocks: Iterable[Block]):
        self._blocks = (block for block in blocks if block.counts.shape[0])
        self._next = next(self._blocks, None)

    def __bool__(self) -> bool:
        return self._next is not None

    def take(self) -> Block:
        """The next block."""
        found, self._next = self._next, next(self._blocks, None)
        assert found is not None  # noqa: S101 - the caller asked before
        return found


def _write_shard(folder: Path, blocks: _NonEmpty, n_words: int, n_features: int) -> int:
    folder.mkdir(parents=True)
    with (
        NpyWriter(folder / "features.npy", "<f4", columns=n_features) as features,
        pq.ParquetWriter(folder / "rows.parquet", SCHEMA) as table,
    ):

        def counts() -> Iterator[sparse.csr_array]:
            n_rows = 0
            while blocks and n_rows < ROWS_PER_SHARD:
                block = blocks.take()
                n_rows += block.counts.shape[0]
                if n_features:
                    features.append(block.features)
                table.write_table(block.rows.cast(SCHEMA))
                yield block.counts

        return len(CountsOnDisk.write(folder, counts(), n_words))


class Shard:
    """Some thousand pictures of a corpus."""

    def __init__(self, folder: Path, n_rows: int, n_features: int):
        self.folder = folder
        self.counts = CountsOnDisk(folder)
        if len(self.counts) != n_rows:
            raise ValueError(f"{folder} is damaged: it should have {n_rows} rows, but has {len(self.counts)}")
        self.features: MappedRows | None = None
        if n_features:
            self.features = map_rows(folder / "features.npy", (n_rows, n_features), "<f4")

    def table(self, columns: list[str] | None = None) -> pa.Table:
        """The pictures' rows."""
        return pq.read_table(self.folder / "rows.parquet", columns=columns, schema=SCHEMA)


def damaged(folder: Path, manifest: Manifest) -> list[str]:
    """Names of the shards' files that are not what was written; those of old corpora are believed."""
    found = []
    for shard in manifest.shards:
        for name, digest in shard.get("sha256", {}).items():
            path = folder / SHARDS / shard["name"] / name
            if not path.is_file() or sha256(path) != digest:
                found.append(f"{SHARDS}/{shard['name']}/{name}")
    return found


def fetch(url: str, again: Iterable[str] = ()) -> Path:
    """A folder of this machine with the corpus that is at a URL; only what is not there yet is downloaded.

    Files named in `again` are downloaded in any case.
    """
    store, folder = Store(url), cache_folder(url)
    with locked(folder):
        try:
            store.read(MANIFEST)
        except FileNotFoundError:
            raise ValueError(f"{url} is not a corpus: it has no {MANIFEST}; make one with pictopic build") from None
        for name in again:
            store.get(name, folder / name)
        store.download(folder, [name for name in store.names() if name != MANIFEST])
        store.get(MANIFEST, folder / MANIFEST)
    return folder


def publish(folder: Path, url: str) -> None:
    """Upload a corpus; its manifest last."""
    manifest = Manifest.read(folder)
    for shard in manifest.shards:
        if shard["pictures"] is not None:  # seen from anywhere
            shard["pictures"] = os.path.normpath(folder.absolute() / shard["pictures"])
    manifest.write(folder)
    Store(url).upload(folder, MANIFEST, ignore=lambda name: name.startswith("."))
