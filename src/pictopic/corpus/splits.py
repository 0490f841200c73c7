"""Splits of a corpus into parts, and labels as y."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pictopic.words.duplicates import groups

if TYPE_CHECKING:
    from pictopic.corpus.corpus import Corpus


def rows_of_parts(
    corpus: Corpus,
    test_size: float | None,
    by: str | None,
    stratify: bool,
    keep_duplicates_together: bool,
    random_state: int,
) -> dict[str, np.ndarray]:
    """Rows of each part, as a mask or as numbers; see `Corpus.split`."""
    if (test_size is None) == (by is None):
        raise ValueError("split needs either test_size or by")
    labels = [row_labels[0] if row_labels else None for row_labels in corpus.label_lists]
    if test_size is not None:
        n = len(corpus)
        hashes = corpus.table(["picture_hash"])["picture_hash"].to_pylist() if keep_duplicates_together else [None] * n
        use_labels = stratify and not corpus.multi_label
        is_test = split_rows(test_size, labels if use_labels else None, hashes, random_state)
        return {"train": ~is_test, "test": is_test}
    if by not in ("split", "label"):
        raise ValueError(f"by must be 'split' or 'label', got {by!r}")
    if by == "label" and corpus.multi_label:
        raise ValueError("pictures with several labels cannot be split by label")
    parts = rows_by_value(corpus.splits if by == "split" else labels)
    if not parts:
        hint = "; name its column with split_column when you build" if by == "split" else ""
        raise ValueError(f"no picture of this collection has a {by}{hint}")
    return parts


def split_rows(
    test_size: float, labels: Sequence[str | None] | None, hashes: Sequence[int | None], seed: int
) -> np.ndarray:
    """Choose a test part with the same share of every class (unless `labels` is None); a mask of its rows.

    Near-duplicates, of which the `hashes` tell (`perceptual_hash`; None: unlike any other), stay together.

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
    remaining = {name: round(test_size * count) for name, count in Counter(strata).items()}
    is_test = np.zeros(n, bool)
    bundles = _bundles(hashes)
    for k in np.random.default_rng(seed).permutation(len(bundles)):
        n_of_class = Counter(strata[row] for row in bundles[k])
        # A bundle goes into the test part if that part still needs most of it.
        if 2 * sum(min(count, remaining[name]) for name, count in n_of_class.items()) > len(bundles[k]):
            is_test[bundles[k]] = True
            for name, count in n_of_class.items():
                remaining[name] = max(0, remaining[name] - count)
    return is_test


def _bundles(hashes: Sequence[int | None]) -> list[np.ndarray]:
    """Rows that must stay together."""
    known = np.array([row for row, value in enumerate(hashes) if value is not None], dtype=np.int64)
    group = groups(np.array([hashes[row] for row in known], dtype=np.uint64))
    order = np.argsort(group, kind="stable")
    together = np.split(known[order], np.flatnonzero(np.diff(group[order])) + 1) if len(known) else []
    alone = [np.array([row]) for row, value in enumerate(hashes) if value is None]
    return sorted([*together, *alone], key=lambda rows: int(rows[0]))


def rows_by_value(values: Sequence[str | None]) -> dict[str, np.ndarray]:
    """Numbers of the rows with each value, values in alphabetical order.

    Examples
    --------
    >>> from pictopic.corpus.splits import rows_by_value
    >>> {value: rows.tolist() for value, rows in rows_by_value(["train", "test", None, "train"]).items()}
    {'test': [1], 'train': [0, 3]}
    """
    array = np.array(values, dtype=object)
    return {value: np.flatnonzero(array == value) for value in sorted({value for value in values if value is not None})}


def labels_as_y(labels: Sequence[list[str] | None], classes: Sequence[str], several: bool) -> np.ndarray:
    """Labels as estimators take them for y: names, or a matrix of 0 and 1; None or NaN where they are unknown.

    Examples
    --------
    >>> from pictopic.corpus.splits import labels_as_y
    >>> labels_as_y([["b"], ["a", "b"]], ["a", "b"], several=True).tolist()
    [[0, 1], [1, 1]]
    """
    if not several:
        return np.array([row_labels[0] if row_labels else None for row_labels in labels], dtype=object)
    column = {name: k for k, name in enumerate(classes)}
    y = np.zeros((len(labels), len(column)))
    for row, row_labels in zip(y, labels, strict=True):
        if row_labels is None:
            row[:] = np.nan
        else:
            row[[column[label] for label in row_labels]] = 1
    return y if np.isnan(y).any() else y.astype(np.int64)
