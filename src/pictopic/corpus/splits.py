"""Choosing rows for a test part."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from pictopic.words.duplicates import groups


def split_rows(
    test_size: float, labels: Sequence[str | None] | None, hashes: Sequence[int | None], seed: int
) -> np.ndarray:
    """Choose a test part: the same share of every class, near-duplicates on one side.

    Parameters
    ----------
    test_size : float
        Between 0 and 1.
    labels : sequence of str or None, or None
        None: not stratified.
    hashes : sequence of int or None
        Fingerprints of the pictures (`perceptual_hash`); None: like no other.
    seed : int

    Returns
    -------
    bool array
        Whether a row is in the test part.

    Examples
    --------
    >>> from pictopic.corpus.splits import split_rows
    >>> split_rows(0.5, list("aaaabb"), [None] * 6, seed=0).tolist()
    [False, False, True, True, False, True]
    """
    if not 0 < test_size < 1:
        raise ValueError(f"test_size must be between 0 and 1, got {test_size}")
    n = len(hashes)
    strata = ["" for _ in range(n)] if labels is None else [str(label) for label in labels]
    wanted = {name: round(test_size * count) for name, count in Counter(strata).items()}
    test = np.zeros(n, bool)
    bundles = _bundles(hashes)
    for k in np.random.default_rng(seed).permutation(len(bundles)):
        own = Counter(strata[row] for row in bundles[k])
        # A bundle goes into the test part if that part still wants most of it.
        if 2 * sum(min(count, wanted[name]) for name, count in own.items()) > len(bundles[k]):
            test[bundles[k]] = True
            for name, count in own.items():
                wanted[name] = max(0, wanted[name] - count)
    return test


def _bundles(hashes: Sequence[int | None]) -> list[np.ndarray]:
    """Rows that must stay together."""
    known = np.array([row for row, value in enumerate(hashes) if value is not None], dtype=np.int64)
    group = groups(np.array([hashes[row] for row in known], dtype=np.uint64))
    order = np.argsort(group, kind="stable")
    together = np.split(known[order], np.flatnonzero(np.diff(group[order])) + 1) if len(known) else []
    alone = [np.array([row]) for row, value in enumerate(hashes) if value is None]
    return sorted([*together, *alone], key=lambda rows: int(rows[0]))
