"""Corpora of a given size, made up: bursty documents of topics whose words follow Zipf's law."""

from __future__ import annotations

import numpy as np
from scipy import sparse


def make_corpus(
    n_documents: int, n_words: int, length: int, burstiness: float = 0.0, n_topics: int = 30, seed: int = 0
) -> sparse.csr_array:
    """Counts of documents of exactly `length` words.

    With `burstiness`, a document prefers some words of its topics: the share of each is drawn from a gamma distribution
    with the shape share * n_words / burstiness.
    """
    rng = np.random.default_rng(seed)
    zipf = 1.0 / np.arange(1, n_words + 1) ** 0.7
    topics = np.stack([rng.permutation(zipf) * rng.gamma(0.5, size=n_words) for _ in range(n_topics)])
    topics /= topics.sum(axis=1, keepdims=True)
    rows = []
    for share in rng.dirichlet(np.full(n_topics, 0.1), n_documents):
        p = share @ topics
        if burstiness:
            p = rng.gamma(np.maximum(p * n_words / burstiness, 1e-9)) + 1e-12
        rows.append(rng.multinomial(length, p / p.sum()))
    return sparse.csr_array(np.array(rows, dtype=np.int32))
