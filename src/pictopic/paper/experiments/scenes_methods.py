"""What is learnt from one split of a collection of scenes: every method of the table, as a part of an experiment.

Each function takes its options (which the figures depend on) and where a `CorpusSplit` lies, and returns figures.  Test
pictures come without tags.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import SVC

from pictopic.models.deep import SupDeepDocNADE
from pictopic.models.docnade import DocNADE, SupDocNADE
from pictopic.paper.baselines import (
    AverageKernelSVM,
    HistogramSVM,
    LDAClassifier,
    MostFrequent,
    SpatialPyramidAnnotator,
    SpatialPyramidClassifier,
    SupervisedLDA,
)
from pictopic.paper.baselines.base import fit_best, root_shares
from pictopic.paper.experiments.split import CorpusSplit
from pictopic.picture_model import PictureModel
from pictopic.tasks.metrics import accuracy, f_measure_at_k
from pictopic.tasks.topics import class_words

TOP = 5  # tags a picture
_CS, _GAMMAS = (1, 3, 10, 30, 100), (0.3, 1, 3, 10)
_VALIDATION = 0.2  # of the training half, to choose by


def validation_rows(own: CorpusSplit) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the training rows to learn from, and of those to choose by."""
    first, second = train_test_split(np.arange(len(own.y)), test_size=_VALIDATION, stratify=own.y, random_state=0)
    return np.sort(first), np.sort(second)


def figures(own: CorpusSplit, predicted: np.ndarray, tags: np.ndarray | None = None) -> dict[str, Any]:
    """Accuracy, and the F-measure of the five best tags, where there are tags."""
    found = {"accuracy": accuracy(own.y_test, predicted.astype(str))}
    if own.n_tags and tags is not None:
        true = [np.flatnonzero(row) for row in own.Y_test]
        found["f_measure"] = f_measure_at_k(true, np.argsort(-tags, axis=1, kind="stable")[:, :TOP], TOP)
    return found


def svm_on_topics(Z: np.ndarray, y: np.ndarray) -> Any:
    """RBF SVM on representations of length 1, with C and gamma by cross-validation, as in the paper."""
    svm = make_pipeline(Normalizer(), SVC())
    return fit_best(svm, {"svc__C": _CS, "svc__gamma": _GAMMAS}, Z, y, 5, 0)[0]


def next_tags(model: Any, X: sparse.csr_array, n_tags: int) -> np.ndarray | None:
    """p(next word) of the tags."""
    return model.next_word_proba(X, columns=np.arange(X.shape[1] - n_tags, X.shape[1])) if n_tags else None


# ---- baselines -------------------------------------------------------------------------------------------------------


def most_frequent(split: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The most frequent class and tags."""
    own = CorpusSplit(**split)
    tags = None
    if own.n_tags:
        tags = MostFrequent().fit(own.X, own.Y).decision_function(own.X_test)
    return figures(own, MostFrequent().fit(own.X, own.y).predict(own.X_test), tags)


def histogram_svm(split: dict[str, Any], **options: Any) -> dict[str, Any]:
    """RBF SVM on square-rooted histograms."""
    own = CorpusSplit(**split)
    model = HistogramSVM(n_annotation_words=own.n_tags).fit(own.X, own.y)
    return figures(own, model.predict(own.X_test)) | {"chosen": model.best_params_}


def spatial_pyramid(split: dict[str, Any], **options: Any) -> dict[str, Any]:
    """SPM: intersection-kernel SVM, and the tags of neighbours."""
    own = CorpusSplit(**split)
    shape = {"n_regions": own.n_regions, "n_annotation_words": own.n_tags}
    model = SpatialPyramidClassifier(**shape).fit(own.X, own.y)
    tags = SpatialPyramidAnnotator(**shape).fit(own.X).decision_function(own.X_test) if own.n_tags else None
    return figures(own, model.predict(own.X_test), tags) | {"chosen": model.best_params_}


def feature_svm(split: dict[str, Any], **options: Any) -> dict[str, Any]:
    """SVM on the mean of the kernels of histograms and of global features."""
    own = CorpusSplit(**split)
    sizes = [own.train.vocabulary.n_pairs, *options["sizes"]]
    rows = []
    for corpus, X in ((own.train, own.X), (own.test, own.X_test)):
        rows.append(np.hstack([root_shares(X[:, : sizes[0]]), np.asarray(corpus.global_features)]))
    model = AverageKernelSVM(blocks=sizes).fit(rows[0], own.y)
    return figures(own, model.predict(rows[1])) | {"chosen": model.best_params_}


def lda_svm(split: dict[str, Any], *, topics: int, **options: Any) -> dict[str, Any]:
    """LDA's topics and an SVM."""
    own = CorpusSplit(**split)
    model = LDAClassifier(n_components=topics, n_annotation_words=own.n_tags, random_state=options["seed"])
    return figures(own, model.fit(own.X, own.y).predict(own.X_test))


def slda(split: dict[str, Any], *, topics: int, **options: Any) -> dict[str, Any]:
    """Supervised LDA."""
    own = CorpusSplit(**split)
    model = SupervisedLDA(n_components=topics, n_annotation_words=own.n_tags, random_state=options["seed"])
    model.fit(own.X, own.y)
    return figures(own, model.predict(own.X_test), model.tag_scores(own.X_test) if own.n_tags else None)


# ---- the paper's models ----------------------------------------------------------------------------------------------


def docnade(split: dict[str, Any], *, topics: int, passes: int, regions: str, **options: Any) -> dict[str, Any]:
    """DocNADE as in the paper: tree, relu, SGD a document at a time; then an SVM on its topics."""
    own = CorpusSplit(**split, regions=regions)
    model = DocNADE(
        n_components=topics, n_annotation_words=own.n_tags, max_iter=passes, learning_rate=options["learning_rate"],
        random_state=options["seed"], **PAPER,
    ).fit(own.X)  # fmt: skip
    predicted = svm_on_topics(model.transform(own.X_without_tags), own.y).predict(model.transform(own.X_test))
    return figures(own, predicted, next_tags(model, own.X_test, own.n_tags))


PAPER: dict[str, Any] = {
    "output": "tree", "activation": "relu", "solver": "sgd", "batch_size": 1, "dropout": 0.0,
    "validation_fraction": None, "n_jobs": 1,
}  # fmt: skip


def _supdocnade(own: CorpusSplit, rows: np.ndarray, weight: float, topics: int, passes: int, seed: int) -> SupDocNADE:
    return SupDocNADE(
        n_components=topics, n_annotation_words=own.n_tags, max_iter=passes, generative_weight=weight,
        learning_rate=learning_rate(weight), random_state=seed, **PAPER,
    ).fit(own.X[rows], own.y[rows])  # fmt: skip


def learning_rate(generative_weight: float, for_words: float = 0.01, for_classes: float = 0.001) -> float:
    """Steps as large as they can be: words allow 0.01 (times their weight), classes 0.001.

    Examples
    --------
    >>> from pictopic.paper.experiments.scenes_methods import learning_rate
    >>> learning_rate(0.0), learning_rate(10.0), learning_rate(100.0)
    (0.001, 0.001, 0.0001)
    """
    return min(for_classes, for_words / generative_weight) if generative_weight else for_classes


def weigh_words(
    split: dict[str, Any], *, weights: Sequence[float], topics: int, passes: int, regions: str, **options: Any
) -> dict[str, Any]:
    """Accuracy on a fifth of the training pictures for each weight of the words (lambda)."""
    own = CorpusSplit(**split, regions=regions)
    first, second = validation_rows(own)
    scores = []
    for weight in weights:
        model = _supdocnade(own, first, weight, topics, passes, options["seed"])
        Z = model.transform(own.X_without_tags)
        scores.append(float(svm_on_topics(Z[first], own.y[first]).score(Z[second], own.y[second])))
    return {"weight": float(weights[int(np.argmax(scores))]), "scores": scores}


def supdocnade(
    split: dict[str, Any],
    *,
    topics: int,
    passes: int,
    regions: str,
    generative_weight: float | str,
    examples: bool = False,
    **options: Any,
) -> dict[str, Any]:
    """SupDocNADE as in the paper; ``generative_weight="lambda 1"`` is the paper's lambda = 1, on the sum over words."""
    own = CorpusSplit(**split, regions=regions)
    rows = np.arange(len(own.y))
    weight = float(own.X.sum() / len(rows)) if generative_weight == "lambda 1" else float(generative_weight)
    model = _supdocnade(own, rows, weight, topics, passes, options["seed"])
    svm = svm_on_topics(model.transform(own.X_without_tags), own.y)
    predicted = svm.predict(model.transform(own.X_test))
    # Without the words in the loss, nothing is learnt about tags.
    tags = next_tags(model, own.X_test, own.n_tags) if weight else None
    found = figures(own, predicted, tags) | {"own_classes": accuracy(own.y_test, model.predict(own.X_test).astype(str))}
    if examples:
        found["predictions"] = _predictions(own, predicted, tags)
        found["associations"] = _associations(own, model)
    return found


def _predictions(own: CorpusSplit, predicted: np.ndarray, tags: np.ndarray | None) -> list[dict[str, Any]]:
    """What is said about each test picture."""
    names = own.test.vocabulary.annotations
    found = []
    for k, (name, true) in enumerate(zip(own.test.file_names, own.y_test, strict=True)):
        best = [] if tags is None else [names[i] for i in np.argsort(-tags[k], kind="stable")[:TOP]]
        found.append(
            {"file_name": name, "predicted": str(predicted[k]), "true": str(true), "tags": best,
             "true_tags": own.test.tags[k] if own.n_tags else []}
        )  # fmt: skip
    return found


def _associations(own: CorpusSplit, model: SupDocNADE, n_words: int = 4) -> dict[str, Any]:
    """For each class its visual words and tags, as in section 6.1.4."""
    vocabulary = own.train.vocabulary
    found = {}
    for name, columns in class_words(model, n_words=own.X.shape[1]).items():
        visual = [int(c) % vocabulary.n_visual_words for c in columns if c < vocabulary.n_pairs]
        tags = [vocabulary.annotations[int(c) - vocabulary.n_pairs] for c in columns if c >= vocabulary.n_pairs]
        found[str(name)] = {"visual_words": list(dict.fromkeys(visual))[:n_words], "tags": tags[:TOP]}
    return found


# ---- this package's own choices --------------------------------------------------------------------------------------


def one_layer(split: dict[str, Any], *, topics: int, **options: Any) -> dict[str, Any]:
    """SupDeepDocNADE with one layer on square-rooted counts of words."""
    return _deep(CorpusSplit(**split), {"n_components": topics, "normalize": "sqrt"}, None, **options)


def two_layers(split: dict[str, Any], *, topics: int, **options: Any) -> dict[str, Any]:
    """SupDeepDocNADE with two layers, the corpus' own global features beside the words."""
    own = CorpusSplit(**split)
    features = np.asarray(own.train.global_features), np.asarray(own.test.global_features)
    return _deep(own, {"n_components": (topics, topics)}, features, **options)


def _deep(
    own: CorpusSplit, changes: dict[str, Any], features: tuple[np.ndarray, np.ndarray] | None, **options: Any
) -> dict[str, Any]:
    """The number of passes is chosen on a fifth of the training rows; then all of them are learnt from."""
    settings: dict[str, Any] = changes | {
        "n_annotation_words": own.n_tags, "random_state": options["seed"], "n_jobs": 1,
        "split": "pictures_first" if own.n_tags else "ordering",
    }  # fmt: skip
    first, second = validation_rows(own)

    def given(rows: np.ndarray, suffix: str = "", part: int = 0) -> dict[str, Any]:
        return {} if features is None else {f"global_features{suffix}": features[part][rows]}

    trial = SupDeepDocNADE(max_iter=options["passes"], n_iter_no_change=options["patience"], **settings)
    trial.fit(
        own.X[first], own.y[first], X_val=own.X[second], y_val=own.y[second], **given(first), **given(second, "_val")
    )
    best = int(np.argmax(trial.history_["validation_score"])) + 1
    model = SupDeepDocNADE(max_iter=best, validation_fraction=None, **settings)
    model.fit(own.X, own.y, **given(np.arange(len(own.y))))
    beside = given(np.arange(len(own.y_test)), part=1)
    tags = None
    if own.n_tags:
        columns = np.arange(own.X.shape[1] - own.n_tags, own.X.shape[1])
        tags = model.next_word_proba(own.X_test, columns=columns, **beside)
    return figures(own, model.predict(own.X_test, **beside), tags) | {"passes": best}


def picture_model(split: dict[str, Any], **options: Any) -> dict[str, Any]:
    """`PictureModel` with its defaults, on the corpus' own global features."""
    own = CorpusSplit(**split)
    model = PictureModel(random_state=options["seed"], n_jobs=1, verbose=0).fit(own.train)
    found = model.evaluate(own.test)
    return {key: found[key] for key in ("accuracy", "f_measure", "precision_at_10") if key in found}
