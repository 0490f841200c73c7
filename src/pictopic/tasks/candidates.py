"""A quick choice of vectors that may be the nearest: faiss' 8-bit index, whole or in clusters.

What it chooses is compared exactly afterwards (`pictopic.tasks.retrieve`): it need not be right about the order.
"""

from __future__ import annotations

import struct
import warnings
from importlib import import_module
from typing import Any

import numpy as np

MAX_EXACT = 200_000  # vectors: even of 2048 numbers, a query takes a tenth of a second
MAX_8BIT = 500_000_000  # numbers in all vectors: again a tenth of a second
_TIMES_K = 10  # candidates for each vector that is wanted
_BLOCK = 16 << 20  # bytes of vectors that are added at once
_TRAINING = 64  # vectors a cluster is learnt from
_MIN_TRAINING = 39  # faiss complains below
_MAGIC = {"8bit": b"IxSQ", "ivf": b"IwSq"}  # how faiss' files begin


def choose_kind(kind: str, n_vectors: int, n_dimensions: int) -> str:
    """What "auto" is for so many vectors; any other kind is itself, or a ValueError.

    Examples
    --------
    >>> from pictopic.tasks.candidates import choose_kind
    >>> choose_kind("auto", 25_000, 512), choose_kind("ivf", 25_000, 512)
    ('exact', 'ivf')
    """
    if kind not in ("auto", "exact", *_MAGIC):
        raise ValueError(f'kind must be "auto", "exact", "8bit" or "ivf", got {kind!r}')
    if kind == "exact" or not n_vectors or (kind == "auto" and n_vectors <= MAX_EXACT):
        return "exact"
    try:
        _faiss()
    except ImportError as error:
        if kind != "auto":
            raise
        # Slower, but right: no reason to lose what led here.
        warnings.warn(f"{n_vectors} vectors are searched one by one: {error}", stacklevel=3)
        return "exact"
    if kind == "auto":
        return "8bit" if n_vectors * n_dimensions <= MAX_8BIT else "ivf"
    return kind


class Candidates:
    """A faiss index of 8 bits a number.

    Parameters
    ----------
    kind : {"8bit", "ivf"}
        "8bit" looks at all vectors, "ivf" at those in the clusters nearest to the query.
    index : faiss.Index

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.candidates import Candidates
    >>> vectors = np.eye(4, dtype=np.float32)
    >>> candidates = Candidates.build("8bit", vectors, np.random.RandomState(0))
    >>> candidates.find(vectors[2:3], 1)[:, :1].tolist()
    [[2]]
    """

    wanted_recall = 0.98  # clusters are added until it is reached

    def __init__(self, kind: str, index: Any):
        self.kind, self._index = kind, index

    @classmethod
    def build(cls, kind: str, vectors: np.ndarray, rng: np.random.RandomState) -> Candidates:
        """Learn from vectors of length 1, and add them block by block."""
        faiss = _faiss()
        n, d = vectors.shape
        # Twice the root of n: as much work to find the clusters as to look into some of them.
        n_clusters = max(1, min(int(2 * n**0.5), n // _MIN_TRAINING))
        name = "SQ8" if kind == "8bit" else f"IVF{n_clusters},SQ8"
        index = faiss.index_factory(d, name, faiss.METRIC_INNER_PRODUCT)
        step = max(1, _BLOCK // (4 * d))
        parts = [vectors[start : start + step] for start in range(0, n, step)]
        if kind == "8bit":
            # The bytes are spread between the least and the largest value of a column: two rows tell them.
            least = np.min([part.min(axis=0) for part in parts], axis=0)
            index.train(np.stack([least, np.max([part.max(axis=0) for part in parts], axis=0)]))
        else:
            index.cp.seed = int(rng.randint(2**31 - 1))
            index.train(vectors[np.sort(rng.permutation(n)[: _TRAINING * n_clusters])])
        for part in parts:
            index.add(np.ascontiguousarray(part))
        return cls(kind, index)

    def settings(self) -> list[int]:
        """Numbers of clusters that may be looked into, fewest first."""
        if self.kind == "8bit":
            return [1]
        n_clusters = self._index.nlist
        return [*(n for n in (2**i for i in range(2, 31)) if n < n_clusters), n_clusters]

    def use(self, setting: int) -> None:
        """Look into so many clusters from now on."""
        if self.kind == "ivf":
            self._index.nprobe = setting

    def pays(self, k: int) -> bool:
        """Whether there are fewer candidates than vectors."""
        return _TIMES_K * k < self._index.ntotal

    def find(self, queries: np.ndarray, k: int) -> np.ndarray:
        """Ten times k candidates for each query, as row numbers; -1 where there are not as many."""
        return self._index.search(queries, _TIMES_K * k)[1]

    def to_bytes(self) -> bytes:
        """What `load_candidates` reads."""
        return _faiss().serialize_index(self._index).tobytes()


def load_candidates(kind: str, content: bytes, shape: tuple[int, int]) -> Candidates:
    """The index in the bytes of a file; a ValueError if it is not of this kind and shape.

    faiss reads with native code that trusts what it is given: give it only bytes whose hash was compared.
    """
    n, d = shape
    if content[:16] != struct.pack("<4siq", _MAGIC[kind], d, n):
        raise ValueError(f"it does not begin like faiss' index of {n} vectors of {d} numbers, {kind}")
    faiss = _faiss()
    try:
        index = faiss.deserialize_index(np.frombuffer(content, np.uint8))
    except RuntimeError as error:
        raise ValueError(f"faiss cannot read it: {str(error).splitlines()[0]}") from None
    if (index.ntotal, index.d, index.metric_type) != (n, d, faiss.METRIC_INNER_PRODUCT):
        raise ValueError(f"it is faiss' index of {index.ntotal} vectors of {index.d} numbers, not of {n} of {d}")
    return Candidates(kind, index)


def _faiss() -> Any:
    try:
        return import_module("faiss")
    except ImportError as error:
        raise ImportError(f"a quick search needs pip install 'pictopic[search]' ({error})") from error
