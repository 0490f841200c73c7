"""Classification of pictures by the best of several classifiers of their representations."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as tensor_bytes
from scipy.optimize import minimize_scalar
from scipy.special import expit, logsumexp, softmax
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from pictopic.checks import mapping, number, one_of, read_arrays, section, texts, yes_or_no
from pictopic.files import write_bytes
from pictopic.tasks.classifiers import Classifier, LinearClassifier, RbfSvm, to_arrays
from pictopic.tasks.metrics import mean_average_precision

NETWORK, SVM, LINEAR = "the network's own", "RBF SVM", "linear"
FILE = "head.safetensors"
_SVM_ROWS = 5_000  # an SVM's cost grows with the square of the rows
_GRID = {"svc__C": [1.0, 10.0, 100.0], "svc__gamma": [0.25, 1.0, 4.0]}  # gamma in units of 1 / (number of features)
_LINEAR_C = (0.001, 0.01, 0.1, 1.0)
_SURE = 0.9  # share of answers that must be right where the others are "don't know"
_SMALLEST, _LARGEST = 1e-6, 1e6  # of C, gamma and the temperature


@dataclass
class ClassHead:
    """A classifier of representations, with calibrated probabilities.

    Parameters
    ----------
    classifier : LinearClassifier or RbfSvm
    classes : list of str
    name : str
        Name of the chosen candidate.
    scores : dict of str to float
        Score of each candidate on the validation part: accuracy, or MAP for several labels per picture.
    multi_label : bool
    sure_from : float
        Probability below which "don't know" is the better answer.
    temperature : float
        Divisor of the scores before the softmax, if pictures have one class each.
    chosen : dict of str to float
        The selected hyper-parameters, C and gamma; `learn` keeps them.
    """

    classifier: Classifier
    classes: list[str]
    name: str
    scores: dict[str, float] = field(default_factory=dict)
    multi_label: bool = False
    sure_from: float = 0.0
    temperature: float = 1.0
    chosen: dict[str, float] = field(default_factory=dict)

    def predict_proba(self, Z: np.ndarray) -> np.ndarray:
        """Return the probability of each class, (n, classes)."""
        scores = self.classifier.scores(Z)
        return expit(scores) if self.multi_label else softmax(scores / self.temperature, axis=1)

    def learn(self, Z: np.ndarray, y: np.ndarray, output_layer: tuple[np.ndarray, np.ndarray]) -> None:
        """Fit the chosen classifier again, with the same hyper-parameters, to other representations.

        The network's own classifier is replaced by `output_layer`.  Rows of an unknown class are left out.
        """
        if self.name == NETWORK:
            self.classifier = LinearClassifier.of_network(*output_layer)
            return
        if not self.multi_label:
            known = np.isin(y.astype(str), self.classes)
            Z, y = Z[known], y[known]
        classifier, classes = _fit(self.name, Z, y, self.chosen)
        if not self.multi_label and [str(name) for name in classes] != self.classes:
            missing = sorted(set(self.classes) - {str(name) for name in classes})
            raise ValueError(f"no picture of the class {missing[0]!r} is left: fit a new model with pictopic fit")
        self.classifier = classifier

    @property
    def n_features(self) -> int:
        """Number of features of a representation."""
        return len(self.classifier.mean)

    def save(self, folder: Path) -> None:
        """Write the classifier's arrays."""
        write_bytes(folder / FILE, tensor_bytes(to_arrays(self.classifier)))

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the classifier, for JSON."""
        return {
            "classes": self.classes, "name": self.name, "scores": self.scores, "multi_label": self.multi_label,
            "sure_from": self.sure_from, "temperature": self.temperature, "chosen": self.chosen,
        }  # fmt: skip

    @classmethod
    def load(cls, folder: Path, content: Any) -> ClassHead:
        """Read what `save` wrote and `to_dict` returned; a ValueError says which value is wrong."""
        checked = _checked(mapping(content, "head"))
        path = folder / FILE
        arrays, _ = read_arrays(path)
        n_classes = len(checked["classes"])
        try:
            classifier: Classifier
            if checked["name"] == SVM:
                classifier = RbfSvm.from_arrays(arrays, n_classes, checked["chosen"]["gamma"])
            else:
                classifier = LinearClassifier.from_arrays(arrays, n_classes)
        except ValueError as error:
            raise ValueError(f"{path} is damaged: {error}") from None
        return cls(classifier, **checked)


def _checked(content: dict[str, Any]) -> dict[str, Any]:
    """Check type and range of the values in a head's JSON."""
    name = one_of(section(content, "name"), "name", (NETWORK, SVM, LINEAR))
    multi_label = yes_or_no(section(content, "multi_label"), "multi_label")
    classes = texts(section(content, "classes"), "classes")
    if len(classes) < (1 if multi_label else 2) or (multi_label and name == SVM):
        raise ValueError(f"'classes' has {len(classes)} names, which is too few, or 'name' does not go with them")
    scores = mapping(section(content, "scores"), "scores")
    chosen = mapping(section(content, "chosen"), "chosen")
    parameter_names = {NETWORK: (), LINEAR: ("C",), SVM: ("C", "gamma")}[name]
    return {
        "classes": classes,
        "name": name,
        "multi_label": multi_label,
        "scores": {one_of(key, "scores", (NETWORK, SVM, LINEAR)): number(v, key, 0, 1) for key, v in scores.items()},
        "sure_from": number(section(content, "sure_from"), "sure_from", 0, 1),
        "temperature": number(section(content, "temperature"), "temperature", _SMALLEST, _LARGEST),
        "chosen": {key: number(section(chosen, key), key, _SMALLEST, _LARGEST) for key in parameter_names},
    }


def fit_class_head(
    Z: np.ndarray,
    y: np.ndarray,
    Z_val: np.ndarray,
    y_val: np.ndarray,
    output_layer: tuple[np.ndarray, np.ndarray],
    classes: list[str],
    random_state: int = 0,
) -> ClassHead:
    """Fit classifiers and return the best on the validation part.

    Parameters
    ----------
    Z, Z_val : arrays of shape (n, n_features)
        Representations of the training and the validation part; if the latter is empty, the network's own is taken.
    y, y_val : arrays of shape (n,) or (n, n_classes)
        Class names, or a 0/1 matrix for several classes per picture.
    output_layer : (array of shape (n_classes, n_features), array of shape (n_classes,))
        The network's U and d.
    classes : list of str
        In the order of `output_layer` (and of the columns of y).
    random_state : int, default=0

    Returns
    -------
    ClassHead
    """
    several = np.ndim(y) == 2
    network_head = ClassHead(LinearClassifier.of_network(*output_layer), classes, NETWORK, multi_label=several)
    if not len(Z_val):  # too few pictures to hold any out
        return network_head
    linear = several or len(Z) > _SVM_ROWS
    trained_head = _linear(Z, y, Z_val, y_val, classes) if linear else _svm(Z, y, random_state)
    candidates = {NETWORK: network_head, trained_head.name: trained_head}
    scores = {name: _score(candidate, Z_val, y_val) for name, candidate in candidates.items()}
    head = candidates[max(scores, key=lambda name: scores[name])]
    head.scores = scores
    if several:
        return head
    # The candidate has seen the training part: only the validation part shows how sure it may be.
    head.temperature = temperature(head.classifier.scores(Z_val), y_val, head.classes)
    head.sure_from = sure_from(head.predict_proba(Z_val), y_val, head.classes)
    return head


def temperature(scores: np.ndarray, y: np.ndarray, classes: list[str]) -> float:
    """Return the temperature that calibrates scores: their softmax then says how often an answer is right.

    Parameters
    ----------
    scores : array of shape (n, classes)
    y : array of shape (n,)
        Class names; rows of a class that is not in `classes` are left out.
    classes : list of str

    Returns
    -------
    float
        Temperature under which the rows' classes are most probable.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.tasks.classify import temperature
    >>> scores = np.array([[4.0, 0.0]] * 400)
    >>> y = np.array(["a"] * 300 + ["b"] * 100)  # right three times out of four
    >>> round(temperature(scores, y, ["a", "b"]), 1)  # about 4 / log 3
    3.7
    """
    number = {name: k for k, name in enumerate(classes)}
    known = np.array([name in number for name in y], dtype=bool)
    scores, true = scores[known], np.array([number[name] for name in y[known]], dtype=np.int64)
    if not len(true):
        return 1.0

    # One more wrong and one more right answer are assumed, as Platt does: no probability becomes 1.
    targets = np.full(scores.shape, 1 / (len(true) + 2) / max(1, len(classes) - 1))
    targets[np.arange(len(true)), true] = (len(true) + 1) / (len(true) + 2)

    def loss(log_temperature: float) -> float:
        scaled = scores * np.exp(-log_temperature)
        return float(np.mean(logsumexp(scaled, axis=1) - (targets * scaled).sum(axis=1)))

    return float(np.exp(minimize_scalar(loss, bounds=(-5.0, 5.0), method="bounded").x))


def _score(head: ClassHead, Z: np.ndarray, y: np.ndarray) -> float:
    if head.multi_label:
        return mean_average_precision(y, head.predict_proba(Z))
    answers = np.asarray(head.classes, dtype=object)[head.classifier.scores(Z).argmax(axis=1)]
    return float(np.mean(answers == y.astype(str)))


def _fit(name: str, Z: np.ndarray, y: np.ndarray, chosen: dict[str, float]) -> tuple[Classifier, np.ndarray]:
    """Fit a classifier with these hyper-parameters; return it and the classes in its order."""
    return RbfSvm.fit(Z, y, **chosen) if name == SVM else LinearClassifier.fit(Z, y, **chosen)


def _svm(Z: np.ndarray, y: np.ndarray, random_state: int) -> ClassHead:
    """Fit an RBF SVM, with C and gamma by cross-validation."""
    n_folds = min(5, int(np.unique(y, return_counts=True)[1].min()))
    chosen = {"C": 10.0, "gamma": 1.0 / Z.shape[1]}
    if n_folds > 1:
        grid = _GRID | {"svc__gamma": [gamma / Z.shape[1] for gamma in _GRID["svc__gamma"]]}
        folds = StratifiedKFold(n_folds, shuffle=True, random_state=random_state)
        search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid, cv=folds, refit=False)
        best = search.fit(np.asarray(Z, np.float64), y).best_params_
        chosen = {"C": float(best["svc__C"]), "gamma": float(best["svc__gamma"])}
    classifier, classes = _fit(SVM, Z, y, chosen)
    return ClassHead(classifier, [str(name) for name in classes], SVM, chosen=chosen)


def _linear(Z: np.ndarray, y: np.ndarray, Z_val: np.ndarray, y_val: np.ndarray, classes: list[str]) -> ClassHead:
    """Fit logistic regressions and return the one whose C is best on the validation part."""
    several = np.ndim(y) == 2
    candidates = []
    for C in _LINEAR_C:
        classifier, fitted_classes = _fit(LINEAR, Z, y, {"C": C})
        names = classes if several else [str(name) for name in fitted_classes]
        candidates.append(ClassHead(classifier, names, LINEAR, multi_label=several, chosen={"C": C}))
    return max(candidates, key=lambda candidate: _score(candidate, Z_val, y_val))


def sure_from(probabilities: np.ndarray, y: np.ndarray, classes: list[str], share: float = _SURE) -> float:
    """Return the smallest probability above which at least `share` of the answers are right.

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
