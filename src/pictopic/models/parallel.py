"""Splitting work into parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np


def chunks(lengths: np.ndarray, size: int) -> Iterator[tuple[int, int]]:
    """Ranges ``first, last`` of documents with at most `size` words together (or one document, if it has more).

    Examples
    --------
    >>> from pictopic.models.parallel import chunks
    >>> list(chunks([3, 3, 9, 1], size=6))
    [(0, 2), (2, 3), (3, 4)]
    """
    lengths = np.asarray(lengths)
    ends = np.cumsum(lengths)
    first = 0
    while first < len(lengths):
        before = ends[first] - lengths[first]
        last = max(first + 1, int(np.searchsorted(ends, before + size, side="right")))
        yield first, last
        first = last


def in_parts(n: int, n_jobs: int, run: Callable[[int, int], None], pool: ThreadPoolExecutor | None = None) -> None:
    """Call ``run(first, last)`` for `n_jobs` equal parts of 0..n-1, each in a thread of its own."""
    n_jobs = max(1, min(n_jobs, n))
    if n_jobs == 1:
        run(0, n)
        return
    cuts = [n * j // n_jobs for j in range(n_jobs + 1)]
    if pool is not None:
        list(pool.map(run, cuts[:-1], cuts[1:]))
        return
    with ThreadPoolExecutor(n_jobs) as own:
        list(own.map(run, cuts[:-1], cuts[1:]))
