"""Topics of a fitted model: words of classes and hidden units, measures of topics, the map."""

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

_DIMENSIONS = 50  # principal components that t-SNE compares
_PERPLEXITY = 30.0
_TSNE_FROM = 4  # rows; with fewer, t-SNE shows no more than PCA
_NEIGHBOURS = 5  # landmarks between which another row is placed
_JITTER = 0.002  # moves rows at the same place apart


def class_words(model: Any, n_units: int = 3, n_words: int = 5) -> dict[Any, np.ndarray]:
    """Return the words that go with each class, as in the paper's visualisation section.

    For each class, the rows of W of the hidden units with the largest weights in the class's row of U are averaged; the
    words with the largest averages go with the class.

    Parameters
    ----------
    model : SupDocNADE
        Fitted.
    n_units : int, default=3
        Hidden units per class, 3 in the paper.  Small models, whose units serve several classes, need more.
    n_words : int, default=5
        Words per class.

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
    """Hidden units, visual words and tags that go with a class."""

    label: str
    units: list[int]  # the strongest hidden units
    visual_words: list[tuple[int, float]]  # number of the word in the codebook, and weight
    tags: list[tuple[str, float]]  # and weight


def class_topics(
    estimator: Any, rows: Rows, vocabulary: Vocabulary, classes: list[str], n_units: int, n_visual: int, n_tags: int
) -> list[ClassTopic]:
    """Return the visual words and tags that go with each class, as in the paper's figure.

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
        Numbers of units, visual words and tags per class.

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
    """Visual words and tags that a hidden unit stands for."""

    visual_words: list[tuple[int, float]]  # number of the word in the codebook, and weight
    tags: list[tuple[str, float]]  # and weight


def unit_topics(estimator: Any, vocabulary: Vocabulary, n_visual: int, n_tags: int) -> list[UnitTopic]:
    """Return the words that each top-layer unit makes more probable (deep, softmax) or responds to (shallow).

    Parameters
    ----------
    estimator : DocNADE, SupDocNADE, DeepDocNADE or SupDeepDocNADE
        Fitted.
    vocabulary : Vocabulary
    n_visual, n_tags : int
        Maximum numbers of visual words and tags per unit.

    Returns
    -------
    list of UnitTopic
        In the order of the units.  Without visual words if the network was trained to predict only tags: it then has
        learnt nothing about the probability of visual words.
    """
    if estimator.predicts_tags_only:
        n_visual = 0
    # W, the lowest layer of a deep network, says little; V says which words a unit makes probable.
    is_deep_softmax = isinstance(estimator, DeepModel) and estimator.tree_ is None
    weights = estimator.parameters_["V"].T if is_deep_softmax else estimator.components_
    return [UnitTopic(*_best_words(weight, vocabulary, n_visual, n_tags)) for weight in weights]


def _best_words(
    weight: np.ndarray, vocabulary: Vocabulary, n_visual: int, n_tags: int
) -> tuple[list[tuple[int, float]], list[tuple[str, float]]]:
    """Return the visual words and the tags with the largest weights."""
    # A visual word has a weight per region.
    visual = weight[: vocabulary.n_pairs].reshape(vocabulary.n_regions, -1).mean(axis=0)
    tags = weight[vocabulary.n_pairs :]
    return _best(visual, range(len(visual)), n_visual), _best(tags, vocabulary.annotations, n_tags)


def _best(weights: np.ndarray, names: Sequence[Any], n: int) -> list[tuple[Any, float]]:
    order = np.argsort(-weights, kind="stable")[:n]
    return [(names[i], float(weights[i])) for i in order]


def _word_weights(estimator: Any, rows: Rows, units: np.ndarray) -> np.ndarray:
    """Return a weight for each class and word, (C, Q)."""
    if isinstance(estimator, DeepModel) and len(estimator._sizes()) > 1:  # W is not connected to the classes
        return class_gradients(estimator, rows)
    return np.stack([estimator.components_[strongest].mean(axis=0) for strongest in units])


def class_gradients(estimator: Any, rows: Rows, n_rows: int = 1000) -> np.ndarray:
    """Return the mean gradient of each class score with respect to the input, over at most `n_rows` rows, (C, Q)."""
    import torch

    sample = rows[np.linspace(0, len(rows) - 1, min(n_rows, len(rows))).astype(int)]
    inputs, network = estimator._inputs(), estimator._network(estimator.parameters_)
    x = np.zeros(sample.shape, np.float32)
    inputs.fill(sample.read(), x)
    counts = torch.from_numpy(x).to(estimator.device).requires_grad_(True)
    f = torch.from_numpy(inputs.standardize(sample.read_features(), len(sample))).to(estimator.device)
    scores = network.class_scores(network.hidden(counts, f)).mean(0)
    return np.stack(
        [torch.autograd.grad(score, counts, retain_graph=True)[0].mean(0).cpu().numpy() for score in scores]
    )


# ---- measures of topics ----------------------------------------------------------------------------------------------


def npmi_coherence(topics: Iterable[Iterable[Hashable]], documents: Any, top_k: int = 10) -> np.ndarray:
    """Return the NPMI coherence of topics: how often their words occur together, compared with chance.

    Mean over the pairs of a topic's words of log(p(a, b) / p(a) p(b)) / -log p(a, b), normalised pointwise mutual
    information (Bouma 2009), where p(a, b) is the share of the documents with both words: 1 for words that occur only
    together, 0 for independent ones, -1 for those that never occur together.

    Parameters
    ----------
    topics : iterable of iterables
        Words of each topic, strongest first; repeated words count once.
    documents : {array, sparse matrix} of shape (n_documents, n_words), or iterable of iterables
        Counts, with column numbers as the topics' words; or the words of each document, such as a picture's tags.
    top_k : int, default=10
        Words per topic that count.

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
    return np.array([_mean_npmi(counts[:, topic]) if len(topic) > 1 else np.nan for topic in columns], dtype=np.float64)


def topic_diversity(topics: Iterable[Iterable[Hashable]], top_k: int = 10) -> float:
    """Return the share of distinct words among the strongest words of all topics, 1 if no word is repeated.

    Parameters
    ----------
    topics : iterable of iterables
        Words of each topic, strongest first; repeated words count once.
    top_k : int, default=10
        Words per topic that count.

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
    """Return the first words of each topic, without repetitions."""
    if top_k < 1:
        raise ValueError(f"top_k must be at least 1, got {top_k}")
    ranked = []
    for number, topic in enumerate(topics):
        if isinstance(topic, str):
            # Its letters would be read as words.
            raise ValueError(f"topic {number} is a text in place of a list of words")
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
    """Return the occurrences of the topics' words in documents, and the columns of each topic's words."""
    words = dict.fromkeys(word for topic in topics for word in topic)
    column_of = {word: number for number, word in enumerate(words)}
    document_columns = [
        np.array(sorted({column_of[word] for word in row if word in column_of}), np.int64) for row in documents
    ]
    ends = np.concatenate([[0], np.cumsum([len(row) for row in document_columns])]).astype(np.int64)
    indices = np.concatenate([np.zeros(0, np.int64), *document_columns])
    counts = sparse.csr_array((np.ones(len(indices)), indices, ends), shape=(len(document_columns), len(column_of)))
    return counts.tocsc(), [np.array([column_of[word] for word in topic], np.int64) for topic in topics]


def _mean_npmi(counts: sparse.csc_array) -> float:
    """Return the mean NPMI of the pairs of columns of one topic: those of all topics may not fit into memory."""
    occurs = (counts.toarray() > 0).astype(np.float64)
    joint = occurs.T @ occurs / len(occurs)
    first, second = np.triu_indices(len(joint), k=1)
    single, joint = joint.diagonal(), joint[first, second]
    npmi = np.full(len(joint), -1.0)
    npmi[joint == 1] = 1.0  # in every document: the limit of words that occur only together
    together = (joint > 0) & (joint < 1)
    p = joint[together]
    npmi[together] = np.log(p / (single[first] * single[second])[together]) / -np.log(p)
    return float(npmi.mean())


# ---- the map ---------------------------------------------------------------------------------------------------------


def project(vectors: Any, n_landmarks: int = 2000, random_state: int = 0) -> np.ndarray:
    """Project rows into the plane: t-SNE for landmarks, interpolation between them for the other rows.

    Parameters
    ----------
    vectors : array of shape (n, n_features)
    n_landmarks : int, default=2000
        Number of random rows that t-SNE places; time grows with it.
    random_state : int, default=0

    Returns
    -------
    float32 array of shape (n, 2)
        Between 0 and 1; the same for the same vectors.

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
    # One thread: sums in another order would make another map.
    with threadpool_limits(1):
        components = _principal_components(vectors, random_state)
        landmarks = np.sort(rng.permutation(n)[:n_landmarks])
        places = np.empty((n, 2))
        places[landmarks] = _fit_into_unit_square(_place_landmarks(components[landmarks], random_state))
        others = np.setdiff1d(np.arange(n), landmarks)
        if len(others):
            places[others] = _place_between(components[others], components[landmarks], places[landmarks])
    places += rng.uniform(-_JITTER, _JITTER, places.shape)
    return np.clip(places, 0, 1).astype(np.float32)


def _principal_components(vectors: np.ndarray, random_state: int) -> np.ndarray:
    """Return the principal components of rows, strongest first; at least two columns."""
    centred = vectors - vectors.mean(axis=0) if len(vectors) else vectors
    n_components = min(_DIMENSIONS, *vectors.shape)
    if n_components and centred.any():
        solver = "covariance_eigh" if len(vectors) > vectors.shape[1] else "full"
        centred = PCA(n_components, svd_solver=solver, random_state=random_state).fit_transform(centred)
    components = np.zeros((len(vectors), max(2, n_components)), np.float32)
    components[:, :n_components] = centred[:, :n_components]
    return components


def _place_landmarks(rows: np.ndarray, random_state: int) -> np.ndarray:
    """Return the places of the landmarks."""
    flat = rows[:, :2]
    if len(rows) < _TSNE_FROM or not rows.any():
        return flat
    start = flat / max(float(flat[:, 0].std()), 1e-12) * 1e-4  # as t-SNE itself would begin with PCA
    perplexity = min(_PERPLEXITY, (len(rows) - 1) / 3)
    return TSNE(perplexity=perplexity, init=start, random_state=random_state, n_jobs=1).fit_transform(rows)


def _fit_into_unit_square(places: np.ndarray) -> np.ndarray:
    """Shift and scale places into the unit square, centred and in proportion."""
    if not len(places):
        return places
    low, high = places.min(axis=0), places.max(axis=0)
    size = max(float((high - low).max()), 1e-12)
    return 0.5 + (places - (low + high) / 2) / size * (1 - 2 * _JITTER)


def _place_between(rows: np.ndarray, landmarks: np.ndarray, places: np.ndarray) -> np.ndarray:
    """Return means of the places of the nearest landmarks, weighted by similarity."""
    nearest = NearestNeighbors(n_neighbors=min(_NEIGHBOURS, len(landmarks)), algorithm="brute").fit(landmarks)
    distances, numbers = nearest.kneighbors(rows)
    # Relative to the nearest landmark: the density of the landmarks differs from place to place.
    weights = np.exp(1 - (distances / np.maximum(distances[:, :1], 1e-12)) ** 2)
    weights /= weights.sum(axis=1, keepdims=True)
    return np.einsum("nk,nkd->nd", weights, places[numbers])
