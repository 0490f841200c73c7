"""Quality of a model: on held-out pictures, on other pictures, and during training."""

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

_N_TAGS = 5  # predicted per picture where there are no thresholds, as in the paper
_NEIGHBOURS = 10  # similar pictures per query
_METRICS = {"accuracy": "Accuracy of the classes", "map": "Mean average precision of the classes"}


class Confusion(NamedTuple):
    """Confusion matrix: how often pictures of a class (rows) were classified as another (columns)."""

    classes: list[str]
    counts: np.ndarray  # (classes, classes)
    pictures: dict[tuple[int, int], list[tuple[int, float]]]  # of each cell, row and probability, most certain first


@dataclass(frozen=True)
class TagScore:
    """Precision, recall and F-measure of a tag."""

    name: str
    count: int  # pictures that have it
    precision: float | None  # None: it was never predicted
    recall: float | None  # None: no picture has it
    f: float


class Series(NamedTuple):
    """A line of a chart: one value per pass."""

    name: str
    values: list[float]


class Chart(NamedTuple):
    """A chart of a training run."""

    title: str
    series: list[Series]


class Quality(NamedTuple):
    """Figures, confusions, tag scores and training curves of a model."""

    n_held_out: int
    confusion: Confusion | None  # None: no classes, or several per picture
    tags: list[TagScore]  # most frequent first
    figures: dict[str, float]
    curves: list[Chart]


def quality(fitted: Fitted, corpus: Corpus) -> Quality:
    """Measure the quality of a model; see `PictureModel.quality`.

    Answers about classes and tags come from a network that had not seen the held-out pictures.

    Parameters
    ----------
    fitted : Fitted
    corpus : Corpus
        The collection.

    Returns
    -------
    Quality
    """
    held_out, matrix, tags = fitted.held_out, None, []
    if held_out is not None and held_out.class_proba is not None and fitted.head is not None and not corpus.multi_label:
        true = [(corpus.label_lists[row] or [None])[0] for row in held_out.rows]
        matrix = confusion(true, held_out.class_proba, held_out.rows, fitted.head.classes, corpus.classes)
    if held_out is not None and held_out.tag_proba is not None:
        has_tag = Rows.of(corpus)[held_out.rows].has_tag()
        tagged = has_tag.any(axis=1)  # pictures without tags may just not be tagged yet
        predicted = _predicted_tags(fitted, held_out.tag_proba[tagged])
        tags = tag_scores(has_tag[tagged], predicted, corpus.vocabulary.annotations)
    curves = training_curves(fitted.estimator)
    return Quality(fitted.n_validation, matrix, tags, dict(fitted.figures), curves)


def confusion(
    true: Sequence[str | None], proba: np.ndarray, rows: Sequence[int] | np.ndarray, columns: list[str],
    classes: list[str],
) -> Confusion:  # fmt: skip
    """Count how often pictures of each class were classified as each other class.

    Parameters
    ----------
    true : sequence of str or None
        Class of each picture; None if unknown, which is not counted.
    proba : array of shape (n, len(columns))
    rows : sequence of int
        Row number of each picture.
    columns : list of str
        Class of each column of `proba`.
    classes : list of str
        Classes of the matrix, in this order.

    Returns
    -------
    Confusion

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.quality import confusion
    >>> proba = np.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]])
    >>> matrix = confusion(["coast", "street", "street"], proba, [7, 8, 9], ["coast", "street"], ["coast", "street"])
    >>> matrix.counts.tolist()
    [[1, 0], [1, 1]]
    >>> matrix.pictures[1, 0]
    [(8, 0.6)]
    """
    number = {name: k for k, name in enumerate(classes)}
    counts = np.zeros((len(classes), len(classes)), np.int64)
    pictures: dict[tuple[int, int], list[tuple[int, float]]] = {}
    for name, probabilities, row in zip(true, proba, rows, strict=True):
        if name is not None:
            best = int(probabilities.argmax())
            cell = number[name], number[columns[best]]
            counts[cell] += 1
            pictures.setdefault(cell, []).append((int(row), float(probabilities[best])))
    for cell_pictures in pictures.values():
        cell_pictures.sort(key=lambda picture: (-picture[1], picture[0]))
    return Confusion(list(classes), counts, pictures)


def _predicted_tags(fitted: Fitted, p: np.ndarray) -> np.ndarray:
    """Return a mask of the predicted tags: those above their threshold or, without thresholds, the best five."""
    if fitted.thresholds is not None:
        return tag_probabilities(fitted, p) >= fitted.thresholds.thresholds
    predicted = np.zeros(p.shape, bool)
    best = np.argsort(-p, axis=1, kind="stable")[:, :_N_TAGS]
    np.put_along_axis(predicted, best, True, axis=1)
    return predicted


def tag_scores(has_tag: np.ndarray, predicted: np.ndarray, names: Sequence[str]) -> list[TagScore]:
    """Return precision, recall and F-measure of each tag that a picture has or was predicted to have.

    Parameters
    ----------
    has_tag, predicted : bool arrays of shape (n, n_tags)
    names : sequence of str

    Returns
    -------
    list of TagScore
        Most frequent first.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.quality import tag_scores
    >>> has_tag = np.array([[True, True], [False, True], [False, True]])
    >>> predicted = np.array([[True, False], [True, False], [False, False]])
    >>> tag_scores(has_tag, predicted, ["sea", "sky"])[1]
    TagScore(name='sea', count=1, precision=0.5, recall=1.0, f=0.6666666666666666)
    >>> tag_scores(has_tag, predicted, ["sea", "sky"])[0]
    TagScore(name='sky', count=3, precision=None, recall=0.0, f=0.0)
    """
    counts, n_predicted, hits = has_tag.sum(axis=0), predicted.sum(axis=0), (has_tag & predicted).sum(axis=0)
    order = [k for k in np.argsort(-counts, kind="stable") if counts[k] or n_predicted[k]]
    return [
        TagScore(
            names[k], int(counts[k]), _share(hits[k], n_predicted[k]), _share(hits[k], counts[k]),
            float(2 * hits[k] / (counts[k] + n_predicted[k])),
        ) for k in order
    ]  # fmt: skip


def _share(part: Any, whole: Any) -> float | None:
    return float(part / whole) if whole else None


def training_curves(estimator: Any) -> list[Chart]:
    """Return charts of the losses of each pass, and of the `validation_metric` on held-out pictures.

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
    >>> chart.title, [(line.name, len(line.values)) for line in chart.series]
    ('Loss of the words', [('training', 3)])
    """
    history = estimator.history_
    scores, metric = history["validation_score"], getattr(estimator, "validation_metric", "loss")
    losses = Series("held-out pictures", [-score for score in scores])
    words = [Series("training", history["nll"])]
    if not hasattr(estimator, "classes_"):
        # Without classes, the validation score is minus the loss of the words.
        return [Chart("Loss of the words", words + ([losses] if scores else []))]
    classes = [Series("training", history["class_loss"])]
    charts = [Chart("Loss of the classes", classes), Chart("Loss of the words", words)]
    if scores and metric == "loss":
        classes.append(losses)
    elif scores:
        charts.insert(0, Chart(_METRICS[metric], [Series("held-out pictures", scores)]))
    return charts


def evaluate(fitted: Fitted, index: Index, collection: Corpus, other: Corpus) -> dict[str, float]:
    """Compare a model's answers with the tags and classes of other pictures; see `PictureModel.evaluate`.

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
    """Return the rows of another corpus in the columns of the collection's vocabulary."""
    vocabulary, n_pairs = collection.vocabulary, collection.vocabulary.n_pairs
    if any(other.tags):
        # Not the columns of the other corpus, which leave out tags that are rare there.
        tags = vocabulary.count_tags(other.tags)
    else:
        tags = other.X[:, n_pairs:] @ _column_map(other.vocabulary.annotations, vocabulary)
    X = sparse.hstack([other.X[:, :n_pairs], tags], format="csr", dtype=np.int32)
    return Rows(X, other.global_features, n_annotation_words=vocabulary.n_annotation_words)


def _column_map(names: Sequence[str], vocabulary: Vocabulary) -> sparse.csr_array:
    """Return a 0/1 matrix that maps names to the vocabulary's annotation words."""
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
    other_columns = [other.classes.index(name) for name in shared]
    model_columns = [fitted.head.classes.index(name) for name in shared]
    return {"map": mean_average_precision(other.labels[known][:, other_columns], p[:, model_columns])}


def _tags(fitted: Fitted, rows: Rows, collection: Corpus, other: Corpus) -> dict[str, float]:
    names = collection.vocabulary.annotations
    if not rows.n_visual:  # tags would be predicted from themselves
        return {}
    true = [[tag for tag in tags if tag in collection.vocabulary] for tags in other.tags]
    tagged = [k for k, tags in enumerate(true) if tags]
    if not names or not tagged:
        return {}
    p = tag_proba(fitted.estimator, rows[tagged])
    ranked = [[names[i] for i in np.argsort(-row_probabilities, kind="stable")[:_N_TAGS]] for row_probabilities in p]
    true = [true[k] for k in tagged]
    words = per_word_scores(true, ranked)
    return {
        "f_measure": f_measure_at_k(true, ranked, _N_TAGS), "precision": words.precision, "recall": words.recall,
        "n_plus": float(words.n_plus),
    }  # fmt: skip


def _similar(index: Index, Z: np.ndarray, collection: Corpus, other: Corpus) -> dict[str, float]:
    if other.labels is None or collection.labels is None:
        return {}
    labelled = [k for k, labels in enumerate(other.label_lists) if labels]
    if not labelled:
        return {}
    nearest, _ = index.search(Z[labelled], _NEIGHBOURS)
    row_labels = [set(labels or ()) for labels in collection.label_lists]
    query_labels = [set(other.label_lists[k] or ()) for k in labelled]
    hits = [
        sum(row >= 0 and bool(row_labels[row] & labels) for row in rows)
        for labels, rows in zip(query_labels, nearest, strict=True)
    ]
    return {"precision_at_10": float(np.mean(hits)) / _NEIGHBOURS}
