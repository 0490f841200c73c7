"""Vectors to search among, and their similarities by plain loops."""

import numpy as np


def made(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Vectors in clusters."""
    rng = np.random.default_rng(seed)
    return np.tanh(rng.normal(size=(20, d))[rng.integers(20, size=n)] + 0.5 * rng.normal(size=(n, d)))


def cosines(query, vectors) -> np.ndarray:
    values = []
    for vector in np.asarray(vectors, float):
        length = np.sqrt(sum(x * x for x in vector)) * np.sqrt(sum(x * x for x in query))
        values.append(sum(x * y for x, y in zip(query, vector, strict=True)) / length if length else 0.0)
    return np.array(values)
