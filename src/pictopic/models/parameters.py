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
    word_rate: float = 1.0  # learning rate factor of W
    annotation_weight: float = 1.0  # rho
    n_annotation_words: int = 0
    word_dropout: float = 0.0

    def word_weights(self, n_words: int) -> np.ndarray | None:
        """Return the weight of each word in the loss, or None where all weigh the same."""
        if self.annotation_weight == 1 or not self.n_annotation_words:
            return None
        return word_weights(n_words, self.n_annotation_words, self.annotation_weight).astype(np.float32)


def glorot_uniform(rng: np.random.RandomState, rows: int, columns: int) -> np.ndarray:
    """Draw a matrix uniformly from +- sqrt(6 / (rows + columns)), the paper's initialisation."""
    limit = np.sqrt(6.0 / max(rows + columns, 1))
    return rng.uniform(-limit, limit, (rows, columns)).astype(np.float32)


# Largest standard deviation of the first activations, c + sum of W over all words of a document.  The paper's W gives
# 0.1 for ten words, but 4 for a picture of a thousand: its units then stay near their random start.
_FIRST_ACTIVATION = 0.1


def initial_theta(
    rng: np.random.RandomState, n_words: int, n_hidden: int, n_outputs: int, n_classes: int, count_norm: float = 0.0
) -> Theta:
    """Return initial parameters: zero biases and Glorot-uniform matrices, of which W is smaller for long documents.

    `count_norm` is the root mean square over the documents of the Euclidean norm of their counts.
    """
    first_activation = np.sqrt(2.0 / (n_words + n_hidden)) * count_norm
    scale = np.float32(_FIRST_ACTIVATION / max(first_activation, _FIRST_ACTIVATION))
    return Theta(
        W=scale * glorot_uniform(rng, n_words, n_hidden),
        c=np.zeros(n_hidden, np.float32),
        V=glorot_uniform(rng, n_outputs, n_hidden),
        b=np.zeros(n_outputs, np.float32),
        U=glorot_uniform(rng, n_classes, n_hidden),
        d=np.zeros(n_classes, np.float32),
    )


# Adam's decays.  With the usual 0.999 for the square, a word that occurs once in a thousand steps moves thirty times
# as far as a frequent one, and overshoots; 0.95 was better on TMN's validation part.
ADAM_BETAS = (0.9, 0.95)

# Learning rate factor of W with Adam for documents of up to this many words, chosen on validation parts (TMN with 10.6
# words and 20NSshort with 8).  In a longer document more words move together, so that each has to move less: on
# LabelMe's pictures (961 words) W learns at a tenth of the common rate; three times that was no better.
_WORD_RATE, _SHORT_DOCUMENT = 10.0, 11.0


def word_rate(solver: str, mean_length: float) -> float:
    """Return the learning rate factor of W."""
    return _WORD_RATE * min(1.0, _SHORT_DOCUMENT / mean_length) if solver == "adam" else 1.0


def word_weights(n_words: int, n_annotation_words: int, annotation_weight: float) -> np.ndarray:
    """Return the weight of each word: 1, and rho for annotation words."""
    weights = np.ones(n_words)
    weights[n_words - n_annotation_words :] = annotation_weight
    return weights


def word_frequencies(counts: np.ndarray) -> np.ndarray:
    """Return the frequency of each word, with one added to each count so that no word is impossible."""
    smoothed = np.asarray(counts, dtype=float) + 1.0
    return smoothed / smoothed.sum()


def average_decay(decay: float, step: int) -> float:
    """Return the decay of the parameter average at a step: smaller at the start, to forget the first values."""
    return min(decay, (1 + step) / (4 + step))
