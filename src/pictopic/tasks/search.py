"""Search for the vectors that are most similar to a query.

Exact search is one matrix product over vectors that may be on disk.  Above some hundred thousand vectors, faiss chooses
candidates (`pictopic.tasks.candidates`), which are then compared exactly.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from sklearn.utils import check_random_state

from pictopic.corpus.readers import DenseRows
from pictopic.tasks.candidates import Candidates, load_faiss
from pictopic.tasks.index_files import IndexFiles, Saved

Kind = Literal["auto", "exact", "8bit", "ivf"]

MAX_EXACT = 200_000  # vectors: even with 2048 numbers per vector, a query takes a tenth of a second
MAX_8BIT = 500_000_000  # numbers in all vectors: again a tenth of a second
_FAISS_KINDS = ("8bit", "ivf")
_BLOCK = 16 << 20  # bytes of vectors multiplied at once
_QUERIES = 64  # searched at once: more do not make the product any faster
_RANKED = 4 << 20  # bytes of candidates compared at once
_SAMPLED = 100  # queries for measuring recall
_RECALL_AT = 10


def choose_kind(kind: str, n_vectors: int, n_dimensions: int) -> str:
    """Return the kind of index, choosing one if it is "auto"; raise a ValueError for an unknown kind.

    Examples
    --------
    >>> from pictopic.tasks.search import choose_kind
    >>> choose_kind("auto", 25_000, 512), choose_kind("ivf", 25_000, 512)
    ('exact', 'ivf')
    """
    if kind not in ("auto", "exact", *_FAISS_KINDS):
        raise ValueError(f'kind must be "auto", "exact", "8bit" or "ivf", got {kind!r}')
    if kind == "exact" or not n_vectors or (kind == "auto" and n_vectors <= MAX_EXACT):
        return "exact"
    try:
        load_faiss()
    except ImportError as error:
        if kind != "auto":
            raise
        # Slower, but right: no reason to fail after all the work so far.
        warnings.warn(f"{n_vectors} vectors are searched one by one: {error}", stacklevel=3)
        return "exact"
    if kind == "auto":
        return "8bit" if n_vectors * n_dimensions <= MAX_8BIT else "ivf"
    return kind


class Index:
    """The nearest of many vectors, by cosine similarity.

    Made by `build` or `load`.  A similarity depends on the two vectors only, not on how many queries are searched at
    once; of equally similar vectors, those with lower row numbers come first.

    Attributes
    ----------
    kind : {"exact", "8bit", "ivf"}
    vectors : float32 array of shape (n, d)
        Vectors of length 1, or 0; possibly mapped from disk.
    recall_ : float
        Share of the 10 nearest vectors that are found, measured on 100 vectors of the collection when the index was
        built; 1.0 if exact.  It is lower for queries unlike anything in the collection.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.search import Index
    >>> index = Index.build(np.array([[1.0, 0.0], [3.0, 3.0], [0.0, 2.0], [1.0, 0.9]]))
    >>> rows, similarities = index.search([[1.0, 1.0]], k=3)
    >>> rows
    array([[1, 3, 0]])
    >>> similarities.round(3)
    array([[1.   , 0.999, 0.707]], dtype=float32)
    >>> index.search([[1.0, 1.0]], k=2, among=[0, 2, 3], exclude=[3])[0].tolist()
    [[0, 2]]
    """

    def __init__(self, vectors: np.ndarray, candidates: Candidates | None = None, recall: float = 1.0):
        self.vectors = vectors
        self.recall_ = recall
        self._candidates = candidates

    @property
    def kind(self) -> str:
        """How candidates are chosen: "exact", "8bit" or "ivf"."""
        return "exact" if self._candidates is None else self._candidates.kind

    def __len__(self) -> int:
        return len(self.vectors)

    def __repr__(self) -> str:
        n, d = self.vectors.shape
        return f"Index({n} x {d}, {self.kind}, recall {self.recall_:.3f})"

    @classmethod
    def build(
        cls,
        vectors: Any,
        *,
        kind: Kind = "auto",
        random_state: int | np.random.RandomState | None = 0,
        folder: str | Path | None = None,
    ) -> Index:
        """Build an index of vectors.

        Parameters
        ----------
        vectors : array-like, memory map or DenseRows of shape (n, d)
            Read block by block and normalised to length 1; vectors of zeros stay as they are, and their similarity to
            everything is 0.
        kind : {"auto", "exact", "8bit", "ivf"}, default="auto"
            "exact" compares with every vector.  "8bit" first compares with vectors of one byte per number, in a quarter
            of the memory, "ivf" with some clusters of those; the best 10 * k are compared exactly.  Both need faiss
            (``pip install 'pictopic[search]'``).  "auto": exact up to 200,000 vectors, then 8 bits up to 500
            million numbers, then clusters; exact, with a warning, if faiss is not installed.
        random_state : int, RandomState or None, default=0
            Seed of the clusters and of the queries for measuring recall.
        folder : path, optional
            Where to save the index; its vectors then are never in memory as a whole.

        Returns
        -------
        Index
        """
        vectors = vectors if isinstance(vectors, DenseRows) else np.asarray(vectors)
        if len(vectors.shape) != 2 or not vectors.shape[1]:
            raise ValueError(f"vectors must be of shape (n, d), got {vectors.shape}")
        chosen = choose_kind(kind, *vectors.shape)
        files = None if folder is None else IndexFiles.prepare(folder)
        index = cls(
            _unit_array(vectors) if files is None else files.write_vectors(_unit_blocks(vectors), vectors.shape)
        )
        if chosen != "exact":
            index._add_candidates(chosen, check_random_state(random_state))
        if files is not None:
            files.commit(index._describe())
        return index

    def search(
        self,
        queries: Any,
        k: int = 10,
        *,
        among: Any = None,
        exclude: Sequence[int | None] | np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the k vectors most similar to each query.

        Many queries at once are much faster than one by one.

        Parameters
        ----------
        queries : array-like of shape (n_queries, d)
        k : int, default=10
        among : bool array of shape (n,) or array of row numbers, optional
            Search only these vectors; the search is then exact, whatever the kind.
        exclude : sequence of n_queries row numbers, optional
            One vector per query to leave out, such as the query itself; -1 or None for none.

        Returns
        -------
        rows : int64 array of shape (n_queries, k)
            Most similar first; -1 if there are fewer than k vectors.
        similarities : float32 array of shape (n_queries, k)
            Between -1 and 1; NaN if there are fewer than k vectors.
        """
        k = operator.index(k)
        if k < 1:
            raise ValueError(f"k must be at least 1, got {k}")
        unit = self._checked_queries(queries)
        chosen = self._checked_among(among)
        left_out = self._checked_exclude(exclude, len(unit))
        rows, similarities = np.full((len(unit), k), -1, np.int64), np.full((len(unit), k), np.nan, np.float32)
        for start in range(0, len(unit), _QUERIES):
            part = slice(start, start + _QUERIES)
            for i, candidates in enumerate(self._find(unit[part], k, chosen, left_out[part]), start):
                ranked, values = self._ranked(unit[i], candidates)
                rows[i, : len(ranked)], similarities[i, : len(ranked)] = ranked[:k], values[:k]
        return rows, similarities

    def save(self, folder: str | Path) -> None:
        """Write the index to a folder, replacing an index there; whole or not at all."""
        files = IndexFiles.prepare(folder)
        n, d = self.vectors.shape
        step = self._block_rows
        files.write_vectors((self.vectors[start : start + step] for start in range(0, n, step)), (n, d))
        files.commit(self._describe())

    @classmethod
    def load(cls, folder: str | Path, *, verify: bool = True) -> Index:
        """Open an index that `save` wrote; its vectors stay on disk until they are needed.

        A faiss index is rebuilt from the vectors, which takes some seconds for a million.

        Parameters
        ----------
        folder : path
        verify : bool, default=True
            Check the SHA-256 of the vectors, which takes a second for 1.4 GB.  Shapes, sizes and everything passed to
            faiss are always checked.

        Returns
        -------
        Index

        Raises
        ------
        ValueError
            If the folder is not an index, or was damaged or changed.
        """
        vectors, saved = IndexFiles.read(folder, verify)
        if saved.kind == "exact" or not len(vectors):
            return cls(vectors)
        try:
            candidates = Candidates.restore(vectors, saved.clusters)
        except ImportError as error:  # slower, but right
            warnings.warn(f"{len(vectors)} vectors are searched one by one: {error}", stacklevel=2)
            return cls(vectors)
        except ValueError as error:
            raise ValueError(f"{folder} is damaged: {error}") from None
        candidates.use(saved.n_probes)
        return cls(vectors, candidates, saved.recall)

    def _describe(self) -> Saved:
        if self._candidates is None:
            return Saved("exact", 1.0)
        return Saved(self.kind, self.recall_, self._candidates.clusters, self._candidates.setting)

    def _add_candidates(self, kind: str, rng: np.random.RandomState) -> None:
        """Build the choice of candidates, and measure its recall."""
        self._candidates = Candidates.build(kind, self.vectors, rng)
        settings = self._candidates.settings()
        sample = rng.permutation(len(self))
        # The setting is chosen on some queries and recall measured on others, so that the figure is unbiased.
        for setting in settings:
            self._candidates.use(setting)
            if len(settings) == 1 or self._measured_recall(sample[-2 * _SAMPLED :]) >= self._candidates.target_recall:
                break
        self.recall_ = self._measured_recall(sample[:_SAMPLED])

    def _measured_recall(self, sample: np.ndarray) -> float:
        queries = self.vectors[sample]
        _, similarities = self.search(queries, _RECALL_AT, exclude=sample)
        _, exact = self.search(queries, _RECALL_AT, exclude=sample, among=np.ones(len(self), bool))
        exists = ~np.isnan(exact)
        # By similarity, not by row number: any of several equal vectors will do.
        hits = similarities >= np.nanmin(np.where(exists, exact, np.inf), axis=1, keepdims=True)
        return float(hits[exists].mean()) if exists.any() else 1.0

    def _find(self, queries: np.ndarray, k: int, among: np.ndarray | None, exclude: np.ndarray) -> Iterator[np.ndarray]:
        """Yield for each query the rows that may be among the k best, without excluded ones."""
        if self._candidates is None or among is not None or not self._candidates.pays(k + 1):
            yield from self._scan(queries, k, among, exclude)
            return
        for i, rows in enumerate(self._candidates.find(queries, k + 1)):
            allowed = rows[(rows >= 0) & (rows != exclude[i])]
            # The searched clusters may hold fewer than k vectors.
            yield allowed if len(allowed) >= k else next(self._scan(queries[i : i + 1], k, None, exclude[i : i + 1]))

    def _scan(self, queries: np.ndarray, k: int, among: np.ndarray | None, exclude: np.ndarray) -> Iterator[np.ndarray]:
        """Compare with all vectors, or with the rows in `among`."""
        # How far rounding may move two similarities past each other: the k largest of the float32 product need not be
        # the k largest similarities.
        margin = 2 * 8 * self.vectors.shape[1] ** 0.5 * 2.0**-24
        nearest = [_Nearest(k, margin) for _ in queries]
        for rows, similarity in self._similarities(queries, among):
            for i in np.flatnonzero((exclude >= rows[0]) & (exclude <= rows[-1])):
                similarity[i, rows == exclude[i]] = np.nan  # compares as not near enough
            for query_nearest, values in zip(nearest, similarity, strict=True):
                query_nearest.add(values, rows)
        return (query_nearest.rows for query_nearest in nearest)

    def _similarities(self, queries: np.ndarray, among: np.ndarray | None) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield row numbers and the similarities of each query to them, block by block."""
        for start in range(0, len(self), self._block_rows):
            block = self.vectors[start : start + self._block_rows]
            if among is None:
                yield np.arange(start, start + len(block)), _product(queries, block)
                continue
            in_block = slice(*np.searchsorted(among, (start, start + len(block))))
            rows, places = among[in_block], among[in_block] - start
            if 4 * len(rows) > len(block):
                # Computing unneeded products takes less time than copying the vectors of the needed ones.
                yield rows, _product(queries, block)[:, places]
            elif len(rows):
                yield rows, _product(queries, block[places])

    def _ranked(self, query: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sort rows by similarity, which is computed in the same way for every kind of index."""
        if not query.any():
            rows = np.sort(rows)  # all similarities are 0
            return rows, np.zeros(len(rows), np.float32)
        size = max(1, _RANKED // (8 * len(query)))
        products = [
            # Not a matrix product, whose rounding depends on the other rows.
            (self.vectors[rows[start : start + size]] * query.astype(np.float64)).sum(axis=1)
            for start in range(0, len(rows), size)
        ]
        values = np.clip(np.concatenate([np.zeros(0), *products]), -1, 1).astype(np.float32)
        order = np.lexsort((rows, -values))
        return rows[order], values[order]

    @property
    def _block_rows(self) -> int:
        return max(1, _BLOCK // (4 * self.vectors.shape[1]))

    def _checked_queries(self, queries: Any) -> np.ndarray:
        queries = np.asarray(queries)
        if queries.ndim != 2 or queries.shape[1] != self.vectors.shape[1]:
            raise ValueError(f"queries must be of shape (any, {self.vectors.shape[1]}), got {queries.shape}")
        return unit_rows(queries, "queries")

    def _checked_among(self, among: Any) -> np.ndarray | None:
        if among is None:
            return None
        among = np.asarray(among)
        if among.dtype == bool:
            if among.shape != (len(self),):
                raise ValueError(f"among must have an entry for each of the {len(self)} vectors, got {among.shape}")
            return np.flatnonzero(among)
        return np.unique(self._row_numbers(among, "among", 0))

    def _checked_exclude(self, exclude: Any, n_queries: int) -> np.ndarray:
        if exclude is None:
            return np.full(n_queries, -1)
        rows = np.asarray(exclude)
        if rows.dtype == object:
            rows = np.array([-1 if row is None else row for row in exclude])
        if rows.shape != (n_queries,):
            raise ValueError(f"exclude must have a row number for each of the {n_queries} queries, got {rows.shape}")
        return self._row_numbers(rows, "exclude", -1)

    def _row_numbers(self, rows: np.ndarray, name: str, least: int) -> np.ndarray:
        if not rows.size:
            return np.zeros(0, np.int64)
        if rows.ndim != 1 or rows.dtype.kind not in "iu":
            raise ValueError(f"{name} must hold row numbers")
        if rows.min() < least or rows.max() >= len(self):
            wrong = rows.min() if rows.min() < least else rows.max()
            raise ValueError(f"{name} has row number {wrong}, but there are {len(self)} vectors")
        return rows.astype(np.int64)


class _Nearest:
    """Rows that may be among the k most similar to one query."""

    def __init__(self, k: int, margin: float):
        self.k, self.margin, self.limit = k, margin, -np.inf
        self.values, self.rows = np.zeros(0, np.float32), np.zeros(0, np.int64)

    def add(self, values: np.ndarray, rows: np.ndarray) -> None:
        near = np.flatnonzero(values >= self.limit)
        if not len(near):
            return
        self.values, self.rows = np.append(self.values, values[near]), np.append(self.rows, rows[near])
        if len(self.rows) > self.k:
            self.limit = np.partition(self.values, -self.k)[-self.k] - self.margin
            near_enough = self.values >= self.limit
            self.values, self.rows = self.values[near_enough], self.rows[near_enough]


def unit_rows(rows: Any, name: str = "vectors", first: int = 0) -> np.ndarray:
    """Scale rows to length 1, as float32; rows of zeros stay as they are.

    Parameters
    ----------
    rows : array-like of shape (n, d)
    name : str
        Name of the rows in error messages.
    first : int, default=0
        Number of the first row in error messages.

    Examples
    --------
    >>> from pictopic.tasks.search import unit_rows
    >>> unit_rows([[3.0, 4.0], [0.0, 0.0]]).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    values = np.array(rows, dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(values).all(axis=1))
    if len(wrong):
        raise ValueError(f"{name} have NaN or infinite numbers, the first in row {first + wrong[0]}")
    # Squares of very large or small numbers do not fit into a float64, nor all numbers into a float32.
    largest = np.abs(values).max(axis=1, keepdims=True, initial=0)
    values /= np.where(largest > 0, largest, 1)
    lengths = np.sqrt((values * values).sum(axis=1, keepdims=True))
    return (values / np.where(lengths > 0, lengths, 1)).astype(np.float32)


def _product(queries: np.ndarray, block: np.ndarray) -> np.ndarray:
    # The product vectors x queries takes three quarters of the time of queries x vectors.
    return np.ascontiguousarray((block @ queries.T).T)


def _unit_blocks(vectors: Any) -> Iterator[np.ndarray]:
    step = max(1, _BLOCK // (4 * vectors.shape[1]))
    for start in range(0, len(vectors), step):
        yield unit_rows(vectors[start : start + step], first=start)


def _unit_array(vectors: Any) -> np.ndarray:
    unit = np.empty(vectors.shape, np.float32)
    start = 0
    for block in _unit_blocks(vectors):
        unit[start : start + len(block)] = block
        start += len(block)
    return unit
