"""Which rows of a collection are learnt from, and which are held out: one rule for fit, tune and pretrain.

Rows of a part named "test" are never looked at.  Where there is a part named "train", rows of parts with other names
are not learnt from either, but for those of a validation part ("validation", "val", "valid" or "dev"), which are held
out.  Without a validation part, some rows are held out at random.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pictopic.corpus.corpus import Corpus

LEAST_HELD_OUT = 12  # rows; with fewer, nothing can be said about how good a model is
_HELD_OUT = 0.15
_PRETRAINING_HELD_OUT, _MOST_HELD_OUT = 0.1, 2_000  # share of the rows, and rows
_VALIDATION = ("validation", "val", "valid", "dev")


def rows_to_learn_from(corpus: Corpus) -> np.ndarray:
    """Numbers of the rows that may be looked at, held-out ones included."""
    return _usable(_names(corpus.splits))


def holds_some_out(splits: Sequence[str | None]) -> bool:
    """Whether a collection with these splits has rows to choose by: it names them, or is large enough.

    Examples
    --------
    >>> from pictopic.tasks.splits import holds_some_out
    >>> holds_some_out([None] * 10), holds_some_out([None] * 1000), holds_some_out(["train", "validation"])
    (False, True, True)
    """
    names = _names(splits)
    names = names[_usable(names)]
    return _is_named(_in_validation(names)) or len(names) * _HELD_OUT >= LEAST_HELD_OUT


def choose_parts(corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the rows to learn from first, and of those to choose by: as many of each class."""
    usable = rows_to_learn_from(corpus)
    held_out = _in_validation(_names(corpus.splits)[usable])
    if not _is_named(held_out):
        if len(usable) * _HELD_OUT < LEAST_HELD_OUT:
            return usable, np.zeros(0, np.int64)
        part = corpus[usable].split(_HELD_OUT, random_state=0)["test"]
        held_out = np.isin(corpus.row_numbers[usable], part.row_numbers)
    return usable[~held_out], usable[held_out]


def choose_rows(corpus: Corpus, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the rows to pretrain on, and of those to stop on: few, and chosen without a look at any picture."""
    usable = rows_to_learn_from(corpus)
    held_out = _in_validation(_names(corpus.splits)[usable])
    if not len(usable) or held_out.all():
        raise ValueError("there is nothing to learn from: all rows are in the parts test and validation")
    if not _is_named(held_out):
        n = min(int(_PRETRAINING_HELD_OUT * len(usable)), _MOST_HELD_OUT)
        held_out = np.random.RandomState(random_state).permutation(len(usable)) < n
    return usable[~held_out], usable[held_out]


def _names(splits: Sequence[str | None]) -> np.ndarray:
    return np.array(splits, dtype=object).astype(str)


def _usable(names: np.ndarray) -> np.ndarray:
    if not (names == "train").any():
        return np.flatnonzero(names != "test")
    return np.flatnonzero((names == "train") | _in_validation(names))


def _in_validation(names: np.ndarray) -> np.ndarray:
    return np.isin(names, _VALIDATION)


def _is_named(held_out: np.ndarray) -> bool:
    """Whether there is a validation part, and something beside it."""
    return bool(held_out.any() and not held_out.all())
