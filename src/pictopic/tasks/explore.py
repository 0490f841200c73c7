"""What a fitted model turned out to be about."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pictopic.corpus.rows import Rows
from pictopic.models.deep_model import DeepModel
from pictopic.words.vocabulary import Vocabulary


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


class ClassTopic(NamedTuple):
    """What goes with a class."""

    label: str
    units: list[int]  # the strongest hidden units
    visual_words: list[tuple[int, float]]  # number of the word in the codebook, and weight
    tags: list[tuple[str, float]]  # and weight


def class_topics(
    estimator: Any, rows: Rows, vocabulary: Vocabulary, classes: list[str], n_units: int, n_visual: int, n_tags: int
) -> list[ClassTopic]:
    """The visual words and tags that go with each class, as in the paper's figure.

    With one hidden layer: the rows of W of the class's `n_units` strongest units (by its row of U), averaged.  With
    several: the mean gradient of the class's score with respect to the counts, over the collection.

    Parameters
    ----------
    estimator : SupDocNADE or SupDeepDocNADE
        Fitted.
    rows : Rows
        The collection.
    vocabulary : Vocabulary
    classes : list of str
        In the network's order.
    n_units, n_visual, n_tags : int
        How many to tell.

    Returns
    -------
    list of ClassTopic
    """
    units = np.argsort(-estimator.coef_, axis=1, kind="stable")[:, :n_units]
    weights = _word_weights(estimator, rows, units)
    topics = []
    for name, strongest, weight in zip(classes, units, weights, strict=True):
        words, tags = _best_words(weight, vocabulary, n_visual, n_tags)
        topics.append(ClassTopic(name, strongest.tolist(), words, tags))
    return topics


class UnitTopic(NamedTuple):
    """What a hidden unit stands for."""

    visual_words: list[tuple[int, float]]  # number of the word in the codebook, and weight
    tags: list[tuple[str, float]]  # and weight


def unit_topics(estimator: Any, vocabulary: Vocabulary, n_visual: int, n_tags: int) -> list[UnitTopic]:
    """The words that each hidden unit of the top layer makes more probable (deep, softmax), or answers to (shallow).

    Parameters
    ----------
    estimator : DocNADE, SupDocNADE, DeepDocNADE or SupDeepDocNADE
        Fitted.
    vocabulary : Vocabulary
    n_visual, n_tags : int
        At most so many visual words and tags per unit.

    Returns
    -------
    list of UnitTopic
        In the order of the units.  Without visual words, if the network was trained to predict only tags: then it has
        learnt nothing about which visual words follow.
    """
    if estimator.predicts_tags_only:
        n_visual = 0
    # Of a deep network's lowest layer W says little; its V says which words follow.
    is_deep_softmax = isinstance(estimator, DeepModel) and estimator.tree_ is None
    weights = estimator.parameters_["V"].T if is_deep_softmax else estimator.components_
    return [UnitTopic(*_best_words(weight, vocabulary, n_visual, n_tags)) for weight in weights]


def _best_words(
    weight: np.ndarray, vocabulary: Vocabulary, n_visual: int, n_tags: int
) -> tuple[list[tuple[int, float]], list[tuple[str, float]]]:
    """The visual words and the tags with the largest of a vocabulary's weights."""
    # A visual word is the same in all regions.
    visual = weight[: vocabulary.n_pairs].reshape(vocabulary.n_regions, -1).mean(axis=0)
    tags = weight[vocabulary.n_pairs :]
    return _best(visual, range(len(visual)), n_visual), _best(tags, vocabulary.annotations, n_tags)


def _best(weights: np.ndarray, names: Sequence[Any], n: int) -> list[tuple[Any, float]]:
    order = np.argsort(-weights, kind="stable")[:n]
    return [(names[i], float(weights[i])) for i in order]


def _word_weights(estimator: Any, rows: Rows, units: np.ndarray) -> np.ndarray:
    """A weight for each class and word, (C, Q)."""
    if isinstance(estimator, DeepModel) and len(estimator._sizes()) > 1:  # W is not next to the classes
        return class_gradients(estimator, rows)
    return np.stack([estimator.components_[strongest].mean(axis=0) for strongest in units])


def class_gradients(estimator: Any, rows: Rows, n_rows: int = 1000) -> np.ndarray:
    """Mean gradient of each class's score with respect to the network's input, over at most `n_rows` rows, (C, Q)."""
    import torch

    some = rows[np.linspace(0, len(rows) - 1, min(n_rows, len(rows))).astype(int)]
    inputs, network = estimator._inputs(), estimator._network(estimator.parameters_)
    x = np.zeros(some.shape, np.float32)
    inputs.fill(some.read(), x)
    given = torch.from_numpy(x).to(estimator.device).requires_grad_(True)
    f = torch.from_numpy(inputs.standardize(some.read_features(), len(some))).to(estimator.device)
    scores = network.class_scores(network.hidden(given, f)).mean(0)
    return np.stack([torch.autograd.grad(score, given, retain_graph=True)[0].mean(0).cpu().numpy() for score in scores])
