"""What is learnt from one split of a collection of scenes: every method of the table, as a part of an experiment.

Each function takes a `CorpusSplit` and its options, which the figures depend on, and returns figures.  Test pictures
come without tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid, StratifiedKFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.svm import SVC

from pictopic.corpus.rows import Rows
from pictopic.models.deep import SupDeepDocNADE
from pictopic.models.docnade import DocNADE, SupDocNADE
from pictopic.paper.baselines import (
    AverageKernelSVM,
    HistogramSVM,
    LDAClassifier,
    LogisticNeighborAnnotator,
    MostFrequent,
    SpatialPyramidAnnotator,
    SpatialPyramidClassifier,
    SupervisedLDA,
)
from pictopic.paper.baselines.base import fit_best, root_shares
from pictopic.paper.experiments.split import TOP, CorpusSplit, best_tags, on_split
from pictopic.picture_model import PictureModel
from pictopic.tasks.metrics import accuracy, f_measure_at_k
from pictopic.tasks.topics import class_words

# Of DocNADE and SupDocNADE, as the paper has them: the tree, relu, no held-out pictures.  Unlike it they learn by Adam,
# with dropout, and tags weigh as much as visual words: better in cross-validation on training halves.
SHALLOW: dict[str, Any] = {
    "output": "tree", "activation": "relu", "solver": "adam", "dropout": 0.5, "annotation_weight": "balanced",
    "validation_fraction": None, "n_jobs": 1,
}  # fmt: skip
_CS, _GAMMAS = (1, 3, 10, 30, 100), (0.3, 1, 3, 10)
_FOLDS = 3  # of the cross-validation in which the network learns anew
_VALIDATION = 0.2  # of the training half, to choose the passes of the deep models by


def validation_rows(split: CorpusSplit) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the training rows to learn from, and of those to choose by."""
    first, second = train_test_split(np.arange(len(split.y)), test_size=_VALIDATION, stratify=split.y, random_state=0)
    return np.sort(first), np.sort(second)


def figures(split: CorpusSplit, predicted: np.ndarray | None, tags: np.ndarray | None = None) -> dict[str, Any]:
    """Accuracy, where classes are predicted, and the F-measure of the five best tags, where there are tags."""
    values = {} if predicted is None else {"accuracy": accuracy(split.y_test, predicted.astype(str))}
    if split.n_tags and tags is not None:
        values["f_measure"] = f_measure_at_k([np.flatnonzero(row) for row in split.Y_test], best_tags(tags), TOP)
    return values


def _svm(options: dict[str, float] | None = None) -> Any:
    """RBF SVM on representations of length 1."""
    return make_pipeline(Normalizer(), SVC(**(options or {})))


def svm_on_topics(Z: np.ndarray, y: np.ndarray) -> Any:
    """RBF SVM on representations of length 1, with C and gamma by cross-validation, as in the paper."""
    return fit_best(_svm(), {"svc__C": _CS, "svc__gamma": _GAMMAS}, Z, y, 5, 0)[0]


# ---- baselines -------------------------------------------------------------------------------------------------------


@on_split
def most_frequent(split: CorpusSplit, **options: Any) -> dict[str, Any]:
    """The most frequent class and tags."""
    tags = None
    if split.n_tags:
        tags = MostFrequent().fit(split.X, split.Y).decision_function(split.X_test)
    return figures(split, MostFrequent().fit(split.X, split.y).predict(split.X_test), tags)


@on_split
def histogram_svm(split: CorpusSplit, **options: Any) -> dict[str, Any]:
    """RBF SVM on square-rooted histograms."""
    model = HistogramSVM(n_annotation_words=split.n_tags).fit(split.X, split.y)
    return figures(split, model.predict(split.X_test)) | {"chosen": model.best_params_}


@on_split
def spatial_pyramid(split: CorpusSplit, **options: Any) -> dict[str, Any]:
    """SPM: intersection-kernel SVM, and the tags of neighbours."""
    shape = {"n_regions": split.n_regions, "n_annotation_words": split.n_tags}
    model = SpatialPyramidClassifier(**shape).fit(split.X, split.y)
    tags = SpatialPyramidAnnotator(**shape).fit(split.X).decision_function(split.X_test) if split.n_tags else None
    return figures(split, model.predict(split.X_test), tags) | {"chosen": model.best_params_}


@on_split
def feature_svm(split: CorpusSplit, **options: Any) -> dict[str, Any]:
    """SVM on the mean of the kernels of histograms and of global features."""
    sizes = [split.n_pairs, *options["sizes"]]
    rows = []
    for corpus, X in ((split.train, split.X), (split.test, split.X_test)):
        rows.append(np.hstack([root_shares(X[:, : sizes[0]]), np.asarray(corpus.global_features)]))
    model = AverageKernelSVM(blocks=sizes).fit(rows[0], split.y)
    return figures(split, model.predict(rows[1])) | {"chosen": model.best_params_}


@on_split
def logistic_neighbors(split: CorpusSplit, *, sizes: Sequence[int] = (), **options: Any) -> dict[str, Any]:
    """Tags half by logistic regression, half by neighbours, on histograms and global features of these sizes."""
    blocks = [split.n_pairs, *sizes]
    rows = [root_shares(X[:, : split.n_pairs]) for X in (split.X, split.X_test)]
    if sizes:
        features = [np.asarray(corpus.global_features, dtype=np.float64) for corpus in (split.train, split.test)]
        scaler = StandardScaler().fit(features[0])
        rows = [np.hstack([words, scaler.transform(part)]) for words, part in zip(rows, features, strict=True)]
    model = LogisticNeighborAnnotator(blocks=blocks).fit(rows[0], split.Y)
    return figures(split, None, model.predict_proba(rows[1])) | {"chosen": {"C": model.C_}}


@on_split
def lda_svm(split: CorpusSplit, *, topics: int, **options: Any) -> dict[str, Any]:
    """LDA's topics and an SVM."""
    model = LDAClassifier(n_components=topics, n_annotation_words=split.n_tags, random_state=options["seed"])
    return figures(split, model.fit(split.X, split.y).predict(split.X_test))


@on_split
def slda(split: CorpusSplit, *, topics: int, **options: Any) -> dict[str, Any]:
    """Supervised LDA."""
    model = SupervisedLDA(n_components=topics, n_annotation_words=split.n_tags, random_state=options["seed"])
    model.fit(split.X, split.y)
    return figures(split, model.predict(split.X_test), model.tag_scores(split.X_test) if split.n_tags else None)


# ---- the paper's models ----------------------------------------------------------------------------------------------


@on_split
def docnade(split: CorpusSplit, *, topics: int, passes: int, **options: Any) -> dict[str, Any]:
    """DocNADE, and an SVM on its topics."""
    model = DocNADE(
        n_components=topics, n_annotation_words=split.n_tags, max_iter=passes, random_state=options["seed"], **SHALLOW
    ).fit(split.X)
    predicted = svm_on_topics(model.transform(split.X_without_tags), split.y).predict(model.transform(split.X_test))
    return figures(split, predicted, split.next_tags(model, split.X_test))


def _supdocnade(
    split: CorpusSplit, rows: np.ndarray, generative_weight: float | str, topics: int, passes: int, seed: int
) -> SupDocNADE:
    """SupDocNADE of some training rows; the weight "mean length" is the paper's lambda = 1, on the sum over words."""
    X = split.X[rows]
    weight = float(X.sum() / len(rows)) if generative_weight == "mean length" else float(generative_weight)
    return SupDocNADE(
        n_components=topics, n_annotation_words=split.n_tags, max_iter=passes, generative_weight=weight,
        random_state=seed, **SHALLOW,
    ).fit(X, split.y[rows])  # fmt: skip


@on_split
def cross_validate(
    split: CorpusSplit, *, generative_weight: float | str, topics: int, passes: int, **options: Any
) -> dict[str, Any]:
    """SupDocNADE with a weight of the words, by cross-validation on the training rows: the network learns in each fold.

    Returns the mean accuracy with the best C and gamma, which are told, and the mean F-measure where there are tags.
    """
    n_folds = min(_FOLDS, int(np.unique(split.y, return_counts=True)[1].min()))
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=options["seed"])
    grid = ParameterGrid({"C": _CS, "gamma": _GAMMAS})
    accuracies, f_measures = np.zeros((n_folds, len(grid))), []
    for k, (first, second) in enumerate(folds.split(split.X, split.y)):
        model = _supdocnade(split, first, generative_weight, topics, passes, options["seed"])
        Z = model.transform(split.X_without_tags)
        for i, settings in enumerate(grid):
            svm = _svm(settings).fit(Z[first], split.y[first])
            accuracies[k, i] = svm.score(Z[second], split.y[second])
        if split.n_tags and generative_weight:
            tags = best_tags(split.next_tags(model, split.X_without_tags[second]))
            f_measures.append(f_measure_at_k([np.flatnonzero(row) for row in split.Y[second]], tags, TOP))
    best = int(np.argmax(accuracies.mean(axis=0)))
    values: dict[str, Any] = {"accuracy": float(accuracies[:, best].mean()), "svm": grid[best]}
    return values | ({"f_measure": float(np.mean(f_measures))} if f_measures else {})


@on_split
def supdocnade(
    split: CorpusSplit, *, topics: int, passes: int, generative_weight: float | str, svm: dict[str, float],
    examples: bool = False, **options: Any,
) -> dict[str, Any]:  # fmt: skip
    """SupDocNADE, and an SVM with C and gamma from `cross_validate` on its topics."""
    model = _supdocnade(split, np.arange(len(split.y)), generative_weight, topics, passes, options["seed"])
    predicted = _svm(svm).fit(model.transform(split.X_without_tags), split.y).predict(model.transform(split.X_test))
    # Without the words in the loss, nothing is learnt about tags.
    tags = split.next_tags(model, split.X_test) if generative_weight else None
    values = figures(split, predicted, tags)
    values["own_classes"] = accuracy(split.y_test, model.predict(split.X_test).astype(str))
    if examples:
        values["predictions"] = _predictions(split, predicted, tags)
        values["associations"] = _associations(split, model)
    return values


def _predictions(split: CorpusSplit, predicted: np.ndarray, tags: np.ndarray | None) -> list[dict[str, Any]]:
    """What is said about each test picture."""
    names = split.test.vocabulary.annotations
    best: list[list[str]] = (
        [[] for _ in predicted] if tags is None else [[names[i] for i in row] for row in best_tags(tags)]
    )
    return [
        {"file_name": name, "predicted": str(predicted[k]), "true": str(true), "tags": best[k],
         "true_tags": split.test.tags[k] if split.n_tags else []}
        for k, (name, true) in enumerate(zip(split.test.file_names, split.y_test, strict=True))
    ]  # fmt: skip


def _associations(split: CorpusSplit, model: SupDocNADE, n_words: int = 4) -> dict[str, Any]:
    """For each class its visual words and tags, as in section 6.1.4."""
    vocabulary = split.train.vocabulary
    associations = {}
    for name, columns in class_words(model, n_words=split.X.shape[1]).items():
        visual = [int(c) % vocabulary.n_visual_words for c in columns if c < vocabulary.n_pairs]
        tags = [vocabulary.annotations[int(c) - vocabulary.n_pairs] for c in columns if c >= vocabulary.n_pairs]
        associations[str(name)] = {"visual_words": list(dict.fromkeys(visual))[:n_words], "tags": tags[:TOP]}
    return associations


# ---- this package's own choices --------------------------------------------------------------------------------------


@on_split
def one_layer(split: CorpusSplit, *, topics: int, **options: Any) -> dict[str, Any]:
    """SupDeepDocNADE with one layer on square-rooted counts of words."""
    return _deep(split, {"n_components": topics, "normalize": "sqrt"}, **options)


@on_split
def two_layers(split: CorpusSplit, *, topics: int, **options: Any) -> dict[str, Any]:
    """SupDeepDocNADE with two layers; the corpus has global features beside the words."""
    return _deep(split, {"n_components": (topics, topics)}, **options)


def _deep(split: CorpusSplit, changes: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The number of passes is chosen on a fifth of the training rows; then all of them are learnt from."""
    settings: dict[str, Any] = changes | {
        "n_annotation_words": split.n_tags, "random_state": options["seed"], "n_jobs": 1,
        "split": "pictures_first" if split.n_tags else "ordering",
    }  # fmt: skip
    train, test, y = Rows.of(split.train), Rows.of(split.test).without_tags(), split.y
    first, second = validation_rows(split)
    trial = SupDeepDocNADE(max_iter=options["passes"], n_iter_no_change=options["patience"], **settings)
    trial.fit(train[first], y[first], X_val=train[second], y_val=y[second])
    best = int(np.argmax(trial.history_["validation_score"])) + 1
    model = SupDeepDocNADE(max_iter=best, validation_fraction=None, **settings).fit(train, y)
    tags = split.next_tags(model, test)
    return figures(split, model.predict(test), tags) | {"passes": best}


@on_split
def picture_model(split: CorpusSplit, **options: Any) -> dict[str, Any]:
    """`PictureModel` with its defaults, on the corpus' global features."""
    model = PictureModel(random_state=options["seed"], n_jobs=1, verbose=0).fit(split.train)
    values = model.evaluate(split.test)
    return {key: values[key] for key in ("accuracy", "f_measure", "precision_at_10") if key in values}
