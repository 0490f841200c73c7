"""Annotation of pictures with tags: ranking, calibrated probabilities, missing and doubtful tags."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from pictopic.checks import mapping, number, numbers, section
from pictopic.corpus.rows import Rows

if TYPE_CHECKING:
    from pictopic.tasks.fit import Fitted

_TINY = 1e-12
_MAX_COEFFICIENT = 1e6  # of a slope or an offset in a file
_ROUNDS = 10  # of fitting offsets given the slope, and the slope given the offsets
_THRESHOLD_FROM = 5  # validation pictures with a tag; rarer tags get the common threshold
MAX_SUGGESTED = 500  # pictures per tag and list: a large collection must not fill memory


def tag_proba(estimator: Any, rows: Rows, hidden: np.ndarray | None = None) -> np.ndarray:
    """Return p(next word) of the annotation words, renormalised.

    Parameters
    ----------
    estimator : DocNADE, SupDocNADE, DeepDocNADE or SupDeepDocNADE
        Fitted.
    rows : Rows
        With their known tags; use `Rows.without_tags` for none.
    hidden : array of shape (n, n_components), optional
        Their representations, if `transform` was called already; the network is then not run again.

    Returns
    -------
    array of shape (n, n_annotation_words)
    """
    columns = np.arange(rows.n_visual, rows.shape[1])
    if hidden is None:
        p = estimator.next_word_proba(rows, columns=columns)
    else:
        p = estimator.next_word_proba_from(hidden, columns=columns)
    return p / np.maximum(p.sum(axis=1, keepdims=True), _TINY)


def rank_tags(p: np.ndarray, names: tuple[str, ...], k: int, known: tuple[str, ...] = ()) -> list[tuple[str, float]]:
    """Return the k most probable tags, best first.

    Parameters
    ----------
    p : array of shape (n_tags,)
        p(next word) of each annotation word; renormalised here over all of them.
    names : tuple of str
    k : int
    known : tuple of str, default=()
        Tags that the picture already has, which are left out.

    Returns
    -------
    list of (tag, probability)

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.annotate import rank_tags
    >>> rank_tags(np.array([0.25, 0.75, 0.0]), ("sea", "sky", "car"), k=2)
    [('sky', 0.75), ('sea', 0.25)]
    """
    p = np.asarray(p, dtype=np.float64)
    p = p / max(p.sum(), _TINY)
    order = [i for i in np.argsort(-p, kind="stable") if names[i] not in known]
    return [(names[i], float(p[i])) for i in order[:k]]


@dataclass
class TagThresholds:
    """Calibration of p(next word): the probability that a picture has a tag, and a threshold per tag.

    Parameters
    ----------
    slope : float
        Slope of the logit over log p.
    offsets : array of shape (n_tags,)
        Added to the logit of each tag.
    thresholds : array of shape (n_tags,)
        Probability from which on a tag is predicted.
    """

    slope: float
    offsets: np.ndarray
    thresholds: np.ndarray

    @classmethod
    def fit(cls, p: np.ndarray, has_tag: np.ndarray) -> TagThresholds:
        """Fit to tagged pictures that the model has not seen.

        All tags share a slope; each has an offset, shrunk towards a common one because most tags are rare.

        Parameters
        ----------
        p : array of shape (n_pictures, n_tags)
            p(next word), renormalised over the tags.
        has_tag : bool array of the same shape

        Returns
        -------
        TagThresholds

        Examples
        --------
        >>> import numpy as np
        >>> from pictopic.tasks.annotate import TagThresholds
        >>> rng = np.random.RandomState(0)
        >>> p = rng.dirichlet([1, 1, 1], 500)
        >>> thresholds = TagThresholds.fit(p, rng.uniform(size=p.shape) < p)
        >>> sure, unsure = thresholds.probabilities(np.array([[0.9, 0.05, 0.05]]))[0, :2]
        >>> bool(sure > 0.6), bool(unsure < 0.2)
        (True, True)
        """
        n_tags = p.shape[1]
        if not has_tag.any():
            return cls(1.0, np.zeros(n_tags), np.full(n_tags, 0.5))
        log_p = np.log(np.maximum(p, _TINY))
        common = LogisticRegression(C=1e6).fit(log_p.reshape(-1, 1), has_tag.ravel())
        slope, offset = float(common.coef_[0, 0]), float(common.intercept_[0])
        for _ in range(_ROUNDS):
            offsets = offset + _tag_offsets(slope * log_p + offset, has_tag)
            slope = _best_slope(slope, log_p, offsets, has_tag)
        calibrated = cls(slope, offsets, np.full(n_tags, 0.5))
        calibrated.thresholds = _best_thresholds(calibrated.probabilities(p), has_tag)
        return calibrated

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """Return the probability that a picture has each tag, given p(next word)."""
        return _sigmoid(self.slope * np.log(np.maximum(p, _TINY)) + self.offsets)

    def to_dict(self) -> dict[str, Any]:
        """Return the parameters, for JSON."""
        return {"slope": self.slope, "offsets": self.offsets.tolist(), "thresholds": self.thresholds.tolist()}

    @classmethod
    def from_dict(cls, content: Any) -> TagThresholds:
        """Check and read what `to_dict` returned; a ValueError says which value is wrong."""
        content = mapping(content, "thresholds")
        offsets = np.array(numbers(section(content, "offsets"), "offsets", -_MAX_COEFFICIENT, _MAX_COEFFICIENT))
        thresholds = np.array(numbers(section(content, "thresholds"), "thresholds", 0, 1))
        if len(offsets) != len(thresholds):
            raise ValueError(f"'offsets' has {len(offsets)} numbers, but 'thresholds' {len(thresholds)}")
        return cls(number(section(content, "slope"), "slope", -_MAX_COEFFICIENT, _MAX_COEFFICIENT), offsets, thresholds)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(expit(x))  # without a warning where it is 0


def _tag_offsets(logits: np.ndarray, has_tag: np.ndarray, prior: float = 1.0) -> np.ndarray:
    """Return per tag the offset under which it is expected as often as it occurs, shrunk towards 0 by `prior`."""
    shift = np.zeros(logits.shape[1])
    for _ in range(30):  # Newton's method for all tags at once
        q = _sigmoid(logits + shift)
        slope = (q * (1 - q)).sum(axis=0) + 1 / prior**2
        shift += np.clip((has_tag.sum(axis=0) - q.sum(axis=0) - shift / prior**2) / slope, -1, 1)
    return shift


def _best_slope(slope: float, log_p: np.ndarray, offsets: np.ndarray, has_tag: np.ndarray) -> float:
    """Return the most likely slope given the offsets, by Newton's method."""
    for _ in range(5):
        q = _sigmoid(slope * log_p + offsets)
        gradient = ((has_tag - q) * log_p).sum()
        slope += float(np.clip(gradient / max((q * (1 - q) * log_p**2).sum(), _TINY), -0.5, 0.5))
    return slope


def _best_thresholds(probabilities: np.ndarray, has_tag: np.ndarray) -> np.ndarray:
    """Return per tag the threshold with the best F-measure; rare tags share the best threshold of all tags."""
    common = _best_threshold(probabilities.ravel(), has_tag.ravel())
    return np.array([
        _best_threshold(tag_probability, pictures_with_tag) if pictures_with_tag.sum() >= _THRESHOLD_FROM else common
        for tag_probability, pictures_with_tag in zip(probabilities.T, has_tag.T, strict=True)
    ])  # fmt: skip


def _best_threshold(probabilities: np.ndarray, has_tag: np.ndarray) -> float:
    order = np.argsort(-probabilities, kind="stable")
    hits = np.cumsum(has_tag[order])
    f = 2 * hits / (np.arange(1, len(order) + 1) + has_tag.sum())
    best = int(np.argmax(f))
    next_lower = probabilities[order[best + 1]] if best + 1 < len(order) else 0.0
    return float((probabilities[order[best]] + next_lower) / 2)


# ---- tags that are missing or in doubt -------------------------------------------------------------------------------


class Suggestions(NamedTuple):
    """Pictures that probably lack a tag, and pictures whose tag is doubtful, for each tag."""

    missing: Ranking  # the most probable first
    doubtful: Ranking  # the least probable first


class Ranking(NamedTuple):
    """Ranked pictures of each tag."""

    rows: np.ndarray  # (n_tags, k); -1 where there are no more
    probabilities: np.ndarray  # (n_tags, k)

    def of(self, tag: int) -> list[tuple[int, float]]:
        """Return row and probability of the pictures of tag number `tag`."""
        ranked = zip(self.rows[tag], self.probabilities[tag], strict=True)
        return [(int(row), float(p)) for row, p in ranked if row >= 0]


def suggest(fitted: Fitted, rows: Rows, n_pictures: int = MAX_SUGGESTED) -> Suggestions:
    """Compare the tags of a collection with those predicted from the pictures alone.

    Parameters
    ----------
    fitted : Fitted
    rows : Rows
        The collection.
    n_pictures : int, default=500
        Pictures per tag and list.

    Returns
    -------
    Suggestions
        With the probability that a picture has the tag; without thresholds, with the tag's p(next word).

    Raises
    ------
    ValueError
        If the collection has no tags, or no pictures to predict them from.
    """
    if not rows.n_annotation_words:
        raise ValueError("the collection has no tags: none can be missing")
    if not rows.n_visual:
        raise ValueError("the collection was not made of pictures: there is nothing to tell its tags from")
    missing, doubtful = (_TopRows(rows.n_annotation_words, n_pictures) for _ in range(2))
    for row_numbers, p, has_tag in _chunk_probabilities(fitted, rows):
        missing.add(row_numbers, np.where(has_tag, -np.inf, p))
        doubtful.add(row_numbers, np.where(has_tag, -p, -np.inf))
    return Suggestions(missing.ranking(1.0), doubtful.ranking(-1.0))


def tag_probabilities(fitted: Fitted, p: np.ndarray) -> np.ndarray:
    """Return the calibrated probability of each tag; without thresholds, p(next word)."""
    return p if fitted.thresholds is None else fitted.thresholds.probabilities(p.astype(np.float64))


def _chunk_probabilities(fitted: Fitted, rows: Rows) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    for chunk in rows.chunks():
        chunk_rows = rows[chunk]
        p = tag_proba(fitted.estimator, chunk_rows.without_tags())
        yield np.arange(chunk.start, chunk.stop), tag_probabilities(fitted, p), chunk_rows.has_tag()


class _TopRows:
    """The rows with the highest values of each tag among all added ones; -inf does not count."""

    def __init__(self, n_tags: int, n_pictures: int):
        self.n_pictures = n_pictures
        self._rows, self._values = np.full((n_tags, 0), -1), np.zeros((n_tags, 0))

    def add(self, numbers: np.ndarray, values: np.ndarray) -> None:
        """Add row numbers and their values, (n, n_tags)."""
        rows = np.concatenate([self._rows, np.broadcast_to(numbers, values.T.shape)], axis=1)
        values = np.concatenate([self._values, values.T], axis=1)
        order = np.argsort(-values, axis=1, kind="stable")[:, : self.n_pictures]  # of equal values the first
        self._rows, self._values = np.take_along_axis(rows, order, 1), np.take_along_axis(values, order, 1)

    def ranking(self, sign: float) -> Ranking:
        is_there = np.isfinite(self._values)
        return Ranking(np.where(is_there, self._rows, -1), np.where(is_there, sign * self._values, 0.0))
