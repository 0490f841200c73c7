"""Fast choice of vectors that may be the nearest, with faiss' 8-bit index, whole or in clusters.

The candidates are compared exactly afterwards (`pictopic.tasks.search`), so their order need not be right.

No faiss file is ever read: its reader is native code that trusts its input.  A saved index is rebuilt from the vectors
and from clusters that are plain, checked arrays: for 300,000 vectors of 512 numbers, this took 4 seconds, and hashing
and reading a faiss file 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from pictopic.checks import array

_PER_ANSWER = 10  # candidates per answer
_BLOCK = 16 << 20  # bytes of vectors added at once
_TRAINING = 64  # training vectors per cluster
_MIN_TRAINING = 39  # training vectors per cluster below which faiss warns
_MAX_NUMBER = 1.001  # of a vector of length 1


class Clusters(NamedTuple):
    """Clusters and quantiser of an "ivf" index."""

    centres: np.ndarray  # (n_clusters, d), float32
    ranges: np.ndarray  # (2, d), float32: least value and width of the range that 8 bits encode
    numbers: np.ndarray  # (n,), int32: the cluster of each vector

    @classmethod
    def from_arrays(cls, arrays: dict[str, np.ndarray], shape: tuple[int, int]) -> Clusters:
        """Check a file's arrays for vectors of this shape; a ValueError says what is wrong."""
        n, d = shape
        centres = array(arrays, "centres", "<f4", (None, d))
        if not 0 < len(centres) <= n:
            raise ValueError(f"there are {len(centres)} clusters of {n} vectors")
        ranges = array(arrays, "ranges", "<f4", (2, d))
        return cls(centres, ranges, array(arrays, "numbers", "<i4", (n,), 0, len(centres) - 1))


class Candidates:
    """A faiss index with 8 bits per number.

    Parameters
    ----------
    kind : {"8bit", "ivf"}
        "8bit" searches all vectors, "ivf" those in the clusters nearest to the query.
    index : faiss.Index
    clusters : Clusters or None
        None for "8bit".

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.candidates import Candidates
    >>> vectors = np.eye(4, dtype=np.float32)
    >>> candidates = Candidates.build("8bit", vectors, np.random.RandomState(0))
    >>> candidates.find(vectors[2:3], 1)[:, :1].tolist()
    [[2]]
    """

    target_recall = 0.98  # clusters are added until it is reached

    def __init__(self, kind: str, index: Any, clusters: Clusters | None = None):
        self.kind, self._index, self.clusters = kind, index, clusters

    @classmethod
    def build(cls, kind: str, vectors: np.ndarray, rng: np.random.RandomState) -> Candidates:
        """Train the index on vectors of length 1, and add them block by block."""
        if kind == "8bit":
            return cls.restore(vectors, None)
        n, d = vectors.shape
        # Twice the square root of n: finding clusters costs as much as searching some of them.
        n_clusters = max(1, min(int(2 * n**0.5), n // _MIN_TRAINING))
        faiss = load_faiss()
        index = faiss.index_factory(d, f"IVF{n_clusters},SQ8", faiss.METRIC_INNER_PRODUCT)
        index.cp.seed = int(rng.randint(2**31 - 1))
        index.train(vectors[np.sort(rng.permutation(n)[: _TRAINING * n_clusters])])
        centres = index.quantizer.reconstruct_n(0, n_clusters)
        ranges = faiss.vector_to_array(index.sq.trained).reshape(2, d)
        numbers = [index.quantizer.search(part, 1)[1][:, 0] for part in _parts(vectors)]
        return cls.restore(vectors, Clusters(centres, ranges, np.concatenate(numbers).astype(np.int32)))

    @classmethod
    def restore(cls, vectors: np.ndarray, clusters: Clusters | None) -> Candidates:
        """Rebuild the index from vectors and their clusters; raise a ValueError if a vector is wrong."""
        faiss = load_faiss()
        d = vectors.shape[1]
        if clusters is None:
            index = faiss.index_factory(d, "SQ8", faiss.METRIC_INNER_PRODUCT)
            # The 8 bits of a column span its least to its largest value: two rows are enough to train them.
            bounds = [(part.min(axis=0), part.max(axis=0)) for part in _parts(vectors)]
            index.train(np.stack([np.min([b[0] for b in bounds], axis=0), np.max([b[1] for b in bounds], axis=0)]))
            for part in _parts(vectors):
                index.add(part)
            return cls("8bit", index)
        quantizer = faiss.IndexFlatIP(d)
        quantizer.add(clusters.centres)
        kind = faiss.ScalarQuantizer.QT_8bit
        index = faiss.IndexIVFScalarQuantizer(quantizer, d, len(clusters.centres), kind, faiss.METRIC_INNER_PRODUCT)
        faiss.copy_array_to_vector(np.ascontiguousarray(clusters.ranges).ravel(), index.sq.trained)
        index.is_trained = True
        start = 0
        for part in _parts(vectors):
            numbers = clusters.numbers[start : start + len(part)].astype(np.int64)
            index.add_core(len(part), faiss.swig_ptr(part), None, faiss.swig_ptr(numbers))
            start += len(part)
        return cls("ivf", index, clusters)

    def settings(self) -> list[int]:
        """Return the possible numbers of clusters to search, ascending."""
        if self.kind == "8bit":
            return [1]
        n_clusters = self._index.nlist
        return [*(n for n in (2**i for i in range(2, 31)) if n < n_clusters), n_clusters]

    def use(self, setting: int) -> None:
        """Search this number of clusters from now on."""
        if self.kind == "ivf":
            self._index.nprobe = setting

    @property
    def setting(self) -> int:
        """Number of clusters that are searched."""
        return int(self._index.nprobe) if self.kind == "ivf" else 1

    def pays(self, k: int) -> bool:
        """Return whether there are fewer candidates than vectors."""
        return _PER_ANSWER * k < self._index.ntotal

    def find(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Return 10 * k candidates per query, as row numbers; -1 if there are fewer."""
        return self._index.search(queries, _PER_ANSWER * k)[1]


def _parts(vectors: np.ndarray) -> Iterator[np.ndarray]:
    """Yield blocks of vectors, checked: faiss trusts its input."""
    step = max(1, _BLOCK // (4 * vectors.shape[1]))
    for start in range(0, len(vectors), step):
        part = np.ascontiguousarray(vectors[start : start + step], dtype=np.float32)
        if not np.abs(part).max() <= _MAX_NUMBER:  # also true for NaN
            raise ValueError(f"vectors {start} to {start + len(part) - 1} are not all of length 1")
        yield part


def load_faiss() -> Any:
    """Import faiss; the error says what to install."""
    try:
        return import_module("faiss")
    except ImportError as error:
        raise ImportError(f"a quick search needs pip install 'pictopic[search]' ({error})") from error
