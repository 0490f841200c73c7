"""Learn everything that answers questions about pictures from a corpus: network, class head, tag thresholds.

This module also chooses the held-out rows, for `fit`, `tune` and `pretrain` alike.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.rows import Rows
from pictopic.models.deep import DeepDocNADE, SupDeepDocNADE
from pictopic.models.docnade import DocNADE, SupDocNADE
from pictopic.models.run import Run
from pictopic.tasks.annotate import TagThresholds, tag_proba
from pictopic.tasks.classify import ClassHead, fit_class_head
from pictopic.tasks.likelihood import compare_with_unigram
from pictopic.tasks.metrics import f_measure_at_k, mean_average_precision

DEEP_FROM = 50  # rows: on 60 made-up scenes a deep model already learns more, in about the same time
_N_TAGS = 5  # per picture, as in the paper
_LAYERS = (512, 512)
_WORD_DROPOUT = 0.3  # of a shallow model; in cross-validation on the demonstration 1.4 points more accurate than 0
_THREADS_FROM = 2_000  # rows
TRIAL, FINAL = "trial", "final"  # the trainings of a fit
LEAST_HELD_OUT = 12  # rows; fewer say nothing about how good a model is
_HELD_OUT = 0.15
_PRETRAINING_HELD_OUT, _MOST_HELD_OUT = 0.1, 2_000  # share of the rows, and rows
_VALIDATION = ("validation", "val", "valid", "dev")

Fit = Callable[[Any, Rows, Rows | None, Run], Any]  # estimator, rows, those to stop on, run -> the fitted estimator


@dataclass
class HeldOut:
    """Answers about the held-out pictures, from a network that had not seen them.

    The final network has learnt from these pictures, too: its answers about them would be too good.
    """

    rows: np.ndarray  # row numbers in the corpus
    class_proba: np.ndarray | None  # (n, classes), in the order of the head's classes
    tag_proba: np.ndarray | None  # (n, n_annotation_words)


@dataclass
class Fitted:
    """A fitted model: network, class head, tag thresholds, and their figures on held-out pictures."""

    estimator: Any  # one of the four, fitted
    head: ClassHead | None  # None: there are no classes to tell apart
    thresholds: TagThresholds | None  # None: there are no tags, or too few pictures
    figures: dict[str, float]  # on the held-out pictures
    held_out: HeldOut | None = None  # None: too few rows to hold any out

    @property
    def n_validation(self) -> int:
        """How many pictures were held out."""
        return 0 if self.held_out is None else len(self.held_out.rows)


def fit_everything(
    corpus: Corpus,
    *,
    kind: str,
    random_state: int,
    n_jobs: int | None,
    verbose: int,
    options: dict[str, Any] | None = None,
    trial: bool = False,
    init: Any = None,
    fit: Fit | None = None,
    run: Run | None = None,
) -> Fitted:
    """Learn from a corpus: select the model on held-out rows, then train the final model on everything.

    Parameters
    ----------
    corpus : Corpus
        Its own split is used if it has the parts "train" and "validation" (or "val", "valid", "dev"); the part "test"
        is never read.
    kind : {"auto", "shallow", "deep"}
    random_state, n_jobs, verbose
        Options of the estimator.
    options : dict, optional
        Other options of the estimator.
    trial : bool, default=False
        Whether only the figures are needed: there is no final training on everything.
    init : DeepDocNADE or SupDeepDocNADE, optional
        A pretrained model of the same words to start from.  If there are classes, only rows with a class are used for
        training: the pretraining has already used the others.
    fit : callable, optional
        Function that trains the estimator, for example on a cluster; default: the estimator's own `fit`.
    run : Run, optional
        Checkpoints are written to the sub-folders ``trial``, for the training without the held-out rows, and
        ``final``, for the training on everything.  With `finish`, the final model is used if at least half of its
        training is done, otherwise the trial model.

    Returns
    -------
    Fitted
    """
    rows = usable_rows(corpus)
    if not rows.word_counts().any():
        raise ValueError("there is nothing to learn from: no picture has a visual word or a tag")
    options = dict(options or {})
    if init is not None:
        if kind == "shallow":
            raise ValueError("a shallow model cannot start from a pretrained one, which is deep")
        kind = "deep"
        options |= {name: getattr(init, name) for name in ("n_components", "output", "activation")} | {"init": init}
    estimator = _estimator(rows, kind, random_state, n_jobs, verbose).set_params(**options)
    fitted = _fit(estimator, corpus, random_state, trial, fit or fit_here, run or Run())
    if init is not None:
        fitted.estimator.set_params(init=None)  # no longer needed
    return fitted


def fit_here(estimator: Any, rows: Rows, held_out: Rows | None, run: Run) -> Any:
    """Fit an estimator to rows in this process, with early stopping on the held-out rows."""
    return estimator.fit(rows, X_val=held_out, run=run)


def _fit(estimator: Any, corpus: Corpus, random_state: int, only_trial: bool, fit: Fit, run: Run) -> Fitted:
    """Select the model on the held-out rows, then train on everything."""
    rows = usable_rows(corpus)
    train, held_out = choose_parts(corpus)
    if not len(held_out):
        estimator = fit(estimator, _training_rows(estimator, rows[train]), None, run.part(FINAL))
        return Fitted(
            estimator, None if rows.labels is None else _network_head(estimator, rows, corpus.classes), None, {}
        )
    trial = fit(copy.deepcopy(estimator), _training_rows(estimator, rows[train]), rows[held_out], run.part(TRIAL))
    figures: dict[str, float] = {}
    head, answers = None, HeldOut(held_out, None, None)
    thresholds = _fit_tags(trial, rows, train, answers, figures)
    if rows.labels is not None:
        head = _fit_classes(trial, rows, train, answers, corpus.classes, random_state, figures)
    figures |= compare_with_unigram(trial, rows[held_out], rows[train])
    fitted = Fitted(trial, head, thresholds, figures, answers)
    history = trial.history_
    stopped = trial.stop_reason_ == "interrupted" or not history["validation_score"]
    if only_trial or stopped or (run.finish and not _has_checkpoint(run.part(FINAL))):
        return fitted  # the user does not want to wait any longer
    passes = int(np.argmax(history["validation_score"])) + 1
    final = _train_on_all(estimator, corpus, fit, run, max_iter=passes)
    if 2 * final.n_iter_ >= passes:  # otherwise it was interrupted, and the trial has learnt more
        fitted.estimator = final
        _learn_head(fitted, corpus)
        final.history_ = history  # the trial's history has both curves
    return fitted


def _has_checkpoint(run: Run) -> bool:
    return run.checkpoint is not None and bool(run.checkpoint.names())


def refit(fitted: Fitted, corpus: Corpus, passes: int, run: Run | None = None) -> Fitted:
    """Continue training on a collection that has grown, or whose tags have changed.

    The selected model and its figures stay as they are: the network has by now seen the held-out pictures.

    Parameters
    ----------
    fitted : Fitted
        Model to continue from; its network and head are changed in place.
    corpus : Corpus
        A corpus with the same words, whose first rows are those that the model was fitted to.
    passes : int
    run : Run, optional
        As for `fit_everything`.

    Returns
    -------
    Fitted

    Raises
    ------
    ValueError
        If the corpus has classes that the model does not know.
    """
    if fitted.held_out is None and len(choose_parts(corpus)[1]):
        # Now large enough to hold some out, but the network has seen all these pictures: start over.
        return _fit(fitted.estimator, corpus, fitted.estimator.random_state, False, fit_here, run or Run())
    labels = {label for row_labels in corpus.label_lists for label in row_labels or ()}
    new_classes = [] if fitted.head is None else sorted(labels - set(fitted.head.classes))
    if new_classes:
        raise ValueError(f"the model does not know the class {new_classes[0]!r}: fit a new model with pictopic fit")
    history = fitted.estimator.history_
    fitted.estimator = _train_on_all(fitted.estimator, corpus, fit_here, run or Run(), warm_start=True, max_iter=passes)
    _learn_head(fitted, corpus)
    fitted.estimator.history_ = history  # the old history has both curves
    return fitted


def usable_rows(corpus: Corpus) -> Rows:
    """Return all rows; with labels only if there are at least two classes to tell apart."""
    rows = Rows.of(corpus)
    labels = rows.labels
    if labels is None or labels.ndim == 2 or len({name for name in labels if name is not None}) > 1:
        return rows
    return rows.with_labels(None)


def known_rows(labels: np.ndarray) -> np.ndarray:
    """Return a boolean mask of the rows that have labels."""
    if labels.ndim == 2:
        return np.asarray(~np.isnan(labels.astype(np.float64)).any(axis=1))
    return np.array([name is not None for name in labels], dtype=bool)


def usual_split(n_visual: int, n_annotation_words: int) -> str:
    """Return the `split` of a deep model: predict tags from pictures alone or, without pictures, from other tags."""
    return "pictures_first" if n_visual and n_annotation_words else "ordering"


def _estimator(rows: Rows, kind: str, seed: int, n_jobs: int | None, verbose: int) -> Any:
    deep = kind == "deep" or (kind == "auto" and len(rows) >= DEEP_FROM)
    # Small products gain nothing from threads, and wait for each other on a busy machine.
    n_jobs = n_jobs if len(rows) >= _THREADS_FROM else 1
    options: dict[str, Any] = {
        "n_annotation_words": rows.n_annotation_words, "random_state": seed, "n_jobs": n_jobs, "verbose": verbose,
    }  # fmt: skip
    if deep:
        options["split"] = usual_split(rows.n_visual, rows.n_annotation_words)
        options["n_components"] = _LAYERS
        return SupDeepDocNADE(**options) if rows.labels is not None else DeepDocNADE(**options)
    # Small collections: a class must not depend on a single word.
    return SupDocNADE(word_dropout=_WORD_DROPOUT, **options) if rows.labels is not None else DocNADE(**options)


def _training_rows(estimator: Any, rows: Rows) -> Rows:
    """Return the rows to train on; for a pretrained network those with classes, as it has learnt from the others."""
    if rows.labels is None or getattr(estimator, "init", None) is None:
        return rows
    return rows[np.flatnonzero(known_rows(rows.labels))]


def _train_on_all(estimator: Any, corpus: Corpus, fit: Fit, run: Run, **changes: Any) -> Any:
    """Train the estimator on everything, with some options changed during this training."""
    changes["validation_fraction"] = None
    before = {name: getattr(estimator, name) for name in changes}
    rows = usable_rows(corpus)[rows_to_learn_from(corpus)]
    try:
        trained = fit(estimator.set_params(**changes), _training_rows(estimator, rows), None, run.part(FINAL))
    finally:
        estimator.set_params(**before)
    return trained.set_params(**before)


def _learn_head(fitted: Fitted, corpus: Corpus) -> None:
    """Train the class head on the network's representations of everything."""
    rows = usable_rows(corpus)[rows_to_learn_from(corpus)]
    if fitted.head is not None and rows.labels is not None:
        rows = rows[np.flatnonzero(known_rows(rows.labels))]
        estimator = fitted.estimator
        Z = estimator.transform(rows.without_tags())
        fitted.head.learn(Z, rows.labels, (estimator.coef_, estimator.intercept_))


def _fit_tags(
    trial: Any, rows: Rows, train: np.ndarray, held_out: HeldOut, figures: dict[str, float]
) -> TagThresholds | None:
    if not rows.n_annotation_words or not rows.n_visual:  # tags would be predicted from themselves
        return None
    held_out_rows = rows[held_out.rows]
    has_tag = held_out_rows.has_tag()
    tagged = has_tag.any(axis=1)
    tag_probabilities = held_out.tag_proba = tag_proba(trial, held_out_rows.without_tags())
    if not tagged.any() or len(held_out_rows) < LEAST_HELD_OUT:
        return None
    train_rows = rows[train]
    frequency = np.sum([train_rows[chunk].has_tag().sum(axis=0) for chunk in train_rows.chunks()], axis=0)
    true = [np.flatnonzero(row).tolist() for row in has_tag[tagged]]
    ranked = np.argsort(-tag_probabilities[tagged], axis=1, kind="stable")[:, :_N_TAGS].tolist()
    figures["tags"] = f_measure_at_k(true, ranked, _N_TAGS)
    most_frequent = np.argsort(-frequency, kind="stable")[:_N_TAGS].tolist()
    figures["tags_baseline"] = f_measure_at_k(true, [most_frequent] * len(true), _N_TAGS)
    return TagThresholds.fit(tag_probabilities[tagged], has_tag[tagged])


def _network_head(estimator: Any, rows: Rows, classes: list[str]) -> ClassHead:
    """Return the network's own output layer as the head, for collections too small to hold any pictures out."""
    Z, y = np.zeros((0, 0)), rows.labels[:0]
    output_layer = estimator.coef_, estimator.intercept_
    return fit_class_head(Z, y, Z, y, output_layer, class_names(estimator, classes))


def class_names(estimator: Any, classes: list[str]) -> list[str]:
    """Return class names in the estimator's order, which knows the classes only by number if pictures have several."""
    return classes if estimator.multi_label_ else [str(name) for name in estimator.classes_]


def _fit_classes(
    trial: Any,
    rows: Rows,
    train: np.ndarray,
    held_out: HeldOut,
    classes: list[str],
    random_state: int,
    figures: dict[str, float],
) -> ClassHead:
    labels, output_layer = rows.labels, (trial.coef_, trial.intercept_)
    Z_val = trial.transform(rows[held_out.rows].without_tags())
    known = known_rows(labels)
    train, has_label = train[known[train]], known[held_out.rows]
    Z, y, y_val = trial.transform(rows[train].without_tags()), labels[train], labels[held_out.rows[has_label]]
    head = fit_class_head(Z, y, Z_val[has_label], y_val, output_layer, class_names(trial, classes), random_state)
    held_out.class_proba = head.predict_proba(Z_val)
    if not has_label.any():
        return head
    figures["classes"] = head.scores[head.name]
    if labels.ndim == 1:
        values, counts = np.unique(y.astype(str), return_counts=True)
        figures["classes_baseline"] = float(np.mean(y_val.astype(str) == values[counts.argmax()]))
    else:
        figures["classes_baseline"] = mean_average_precision(y_val, np.tile(y.mean(axis=0), (len(y_val), 1)))
    return head


# ---- training and held-out rows ------------------------------------------------------------------------------------


def rows_to_learn_from(corpus: Corpus) -> np.ndarray:
    """Return the numbers of all rows outside the test part, held-out rows included."""
    return _usable(_split_names(corpus.splits))


def holds_some_out(splits: Sequence[str | None]) -> bool:
    """Return whether rows can be held out: the splits name a validation part, or there are enough rows.

    Examples
    --------
    >>> from pictopic.tasks.fit import holds_some_out
    >>> holds_some_out([None] * 10), holds_some_out([None] * 1000), holds_some_out(["train", "validation"])
    (False, True, True)
    """
    names = _split_names(splits)
    names = names[_usable(names)]
    return _is_named(_in_validation(names)) or len(names) * _HELD_OUT >= LEAST_HELD_OUT


def choose_parts(corpus: Corpus) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the training rows and of the held-out rows, stratified by class."""
    usable = rows_to_learn_from(corpus)
    held_out = _in_validation(_split_names(corpus.splits)[usable])
    if not _is_named(held_out):
        if len(usable) * _HELD_OUT < LEAST_HELD_OUT:
            return usable, np.zeros(0, np.int64)
        held_out_corpus = corpus[usable].split(_HELD_OUT, random_state=0)["test"]
        held_out = np.isin(corpus.row_numbers[usable], held_out_corpus.row_numbers)
    return usable[~held_out], usable[held_out]


def choose_rows(corpus: Corpus, random_state: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of the rows to pretrain on, and of the few random rows for early stopping."""
    usable = rows_to_learn_from(corpus)
    held_out = _in_validation(_split_names(corpus.splits)[usable])
    if not len(usable) or held_out.all():
        raise ValueError("there is nothing to learn from: all rows are in the parts test and validation")
    if not _is_named(held_out):
        n_held_out = min(int(_PRETRAINING_HELD_OUT * len(usable)), _MOST_HELD_OUT)
        held_out = np.random.RandomState(random_state).permutation(len(usable)) < n_held_out
    return usable[~held_out], usable[held_out]


def _split_names(splits: Sequence[str | None]) -> np.ndarray:
    return np.array(splits, dtype=object).astype(str)


def _usable(names: np.ndarray) -> np.ndarray:
    if not (names == "train").any():
        return np.flatnonzero(names != "test")
    return np.flatnonzero((names == "train") | _in_validation(names))


def _in_validation(names: np.ndarray) -> np.ndarray:
    return np.isin(names, _VALIDATION)


def _is_named(held_out: np.ndarray) -> bool:
    """Return whether the splits name a validation part and leave rows outside it."""
    return bool(held_out.any() and not held_out.all())
