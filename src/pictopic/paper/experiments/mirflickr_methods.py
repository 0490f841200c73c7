"""The methods compared on MIR Flickr: from a split to scores of its test rows."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

from pictopic.corpus.rows import Rows
from pictopic.models.checkpoint import Checkpoint
from pictopic.models.deep import DeepDocNADE, SupDeepDocNADE
from pictopic.models.docnade import DocNADE
from pictopic.models.persistence import load
from pictopic.models.run import Run
from pictopic.paper.baselines import LDAClassifier, MostFrequent, TfidfClassifier
from pictopic.paper.experiments.mirflickr_data import LabelledSplit, PretrainingRows
from pictopic.tasks.metrics import mean_average_precision

SMALL, LARGE = 512, 2048  # hidden units of a layer: for tags, and the paper's for pictures
# By number of layers, chosen on the validation part of another split of the tags: a bag of five words that passes three
# layers of which half is dropped tells the last one nothing.
_PRETRAINING_DROPOUT = {1: 0.5, 2: 0.3, 3: 0.1}
_COUNTS_C = (0.1, 0.3, 1.0, 3.0)
_ROOTS_C = (1e-5, 1e-4, 1e-3, 1e-2)
_TOPICS = 200  # of LDA: the best of 25, 50, 100 and 200 on the validation part of the first split of the tags
_PROPORTIONS_C = (0.01, 0.03, 0.1, 0.3, 1.0)
_TOPICS_C = (0.01, 0.1, 1.0, 10.0)
_HIDDEN_C = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
_NOT_SHOWN = ("init", "device", "n_jobs", "verbose", "warm_start")


@dataclass
class LabelScores:
    """Scores of the test rows by each way of classifying, and what was chosen on the validation part."""

    scores: dict[str, np.ndarray]
    chosen: dict[str, Any] = field(default_factory=dict)
    validation: float | None = None  # MAP, of the first way
    model: Any = None


@dataclass
class LabelMethod:
    """A method to compare: its scores for a split."""

    options: dict[str, Any]  # exact options of all that it learns
    work: Callable[[LabelledSplit], LabelScores]


def shown(estimator: Any) -> dict[str, Any]:
    """Name and options of an estimator, without those that do not change what it learns.

    Examples
    --------
    >>> from pictopic import DocNADE
    >>> from pictopic.paper.experiments.mirflickr_methods import shown
    >>> options = shown(DocNADE(n_components=50))
    >>> options["estimator"], options["n_components"], "verbose" in options
    ('DocNADE', 50, False)
    """
    options = estimator.get_params(deep=False)
    return {"estimator": type(estimator).__name__} | {k: v for k, v in options.items() if k not in _NOT_SHOWN}


@dataclass
class Linear:
    """A logistic regression for each class, its C chosen on the validation part of the training rows.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.experiments.mirflickr_methods import Linear
    >>> Y = np.tile([[1, 0], [0, 1]], (10, 1))
    >>> linear = Linear((0.1, 1.0)).fit(Y * 2.0, Y, part=np.arange(12), validation=np.arange(12, 20))
    >>> (linear.scores(Y[:2] * 2.0) > 0).tolist(), linear.validation_map
    ([[True, False], [False, True]], 1.0)
    """

    Cs: Sequence[float]
    max_iter: int = 1000
    n_jobs: int = 1

    def fit(self, Z: Any, Y: np.ndarray, part: np.ndarray, validation: np.ndarray, Z_choice: Any = None) -> Linear:
        """Choose C on features `Z_choice` (default: Z), then learn from all rows of Z."""
        tried = Z if Z_choice is None else Z_choice
        maps = []
        for C in self.Cs:
            scores = _scores(self._classifier(C).fit(tried[part], Y[part]), tried[validation])
            maps.append(mean_average_precision(Y[validation], scores))
        self.C, self.validation_map = self.Cs[int(np.argmax(maps))], max(maps)
        self._fitted = self._classifier(self.C).fit(Z, Y)
        return self

    def scores(self, Z: Any) -> np.ndarray:
        """How much speaks for each class."""
        return _scores(self._fitted, Z)

    def _classifier(self, C: float) -> OneVsRestClassifier:
        return OneVsRestClassifier(LogisticRegression(C=C, max_iter=self.max_iter), n_jobs=self.n_jobs)

    @property
    def options(self) -> dict[str, Any]:
        """For the results."""
        return {"estimator": "LogisticRegression", "C": list(self.Cs), "max_iter": self.max_iter}


def _scores(classifier: OneVsRestClassifier, Z: Any) -> np.ndarray:
    """As decision_function, also for a class that no row, or every row, it learnt from has."""
    return np.column_stack([np.ravel(estimator.decision_function(Z)) for estimator in classifier.estimators_])


def frequencies() -> LabelMethod:
    """The classes' frequencies: what is reached without looking at a row."""

    def work(split: LabelledSplit) -> LabelScores:
        model = MostFrequent().fit(split.train, split.Y)
        return LabelScores({"map": model.decision_function(split.test)})

    return LabelMethod({"estimator": "MostFrequent"}, work)


def tfidf() -> LabelMethod:
    """Linear SVM on TF-IDF weights of all words; its C by cross-validation in the training rows."""

    def work(split: LabelledSplit) -> LabelScores:
        model = TfidfClassifier().fit(split.train, split.Y)
        return LabelScores({"map": model.decision_function(split.test)}, model.best_params_)

    return LabelMethod(shown(TfidfClassifier()), work)


def regression(with_visual_words: bool, n_jobs: int) -> LabelMethod:
    """Logistic regression on what the networks are given."""
    linear = Linear(_ROOTS_C if with_visual_words else _COUNTS_C, n_jobs=n_jobs)

    def work(split: LabelledSplit) -> LabelScores:
        Z, Z_test = split.train.read(), split.test.read()
        if with_visual_words:
            # Counts of visual words go into the hundreds: without a common scale, no C fits them and tags.
            scaler = StandardScaler().fit(_roots_and_features(split.train[split.part]))
            Z, Z_test = (scaler.transform(_roots_and_features(rows)) for rows in (split.train, split.test))
        linear.fit(Z, split.Y, split.part, split.validation)
        return LabelScores({"map": linear.scores(Z_test)}, {"C": linear.C}, linear.validation_map)

    features = "standardised square roots of counts, global features" if with_visual_words else "counts"
    return LabelMethod(linear.options | {"features": features}, work)


def _roots_and_features(rows: Rows) -> np.ndarray:
    roots, features = np.sqrt(rows.read().toarray(), dtype=np.float32), rows.read_features()
    return roots if features is None else np.hstack([roots, np.nan_to_num(features)])


def lda(seed: int, n_jobs: int) -> LabelMethod:
    """LDA of the training rows, and a linear SVM for each class on the topic proportions."""
    options = {"n_components": _TOPICS, "C": _PROPORTIONS_C, "random_state": seed}

    def work(split: LabelledSplit) -> LabelScores:
        model = LDAClassifier(**options, n_jobs=n_jobs).fit(split.train, split.Y)
        return LabelScores({"map": model.decision_function(split.test)}, model.best_params_)

    return LabelMethod(shown(LDAClassifier(**options)), work)


def docnade(max_iter: int, n_jobs: int) -> LabelMethod:
    """DocNADE of all training rows, without classes, and a logistic regression for each class on its topics."""
    linear = Linear(_TOPICS_C, n_jobs=n_jobs)

    def work(split: LabelledSplit) -> LabelScores:
        model = DocNADE(max_iter=max_iter, n_jobs=n_jobs, random_state=split.seed).fit(split.documents)
        linear.fit(model.transform(split.train), split.Y, split.part, split.validation)
        chosen = {"C": linear.C, "passes": model.n_iter_}
        return LabelScores({"map": linear.scores(model.transform(split.test))}, chosen, linear.validation_map)

    return LabelMethod({"model": shown(DocNADE(max_iter=max_iter)), "classifier": linear.options}, work)


class Pretraining:
    """Models after several numbers of passes over rows without labels, all from one run that resumes.

    The models and the run's checkpoint lie in `folder`, named after the data's fingerprint; one is saved after each of
    the numbers of `passes`.
    """

    def __init__(self, folder: Path, passes: Sequence[int], fingerprint: str, n_jobs: int = 1):
        self.folder, self.passes, self.fingerprint, self.n_jobs = folder, sorted(passes), fingerprint, n_jobs

    def model(self, documents: PretrainingRows, passes: int, **options: Any) -> DeepDocNADE:
        """The model with these options after so many passes: read, or trained from the last one that is there on."""
        digest = hashlib.sha256(json.dumps([self.fingerprint, documents.name, options]).encode()).hexdigest()[:12]
        home = self.folder / f"pretrained-{digest}"
        for n in [n for n in self.passes if n < passes] + [passes]:
            model = _load(home / f"{n}-passes")
            if model is None:
                model = self._train(documents, n, home, options)
        if passes >= self.passes[-1]:
            shutil.rmtree(home / "checkpoint", ignore_errors=True)
        return model

    def _train(self, documents: PretrainingRows, passes: int, home: Path, options: dict[str, Any]) -> DeepDocNADE:
        checkpoint = Checkpoint(home / "checkpoint", keep=1)
        state = checkpoint.peek()
        if state is not None and state["run"]["epoch"] > passes:  # a model before it was lost
            shutil.rmtree(home / "checkpoint")
        model = DeepDocNADE(**options, max_iter=passes, n_jobs=self.n_jobs)
        model.fit(documents.rows, run=Run(checkpoint))
        model.save(home / f"{passes}-passes")
        return model


def _load(folder: Path) -> Any:
    try:
        return load(folder)
    except ValueError:  # not there, or damaged
        return None


def network(
    layers: int,
    with_visual_words: bool,
    *,
    max_iter: int,
    passes: int = 0,
    pretraining: Pretraining | None = None,
    annotation_weight: float | str = "balanced",
    n_jobs: int = 1,
) -> LabelMethod:
    """SupDeepDocNADE, by its own head ("own") and by a logistic regression for each class on its top layer ("linear").

    How long it learns is decided on the validation part; then it learns from all training rows for as many passes.

    Parameters
    ----------
    max_iter : int
        Largest number of passes with labels.
    passes : int, default=0
        Of pretraining on the split's unlabelled rows.
    pretraining : Pretraining, optional
        Needed for that.
    annotation_weight : float or "balanced", default="balanced"
        rho.
    """
    sizes = (LARGE if with_visual_words else SMALL,) * layers
    common = {"n_components": sizes, "annotation_weight": annotation_weight}
    tuned = common | {"max_iter": max_iter, "validation_metric": "map"}
    dropout = 0.5 if with_visual_words else _PRETRAINING_DROPOUT[layers]
    first = common | {"dropout": dropout, "validation_fraction": None}
    linear = Linear(_HIDDEN_C, n_jobs=n_jobs)

    def work(split: LabelledSplit) -> LabelScores:
        of_split = {"n_annotation_words": split.train.n_annotation_words, "random_state": split.seed}
        init, seconds = None, 0.0
        if passes:
            assert pretraining is not None  # noqa: S101
            assert split.unlabelled is not None  # noqa: S101
            seed = {"random_state": split.unlabelled.seed}
            init = pretraining.model(split.unlabelled, passes, **first | of_split | seed)
            seconds = init.history_["seconds"][-1]  # of all passes, those of earlier calls too
        begin = time.perf_counter()
        outcome = _fine_tune(split, tuned | of_split | {"init": init, "n_jobs": n_jobs}, linear)
        outcome.chosen["seconds"] = seconds + time.perf_counter() - begin
        return outcome

    options: dict[str, Any] = {"model": shown(SupDeepDocNADE(**tuned)), "classifier": linear.options, "passes": passes}
    if passes:
        options["pretraining"] = shown(DeepDocNADE(**first, max_iter=passes))
    return LabelMethod(options, work)


def _fine_tune(split: LabelledSplit, options: dict[str, Any], linear: Linear) -> LabelScores:
    rows, Y = split.train, split.Y
    part, validation = rows[split.part], rows[split.validation]
    trial = SupDeepDocNADE(**options).fit(part, Y[split.part], X_val=validation, y_val=Y[split.validation])
    passes = int(np.argmax(trial.history_["validation_score"])) + 1
    model = SupDeepDocNADE(**options).set_params(max_iter=passes, validation_fraction=None)
    model.fit(rows, Y)
    # The final model has seen the validation rows' labels: only the trial can say which C is good.
    linear.fit(model.transform(rows), Y, split.part, split.validation, trial.transform(rows))
    scores = {"own": model.predict_proba(split.test), "linear": linear.scores(model.transform(split.test))}
    chosen = {"passes": passes, "C": linear.C, "linear_validation_map": linear.validation_map}
    return LabelScores(scores, chosen, float(max(trial.history_["validation_score"])), model)
