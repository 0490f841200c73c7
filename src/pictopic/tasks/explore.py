"""What a fitted model turned out to be about."""

from __future__ import annotations

from typing import Any

import numpy as np


def class_words(model: Any, n_units: int = 3, n_words: int = 5) -> dict[Any, np.ndarray]:
    """The words that go with each class.

    For each class, the hidden units with the largest weights in its row of U are taken, and their rows of W averaged:
    the words with the largest average go with the class (the paper's visualisation section).

    Parameters
    ----------
    model : SupDocNADE
        Fitted.
    n_units : int, default=3
        Number of hidden units a class, the paper's 3.  Small models, whose units serve several classes, want more.
    n_words : int, default=5
        Number of words a class.

    Returns
    -------
    dict of class -> ndarray of column numbers, strongest first

    Examples
    --------
    >>> from pictopic import SupDocNADE
    >>> from pictopic.corpus.sample import load_sample
    >>> from pictopic.tasks.explore import class_words
    >>> X, y, vocabulary = load_sample()
    >>> model = SupDocNADE(n_components=50, activation="relu", random_state=0).fit(X, y)
    >>> words = class_words(model, n_units=10, n_words=8)["kitchen"]
    >>> "chair" in [vocabulary[column].word for column in words]
    True
    """
    words = {}
    for name, row in zip(model.classes_.tolist(), model.coef_, strict=True):
        units = np.argsort(-row, kind="stable")[:n_units]
        words[name] = np.argsort(-model.components_[units].mean(axis=0), kind="stable")[:n_words]
    return words
