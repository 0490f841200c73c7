"""Figures of models on pictures that they have not seen, next to simple baselines, and tables of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.rows import Rows
from pictopic.demo.report.contents import Highlight, Method, Report
from pictopic.paper.baselines import HistogramSVM, MostFrequent
from pictopic.paper.baselines.base import root_shares
from pictopic.paper.experiments.columns import NOTHING
from pictopic.paper.experiments.document import aligned
from pictopic.paper.experiments.results import Measure
from pictopic.picture_model import PictureModel
from pictopic.tasks.annotate import tag_proba
from pictopic.tasks.metrics import accuracy, f_measure_at_k, perplexity, precision_at_k

MEASURES = [
    Measure("accuracy", "Right class", percent=True),
    Measure("f_measure", "F-measure of the best 5 tags", percent=True),
    Measure("precision_at_10", "Same class among the 10 nearest", percent=True),
    Measure("tag_perplexity", "Perplexity of the tags", larger_is_better=False),
    Measure("word_perplexity", "Perplexity of all words", larger_is_better=False),
]
_SHORT = {  # titles for the terminal
    "accuracy": "accuracy", "f_measure": "F, 5 tags", "precision_at_10": "prec. at 10", "tag_perplexity": "perpl. tags",
    "word_perplexity": "perpl. words",
}  # fmt: skip
NOTES = [
    "F-measure: the mean over the pictures of 2 x precision x recall / (precision + recall) of five tags.",
    "Perplexity: between how many equally likely words one hesitates. Of the tags: given the picture; of all words: "
    "visual words and tags. SupDeepDocNADE predicts tags from pictures, not pictures: it has none for all words.",
    "Histograms: how often each visual word occurs in each part of a picture, square roots.",
]
_TOP, _NEAREST = 5, 10
_GRID = {"C": (10, 1, 100), "gamma": (1, 0.3, 3)}  # the first are for too few pictures to choose by


def compare(models: dict[str, PictureModel], train: Corpus, test: Corpus, seed: int = 0) -> list[Method]:
    """Figures of simple baselines, which come first, and of models fitted on `train`, by name.

    `train` and `test` are parts of one corpus, with one class per picture and with tags; `seed` is that of the SVM's
    cross-validation.
    """
    methods = [
        Method("most frequent", "always the same class and tags, any pictures", most_frequent(train, test)),
        Method("nearest histograms", "class and tags of the 10 nearest pictures", nearest(train, test)),
        Method("RBF SVM, histograms", "C and gamma by cross-validation", svm(train, test, seed)),
    ]
    for name, model in models.items():
        has_features = bool(getattr(model.estimator_, "n_global_features_", 0))
        note = "visual words, tags, global features" if has_features else "visual words, tags"
        methods.append(Method(name, note, model.evaluate(test) | perplexities(model.estimator_, test), is_model=True))
    return methods


def highlights(methods: list[Method]) -> list[Highlight]:
    """The last method's shares beside the first one's."""
    first, last = methods[0].figures, methods[-1].figures
    return [
        Highlight(measure.title, last[measure.key], first[measure.key])
        for measure in MEASURES
        if measure.percent and measure.key in first and measure.key in last
    ]


def most_frequent(train: Corpus, test: Corpus) -> dict[str, float]:
    """Figures of answers that do not look at the picture: the most frequent class and tags, any pictures as similar."""
    labels, known = _labels(train), _labels(test)
    rows = Rows.of(train)
    usual = MostFrequent().fit(rows, labels)
    share = dict(zip(usual.classes_, usual.frequencies_, strict=True))
    counts = rows.word_counts()
    best = np.argsort(-counts[rows.n_visual :], kind="stable")[:_TOP].tolist()
    p = np.tile((counts + 1) / (counts + 1).sum(), (len(test), 1))
    X = Rows.of(test).read()
    return {
        "accuracy": usual.score(X, known),
        "f_measure": f_measure_at_k(_tag_numbers(test), [best] * len(test), _TOP),
        "precision_at_10": float(np.mean([share.get(name, 0.0) for name in known])),
        "tag_perplexity": _tag_perplexity(p[:, rows.n_visual :], test),
        "word_perplexity": perplexity(X @ np.log(p[0]), np.asarray(X.sum(axis=1)).ravel()),
    }


def nearest(train: Corpus, test: Corpus) -> dict[str, float]:
    """Figures of the classes and tags that the ten pictures with the most similar histograms have most often."""
    labels, known = _labels(train), _labels(test)
    similarity = histograms(test) @ histograms(train).T
    ranking = np.argsort(-similarity, axis=1, kind="stable")[:, :_NEAREST]
    votes = [Counter(labels[rows].tolist()).most_common(1)[0][0] for rows in ranking]
    has_tag = Rows.of(train).has_tag()
    often = np.stack([has_tag[rows].sum(axis=0) for rows in ranking])
    tags = np.argsort(-often, axis=1, kind="stable")[:, :_TOP].tolist()
    return {
        "accuracy": accuracy(known, votes),
        "f_measure": f_measure_at_k(_tag_numbers(test), tags, _TOP),
        "precision_at_10": precision_at_k(known[:, None] == labels[None, :], ranking, _NEAREST),
    }


def svm(train: Corpus, test: Corpus, seed: int = 0) -> dict[str, float]:
    """Figures of an RBF SVM on square-rooted histograms; its C and gamma by cross-validation."""
    model = HistogramSVM(**_GRID, n_annotation_words=train.vocabulary.n_annotation_words, random_state=seed)
    return {"accuracy": model.fit(train.X, _labels(train)).score(test.X, _labels(test))}


def histograms(corpus: Corpus) -> np.ndarray:
    """Square roots of each picture's shares of visual words, (n, n_pairs): vectors of length 1."""
    return root_shares(corpus.X[:, : corpus.vocabulary.n_pairs])


def perplexities(estimator: Any, test: Corpus) -> dict[str, float]:
    """Perplexity of the tags given the pictures, and of all words, if the estimator can tell."""
    rows = Rows.of(test)
    figures = {"tag_perplexity": _tag_perplexity(tag_proba(estimator, rows.without_tags()), test)}
    if not estimator.predicts_tags_only:
        figures["word_perplexity"] = estimator.perplexity(rows)
    return figures


def _tag_perplexity(p: np.ndarray, test: Corpus) -> float:
    """Perplexity of the pictures' tags; p: (n, n_tags), whose rows are scaled to a sum of 1."""
    has_tag = Rows.of(test).has_tag()
    tagged = has_tag.any(axis=1)
    log_p = np.log(np.maximum(p / p.sum(axis=1, keepdims=True), 1e-12))
    return perplexity((log_p * has_tag).sum(axis=1)[tagged], has_tag.sum(axis=1)[tagged])


def _tag_numbers(corpus: Corpus) -> list[list[int]]:
    return [np.flatnonzero(row_tags).tolist() for row_tags in Rows.of(corpus).has_tag()]


def _labels(corpus: Corpus) -> np.ndarray:
    labels = corpus.labels
    if labels is None or labels.ndim != 1 or any(name is None for name in labels):
        raise ValueError("a comparison needs one class for every picture")
    return labels.astype(str)


def show(value: float | None, measure: Measure) -> str:
    """A figure as text.

    Examples
    --------
    >>> from pictopic.demo.report.figures import show
    >>> from pictopic.paper.experiments.results import Measure
    >>> show(0.9583, Measure("accuracy", "right class", percent=True))
    '95.8 %'
    >>> show(412.34, Measure("perplexity", "perplexity of the words"))
    '412'
    """
    if value is None:
        return NOTHING
    if measure.percent:
        return f"{100 * value:.1f} %"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def best_values(report: Report) -> dict[str, float]:
    """The best figure of each measure."""
    best = {}
    for measure in report.measures:
        values = [method.figures[measure.key] for method in report.methods if measure.key in method.figures]
        if values:
            best[measure.key] = max(values) if measure.larger_is_better else min(values)
    return best


def text_table(measures: Sequence[Measure], methods: Sequence[Method]) -> str:
    """Figures as lines of text, for a terminal; one column per measure.

    Examples
    --------
    >>> from pictopic.demo.report.contents import Method
    >>> from pictopic.demo.report.figures import text_table
    >>> from pictopic.paper.experiments.results import Measure
    >>> methods = [Method("by chance", "", {"accuracy": 0.125}), Method("model", "", {"accuracy": 0.9})]
    >>> print(text_table([Measure("accuracy", "right class", percent=True)], methods))
               accuracy
    by chance    12.5 %
    model        90.0 %
    """
    columns = [["", *(method.name for method in methods)]]
    for measure in measures:
        figures = (show(method.figures.get(measure.key), measure) for method in methods)
        columns.append([_SHORT.get(measure.key, measure.title), *figures])
    return aligned(columns)
