"""How good a model is, picture by picture: what it confuses, and which tags it finds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.rows import Rows
from pictopic.tasks.curves import Chart, training_curves
from pictopic.tasks.fitting import Fitted
from pictopic.tasks.missing import tag_probabilities

_TOP = 5  # tags that are given where there are no thresholds, as in the paper


class Confusion(NamedTuple):
    """How often pictures of a class (rows) were taken for another (columns)."""

    classes: list[str]
    counts: np.ndarray  # (classes, classes)
    pictures: dict[tuple[int, int], list[tuple[int, float]]]  # row and probability of those in a cell, the surest first


@dataclass(frozen=True)
class TagScore:
    """How well a tag is found."""

    name: str
    count: int  # pictures that have it
    precision: float | None  # None: it was never given
    recall: float | None  # None: no picture has it
    f: float


class Quality(NamedTuple):
    """What can be said of how good a model is."""

    n_held_out: int
    confusion: Confusion | None  # None: there are no classes, or several a picture
    tags: list[TagScore]  # the most frequent first
    figures: dict[str, float]
    curves: list[Chart]


def quality(fitted: Fitted, corpus: Corpus) -> Quality:
    """All that is known of how good a model is; see `PictureModel.quality`.

    What is said of classes and tags is what a network said that had not seen the pictures.

    Parameters
    ----------
    fitted : Fitted
    corpus : Corpus
        The collection.

    Returns
    -------
    Quality
    """
    held_out, found, tags = fitted.held_out, None, []
    if held_out is not None and held_out.class_proba is not None and fitted.head is not None and not corpus.multi_label:
        true = [(corpus.label_lists[row] or [None])[0] for row in held_out.rows]
        found = confusion(true, held_out.class_proba, held_out.rows, fitted.head.classes, corpus.classes)
    if held_out is not None and held_out.tag_proba is not None:
        has_tag = Rows.of(corpus)[held_out.rows].has_tag()
        tagged = has_tag.any(axis=1)  # of the others nothing is known
        given = _given(fitted, held_out.tag_proba[tagged])
        tags = tag_scores(has_tag[tagged], given, corpus.vocabulary.annotations)
    curves = training_curves(fitted.estimator)
    return Quality(fitted.n_validation, found, tags, dict(fitted.figures), curves)


def confusion(
    true: Sequence[str | None], proba: np.ndarray, rows: Sequence[int] | np.ndarray, columns: list[str],
    classes: list[str],
) -> Confusion:  # fmt: skip
    """Count which classes were taken for which.

    Parameters
    ----------
    true : sequence of str or None
        The class of each picture; None: not known, and not counted.
    proba : array of shape (n, len(columns))
    rows : sequence of int
        What each picture is called.
    columns : list of str
        Classes of the probabilities.
    classes : list of str
        Those to tell of, in this order.

    Returns
    -------
    Confusion

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.quality import confusion
    >>> proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    >>> found = confusion(["coast", "street", "street"], proba, [7, 8, 9], ["coast", "street"], ["coast", "street"])
    >>> found.counts.tolist()
    [[1, 0], [1, 1]]
    >>> found.pictures[1, 0]
    [(8, 0.6)]
    """
    number = {name: k for k, name in enumerate(classes)}
    counts = np.zeros((len(classes), len(classes)), np.int64)
    pictures: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for name, own, row in zip(true, proba, rows, strict=True):
        if name is not None:
            best = int(own.argmax())
            cell = number[name], number[columns[best]]
            counts[cell] += 1
            pictures.setdefault(cell, []).append((int(row), float(own[best])))
    for found in pictures.values():
        found.sort(key=lambda own: (-own[1], own[0]))
    return Confusion(list(classes), counts, pictures)


def _given(fitted: Fitted, p: np.ndarray) -> np.ndarray:
    """Which tags are given: those that pass their threshold, or the best few."""
    if fitted.thresholds is not None:
        return tag_probabilities(fitted, p) >= fitted.thresholds.thresholds
    given = np.zeros(p.shape, bool)
    best = np.argsort(-p, axis=1, kind="stable")[:, :_TOP]
    np.put_along_axis(given, best, True, axis=1)
    return given


def tag_scores(has_tag: np.ndarray, given: np.ndarray, names: Sequence[str]) -> list[TagScore]:
    """Precision, recall and F-measure of each tag that a picture has or was given.

    Parameters
    ----------
    has_tag, given : bool arrays of shape (n, n_tags)
    names : sequence of str

    Returns
    -------
    list of TagScore
        The most frequent first.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.quality import tag_scores
    >>> has_tag = np.array([[True, True], [False, True], [False, True]])
    >>> given = np.array([[True, False], [True, False], [False, False]])
    >>> tag_scores(has_tag, given, ["sea", "sky"])[1]
    TagScore(name='sea', count=1, precision=0.5, recall=1.0, f=0.6666666666666666)
    >>> tag_scores(has_tag, given, ["sea", "sky"])[0]
    TagScore(name='sky', count=3, precision=None, recall=0.0, f=0.0)
    """
    counts, n_given, hits = has_tag.sum(axis=0), given.sum(axis=0), (has_tag & given).sum(axis=0)
    order = [k for k in np.argsort(-counts, kind="stable") if counts[k] or n_given[k]]
    return [
        TagScore(
            names[k], int(counts[k]), _share(hits[k], n_given[k]), _share(hits[k], counts[k]),
            float(2 * hits[k] / (counts[k] + n_given[k])),
        ) for k in order
    ]  # fmt: skip


def _share(part: Any, whole: Any) -> float | None:
    return float(part / whole) if whole else None
