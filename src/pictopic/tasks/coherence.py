"""Measures of topics: whether a topic's words belong together, and whether topics differ."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from scipy import sparse


def npmi_coherence(topics: Iterable[Iterable[Hashable]], documents: Any, top_k: int = 10) -> np.ndarray:
    """How much more often than by chance the words of a topic occur in the same documents.

    Mean over the pairs of a topic's words of log(p(a, b) / p(a) p(b)) / -log p(a, b), normalised pointwise mutual
    information (Bouma 2009), where p(a, b) is the share of the documents with both words: 1 for words that occur only
    together, 0 for independent ones, -1 for those that never meet.

    Parameters
    ----------
    topics : iterable of iterables
        For each topic its words, strongest first; a repeated one counts once.
    documents : {array, sparse matrix} of shape (n_documents, n_words), or iterable of iterables
        Counts, and topics hold column numbers; or for each document its words, such as a picture's tags.
    top_k : int, default=10
        Number of words of a topic that count.

    Returns
    -------
    ndarray of shape (n_topics,)
        NaN for a topic of fewer than two words.

    Examples
    --------
    >>> from pictopic.tasks.coherence import npmi_coherence
    >>> tags = [["sea", "sand"], ["sea", "sand", "sky"], ["car", "sky"], ["car", "road"]]
    >>> npmi_coherence([["sea", "sand"], ["sea", "sky"], ["sea", "car"]], tags).round(2).tolist()
    [1.0, 0.0, -1.0]
    """
    ranked = _top(topics, top_k)
    if sparse.issparse(documents) or isinstance(documents, np.ndarray):
        counts = sparse.csc_array(documents)
        columns = [_checked_columns(topic, counts.shape[1]) for topic in ranked]
    else:
        counts, columns = _count(documents, ranked)
    if not counts.shape[0]:
        raise ValueError("there is no document to count words in")
    return np.array([_mean_npmi(counts[:, own]) if len(own) > 1 else np.nan for own in columns], dtype=np.float64)


def topic_diversity(topics: Iterable[Iterable[Hashable]], top_k: int = 10) -> float:
    """Share of different words among the strongest words of all topics: 1 if no two topics share one.

    Parameters
    ----------
    topics : iterable of iterables
        For each topic its words, strongest first; a repeated one counts once.
    top_k : int, default=10
        Number of words of a topic that count.

    Returns
    -------
    float

    Examples
    --------
    >>> from pictopic.tasks.coherence import topic_diversity
    >>> topic_diversity([["sea", "sand", "sky"], ["car", "sea", "road"]], top_k=2)
    0.75
    """
    words = [word for topic in _top(topics, top_k) for word in topic]
    if not words:
        raise ValueError("no topic has a word")
    return len(set(words)) / len(words)


def _top(topics: Iterable[Iterable[Hashable]], top_k: int) -> list[list[Hashable]]:
    """The first words of each topic, without repetitions."""
    if top_k < 1:
        raise ValueError(f"top_k must be at least 1, got {top_k}")
    ranked = []
    for number, topic in enumerate(topics):
        if isinstance(topic, str):
            raise ValueError(f"topic {number} is a text in place of a list of words")  # letters are no words
        ranked.append(list(dict.fromkeys(topic))[:top_k])
    return ranked


def _checked_columns(topic: Sequence[Any], n_words: int) -> np.ndarray:
    columns = np.asarray(topic)
    if columns.size and (columns.dtype.kind not in "iu" or columns.min() < 0 or columns.max() >= n_words):
        raise ValueError(f"topics must hold column numbers below {n_words} where documents are counts")
    return columns.astype(np.int64)


def _count(
    documents: Iterable[Iterable[Hashable]], topics: list[list[Hashable]]
) -> tuple[sparse.csc_array, list[np.ndarray]]:
    """In which documents the topics' words occur, and the columns of each topic's words."""
    words = dict.fromkeys(word for topic in topics for word in topic)
    column = {word: number for number, word in enumerate(words)}
    found = [np.array(sorted({column[word] for word in own if word in column}), np.int64) for own in documents]
    ends = np.concatenate([[0], np.cumsum([len(own) for own in found])]).astype(np.int64)
    indices = np.concatenate([np.zeros(0, np.int64), *found])
    counts = sparse.csr_array((np.ones(len(indices)), indices, ends), shape=(len(found), len(column)))
    return counts.tocsc(), [np.array([column[word] for word in topic], np.int64) for topic in topics]


def _mean_npmi(counts: sparse.csc_array) -> float:
    """Mean over the pairs of columns.  A topic's words at a time: all pairs of all words may not fit into memory."""
    occurs = (counts.toarray() > 0).astype(np.float64)
    joint = occurs.T @ occurs / len(occurs)
    first, second = np.triu_indices(len(joint), k=1)
    single, joint = joint.diagonal(), joint[first, second]
    npmi = np.full(len(joint), -1.0)
    npmi[joint == 1] = 1.0  # in every document: the limit of words that occur only together
    some = (joint > 0) & (joint < 1)
    p = joint[some]
    npmi[some] = np.log(p / (single[first] * single[second])[some]) / -np.log(p)
    return float(npmi.mean())
