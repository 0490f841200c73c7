"""Which tags belong to a picture: ranking, and how sure one can be of each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from pictopic.checks import mapping, number, numbers, section
from pictopic.corpus.rows import Rows

_TINY = 1e-12
_MOST = 1e6  # of a slope or an offset that is read
_ROUNDS = 10  # of learning offsets given the slope, and the slope given the offsets
_FEW = 5  # validation pictures with a tag below which its threshold is the common one


def tag_proba(estimator: Any, rows: Rows, hidden: np.ndarray | None = None) -> np.ndarray:
    """p(next word) over the annotation words, renormalised.

    Parameters
    ----------
    estimator : DocNADE, SupDocNADE, DeepDocNADE or SupDeepDocNADE
        Fitted.
    rows : Rows
        With the tags that are known already; `Rows.without_tags` for none.
    hidden : array of shape (n, n_components), optional
        What the estimator's `transform` returned for the rows, which then do not pass through the network again.

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
    """The k most probable tags, best first.

    Parameters
    ----------
    p : array of shape (n_tags,)
        p(next word) of each annotation word; renormalised here over all of them.
    names : tuple of str
    k : int
    known : tuple of str, default=()
        Tags that the picture has already: left out.

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
    """From p(next word) to the probability that a picture has a tag, and from which on to believe it.

    Parameters
    ----------
    slope : float
        Of the logit over log p.
    offsets : array of shape (n_tags,)
        Added for each tag.
    thresholds : array of shape (n_tags,)
        Probabilities above which a tag is given.
    """

    slope: float
    offsets: np.ndarray
    thresholds: np.ndarray

    @classmethod
    def fit(cls, p: np.ndarray, has_tag: np.ndarray) -> TagThresholds:
        """Learn from pictures whose tags are known and which the model has not seen.

        One slope for all tags and an offset for each, drawn towards a common one: most tags are rare.

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
        >>> learnt = TagThresholds.fit(p, rng.uniform(size=p.shape) < p)
        >>> sure, unsure = learnt.probabilities(np.array([[0.9, 0.05, 0.05]]))[0, :2]
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
            offsets = offset + _own_offsets(slope * log_p + offset, has_tag)
            slope = _best_slope(slope, log_p, offsets, has_tag)
        learnt = cls(slope, offsets, np.full(n_tags, 0.5))
        learnt.thresholds = _best_thresholds(learnt.probabilities(p), has_tag)
        return learnt

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """Probability that a picture has each tag, given p(next word)."""
        return _sigmoid(self.slope * np.log(np.maximum(p, _TINY)) + self.offsets)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"slope": self.slope, "offsets": self.offsets.tolist(), "thresholds": self.thresholds.tolist()}

    @classmethod
    def from_dict(cls, content: Any) -> TagThresholds:
        """From what `to_dict` returned; a ValueError says which value is wrong."""
        content = mapping(content, "thresholds")
        offsets = np.array(numbers(section(content, "offsets"), "offsets", -_MOST, _MOST))
        thresholds = np.array(numbers(section(content, "thresholds"), "thresholds", 0, 1))
        if len(offsets) != len(thresholds):
            raise ValueError(f"'offsets' has {len(offsets)} numbers, but 'thresholds' {len(thresholds)}")
        return cls(number(section(content, "slope"), "slope", -_MOST, _MOST), offsets, thresholds)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(expit(x))  # without a warning where it is 0


def _own_offsets(logits: np.ndarray, has_tag: np.ndarray, prior: float = 1.0) -> np.ndarray:
    """What to add to each tag's logits so that it is expected as often as it occurs; `prior` draws towards nothing."""
    shift = np.zeros(logits.shape[1])
    for _ in range(30):  # Newton's steps for all tags at once
        q = _sigmoid(logits + shift)
        slope = (q * (1 - q)).sum(axis=0) + 1 / prior**2
        shift += np.clip((has_tag.sum(axis=0) - q.sum(axis=0) - shift / prior**2) / slope, -1, 1)
    return shift


def _best_slope(slope: float, log_p: np.ndarray, offsets: np.ndarray, has_tag: np.ndarray) -> float:
    """The slope that makes the tags most probable, given the offsets: Newton's steps."""
    for _ in range(5):
        q = _sigmoid(slope * log_p + offsets)
        gradient = ((has_tag - q) * log_p).sum()
        slope += float(np.clip(gradient / max((q * (1 - q) * log_p**2).sum(), _TINY), -0.5, 0.5))
    return slope


def _best_thresholds(probabilities: np.ndarray, has_tag: np.ndarray) -> np.ndarray:
    """For each tag the threshold of the best F-measure; for rare ones that of all tags together."""
    common = _best_threshold(probabilities.ravel(), has_tag.ravel())
    return np.array([
        _best_threshold(own, has) if has.sum() >= _FEW else common
        for own, has in zip(probabilities.T, has_tag.T, strict=True)
    ])  # fmt: skip


def _best_threshold(probabilities: np.ndarray, has_tag: np.ndarray) -> float:
    order = np.argsort(-probabilities, kind="stable")
    hits = np.cumsum(has_tag[order])
    f = 2 * hits / (np.arange(1, len(order) + 1) + has_tag.sum())
    best = int(np.argmax(f))
    following = probabilities[order[best + 1]] if best + 1 < len(order) else 0.0
    return float((probabilities[order[best]] + following) / 2)
