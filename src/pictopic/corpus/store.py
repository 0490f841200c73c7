"""A corpus on disk: shards of arrays, a table of pictures beside each, and a manifest that lists them.

``corpus.json`` is written last and by a rename: whoever opens the folder sees all of a change or nothing of it.  A
shard's name is the hash of its contents, so that a name always stands for the same rows.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field, fields
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

from pictopic.corpus.readers import CountsOnDisk, MappedRows, NpyWriter, map_rows
from pictopic.files import (
    check_regular,
    csv_text,
    is_inside,
    read_json,
    sync_file,
    sync_folder,
    sync_tree,
    write_bytes,
    write_text,
)
from pictopic.processes import lock
from pictopic.storage import Store, cache_folder, sha256
from pictopic.words.codebook import Codebook
from pictopic.words.vocabulary import Vocabulary

FORMAT_VERSION = 2
MANIFEST, VOCABULARY, CODEBOOK, SKIPPED, SHARDS = (
    "corpus.json", "vocabulary.json", "codebook.safetensors", "skipped.csv", "shards",
)  # fmt: skip
BUILDING = "building"  # folder of an unfinished build
ROWS_PER_SHARD = 16_384
_SHARD_NAME = re.compile(r"[0-9a-f]{16}")
_SHARD_FILES = frozenset({"counts.json", "counts.npy", "indices.npy", "indptr.npy", "features.npy", "rows.parquet"})
_WRITING = ".writing"  # of a shard that is not finished
_MAX_WORDS, _MAX_FEATURES = 2**31 - 1, 10**7
_ENCODINGS = frozenset({"PLAIN", "RLE", "BIT_PACKED"})  # the latter two: of how lists are nested
_MAX_TABLE = 2 << 30  # bytes of a shard's rows
_MAX_CODEBOOK = 1 << 30  # bytes: more is damage, and hashing it would take minutes

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
    """Some pictures that are to be written."""

    counts: sparse.csr_array
    features: np.ndarray | None
    rows: pa.Table  # of SCHEMA


@dataclass
class Manifest:
    """The contents of ``corpus.json``."""

    n_words: int  # columns of the counts
    n_features: int  # global features per picture
    multi_label: bool
    words: dict[str, Any] | None  # WordOptions; None: the counts were not made from pictures
    source: str  # fingerprint
    vocabulary_sha256: str = ""  # of the first n_words words: those beyond are of a change that was cut off
    codebook_sha256: str | None = None  # of its file; None: the counts were not made from pictures
    options: dict[str, Any] = field(default_factory=dict)  # all others of the build
    versions: dict[str, str] = field(default_factory=dict)
    # Of each: name, n_rows, sha256 of its files, and pictures, their folder as seen from the corpus' folder.
    shards: list[dict[str, Any]] = field(default_factory=list)
    format_version: int = FORMAT_VERSION

    def write(self, folder: Path) -> None:
        """Make this the state of the corpus."""
        write_text(folder / MANIFEST, json.dumps(asdict(self), indent=1, ensure_ascii=False) + "\n")

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Read the state of the corpus in a folder; a ValueError if anything in it is not as `write` writes it."""
        path = folder / MANIFEST
        if not path.is_file():
            hint = "" if folder.is_dir() else " (there is no such folder)"
            raise ValueError(f"{folder} is not a corpus: it has no {MANIFEST}{hint}; make one with pictopic build")
        content = read_json(path)
        version = content.get("format_version")
        if version != FORMAT_VERSION:
            age = "a newer" if isinstance(version, int) and version > FORMAT_VERSION else "an older"
            todo = "update pictopic to read it" if age == "a newer" else "build it again"
            raise ValueError(f"{path} cannot be read: it was written by {age} pictopic; {todo}")
        wrong = [each.name for each in fields(cls) if not _CHECKS[each.name](content.get(each.name))]
        wrong += sorted(content.keys() - {each.name for each in fields(cls)})
        if wrong:
            raise ValueError(f"{path} is damaged: {wrong[0]!r} is missing or wrong")
        return cls(**content)

    def open_shard(self, folder: Path, shard: dict[str, Any]) -> Shard:
        """Open one of the listed shards; a ValueError if a link leads out of the corpus' folder."""
        if not is_inside(folder, f"{SHARDS}/{shard['name']}"):
            raise ValueError(f"{folder} is damaged: {SHARDS}/{shard['name']} is outside of it")
        return Shard(folder / SHARDS / shard["name"], shard["n_rows"], self.n_words, self.n_features)

    def read_vocabulary(self, folder: Path) -> Vocabulary:
        """The words of the corpus in a folder; a ValueError if they are not those that were written."""
        stored = Vocabulary.load(folder / VOCABULARY)
        # Words are only ever added, at the end: those beyond the manifest are of a change that was cut off.
        n_annotations = self.n_words - stored.n_pairs
        if not 0 <= n_annotations <= stored.n_annotation_words:
            raise ValueError(f"{folder / VOCABULARY} is damaged: it should have {self.n_words} words")
        vocabulary = Vocabulary(stored.n_visual_words, stored.n_regions, stored.annotations[:n_annotations])
        if vocabulary.sha256 != self.vocabulary_sha256:
            raise ValueError(f"{folder / VOCABULARY} is damaged: it is not what was written")
        return vocabulary

    def read_codebook(self, folder: Path) -> Codebook | None:
        """The codebook of the corpus in a folder, or None; a ValueError if it is not the one that was written."""
        path = folder / CODEBOOK
        if self.codebook_sha256 is None:
            return None
        if not path.is_file():
            raise ValueError(f"{path} is missing: take it from a copy, or build the corpus again")
        if path.stat().st_size > _MAX_CODEBOOK or sha256(path) != self.codebook_sha256:
            raise ValueError(f"{path} is damaged: it is not what was written")
        return Codebook.load(path)


def _is_int(value: Any, most: int) -> bool:
    return type(value) is int and 0 <= value <= most


def _is_shard(value: Any) -> bool:
    if not isinstance(value, dict) or value.keys() != {"name", "n_rows", "sha256", "pictures"}:
        return False
    pictures, digests = value["pictures"], value["sha256"]
    return (
        isinstance(value["name"], str)
        and _SHARD_NAME.fullmatch(value["name"]) is not None
        and _is_int(value["n_rows"], 2**31 - 1)
        and (pictures is None or (isinstance(pictures, str) and "\0" not in pictures))
        and isinstance(digests, dict)
        and digests.keys() <= _SHARD_FILES
        and all(isinstance(digest, str) for digest in digests.values())
    )


_CHECKS = {
    "n_words": lambda value: _is_int(value, _MAX_WORDS),
    "n_features": lambda value: _is_int(value, _MAX_FEATURES),
    "multi_label": lambda value: isinstance(value, bool),
    "words": lambda value: value is None or isinstance(value, dict),
    "source": lambda value: isinstance(value, str),
    "vocabulary_sha256": lambda value: isinstance(value, str),
    "codebook_sha256": lambda value: value is None or isinstance(value, str),
    "options": lambda value: isinstance(value, dict) and _is_int(value.get("seed"), 2**63),
    "versions": lambda value: isinstance(value, dict),
    "shards": lambda value: (
        isinstance(value, list) and all(map(_is_shard, value)) and len({shard["name"] for shard in value}) == len(value)
    ),
    "format_version": lambda value: value == FORMAT_VERSION,
}


def corpus_lock(folder: Path) -> AbstractContextManager[None]:
    """Only one process at a time changes a corpus; see `pictopic.processes.lock`."""
    return lock(folder / ".lock", str(folder))


def write_shards(folder: Path, manifest: Manifest, blocks: Iterable[Block]) -> list[dict[str, Any]]:
    """Write blocks of pictures, one at a time, to new shards; return their entries for `Manifest.shards`.

    The shards are synced to disk when this returns; those that the manifest lists stay as they are.  The caller holds
    the lock of the corpus.
    """
    written = []
    remaining = (block for block in blocks if block.counts.shape[0])
    temporary = folder / SHARDS / _WRITING
    for first in remaining:
        shutil.rmtree(temporary, ignore_errors=True)  # of a run that was killed
        n_rows = _write_shard(temporary, chain([first], remaining), manifest.n_words, manifest.n_features)
        digests = {path.name: sha256(path) for path in sorted(temporary.iterdir())}
        name = hashlib.sha256(json.dumps(digests).encode()).hexdigest()[:16]  # unique, as the names of pictures are
        sync_tree(temporary)
        final = folder / SHARDS / name
        if final.is_dir():  # the same bytes, of a run that was killed before its manifest was written
            shutil.rmtree(temporary)
        else:
            os.rename(temporary, final)
        written.append({"name": name, "n_rows": n_rows, "sha256": digests})
    if written:
        sync_folder(folder / SHARDS)
    return written


def sweep(folder: Path, manifest: Manifest) -> None:
    """Remove the shards that the manifest does not list, and what killed processes have left.

    Only files and folders with names of our own form, inside the corpus' folder, are removed.
    """
    listed = {shard["name"] for shard in manifest.shards}
    if (folder / SHARDS).is_dir() and is_inside(folder, SHARDS):
        for path in (folder / SHARDS).iterdir():
            if path.name == _WRITING or (_SHARD_NAME.fullmatch(path.name) and path.name not in listed):
                shutil.rmtree(path, ignore_errors=True)
    for path in folder.glob(".*.tmp"):
        with suppress(OSError):
            path.unlink()


def _write_shard(folder: Path, blocks: Iterator[Block], n_words: int, n_features: int) -> int:
    """Write blocks until there are enough rows; return how many there are."""
    folder.mkdir(parents=True)
    with (
        NpyWriter(folder / "features.npy", "<f4", columns=n_features) as features,
        pq.ParquetWriter(folder / "rows.parquet", SCHEMA, use_dictionary=False) as table,
    ):

        def counts() -> Iterator[sparse.csr_array]:
            n_rows = 0
            for block in blocks:
                n_rows += block.counts.shape[0]
                if n_features:
                    features.append(block.features)
                table.write_table(block.rows.cast(SCHEMA))
                yield block.counts
                if n_rows >= ROWS_PER_SHARD:
                    return

        return len(CountsOnDisk.write(folder, counts(), n_words))


class Shard:
    """Thousands of pictures of a corpus: counts, global features and a table of rows."""

    def __init__(self, folder: Path, n_rows: int, n_words: int, n_features: int):
        self.folder, self.n_rows = folder, n_rows
        self.counts = CountsOnDisk(folder)
        if len(self.counts) != n_rows:
            raise ValueError(f"{folder} is damaged: it should have {n_rows} rows, but has {len(self.counts)}")
        if self.counts.shape[1] > n_words:
            raise ValueError(f"{folder} is damaged: it has {self.counts.shape[1]} words, but the corpus {n_words}")
        self.features: MappedRows | None = None
        if n_features:
            self.features = map_rows(folder / "features.npy", (n_rows, n_features), "<f4")

    def table(self, columns: list[str] | None = None) -> pa.Table:
        """The pictures' rows."""
        path = self.folder / "rows.parquet"
        try:
            return _read_rows(path, self.n_rows, columns)
        except FileNotFoundError:
            raise ValueError(f"{path} is gone: the corpus was changed since it was opened; open it again") from None
        except (OSError, pa.ArrowException, ValueError) as error:
            raise ValueError(f"{path} is damaged: {' '.join(str(error).split())}") from None


def _read_rows(path: Path, n_rows: int, columns: list[str] | None) -> pa.Table:
    check_regular(path)
    with pq.ParquetFile(path) as file:
        metadata = file.metadata
        if metadata.num_rows != n_rows or not file.schema_arrow.equals(SCHEMA):
            raise ValueError(f"it should have {n_rows} rows of {', '.join(SCHEMA.names)}")
        groups = [metadata.row_group(k) for k in range(metadata.num_row_groups)]
        parts = [group.column(k) for group in groups for k in range(group.num_columns)]
        # With dictionaries, a file of some kilobytes can stand for gigabytes of the same text; we write none.
        if not all(_ENCODINGS.issuperset(part.encodings) for part in parts):
            raise ValueError("it is encoded in another way than pictopic writes it")
        if sum(part.total_uncompressed_size for part in parts) > _MAX_TABLE:
            raise ValueError(f"it has more than {_MAX_TABLE:,} bytes")
        table = file.read(columns)
    table.validate(full=True)
    if "file_name" in table.column_names and table["file_name"].null_count:
        raise ValueError("a row has no file name")
    return table


def damaged(folder: Path, shards: Iterable[dict[str, Any]]) -> list[str]:
    """Names of shard files that are not what was written."""
    names = [f"{SHARDS}/{shard['name']}/{name}" for shard in shards for name in shard["sha256"]]
    digests = [digest for shard in shards for digest in shard["sha256"].values()]
    return [
        name for name, digest in zip(names, digests, strict=True)
        if not (folder / name).is_file() or sha256(folder / name) != digest
    ]  # fmt: skip


def fetch(url: str, again: Iterable[str] = ()) -> Path:
    """Download the corpus at a URL to a folder of this machine; only missing files are fetched.

    Files named in `again` are fetched in any case.
    """
    store, folder = Store(url), cache_folder(url)
    with lock(folder / ".lock", str(folder), timeout=-1):  # another process downloads it for us
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
            shard["pictures"] = os.path.realpath(folder.resolve() / shard["pictures"])
    manifest.write(folder)
    Store(url).upload(folder, MANIFEST, ignore=lambda name: name.startswith("."))


def write_skipped(path: Path, skipped: Sequence[tuple[str, str]]) -> None:
    """Write which pictures were left out, and why, as CSV."""
    text = csv_text([("file_name", "reason"), *skipped])
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def read_skipped(path: Path) -> list[tuple[str, str]]:
    """Read what `write_skipped` wrote."""
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


def export(path: Path, blocks: Iterator[Block]) -> None:
    """Write blocks, at least one, to a single Parquet file that appears whole or not at all; see `Corpus.export`."""
    tables = map(_complete_table, blocks)
    temporary, first = path.with_name(f".{os.getpid():x}.tmp"), next(tables)
    try:
        with pq.ParquetWriter(temporary, first.schema) as writer:
            for table in chain([first], tables):
                writer.write_table(table)
        sync_file(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def _complete_table(block: Block) -> pa.Table:
    table, counts = block.rows, block.counts
    ends = pa.array(counts.indptr, pa.int32())
    table = table.append_column("word_ids", pa.ListArray.from_arrays(ends, pa.array(counts.indices, pa.int32())))
    table = table.append_column("word_counts", pa.ListArray.from_arrays(ends, pa.array(counts.data, pa.int32())))
    if block.features is not None:
        features = np.asarray(block.features, dtype=np.float32)
        ends = pa.array(np.arange(len(features) + 1) * features.shape[1], pa.int32())
        table = table.append_column("global_features", pa.ListArray.from_arrays(ends, pa.array(features.ravel())))
    return table
