"""Likelihood of pictures' words under a network, and under a unigram model as a baseline."""

from __future__ import annotations

from typing import Any

import numpy as np

from pictopic.corpus.rows import Rows
from pictopic.models.deep_model import DeepModel
from pictopic.models.inputs import document_lengths
from pictopic.tasks.annotate import tag_proba

_POSITIONS = 16  # words of a picture that a deep network scores: each costs a pass
_MAX_SCORED = 2_000  # held-out pictures: more do not change the third digit
_ODD_TAGS = "Mean log-probability of a picture's tags, given the picture: first come those with unexpected tags."
_ODD_WORDS = "Log-likelihood per word of a picture's visual words and tags: first come those unlike the others."


def odd_means(estimator: Any) -> str:
    """Return a sentence that describes what `log_likelihood_per_word` measures."""
    return _ODD_TAGS if estimator.predicts_tags_only else _ODD_WORDS


def log_likelihood_per_word(estimator: Any, rows: Rows, random_state: int = 0) -> np.ndarray:
    """Return the mean log-probability of each picture's words under a network.

    A deep network that was trained to predict tags from pictures does not model visual words: its figure is that of
    the picture's tags, given the picture.

    Parameters
    ----------
    estimator : DocNADE, SupDocNADE, DeepDocNADE or SupDeepDocNADE
    rows : Rows
    random_state : int, default=0
        Seed of the order of the words.

    Returns
    -------
    array of shape (n,)
        NaN where there is nothing to measure.
    """
    if estimator.predicts_tags_only:
        return np.concatenate([_tags_given_picture(estimator, rows[chunk]) for chunk in rows.chunks()])
    n_words = np.concatenate([document_lengths(rows.read(chunk)) for chunk in rows.chunks()])
    total = _log_likelihoods(estimator, rows, random_state)
    return np.divide(total, n_words, out=np.full(len(rows), np.nan), where=n_words > 0)


def compare_with_unigram(estimator: Any, rows: Rows, train_rows: Rows) -> dict[str, float]:
    """Return the log-likelihood per word of held-out pictures under a network and under a unigram model.

    Both are totals over the same pictures, in nats, divided by the number of words.  The network's figure is exact for
    one random order of the words (shallow) or an unbiased estimate (deep), always with the same seed.  Global features
    are used where there are any.

    Parameters
    ----------
    estimator : DocNADE, SupDocNADE, DeepDocNADE or SupDeepDocNADE
    rows : Rows
        Held-out pictures; a large set is thinned out evenly.
    train_rows : Rows
        Pictures in which the unigram model counts words.

    Returns
    -------
    dict of str to float
        "log_likelihood_per_word" of the network and "log_likelihood_per_word_baseline" of the unigram model.  Empty if
        the pictures have no words, or if the network predicts only tags.
    """
    if len(rows) > _MAX_SCORED:
        rows = rows[np.linspace(0, len(rows) - 1, _MAX_SCORED).astype(np.int64)]
    word_counts = rows.word_counts()
    n_words = word_counts.sum()
    if estimator.predicts_tags_only or not n_words:
        return {}
    value = _log_likelihoods(estimator, rows, random_state=0).sum() / n_words
    baseline = word_counts @ unigram_log_proba(train_rows.word_counts()) / n_words
    if not np.isfinite(value):
        return {}
    return {"log_likelihood_per_word": float(value), "log_likelihood_per_word_baseline": float(baseline)}


def unigram_log_proba(counts: np.ndarray) -> np.ndarray:
    """Return the log-probability of each word under a model of word frequencies alone.

    One is added to each count, so that no word is impossible.

    Parameters
    ----------
    counts : array of shape (n_words,)
        Counts in the training pictures.

    Returns
    -------
    float64 array of shape (n_words,)

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.likelihood import unigram_log_proba
    >>> np.exp(unigram_log_proba(np.array([5, 1, 0]))).round(3).tolist()
    [0.667, 0.222, 0.111]
    """
    counts = np.asarray(counts, dtype=np.float64)
    return np.log((counts + 1) / (counts.sum() + len(counts)))


def _log_likelihoods(estimator: Any, rows: Rows, random_state: int) -> np.ndarray:
    # A shallow network scores all positions in one pass.
    positions = {"n_positions": _POSITIONS} if isinstance(estimator, DeepModel) else {}
    log_p: np.ndarray = estimator.log_likelihood(rows, random_state=random_state, **positions)
    return log_p


def _tags_given_picture(estimator: Any, rows: Rows) -> np.ndarray:
    """Return the mean log-probability of each picture's tags; NaN for pictures without tags."""
    has_tag = rows.has_tag()
    log_p = np.log(np.maximum(tag_proba(estimator, rows.without_tags()), 1e-12))
    n_tags = has_tag.sum(axis=1)
    total = (log_p * has_tag).sum(axis=1)
    return np.divide(total, n_tags, out=np.full(len(rows), np.nan), where=n_tags > 0)
