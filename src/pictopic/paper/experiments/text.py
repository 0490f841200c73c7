"""The shallow models on text: perplexity, retrieval and classification, beside what was published."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, normalize
from threadpoolctl import threadpool_limits

from pictopic.models.docnade import DocNADE, SupDocNADE
from pictopic.paper.baselines import LDAClassifier
from pictopic.paper.datasets.text import PARTS, TextPart, find_text_corpora, read_text
from pictopic.paper.experiments.figures import draw_curve
from pictopic.paper.experiments.results import Curve, Line, Measure, Results, Row, Table
from pictopic.paper.experiments.run import Cell, ExperimentRun, versions
from pictopic.tasks.metrics import perplexity, retrieval_precision

TITLE = "Text: perplexity, retrieval and classification"
FULL_MINUTES = 15.0  # for TMN and 20NSshort, on one core

TOPICS = 200  # as published
PASSES = 200  # at most
LDA_PASSES = 20
LDA_TOPICS = (10, 25, 50, 100)  # beside TOPICS, to choose from
FRACTIONS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
_CS = tuple(10.0 ** np.arange(-4, 2))
_UNIGRAM, _TFIDF, _LDA, _FEW_TOPICS = "unigram", "TF-IDF", "LDA", "LDA, fewer topics"
_SOFTMAX, _TREE, _SUPERVISED = "DocNADE, softmax", "DocNADE, tree", "SupDocNADE, tree"
_WHOSE = (
    'The column "paper" has what Gupta and others (AAAI 2019) published for DocNADE with a softmax and 200 hidden '
    "units, not figures of the paper that the other experiments are about."
)
_PAPER: dict[str, dict[str, dict[str, float]]] = {
    "TMN": {
        _SOFTMAX: {"perplexity": 592, "precision": 0.60, "accuracy": 0.778},
        "iDocNADE (Gupta and others)": {"perplexity": 560},
    },
    "20NSshort": {_SOFTMAX: {"perplexity": 646, "precision": 0.25}},
}
_NOTES = {
    _UNIGRAM: "frequencies in the training part, one added to each",
    _TFIDF: "no topics: the words themselves, weighted",
    _LDA: "perplexity from a variational bound: the model's own is at most that",
    _FEW_TOPICS: "the same, with the number of topics that has the best perplexity on the validation part",
    _SUPERVISED: "training stops on the classes; accuracy of its own classes, not of logistic regression",
}
_MEASURES = [
    Measure("perplexity", "perplexity a document", digits=0, larger_is_better=False),
    Measure("per_word", "perplexity a word", digits=0, larger_is_better=False),
    Measure("precision", "retrieval precision at 0.02", digits=3),
    Measure("accuracy", "accuracy", digits=3),
]


@dataclass
class TextCorpus:
    """A corpus: counts and classes of its three parts."""

    name: str
    X: dict[str, sparse.csr_array]
    y: dict[str, np.ndarray] | None  # None: documents can have several classes
    fingerprint: str

    @classmethod
    def read(cls, folder: Path) -> TextCorpus:
        """Read a corpus; documents without a class are left out."""
        parts = read_text(folder)
        digest = hashlib.sha256()
        for path in sorted(path for path in folder.iterdir() if path.is_file()):
            digest.update(path.name.encode() + path.read_bytes())
        labelled = {name: _labelled_rows(part) for name, part in parts.items()}
        X = {name: part.X[labelled[name]] for name, part in parts.items()}
        y = {name: part.labels[labelled[name]] for name, part in parts.items()}
        several = parts["training"].labels.ndim == 2
        return cls(folder.name, X, None if several else y, digest.hexdigest())


def _labelled_rows(part: TextPart) -> np.ndarray:
    if part.labels.ndim == 2:
        return np.arange(len(part.labels))
    return np.flatnonzero([label is not None for label in part.labels])


@dataclass
class TextMethod:
    """A method to compare: its exact options, and its figures for a corpus."""

    options: dict[str, Any]
    work: Callable[[TextCorpus], dict[str, Any]]


def run(data: Path, run: ExperimentRun) -> Results:
    """Tables and curves of every corpus in a folder, or in its sub-folder ``text``."""
    corpora = [TextCorpus.read(folder) for folder in find_text_corpora(data)]
    methods = _methods(run)
    cells: dict[str, dict[str, Cell]] = {corpus.name: {} for corpus in corpora}
    with threadpool_limits(run.n_jobs):
        for name, method in methods.items():
            for corpus in corpora:
                cell = run.cell(
                    f"{name}, {corpus.name}", lambda: method.work(corpus), method=method.options,  # noqa: B023
                    data=corpus.fingerprint, fractions=FRACTIONS,
                )  # fmt: skip
                if cell is not None:
                    cells[corpus.name][name] = cell
    curves = [curve for corpus in corpora if (curve := _curve(corpus.name, cells[corpus.name])) is not None]
    return Results(
        "text", TITLE, data={corpus.name: _about(corpus) for corpus in corpora},
        options={name: method.options for name, method in methods.items()}, notes=[*_notes(corpora), *run.notes],
        tables=[_table(corpus.name, cells[corpus.name]) for corpus in corpora], curves=curves,
        figures=[figure for curve in curves for figure in draw_curve(curve, run.folder)], versions=versions(),
        seconds=run.seconds,
    )  # fmt: skip


# ---- methods ---------------------------------------------------------------------------------------------------------


def _methods(run: ExperimentRun) -> dict[str, TextMethod]:
    """What takes little time comes first."""
    passes = run.budget.steps("passes of DocNADE", PASSES, least=5)
    lda_passes = run.budget.steps("passes of LDA", LDA_PASSES, least=2)
    common = {"n_components": TOPICS, "max_iter": passes, "random_state": run.random_state}
    return {
        _UNIGRAM: TextMethod({"added": 1}, _unigram),
        _TFIDF: TextMethod({"C": _CS}, _tfidf),
        _TREE: _docnade({**common, "output": "tree"}, run.n_jobs),
        _SUPERVISED: _supervised({**common, "output": "tree"}, run.n_jobs),
        _SOFTMAX: _docnade({**common, "output": "softmax"}, run.n_jobs),
        _FEW_TOPICS: _lda({**common, "max_iter": lda_passes}, LDA_TOPICS, run.n_jobs),
        _LDA: _lda({**common, "max_iter": lda_passes}, (TOPICS,), run.n_jobs),
    }


def _unigram(documents: TextCorpus) -> dict[str, Any]:
    frequency = np.asarray(documents.X["training"].sum(axis=0)).ravel() + 1.0
    X = documents.X["test"]
    log_p, lengths = X @ np.log(frequency / frequency.sum()), np.asarray(X.sum(axis=1)).ravel()
    return {"perplexity": perplexity(log_p, lengths), "per_word": perplexity(log_p, lengths, per="word")}


def _tfidf(documents: TextCorpus) -> dict[str, Any]:
    weights = TfidfTransformer().fit(documents.X["training"])
    return _use(documents, {part: weights.transform(X) for part, X in documents.X.items()}, scaled=False)


def _docnade(options: dict[str, Any], n_jobs: int) -> TextMethod:
    def work(documents: TextCorpus) -> dict[str, Any]:
        model = DocNADE(**options, n_jobs=n_jobs).fit(documents.X["training"], X_val=documents.X["validation"])
        values = _perplexities(model, documents) | {"passes": model.n_iter_}
        return values | _use(documents, {part: model.transform(X) for part, X in documents.X.items()})

    return TextMethod(DocNADE(**options).get_params(deep=False), work)


def _supervised(options: dict[str, Any], n_jobs: int) -> TextMethod:
    def work(documents: TextCorpus) -> dict[str, Any]:
        X, y = documents.X, documents.y
        if y is None:
            return {}
        model = SupDocNADE(**options, n_jobs=n_jobs)
        model.fit(X["training"], y["training"], X_val=X["validation"], y_val=y["validation"])
        Z = {part: model.transform(X[part]) for part in PARTS}
        accuracy = float(np.mean(model.predict(X["test"]) == y["test"]))
        return _perplexities(model, documents) | {"passes": model.n_iter_, "accuracy": accuracy} | _retrieval(Z, y)

    return TextMethod(SupDocNADE(**options).get_params(deep=False), work)


def _perplexities(model: DocNADE | SupDocNADE, documents: TextCorpus) -> dict[str, float]:
    """Of the test part, each document in one random order."""
    X, seed = documents.X["test"], model.random_state
    return {
        "perplexity": model.perplexity(X, random_state=seed),
        "per_word": model.perplexity(X, per="word", random_state=seed),
    }


def _lda(options: dict[str, Any], topics: Sequence[int], n_jobs: int) -> TextMethod:
    # For its topics only: the classifier that comes with it is not asked, and told to learn next to nothing.
    options = options | {"C": 1e-3}

    def fitted(n_components: int, X: sparse.csr_array) -> LDAClassifier:
        halves = np.arange(X.shape[0])[:, None] % 2 == np.arange(2)
        return LDAClassifier(**options | {"n_components": n_components}, n_jobs=n_jobs).fit(X, halves.astype(int))

    def work(documents: TextCorpus) -> dict[str, Any]:
        X = documents.X
        models = [fitted(n, X["training"]) for n in topics]
        model = min(models, key=lambda fitted: fitted.perplexity(X["validation"], per="document"))
        values = {
            "perplexity": model.perplexity(X["test"], per="document"),
            "per_word": model.perplexity(X["test"], per="word"), "topics": model.n_components,
        }  # fmt: skip
        return values | _use(documents, {part: model.transform(X[part]) for part in PARTS})

    return TextMethod(LDAClassifier(**options).get_params(deep=False) | {"n_components": list(topics)}, work)


# ---- how good representations are ------------------------------------------------------------------------------------


def _use(documents: TextCorpus, Z: dict[str, Any], scaled: bool = True) -> dict[str, Any]:
    """Retrieval and classification by representations of the three parts, perhaps sparse ones."""
    if documents.y is None:
        return {}
    accuracy, C = classifier_accuracy({part: (Z[part], documents.y[part]) for part in PARTS}, scaled)
    dense = {part: rows.toarray() if sparse.issparse(rows) else rows for part, rows in Z.items()}
    return {"accuracy": accuracy, "C": C} | _retrieval(dense, documents.y)


def _retrieval(Z: dict[str, np.ndarray], y: dict[str, np.ndarray]) -> dict[str, Any]:
    given = (Z["test"], y["test"], Z["training"], y["training"])
    return {"precision": retrieval_precision(*given), "curve": precisions(*given, FRACTIONS)}


def classifier_accuracy(
    parts: dict[str, tuple[Any, np.ndarray]], scaled: bool = True, Cs: Sequence[float] = _CS
) -> tuple[float, float]:
    """Test accuracy of logistic regression on representations, and its C, chosen on the validation part.

    `parts` has representations and classes of "training", "validation" and "test"; if `scaled`, they are standardised.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.experiments.text import classifier_accuracy
    >>> part = np.array([[0.0], [0.1], [0.9], [1.0]]), np.array(["a", "a", "b", "b"])
    >>> classifier_accuracy({"training": part, "validation": part, "test": part})
    (1.0, 0.0001)
    """
    models = {}
    for C in Cs:
        regression = LogisticRegression(C=C, max_iter=500)
        models[C] = (make_pipeline(StandardScaler(), regression) if scaled else regression).fit(*parts["training"])
    best = max(models, key=lambda C: models[C].score(*parts["validation"]))
    return float(models[best].score(*parts["test"])), float(best)


def precisions(
    queries: np.ndarray,
    query_labels: np.ndarray,
    collection: np.ndarray,
    collection_labels: np.ndarray,
    fractions: Sequence[float],
    batch_size: int = 512,
) -> list[float]:
    """`retrieval_precision` for several fractions, with one comparison of all pairs.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.experiments.text import precisions
    >>> Z, y = np.array([[1.0, 0.1], [1.0, 0.2], [0.1, 1.0], [0.2, 1.0]]), np.array(["a", "a", "b", "a"])
    >>> precisions(Z[:1], y[:1], Z, y, [0.25, 0.5, 0.75, 1.0])
    [1.0, 1.0, 1.0, 0.75]
    """
    sizes = [max(1, int(fraction * len(collection))) for fraction in fractions]
    collection, hits = normalize(collection), np.zeros(len(sizes))
    for start in range(0, len(queries), batch_size):
        similarity = normalize(queries[start : start + batch_size]) @ collection.T
        order = _nearest(similarity, max(sizes))
        right = collection_labels[order] == query_labels[start : start + batch_size, None]
        shares = np.cumsum(right, axis=1) / np.arange(1, max(sizes) + 1)
        hits += shares[:, np.array(sizes) - 1].sum(axis=0)
    return [float(value) for value in hits / len(queries)]


def _nearest(similarity: np.ndarray, n: int) -> np.ndarray:
    """Numbers of the n largest of each row, largest first."""
    nearest = np.argpartition(-similarity, n - 1, axis=1)[:, :n]  # all of them are sorted much more slowly
    values = np.take_along_axis(similarity, nearest, axis=1)
    return np.take_along_axis(nearest, np.argsort(-values, axis=1), axis=1)


# ---- results ---------------------------------------------------------------------------------------------------------


def _table(corpus: str, cells: dict[str, Cell]) -> Table:
    published = _PAPER.get(corpus, {})
    rows = [
        Row(
            name + (f" ({cell.values['topics']})" if "topics" in cell.values else ""),
            {measure.key: [cell.values[measure.key]] for measure in _MEASURES if measure.key in cell.values},
            published.get(name, {}), cell.seconds, cell.peak_memory_mb, _NOTES.get(name, ""), ours="DocNADE" in name,
        )
        for name, cell in cells.items()
    ]  # fmt: skip
    rows += [Row(name, {}, figures) for name, figures in published.items() if name != _SOFTMAX]
    caption = f"The test part of {corpus}, one random order a document." + (f"  {_WHOSE}" if published else "")
    return Table(corpus, caption, list(_MEASURES), rows)


def _curve(corpus: str, cells: dict[str, Cell]) -> Curve | None:
    series = [
        Line(name, list(FRACTIONS), [[value] for value in cell.values["curve"]])
        for name, cell in cells.items()
        if "curve" in cell.values
    ]  # fmt: skip
    if not series:
        return None
    caption = (
        f"{corpus}: share of the nearest training documents that have the test document's class, against the fraction "
        "of the training part that is retrieved."
    )
    return Curve(f"Retrieval, {corpus}", caption, "fraction retrieved", "precision", series, log_x=True)


def _notes(corpora: Sequence[TextCorpus]) -> Iterator[str]:
    yield (
        "Training stops on the validation part, and the classifier's C is chosen on it; the test part is looked at "
        "once."
    )
    yield (
        "Perplexity a document is exp of the mean over documents of -log p / length, as in the literature on DocNADE; "
        "perplexity a word is exp of the total -log p over the total number of words."
    )
    if any(corpus.name in _PAPER for corpus in corpora):
        yield _WHOSE
    if several := [corpus.name for corpus in corpora if corpus.y is None]:
        yield f"Documents of {', '.join(several)} can have several classes: only perplexity is measured."


def _about(documents: TextCorpus) -> dict[str, Any]:
    return {
        "documents": {part: X.shape[0] for part, X in documents.X.items()},
        "words": documents.X["training"].shape[1],
        "classes": None if documents.y is None else len(set(documents.y["training"])),
        "fingerprint": documents.fingerprint,
    }
