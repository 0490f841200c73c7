"""Parameters of a shallow model, and the options of its training."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class Theta:
    """Parameters theta of (Sup)DocNADE, as float32 arrays.

    A word's weights are contiguous in memory: `W` holds the paper's W transposed.
    """

    W: np.ndarray  # (Q, H)
    c: np.ndarray  # (H,)
    V: np.ndarray  # (Q, H) softmax, (Q - 1, H) tree
    b: np.ndarray  # (Q,) or (Q - 1,)
    U: np.ndarray  # (C, H); C = 0 without classes
    d: np.ndarray  # (C,)


@dataclass(frozen=True)
class Options:
    """Options of a training, resolved for one set of data."""

    activation: str
    generative: float  # weight of a document's NLL in its loss, lambda
    multi_label: bool
    solver: str
    batch_size: int
    learning_rate: float
    dropout: float
    averaging: float  # 0: none
    smoothing: float
    n_jobs: int
    device: str


def glorot_uniform(rng: np.random.RandomState, rows: int, columns: int) -> np.ndarray:
    """Draw a matrix uniformly from +- sqrt(6 / (rows + columns)), the paper's initialisation."""
    limit = np.sqrt(6.0 / max(rows + columns, 1))
    return rng.uniform(-limit, limit, (rows, columns)).astype(np.float32)


def initial_theta(rng: np.random.RandomState, n_words: int, n_hidden: int, n_outputs: int, n_classes: int) -> Theta:
    """Return initial parameters: Glorot-uniform matrices, zero biases."""
    return Theta(
        W=glorot_uniform(rng, n_words, n_hidden),
        c=np.zeros(n_hidden, np.float32),
        V=glorot_uniform(rng, n_outputs, n_hidden),
        b=np.zeros(n_outputs, np.float32),
        U=glorot_uniform(rng, n_classes, n_hidden),
        d=np.zeros(n_classes, np.float32),
    )


# Adam's decays.  With the usual 0.999 for the square, a word that occurs once in a thousand steps moves thirty times
# as far as a frequent one, and overshoots; 0.95 was better on TMN's validation part.
ADAM_BETAS = (0.9, 0.95)

# Learning rate factor of W with Adam, chosen on validation parts (TMN, 20NSshort).
WORD_RATE = 10.0


def word_frequencies(counts: np.ndarray) -> np.ndarray:
    """Return the frequency of each word, with one added to each count so that no word is impossible."""
    smoothed = np.asarray(counts, dtype=float) + 1.0
    return smoothed / smoothed.sum()


def average_decay(decay: float, step: int) -> float:
    """Return the decay of the parameter average at a step: smaller at the start, to forget the first values."""
    return min(decay, (1 + step) / (4 + step))
