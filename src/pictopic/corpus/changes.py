"""Removing rows from a corpus, giving them other tags, and writing one for other programs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse

from pictopic.corpus.store import SCHEMA, SHARDS, Block, Manifest, Shard, write_shards
from pictopic.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pictopic.corpus.corpus import Corpus

_CHUNK = 1024  # rows that are read at a time


def remove(corpus: Corpus, names: set[str]) -> None:
    """Write the shards with these pictures again, without them; see `Corpus.remove`."""

    def without(shard: Shard) -> Iterator[Block] | None:
        keep = np.array([name not in names for name in shard.table(["file_name"])["file_name"].to_pylist()])
        return None if keep.all() else _blocks(shard, np.flatnonzero(keep), len(corpus.vocabulary))

    _write_again(corpus, without)


def retag(corpus: Corpus, tags: Mapping[str, list[str]]) -> None:
    """Write the shards with these pictures again, with other tags; see `Corpus.retag`."""

    def with_tags(shard: Shard) -> Iterator[Block] | None:
        rows = shard.table(["file_name", "tags"]).to_pylist()
        if all(tags.get(row["file_name"], row["tags"] or []) == (row["tags"] or []) for row in rows):
            return None
        blocks = _blocks(shard, np.arange(len(rows)), len(corpus.vocabulary))
        return (_retagged(block, tags, corpus.vocabulary) for block in blocks)

    _write_again(corpus, with_tags)


def _retagged(block: Block, tags: Mapping[str, list[str]], vocabulary: Vocabulary) -> Block:
    before = [own or [] for own in block.rows["tags"].to_pylist()]
    names = block.rows["file_name"].to_pylist()
    after = [tags.get(name, own) for name, own in zip(names, before, strict=True)]
    # What changes, and nothing else: counts that came with a source need not be those of its tags.
    visual, annotation = block.counts[:, : vocabulary.n_pairs], block.counts[:, vocabulary.n_pairs :]
    annotation = sparse.csr_array(annotation + vocabulary.count_tags(after) - vocabulary.count_tags(before))
    annotation.data = np.maximum(annotation.data, 0)
    annotation.eliminate_zeros()
    counts = sparse.csr_array(sparse.hstack([visual, annotation], format="csr", dtype=np.int32))
    place = block.rows.schema.get_field_index("tags")
    rows = block.rows.set_column(place, SCHEMA.field("tags"), pa.array(after, SCHEMA.field("tags").type))
    return Block(counts, block.features, rows)


def _write_again(corpus: Corpus, change: Callable[[Shard], Iterator[Block] | None]) -> None:
    """Write what `change` makes of each shard to new ones; None: the shard stays.  The manifest comes last."""
    manifest, shards = Manifest.read(corpus.folder), []
    for entry in manifest.shards:
        changed = change(Shard(corpus.folder / SHARDS / entry["name"], entry["n_rows"], manifest.n_features))
        if changed is None:
            shards.append(entry)
        else:
            written = write_shards(corpus.folder, manifest, changed)
            shards += [new | {"pictures": entry["pictures"]} for new in written]
    unused = {entry["name"] for entry in manifest.shards} - {entry["name"] for entry in shards}
    if not unused:
        return
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
