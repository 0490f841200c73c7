"""A corpus as one Parquet file, for other programs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pictopic.files import sync_file, sync_folder

if TYPE_CHECKING:
    from pictopic.corpus.corpus import Corpus

_CHUNK = 1024  # rows in memory at a time


def export(corpus: Corpus, path: Path) -> None:
    """Write a corpus to one Parquet file; see `Corpus.export`."""
    temporary = path.with_name(f".{os.getpid():x}.tmp")
    try:
        with pq.ParquetWriter(temporary, _table(corpus[:0]).schema) as writer:
            for start in range(0, len(corpus), _CHUNK):
                writer.write_table(_table(corpus[start : start + _CHUNK]))
        sync_file(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


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
