"""Quality measures of representations and predictions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from sklearn.preprocessing import normalize

from pictopic.models.likelihood import perplexity_of
from pictopic.tasks.topics import npmi_coherence, topic_diversity

__all__ = [
    "WordScores", "accuracy", "average_precision", "f_measure_at_k", "mean_average_precision", "npmi_coherence",
    "per_word_scores", "perplexity", "precision_at_k", "retrieval_precision", "topic_diversity",
]  # fmt: skip


def accuracy(y_true: Any, y_pred: Any) -> float:
    """Return the share of pictures whose class is right.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_pictures,) or (n_pictures, n_classes)
        One class per picture; or a 0/1 matrix for several classes per picture: then all of a row must be right.

    Returns
    -------
    float

    Examples
    --------
    >>> from pictopic.tasks.metrics import accuracy
    >>> accuracy(["coast", "forest", "coast", "street"], ["coast", "forest", "forest", "street"])
    0.75
    """
    y_true, y_pred = np.asarray(y_true), np.asarray(y_pred)
    if y_true.shape != y_pred.shape or y_true.ndim not in (1, 2):
        raise ValueError(f"classes and predictions differ in shape: {y_true.shape} and {y_pred.shape}")
    if not len(y_true):
        raise ValueError("there are no pictures to compare")
    right = y_true == y_pred
    return float((right.all(axis=1) if right.ndim == 2 else right).mean())


def f_measure_at_k(
    true_tags: Iterable[Iterable[Hashable]], ranked_tags: Iterable[Iterable[Hashable]], k: int = 5
) -> float:
    """Return the mean F-measure of the k highest-ranked tags of each picture.

    F = 2 precision recall / (precision + recall): precision is the share of the predicted tags that are true, recall
    the share of the true tags that are predicted.  A tag that is repeated counts once, as in the paper.

    Parameters
    ----------
    true_tags : iterable of iterables
        Tags of each picture.  Pictures without a tag are left out.
    ranked_tags : iterable of iterables
        Predicted tags of each picture, best first.  If there are fewer than k, precision is over those.
    k : int, default=5

    Returns
    -------
    float

    Examples
    --------
    >>> from pictopic.tasks.metrics import f_measure_at_k
    >>> f_measure_at_k([["sea", "sand", "sea"], []], [["sky", "sea", "tree"], ["sky"]], k=2)
    0.5
    """
    _check_k(k)
    scores = []
    for true, ranked in _pairs(true_tags, ranked_tags):
        if picture_tags := set(true):
            predicted = list(dict.fromkeys(ranked))[:k]
            # Both shares have the same numerator: F is twice the numerator over the sum of the denominators.
            scores.append(2 * len(picture_tags.intersection(predicted)) / (len(picture_tags) + len(predicted)))
    if not scores:
        raise ValueError("no picture has a true tag")
    return float(np.mean(scores))


class WordScores(NamedTuple):
    """Scores averaged over words; see `per_word_scores`."""

    precision: float
    recall: float
    n_plus: int  # N+
    f1: float


def per_word_scores(
    true_tags: Iterable[Iterable[Hashable]],
    predicted_tags: Iterable[Iterable[Hashable]],
    words: Iterable[Hashable] | None = None,
) -> WordScores:
    """Return precision and recall of each word, averaged over the words, as in the literature on Corel5k.

    A word's precision is the share of the pictures it is predicted for that have it, 0 if it is never predicted; its
    recall the share of the pictures with it that it is predicted for.

    Parameters
    ----------
    true_tags : iterable of iterables
        Tags of each picture.
    predicted_tags : iterable of iterables
        Predicted tags of each picture; in the literature, five.
    words : iterable, optional
        Words to average over; default: all.  Words that no picture has are left out.

    Returns
    -------
    WordScores
        `precision` and `recall`, means over the words; `n_plus` (N+), the number of words whose recall is above 0;
        `f1`, the harmonic mean of the two means.

    Examples
    --------
    >>> from pictopic.tasks.metrics import per_word_scores
    >>> per_word_scores([["sea", "sky"], ["sea"], ["tree"]], [["sea"], ["sky"], ["sea"]])
    WordScores(precision=0.166..., recall=0.166..., n_plus=1, f1=0.166...)
    """
    true: Counter[Hashable] = Counter()
    predicted: Counter[Hashable] = Counter()
    right: Counter[Hashable] = Counter()
    for picture_tags, answers in _pairs(true_tags, predicted_tags):
        picture_tags, answers = set(picture_tags), set(answers)
        true.update(picture_tags)
        predicted.update(answers)
        right.update(picture_tags & answers)
    counted = list(true) if words is None else [word for word in dict.fromkeys(words) if true[word]]
    if not counted:
        raise ValueError("no picture has one of the words")
    # Exact sums: the order of the words in a set of texts differs from process to process.
    precision = math.fsum(right[word] / max(predicted[word], 1) for word in counted) / len(counted)
    recall = math.fsum(right[word] / true[word] for word in counted) / len(counted)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return WordScores(precision, recall, sum(right[word] > 0 for word in counted), f1)


def average_precision(y_true: Any, scores: Any, method: Literal["step", "trapezoid"] = "step") -> float:
    """Return the area under the precision-recall curve.

    Parameters
    ----------
    y_true : array-like of shape (n,)
        1 or True for positives, 0 or False for negatives.
    scores : array-like of shape (n,)
        Higher for likelier positives.  Equal scores form one point of the curve: the array's order does not matter.
    method : {"step", "trapezoid"}, default="step"
        "step": sum of precision times growth of recall, as in scikit-learn today; "trapezoid": straight lines between
        the points, from precision 1 at recall 0, as in scikit-learn before 0.19, when the paper was written.

    Returns
    -------
    float

    Examples
    --------
    >>> from pictopic.tasks.metrics import average_precision
    >>> average_precision([1, 0, 1], [0.9, 0.8, 0.7])
    0.833...
    >>> average_precision([1, 0, 1], [0.9, 0.8, 0.7], method="trapezoid")
    0.791...
    """
    if method not in ("step", "trapezoid"):
        raise ValueError(f'method must be "step" or "trapezoid", got {method!r}')
    y_true, scores = np.asarray(y_true), np.asarray(scores)
    if y_true.ndim != 1 or y_true.shape != scores.shape:
        raise ValueError(f"y_true and scores must be of one length, got shapes {y_true.shape} and {scores.shape}")
    if not np.isin(y_true, (0, 1)).all():
        raise ValueError("y_true must hold 0 and 1, or False and True")
    if not np.isfinite(scores).all():
        raise ValueError("scores hold NaN or infinite numbers")
    if not y_true.any():
        raise ValueError("average precision is not defined: no y_true is 1")
    order = np.argsort(-scores, kind="stable")
    last = np.flatnonzero(np.append(np.diff(scores[order]) != 0, True))  # of those with the same score
    hits = np.cumsum(y_true[order] == 1)[last]
    precision, growth = hits / (last + 1), np.diff(hits, prepend=0) / hits[-1]
    if method == "trapezoid":
        precision = (precision + np.concatenate([[1.0], precision[:-1]])) / 2
    return float(precision @ growth)


def mean_average_precision(Y: Any, scores: Any, method: Literal["step", "trapezoid"] = "step") -> float:
    """Return the mean of the classes' average precisions (MAP).

    Parameters
    ----------
    Y : array-like of shape (n_pictures, n_classes)
        1 where a picture has a class.  Classes without a picture are left out.
    scores : array-like of shape (n_pictures, n_classes)
    method : {"step", "trapezoid"}, default="step"
        See `average_precision`.

    Returns
    -------
    float

    Examples
    --------
    >>> from pictopic.tasks.metrics import mean_average_precision
    >>> mean_average_precision([[1, 0], [0, 1], [1, 0]], [[0.9, 0.2], [0.8, 0.6], [0.7, 0.1]])
    0.916...
    """
    Y, scores = np.asarray(Y), np.asarray(scores)
    if Y.ndim != 2 or Y.shape != scores.shape:
        raise ValueError(f"Y and scores must be matrices of one shape, got {Y.shape} and {scores.shape}")
    precisions = [average_precision(Y[:, c], scores[:, c], method) for c in np.flatnonzero((Y != 0).any(axis=0))]
    if not precisions:
        raise ValueError("mean average precision is not defined: no picture is of any class")
    return float(np.mean(precisions))


def precision_at_k(relevant: Any, ranking: Any, k: int = 10) -> float:
    """Return the mean share of relevant answers among the first k.

    Parameters
    ----------
    relevant : array-like of bool of shape (n,) or (n_queries, n)
        Which of the collection's rows are relevant: to all queries, or to each.
    ranking : array-like of int of shape (m,) or (n_queries, m)
        Row numbers, best first, as `pictopic.tasks.search.Index.search` returns them; for scores, use
        ``np.argsort(-scores, kind="stable")``.  Missing answers (-1, or m < k) count as not relevant.
    k : int, default=10

    Returns
    -------
    float

    Examples
    --------
    >>> from pictopic.tasks.metrics import precision_at_k
    >>> precision_at_k([True, False, True, False], [2, 3, 0, 1], k=3)
    0.666...
    """
    _check_k(k)
    ranking = np.atleast_2d(np.asarray(ranking))
    relevant = np.atleast_2d(np.asarray(relevant).astype(bool))
    if not ranking.size:
        raise ValueError("ranking is empty")
    if relevant.shape[0] not in (1, ranking.shape[0]):
        raise ValueError(f"relevant has {relevant.shape[0]} rows, but ranking {ranking.shape[0]}")
    if ranking.dtype.kind not in "iu" or ranking.min() < -1 or ranking.max() >= relevant.shape[1]:
        raise ValueError(f"ranking must hold row numbers below {relevant.shape[1]}, or -1")
    first = ranking[:, :k].astype(np.int64)
    is_relevant = np.take_along_axis(np.broadcast_to(relevant, (len(first), relevant.shape[1])), first, axis=1)
    return float((is_relevant & (first >= 0)).sum(axis=1).mean() / k)


def perplexity(log_likelihoods: Any, lengths: Any, per: Literal["document", "word"] = "document") -> float:
    """Return the perplexity: the number of equally likely words with the same entropy.  Smaller is better.

    Parameters
    ----------
    log_likelihoods : array-like of shape (n_documents,)
        Log p(v), as a model's `log_likelihood` returns it.
    lengths : array-like of shape (n_documents,)
        Number of words of each document.  Empty documents are left out, with a warning.
    per : {"document", "word"}, default="document"
        "document": exp of the mean over documents of -log p(v) / length, as in the literature on DocNADE;
        "word": exp of the total of -log p(v) over the total number of words.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.metrics import perplexity
    >>> perplexity(np.log([1 / 8, 1 / 4]), [3, 1])
    2.82...
    >>> perplexity(np.log([1 / 8, 1 / 4]), [3, 1], per="word")
    2.37...
    """
    log_likelihoods, lengths = np.asarray(log_likelihoods, dtype=np.float64), np.asarray(lengths)
    if log_likelihoods.ndim != 1 or log_likelihoods.shape != lengths.shape:
        raise ValueError(
            f"log-likelihoods and lengths must be of one length, got {log_likelihoods.shape} and {lengths.shape}"
        )
    if not np.isfinite(log_likelihoods).all() or (lengths < 0).any():
        raise ValueError("log-likelihoods must be finite, lengths not negative")
    # The likelihood of an empty document must not count in either mean.
    return perplexity_of(np.where(lengths > 0, -log_likelihoods, 0.0), lengths, per)


def retrieval_precision(
    queries: np.ndarray,
    query_labels: Any,
    collection: np.ndarray,
    collection_labels: Any,
    fraction: float = 0.02,
    batch_size: int = 1024,
) -> float:
    """Return the mean share of nearest neighbours that have the query's label.

    Parameters
    ----------
    queries : ndarray of shape (n_queries, n_features)
        Representations of the queries.
    query_labels : array-like of shape (n_queries,)
    collection : ndarray of shape (n_documents, n_features)
        Representations to search, by cosine similarity.
    collection_labels : array-like of shape (n_documents,)
    fraction : float, default=0.02
        Number of neighbours as a share of the collection, rounded down; at least one.
    batch_size : int, default=1024
        Queries at a time; memory is batch_size x n_documents.

    Returns
    -------
    float

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.metrics import retrieval_precision
    >>> collection = np.array([[1.0, 0.1], [1.0, 0.2], [0.1, 1.0], [0.2, 1.0]])
    >>> retrieval_precision(collection[:1], ["a"], collection, ["a", "b", "b", "b"], fraction=0.5)
    0.5
    """
    query_labels, collection_labels = np.asarray(query_labels), np.asarray(collection_labels)
    if not 0 < fraction <= 1:
        raise ValueError(f"fraction must lie in (0, 1], got {fraction}")
    k = max(1, int(fraction * len(collection)))
    collection = normalize(collection)
    hits = 0.0
    for start in range(0, len(queries), batch_size):
        similarity = normalize(queries[start : start + batch_size]) @ collection.T
        nearest = np.argpartition(-similarity, k - 1, axis=1)[:, :k]
        hits += (collection_labels[nearest] == query_labels[start : start + batch_size, None]).mean(axis=1).sum()
    return float(hits / len(queries))


def _check_k(k: int) -> None:
    if k < 1:
        raise ValueError(f"k must be at least 1, got {k}")


def _pairs(true_tags: Iterable[Any], predicted_tags: Iterable[Any]) -> Sequence[tuple[Any, Any]]:
    """Return the (true, predicted) tags of each picture."""
    true, predicted = list(true_tags), list(predicted_tags)
    if len(true) != len(predicted):
        raise ValueError(f"there are true tags of {len(true)} pictures, but predicted ones of {len(predicted)}")
    for row, (picture_tags, answers) in enumerate(zip(true, predicted, strict=True)):
        if isinstance(picture_tags, str) or isinstance(answers, str):
            # Its letters would be read as tags.
            raise ValueError(f"picture {row} has a text in place of a list of tags")
    return list(zip(true, predicted, strict=True))
