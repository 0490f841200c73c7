"""Labels of rows, and which rows go where."""

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


def rows_by_value(values: Sequence[str | None]) -> dict[str, np.ndarray]:
    """Numbers of the rows with each value, in the order of the alphabet.

    Examples
    --------
    >>> from pictopic.corpus.splits import rows_by_value
    >>> {value: rows.tolist() for value, rows in rows_by_value(["train", "test", None, "train"]).items()}
    {'test': [1], 'train': [0, 3]}
    """
    array = np.array(values, dtype=object)
    return {value: np.flatnonzero(array == value) for value in sorted({own for own in values if own is not None})}


def labels_as_y(labels: Sequence[list[str] | None], classes: Sequence[str], several: bool) -> np.ndarray:
    """Labels as estimators take them for y: names, or a matrix of 0 and 1; None or NaN where they are not known.

    Examples
    --------
    >>> from pictopic.corpus.splits import labels_as_y
    >>> labels_as_y([["b"], ["a", "b"]], ["a", "b"], several=True).tolist()
    [[0, 1], [1, 1]]
    """
    if not several:
        return np.array([own[0] if own else None for own in labels], dtype=object)
    column = {name: k for k, name in enumerate(classes)}
    y = np.zeros((len(labels), len(column)))
    for row, own in zip(y, labels, strict=True):
        if own is None:
            row[:] = np.nan
        else:
            row[[column[label] for label in own]] = 1
    return y if np.isnan(y).any() else y.astype(np.int64)
