"""Which class a picture is of: the best of several classifiers on its representation."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from pictopic.files import write_bytes
from pictopic.tasks.metrics import mean_average_precision

OWN, SVM, LINEAR = "the network's own", "RBF SVM", "linear"
_SVM_ROWS = 5_000  # an SVM's cost grows with the square of the rows
_GRID = {"svc__C": [1.0, 10.0, 100.0], "svc__gamma": [0.25, 1.0, 4.0]}  # gamma in units of 1 / (number of features)
_LINEAR_C = (0.001, 0.01, 0.1, 1.0)
_SURE = 0.9  # share of answers that must be right if the others are "don't know"
# What a head saved by an earlier version may contain beside what skops trusts by itself.
_TRUSTED = ["sklearn.calibration._CalibratedClassifier", "sklearn.calibration._TemperatureScaling"]


@dataclass
class ClassHead:
    """A classifier of representations, with calibrated probabilities.

    Parameters
    ----------
    estimator : classifier
        With `decision_function`, or `predict_proba` for several labels a picture.
    classes : list of str
    name : str
        Which of the candidates it is.
    scores : dict of str to float
        What each candidate reached on the validation part: accuracy, or MAP for several labels a picture.
    multi_label : bool
    sure_from : float
        The largest probability below which "don't know" is the better answer.
    temperature : float or None
        What the scores are divided by before they become probabilities; None: they are as the classifier gives them.
    """

    estimator: Any
    classes: list[str]
    name: str
    scores: dict[str, float] = field(default_factory=dict)
    multi_label: bool = False
    sure_from: float = 0.0
    temperature: float | None = None

    def predict_proba(self, Z: np.ndarray) -> np.ndarray:
        """Probability of each class, (n, classes)."""
        if self.temperature is None:
            return np.asarray(self.estimator.predict_proba(Z))
        return np.asarray(softmax(_scores(self.estimator, Z) / self.temperature, axis=1))

    def learn(self, Z: np.ndarray, y: np.ndarray, own: tuple[np.ndarray, np.ndarray]) -> None:
        """Learn again from other representations, the same in all that was chosen; the network's own is `own`."""
        if self.name == OWN:
            self.estimator = _own_head(own, self.classes, self.multi_label)
        else:
            self.estimator = clone(self.estimator).fit(Z, y)

    def save(self, folder: Path) -> None:
        """Write the classifier; nothing in it can be executed."""
        import skops.io

        write_bytes(folder / "head.skops", skops.io.dumps(self.estimator))

    def to_dict(self) -> dict[str, Any]:
        """All but the classifier, for JSON."""
        return {
            "classes": self.classes, "name": self.name, "scores": self.scores, "multi_label": self.multi_label,
            "sure_from": self.sure_from, "temperature": self.temperature,
        }  # fmt: skip

    @classmethod
    def load(cls, folder: Path, content: dict[str, Any]) -> ClassHead:
        """Read what `save` wrote and `to_dict` returned."""
        import skops.io

        path = folder / "head.skops"
        data = path.read_bytes()
        try:
            unknown = set(skops.io.get_untrusted_types(data=data)) - set(_TRUSTED)
            if unknown:
                raise ValueError(f"it contains {sorted(unknown)[0]}, which a classifier does not need")
            return cls(skops.io.loads(data, trusted=_TRUSTED), **content)
        except Exception as error:  # a damaged archive raises anything
            raise ValueError(f"{path} cannot be read: {error}") from None


def fit_class_head(
    Z: np.ndarray,
    y: np.ndarray,
    Z_val: np.ndarray,
    y_val: np.ndarray,
    own: tuple[np.ndarray, np.ndarray],
    classes: list[str],
    random_state: int = 0,
) -> ClassHead:
    """Fit classifiers, and take the best on the validation part.

    Parameters
    ----------
    Z, Z_val : arrays of shape (n, n_features)
        Representations of the training and the validation part; without the latter, the network's own head is taken.
    y, y_val : arrays of shape (n,) or (n, n_classes)
        Names of classes, or 0 and 1 for several a picture.
    own : (array of shape (n_classes, n_features), array of shape (n_classes,))
        The network's U and d.
    classes : list of str
        In the order of `own` (and of the columns of y).
    random_state : int, default=0

    Returns
    -------
    ClassHead
    """
    several = np.ndim(y) == 2
    candidates = {OWN: _own_head(own, classes, several)}
    if not len(Z_val):  # too few pictures to choose by
        return ClassHead(candidates[OWN], classes, OWN, {}, several)
    if several:
        candidates[LINEAR] = _linear(Z, y, Z_val, y_val)
    elif len(Z) <= _SVM_ROWS:
        candidates[SVM] = _svm(Z, y, random_state)
    else:
        candidates[LINEAR] = _linear(Z, y, Z_val, y_val)
    scores = {name: _score(candidate, Z_val, y_val, several) for name, candidate in candidates.items()}
    best = max(scores, key=lambda name: scores[name])
    if several:
        return ClassHead(candidates[best], classes, best, scores, True)
    head = ClassHead(candidates[best], [str(name) for name in candidates[best].classes_], best, scores)
    # The candidate has seen the training part: only the validation part can tell how sure it may be.
    head.temperature = temperature(_scores(head.estimator, Z_val), y_val, head.classes)
    head.sure_from = sure_from(head.predict_proba(Z_val), y_val, head.classes)
    return head


def _scores(estimator: Any, Z: np.ndarray) -> np.ndarray:
    """Scores of all classes, (n, classes); scikit-learn has one number for two."""
    scores = np.asarray(estimator.decision_function(Z))
    return np.stack([np.zeros(len(scores)), scores], axis=1) if scores.ndim == 1 else scores


def temperature(scores: np.ndarray, y: np.ndarray, classes: list[str]) -> float:
    """What to divide scores by, so that their softmax says how often an answer is right.

    Parameters
    ----------
    scores : array of shape (n, classes)
    y : array of shape (n,)
        Names of classes; rows of a class that is not in `classes` do not count.
    classes : list of str

    Returns
    -------
    float
        With which the rows' classes are most probable.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.classify import temperature
    >>> scores = np.array([[4.0, 0.0]] * 400)
    >>> y = np.array(["a"] * 300 + ["b"] * 100)  # right three times of four
    >>> round(temperature(scores, y, ["a", "b"]), 1)  # about 4 / log 3
    3.7
    """
    number = {name: k for k, name in enumerate(classes)}
    known = np.array([name in number for name in y], dtype=bool)
    scores, true = scores[known], np.array([number[name] for name in y[known]], dtype=np.int64)
    if not len(true):
        return 1.0

    # As if one answer more had been wrong and one right: where all are right, no probability is 1 (as Platt does).
    targets = np.full(scores.shape, 1 / (len(true) + 2) / max(1, len(classes) - 1))
    targets[np.arange(len(true)), true] = (len(true) + 1) / (len(true) + 2)

    def loss(log_temperature: float) -> float:
        scaled = scores * np.exp(-log_temperature)
        return float(np.mean(logsumexp(scaled, axis=1) - (targets * scaled).sum(axis=1)))

    return float(np.exp(minimize_scalar(loss, bounds=(-5.0, 5.0), method="bounded").x))


def _score(candidate: Any, Z: np.ndarray, y: np.ndarray, several: bool) -> float:
    if several:
        return mean_average_precision(y, candidate.predict_proba(Z))
    return float(np.mean(candidate.predict(Z) == y))


def _own_head(own: tuple[np.ndarray, np.ndarray], classes: list[str], several: bool) -> Any:
    """The network's last layer as a scikit-learn classifier."""
    weights, offsets = (np.asarray(part, dtype=np.float64) for part in own)

    def linear(rows: np.ndarray, shift: np.ndarray, names: Any) -> LogisticRegression:
        head = LogisticRegression()
        head.coef_, head.intercept_, head.classes_ = rows, shift, np.asarray(names)
        head.n_features_in_, head.n_iter_ = rows.shape[1], np.array([0], np.int32)
        return head

    if several:
        head = OneVsRestClassifier(LogisticRegression())
        head.estimators_ = [linear(weights[[k]], offsets[[k]], [0, 1]) for k in range(len(classes))]
        head.label_binarizer_ = _indicator_binarizer(len(classes))
        head.classes_ = head.label_binarizer_.classes_
        return head
    if len(classes) == 2:  # scikit-learn has one row for two classes
        return linear(weights[[1]] - weights[[0]], offsets[[1]] - offsets[[0]], classes)
    return linear(weights, offsets, classes)


def _indicator_binarizer(n_classes: int) -> Any:
    from sklearn.preprocessing import LabelBinarizer

    return LabelBinarizer(sparse_output=True).fit(np.eye(n_classes, dtype=int))


def _svm(Z: np.ndarray, y: np.ndarray, random_state: int) -> Any:
    """RBF SVM with C and gamma by cross-validation."""
    grid = _GRID | {"svc__gamma": [gamma / Z.shape[1] for gamma in _GRID["svc__gamma"]]}
    n_folds = min(5, int(np.unique(y, return_counts=True)[1].min()))
    svm = make_pipeline(StandardScaler(), SVC(random_state=random_state))
    if n_folds < 2:
        return svm.set_params(svc__C=10.0).fit(Z, y)
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
    return GridSearchCV(svm, grid, cv=folds).fit(Z, y).best_estimator_


def _linear(Z: np.ndarray, y: np.ndarray, Z_val: np.ndarray, y_val: np.ndarray) -> Any:
    """Logistic regression with the best C on the validation part."""
    several = np.ndim(y) == 2

    def fitted(C: float) -> Any:
        one = LogisticRegression(C=C, max_iter=1000)
        return make_pipeline(StandardScaler(), OneVsRestClassifier(one) if several else one).fit(Z, y)

    tried = [fitted(C) for C in _LINEAR_C]
    return max(tried, key=lambda candidate: _score(candidate, Z_val, y_val, several))


def sure_from(probabilities: np.ndarray, y: np.ndarray, classes: list[str], share: float = _SURE) -> float:
    """Smallest probability from which on at least `share` of the answers are right.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.classify import sure_from
    >>> probabilities = np.array([[0.9, 0.1], [0.8, 0.2], [0.4, 0.6], [0.45, 0.55]])
    >>> sure_from(probabilities, np.array(["a", "a", "b", "a"]), ["a", "b"])
    0.6
    """
    top = probabilities.max(axis=1)
    right = np.asarray(classes, dtype=object)[probabilities.argmax(axis=1)] == np.asarray(y, dtype=object)
    order = np.argsort(-top, kind="stable")
    shares = np.cumsum(right[order]) / np.arange(1, len(order) + 1)
    enough = np.flatnonzero(shares >= share)
    return float(top[order[enough[-1]]]) if len(enough) else 1.0
