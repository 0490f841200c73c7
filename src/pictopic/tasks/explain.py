"""Explanations of tags and classes: the visual words that contribute to them, and where they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from PIL import Image
from scipy import sparse

from pictopic.corpus.rows import Rows
from pictopic.words.extract import Extractor
from pictopic.words.pictures import gray, rgb

_FOR, _AGAINST = np.array([214.0, 69.0, 39.0]), np.array([39.0, 110.0, 190.0])  # colours of the overlay


class Explanation(NamedTuple):
    """Contributions of a picture's visual words to the score of a tag or a class."""

    name: str
    score: float  # log of its probability
    words: list[tuple[int, float]]  # column and contribution of each visual word of the picture, strongest first
    heat: np.ndarray  # (height, width): contribution of each pixel
    overlay: Image.Image  # the picture in grey, positive contributions red, negative ones blue


def contributions(rows: Rows, score: Callable[[Rows], np.ndarray]) -> tuple[float, np.ndarray, np.ndarray]:
    """Return by how much the score of one picture falls when all occurrences of a visual word are removed.

    Parameters
    ----------
    rows : Rows
        One row.
    score : callable
        Function from rows to one number per row.

    Returns
    -------
    score : float
        Score of the whole picture.
    columns : int array
        The picture's visual words.
    falls : float array
        Fall of the score for each of them.
    """
    X, features = rows.read(), rows.read_features()
    columns = X.indices[X.indices < rows.n_visual]
    n = len(columns)
    copies = sparse.csr_array(sparse.vstack([X] * (n + 1), format="csr"))
    is_removed = sparse.csr_array((np.ones(n, bool), (np.arange(n), columns)), shape=(n, copies.shape[1]))
    remaining = copies - sparse.vstack([is_removed.multiply(X.toarray()), sparse.csr_array((1, copies.shape[1]))])
    remaining = sparse.csr_array(remaining.astype(np.int32))
    remaining.eliminate_zeros()
    features = None if features is None else np.repeat(features, n + 1, axis=0)
    scores = score(Rows(remaining, features, n_annotation_words=rows.n_annotation_words))
    return float(scores[-1]), columns, scores[-1] - scores[:-1]


def heat_map(image: Image.Image, extractor: Extractor, share: np.ndarray) -> np.ndarray:
    """Spread the contribution of each pair of word and region over its patches.

    Parameters
    ----------
    image : PIL image
        As `Extractor.open` returns it.
    extractor : Extractor
    share : array of shape (n_pairs,)
        Contribution of one occurrence.

    Returns
    -------
    array of shape (height, width)
        Mean contribution of the patches that cover a pixel.
    """
    if extractor.codebook is None:
        raise ValueError("there is no codebook to count the words of")
    total, cover = np.zeros((image.height, image.width)), np.zeros((image.height, image.width))
    n_words = len(extractor.codebook)
    for descriptors, places in extractor.describe(image):
        words = extractor.codebook.predict(descriptors)
        regions = extractor.regions.of(places, image.height, image.width)
        values = share[regions * n_words + words].sum(axis=0)
        for (x, y, size), value in zip(places, values, strict=True):
            top, left = max(0, int(y - 2 * size)), max(0, int(x - 2 * size))
            patch = np.s_[top : int(y + 2 * size) + 1, left : int(x + 2 * size) + 1]
            total[patch] += value
            cover[patch] += 1
    return total / np.maximum(cover, 1)


def overlay(image: Image.Image, heat: np.ndarray) -> Image.Image:
    """Return the picture in grey, with positive heat in red and negative heat in blue."""
    strength = np.abs(heat) / max(float(np.quantile(np.abs(heat), 0.99)), 1e-12)
    mix = 0.65 * np.clip(strength, 0, 1)[:, :, None]
    colour = np.where(heat[:, :, None] > 0, _FOR, _AGAINST)
    base = np.repeat(gray(image)[:, :, None], 3, axis=2) * 0.8 + rgb(image) * 0.2
    return Image.fromarray(np.clip(base * (1 - mix) + colour * mix, 0, 255).astype(np.uint8))
