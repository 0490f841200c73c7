"""What a fitted model turned out to be about."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.manifold import TSNE
from sklearn.neighbors import NearestNeighbors
from threadpoolctl import threadpool_limits

from pictopic.corpus.rows import Rows
from pictopic.models.deep_model import DeepModel
from pictopic.words.vocabulary import Vocabulary

_DIMENSIONS = 50  # of what t-SNE compares
_PERPLEXITY = 30.0
_LEAST = 4  # rows, for t-SNE to say more than PCA
_NEIGHBOURS = 5  # landmarks that say where another row lies
_APART = 0.002  # by how much rows at the same place are moved


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
    >>> from pictopic.tasks.topics import class_words
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


# ---- measures of topics ----------------------------------------------------------------------------------------------


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
    >>> from pictopic.tasks.topics import npmi_coherence
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
    >>> from pictopic.tasks.topics import topic_diversity
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


# ---- the map ---------------------------------------------------------------------------------------------------------


def project(vectors: Any, n_landmarks: int = 2000, random_state: int = 0) -> np.ndarray:
    """Places of rows in the plane: t-SNE of some of them, the others between those that they are most like.

    Parameters
    ----------
    vectors : array of shape (n, n_features)
    n_landmarks : int, default=2000
        How many rows t-SNE places, chosen by chance; the time grows with them.
    random_state : int, default=0

    Returns
    -------
    float32 array of shape (n, 2)
        Within 0 and 1; the same for the same vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.topics import project
    >>> rng = np.random.RandomState(0)
    >>> places = project(np.repeat([[0.0, 9.0], [9.0, 0.0]], 20, axis=0) + rng.normal(size=(40, 2)))
    >>> places.shape, bool(places.min() >= 0), bool(places.max() <= 1)
    ((40, 2), True, True)
    """
    vectors = np.asarray(vectors, dtype=np.float32)
    n, rng = len(vectors), np.random.RandomState(random_state)
    # Sums in another order would make another map: one thread, in which the order is always the same.
    with threadpool_limits(1):
        compared = _compared(vectors, random_state)
        chosen = np.sort(rng.permutation(n)[:n_landmarks])
        places = np.empty((n, 2))
        places[chosen] = _within(_place(compared[chosen], random_state))
        others = np.setdiff1d(np.arange(n), chosen)
        if len(others):
            places[others] = _between(compared[others], compared[chosen], places[chosen])
    places += rng.uniform(-_APART, _APART, places.shape)
    return np.clip(places, 0, 1).astype(np.float32)


def _compared(vectors: np.ndarray, random_state: int) -> np.ndarray:
    """The directions in which the rows differ most, strongest first; at least two columns."""
    centred = vectors - vectors.mean(axis=0) if len(vectors) else vectors
    n_components = min(_DIMENSIONS, *vectors.shape)
    if n_components and centred.any():
        solver = "covariance_eigh" if len(vectors) > vectors.shape[1] else "full"
        centred = PCA(n_components, svd_solver=solver, random_state=random_state).fit_transform(centred)
    found = np.zeros((len(vectors), max(2, n_components)), np.float32)
    found[:, :n_components] = centred[:, :n_components]
    return found


def _place(rows: np.ndarray, random_state: int) -> np.ndarray:
    """Places of the landmarks."""
    flat = rows[:, :2]
    if len(rows) < _LEAST or not rows.any():
        return flat
    start = flat / max(float(flat[:, 0].std()), 1e-12) * 1e-4  # as t-SNE itself would begin with PCA
    perplexity = min(_PERPLEXITY, (len(rows) - 1) / 3)
    return TSNE(perplexity=perplexity, init=start, random_state=random_state, n_jobs=1).fit_transform(rows)


def _within(places: np.ndarray) -> np.ndarray:
    """The same within 0 and 1, in the middle, neither wider nor higher than it was."""
    if not len(places):
        return places
    low, high = places.min(axis=0), places.max(axis=0)
    size = max(float((high - low).max()), 1e-12)
    return 0.5 + (places - (low + high) / 2) / size * (1 - 2 * _APART)


def _between(rows: np.ndarray, landmarks: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Means of the places of the nearest landmarks; the more alike they are, the more they count."""
    nearest = NearestNeighbors(n_neighbors=min(_NEIGHBOURS, len(landmarks)), algorithm="brute").fit(landmarks)
    distances, numbers = nearest.kneighbors(rows)
    # Relative to the nearest: the density of the landmarks differs from place to place.
    weights = np.exp(1 - (distances / np.maximum(distances[:, :1], 1e-12)) ** 2)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.einsum("nk,nkd->nd", weights, places[numbers])
