"""Removing rows from a corpus, and writing one for other programs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pictopic.corpus.store import SHARDS, Block, Manifest, Shard, write_shards

if TYPE_CHECKING:
    from pictopic.corpus.corpus import Corpus

_CHUNK = 1024  # rows that are read at a time


def remove(corpus: Corpus, names: set[str]) -> None:
    """Write the shards with these pictures again, without them; see `Corpus.remove`."""
    manifest, shards = Manifest.read(corpus.folder), []
    for entry in manifest.shards:
        shard = Shard(corpus.folder / SHARDS / entry["name"], entry["n_rows"], manifest.n_features)
        keep = np.array([name not in names for name in shard.table(["file_name"])["file_name"].to_pylist()])
        if keep.all():
            shards.append(entry)
        else:
            written = write_shards(corpus.folder, manifest, _blocks(shard, np.flatnonzero(keep), manifest.n_words))
            shards += [new | {"pictures": entry["pictures"]} for new in written]
    unused = {entry["name"] for entry in manifest.shards} - {entry["name"] for entry in shards}
    manifest.shards = shards
    manifest.write(corpus.folder)
    for name in unused:
        shutil.rmtree(corpus.folder / SHARDS / name, ignore_errors=True)


def _blocks(shard: Shard, rows: np.ndarray, n_words: int) -> Iterator[Block]:
    table = shard.table()
    for start in range(0, len(rows), _CHUNK):
        own = rows[start : start + _CHUNK]
        counts = shard.counts[own]
        counts.resize(len(own), n_words)
        yield Block(counts, None if shard.features is None else shard.features[own], table.take(own))


def export(corpus: Corpus, path: Path) -> None:
    """Write a corpus to one Parquet file; see `Corpus.export`."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        with pq.ParquetWriter(temporary, _table(corpus[:0]).schema) as writer:
            for start in range(0, len(corpus), _CHUNK):
                writer.write_table(_table(corpus[start : start + _CHUNK]))
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _table(corpus: Corpus) -> pa.Table:
    table, X = corpus.table(), corpus.X
    ends = pa.array(X.indptr, pa.int32())
    table = table.append_column("word_ids", pa.ListArray.from_arrays(ends, pa.array(X.indices, pa.int32())))
    table = table.append_column("word_counts", pa.ListArray.from_arrays(ends, pa.array(X.data, pa.int32())))
    if corpus.global_features is not None:
        features = np.asarray(corpus.global_features, dtype=np.float32)
        ends = pa.array(np.arange(len(corpus) + 1) * features.shape[1], pa.int32())
        table = table.append_column("global_features", pa.ListArray.from_arrays(ends, pa.array(features.ravel())))
    return table
