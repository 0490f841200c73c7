"""How good a model is: on the pictures that were held out, on other pictures, and while it learnt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.rows import Rows
from pictopic.tasks.annotate import tag_proba, tag_probabilities
from pictopic.tasks.fit import Fitted, known_rows, rows_to_learn_from
from pictopic.tasks.likelihood import compare_with_unigram
from pictopic.tasks.metrics import accuracy, f_measure_at_k, mean_average_precision, per_word_scores
from pictopic.tasks.search import Index
from pictopic.words.vocabulary import Vocabulary

_TOP = 5  # tags that are given where there are no thresholds, as in the paper
_NEIGHBOURS = 10  # similar pictures that are looked at
_METRICS = {"accuracy": "Accuracy of the classes", "map": "Mean average precision of the classes"}


class Confusion(NamedTuple):
    """How often pictures of a class (rows) were taken for another (columns)."""

    classes: list[str]
    counts: np.ndarray  # (classes, classes)
    pictures: dict[tuple[int, int], list[tuple[int, float]]]  # row and probability of those in a cell, the surest first


@dataclass(frozen=True)
class TagScore:
    """How well a tag is found."""

    name: str
    count: int  # pictures that have it
    precision: float | None  # None: it was never given
    recall: float | None  # None: no picture has it
    f: float


class Series(NamedTuple):
    """A line of a chart: a value for each pass, from the first on."""

    name: str
    values: list[float]


class Chart(NamedTuple):
    """A chart of a training run."""

    title: str
    series: list[Series]


class Quality(NamedTuple):
    """What can be said of how good a model is."""

    n_held_out: int
    confusion: Confusion | None  # None: there are no classes, or several a picture
    tags: list[TagScore]  # the most frequent first
    figures: dict[str, float]
    curves: list[Chart]


def quality(fitted: Fitted, corpus: Corpus) -> Quality:
    """All that is known of how good a model is; see `PictureModel.quality`.

    What is said of classes and tags is what a network said that had not seen the pictures.

    Parameters
    ----------
    fitted : Fitted
    corpus : Corpus
        The collection.

    Returns
    -------
    Quality
    """
    held_out, found, tags = fitted.held_out, None, []
    if held_out is not None and held_out.class_proba is not None and fitted.head is not None and not corpus.multi_label:
        true = [(corpus.label_lists[row] or [None])[0] for row in held_out.rows]
        found = confusion(true, held_out.class_proba, held_out.rows, fitted.head.classes, corpus.classes)
    if held_out is not None and held_out.tag_proba is not None:
        has_tag = Rows.of(corpus)[held_out.rows].has_tag()
        tagged = has_tag.any(axis=1)  # of the others nothing is known
        given = _given(fitted, held_out.tag_proba[tagged])
        tags = tag_scores(has_tag[tagged], given, corpus.vocabulary.annotations)
    curves = training_curves(fitted.estimator)
    return Quality(fitted.n_validation, found, tags, dict(fitted.figures), curves)


def confusion(
    true: Sequence[str | None], proba: np.ndarray, rows: Sequence[int] | np.ndarray, columns: list[str],
    classes: list[str],
) -> Confusion:  # fmt: skip
    """Count which classes were taken for which.

    Parameters
    ----------
    true : sequence of str or None
        The class of each picture; None: not known, and not counted.
    proba : array of shape (n, len(columns))
    rows : sequence of int
        What each picture is called.
    columns : list of str
        Classes of the probabilities.
    classes : list of str
        Those to tell of, in this order.

    Returns
    -------
    Confusion

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.quality import confusion
    >>> proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    >>> found = confusion(["coast", "street", "street"], proba, [7, 8, 9], ["coast", "street"], ["coast", "street"])
    >>> found.counts.tolist()
    [[1, 0], [1, 1]]
    >>> found.pictures[1, 0]
    [(8, 0.6)]
    """
    number = {name: k for k, name in enumerate(classes)}
    counts = np.zeros((len(classes), len(classes)), np.int64)
    pictures: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for name, own, row in zip(true, proba, rows, strict=True):
        if name is not None:
            best = int(own.argmax())
            cell = number[name], number[columns[best]]
            counts[cell] += 1
            pictures.setdefault(cell, []).append((int(row), float(own[best])))
    for found in pictures.values():
        found.sort(key=lambda own: (-own[1], own[0]))
    return Confusion(list(classes), counts, pictures)


def _given(fitted: Fitted, p: np.ndarray) -> np.ndarray:
    """Which tags are given: those that pass their threshold, or the best few."""
    if fitted.thresholds is not None:
        return tag_probabilities(fitted, p) >= fitted.thresholds.thresholds
    given = np.zeros(p.shape, bool)
    best = np.argsort(-p, axis=1, kind="stable")[:, :_TOP]
    np.put_along_axis(given, best, True, axis=1)
    return given


def tag_scores(has_tag: np.ndarray, given: np.ndarray, names: Sequence[str]) -> list[TagScore]:
    """Precision, recall and F-measure of each tag that a picture has or was given.

    Parameters
    ----------
    has_tag, given : bool arrays of shape (n, n_tags)
    names : sequence of str

    Returns
    -------
    list of TagScore
        The most frequent first.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.quality import tag_scores
    >>> has_tag = np.array([[True, True], [False, True], [False, True]])
    >>> given = np.array([[True, False], [True, False], [False, False]])
    >>> tag_scores(has_tag, given, ["sea", "sky"])[1]
    TagScore(name='sea', count=1, precision=0.5, recall=1.0, f=0.6666666666666666)
    >>> tag_scores(has_tag, given, ["sea", "sky"])[0]
    TagScore(name='sky', count=3, precision=None, recall=0.0, f=0.0)
    """
    counts, n_given, hits = has_tag.sum(axis=0), given.sum(axis=0), (has_tag & given).sum(axis=0)
    order = [k for k in np.argsort(-counts, kind="stable") if counts[k] or n_given[k]]
    return [
        TagScore(
            names[k], int(counts[k]), _share(hits[k], n_given[k]), _share(hits[k], counts[k]),
            float(2 * hits[k] / (counts[k] + n_given[k])),
        ) for k in order
    ]  # fmt: skip


def _share(part: Any, whole: Any) -> float | None:
    return float(part / whole) if whole else None


def training_curves(estimator: Any) -> list[Chart]:
    """The losses of each pass, and how good the model was on held-out pictures by its `validation_metric`.

    Parameters
    ----------
    estimator : DocNADE, SupDocNADE, DeepDocNADE or SupDeepDocNADE
        Fitted.

    Returns
    -------
    list of Chart

    Examples
    --------
    >>> from pictopic import DocNADE
    >>> from pictopic.tasks.quality import training_curves
    >>> [chart] = training_curves(DocNADE(max_iter=3, random_state=0).fit([[2, 1], [1, 2]]))
    >>> chart.title, [(own.name, len(own.values)) for own in chart.series]
    ('Loss of the words', [('training', 3)])
    """
    history = estimator.history_
    scores, metric = history["validation_score"], getattr(estimator, "validation_metric", "loss")
    losses = Series("held-out pictures", [-score for score in scores])
    words = [Series("training", history["nll"])]
    if not hasattr(estimator, "classes_"):
        # Without classes, the held-out score is minus the loss of the words.
        return [Chart("Loss of the words", words + ([losses] if scores else []))]
    classes = [Series("training", history["class_loss"])]
    charts = [Chart("Loss of the classes", classes), Chart("Loss of the words", words)]
    if scores and metric == "loss":
        classes.append(losses)
    elif scores:
        charts.insert(0, Chart(_METRICS[metric], [Series("held-out pictures", scores)]))
    return charts


def evaluate(fitted: Fitted, index: Index, collection: Corpus, other: Corpus) -> dict[str, float]:
    """Compare a model's answers with what is known about other pictures; see `PictureModel.evaluate`.

    Classes and tags are predicted from the pictures alone, without their tags.
    """
    if other.vocabulary.n_pairs != collection.vocabulary.n_pairs:
        raise ValueError("the corpus was built with other visual words than the model's")
    rows = _rows(other, collection)
    pictures = rows.without_tags()
    Z = fitted.estimator.transform(pictures)
    train_rows = Rows.of(collection)[rows_to_learn_from(collection)]
    figures = {
        **_classes(fitted, Z, other),
        **_tags(fitted, pictures, collection, other),
        **_similar(index, Z, collection, other),
        **compare_with_unigram(fitted.estimator, rows, train_rows),
    }
    if not figures:
        raise ValueError("there is nothing to compare with: the pictures have neither tags nor classes of the model")
    return figures


def _rows(other: Corpus, collection: Corpus) -> Rows:
    """Another corpus in the columns of the collection's vocabulary."""
    vocabulary, n_pairs = collection.vocabulary, collection.vocabulary.n_pairs
    if any(other.tags):
        # Not the columns of the other corpus: it left out tags that are rare there.
        tags = vocabulary.count_tags(other.tags)
    else:
        tags = other.X[:, n_pairs:] @ _same_words(other.vocabulary.annotations, vocabulary)
    X = sparse.hstack([other.X[:, :n_pairs], tags], format="csr", dtype=np.int32)
    return Rows(X, other.global_features, n_annotation_words=vocabulary.n_annotation_words)


def _same_words(names: Sequence[str], vocabulary: Vocabulary) -> sparse.csr_array:
    """Which of the names is which annotation word, as a 0/1 matrix."""
    columns = [vocabulary.index(name) - vocabulary.n_pairs if name in vocabulary else -1 for name in names]
    known = [row for row, column in enumerate(columns) if column >= 0]
    places = known, [columns[row] for row in known]
    return sparse.csr_array((np.ones(len(known), np.int32), places), (len(names), vocabulary.n_annotation_words))


def _classes(fitted: Fitted, Z: np.ndarray, other: Corpus) -> dict[str, float]:
    if fitted.head is None or other.labels is None:
        return {}
    known = known_rows(other.labels)
    if not known.any():
        return {}
    p = fitted.head.predict_proba(Z[known])
    if not other.multi_label:
        predicted = np.array(fitted.head.classes, dtype=object)[p.argmax(axis=1)]
        return {"accuracy": accuracy(other.labels[known].astype(str), predicted.astype(str))}
    shared = [name for name in other.classes if name in fitted.head.classes]
    own = [other.classes.index(name) for name in shared]
    theirs = [fitted.head.classes.index(name) for name in shared]
    return {"map": mean_average_precision(other.labels[known][:, own], p[:, theirs])}


def _tags(fitted: Fitted, rows: Rows, collection: Corpus, other: Corpus) -> dict[str, float]:
    names = collection.vocabulary.annotations
    if not rows.n_visual:  # tags would be told from themselves
        return {}
    true = [[tag for tag in tags if tag in collection.vocabulary] for tags in other.tags]
    tagged = [k for k, tags in enumerate(true) if tags]
    if not names or not tagged:
        return {}
    p = tag_proba(fitted.estimator, rows[tagged])
    ranked = [[names[i] for i in np.argsort(-own, kind="stable")[:_TOP]] for own in p]
    true = [true[k] for k in tagged]
    words = per_word_scores(true, ranked)
    return {
        "f_measure": f_measure_at_k(true, ranked, _TOP), "precision": words.precision, "recall": words.recall,
        "n_plus": float(words.n_plus),
    }  # fmt: skip


def _similar(index: Index, Z: np.ndarray, collection: Corpus, other: Corpus) -> dict[str, float]:
    if other.labels is None or collection.labels is None:
        return {}
    known = [k for k, own in enumerate(other.label_lists) if own]
    if not known:
        return {}
    nearest, _ = index.search(Z[known], _NEIGHBOURS)
    lists = [set(own or ()) for own in collection.label_lists]
    wanted = [set(other.label_lists[k] or ()) for k in known]
    hits = [
        sum(row >= 0 and bool(lists[row] & own) for row in found) for own, found in zip(wanted, nearest, strict=True)
    ]
    return {"precision_at_10": float(np.mean(hits)) / _NEIGHBOURS}
