"""How good the deep models are on real tags and several classes a picture: the MIR Flickr tags and 24 labels.

``python -m benchmarks.multilabel --data DIR`` reads ``DIR/mirflickr_tags/metadata.csv``, in which tags and labels are
joined by ``;``.  Random splits, two thirds to train on; of those a fifth is a validation part, on which everything is
chosen (C, number of passes).  Then all of the two thirds are learnt from.  MAP: mean over the labels of the average
precision on the test third.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks.timing import report
from pictopic import DeepDocNADE, SupDeepDocNADE, Vocabulary

LABELLED = 0.1  # share of the labels that is known in the second part
PRETRAINING = 100  # passes
# By number of layers, chosen on the validation part of another split: a bag of five words that passes three layers of
# which half is dropped tells the last one nothing.
PRETRAINING_DROPOUT = {1: 0.5, 2: 0.3, 3: 0.1}


def read(data: Path) -> tuple[list[list[str]], np.ndarray]:
    """Tags of the pictures, and their labels as a 0/1 matrix."""
    path = data / "mirflickr_tags" / "metadata.csv"
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    labels = [set(row["labels"].split(";")) - {""} for row in rows]
    names = sorted(set().union(*labels))
    return [row["tags"].split(";") for row in rows], np.array([[name in own for name in names] for own in labels], int)


def mean_average_precision(y: np.ndarray, scores: np.ndarray) -> float:
    """Mean over the labels that occur."""
    return float(np.mean([average_precision_score(y[:, k], scores[:, k]) for k in np.flatnonzero(y.any(axis=0))]))


class Split:
    """Training, validation and test part of a random split."""

    def __init__(self, tags: list[list[str]], Y: np.ndarray, seed: int):
        order = np.random.RandomState(seed).permutation(len(tags))
        n_train = 2 * len(tags) // 3
        train, test = order[:n_train], order[n_train:]
        vocabulary = Vocabulary.from_tags([tags[k] for k in train])
        self.X = vocabulary.count_tags([tags[k] for k in train])
        self.X_test, self.Y, self.Y_test = vocabulary.count_tags([tags[k] for k in test]), Y[train], Y[test]
        self.part, self.validation = np.arange(n_train)[: 4 * n_train // 5], np.arange(n_train)[4 * n_train // 5 :]
        self.seed = seed

    def score(self, scores: np.ndarray) -> float:
        """MAP on the test part."""
        return mean_average_precision(self.Y_test, scores)

    def linear(self, make, X, X_test, Cs, X_choice=None) -> float:
        """MAP of a linear classifier a label; its C is chosen on the validation part of X, or of `X_choice`."""

        def scores(C: float, X_given, Y_given, X_new) -> np.ndarray:
            return OneVsRestClassifier(make(C)).fit(X_given, Y_given).decision_function(X_new)

        Z = X if X_choice is None else X_choice
        a, b = self.part, self.validation
        found = [mean_average_precision(self.Y[b], scores(C, Z[a], self.Y[a], Z[b])) for C in Cs]
        return self.score(scores(Cs[int(np.argmax(found))], X, self.Y, X_test))


def logistic(C: float) -> LogisticRegression:
    """Logistic regression."""
    return LogisticRegression(C=C, max_iter=1000)


def chosen_on_validation(split: Split, **options: object) -> tuple[SupDeepDocNADE, SupDeepDocNADE]:
    """A model that was stopped on the validation part, and one of all training rows, with as many passes."""
    options = {"n_annotation_words": split.X.shape[1], "random_state": split.seed, "validation_metric": "map"} | options
    a, b = split.part, split.validation
    trial = SupDeepDocNADE(**options).fit(split.X[a], split.Y[a], X_val=split.X[b], y_val=split.Y[b])
    passes = int(np.argmax(trial.history_["validation_score"])) + 1
    return trial, SupDeepDocNADE(**options).set_params(max_iter=passes, validation_fraction=None).fit(split.X, split.Y)


def all_labels(splits: list[Split]) -> None:
    """Against the linear models, with all labels."""
    results: dict[str, list[float]] = {}
    for split in splits:
        tfidf = TfidfTransformer().fit(split.X)
        trial, model = chosen_on_validation(split)
        found = {
            "TF-IDF + linear SVM": split.linear(
                lambda C: LinearSVC(C=C), tfidf.transform(split.X), tfidf.transform(split.X_test), (0.03, 0.1, 0.3, 1.0)
            ),
            "logistic regression on counts": split.linear(logistic, split.X, split.X_test, (0.1, 0.3, 1.0, 3.0)),
            "SupDeepDocNADE, its own head": split.score(model.predict_proba(split.X_test)),
            # The final model has seen the validation rows' labels: only the trial can say which C is good.
            "SupDeepDocNADE, linear classifier": split.linear(
                logistic,
                model.transform(split.X),
                model.transform(split.X_test),
                (1e-4, 1e-3, 1e-2, 1e-1, 1.0),
                trial.transform(split.X),
            ),
        }
        for name, value in found.items():
            results.setdefault(name, []).append(value)
        report(f"split {split.seed}", **found)
    for name, values in results.items():
        report(f"MAP, {name}", mean=float(np.mean(values)), std=float(np.std(values)))


def few_labels(splits: list[Split]) -> None:
    """With a tenth of the labels: layers 1, 2, 3, with and without pretraining on the rows without labels."""
    results: dict[tuple[int, str], list[float]] = {}
    for split in splits:
        rng = np.random.RandomState(split.seed)
        labelled = rng.permutation(len(split.Y))[: int(LABELLED * len(split.Y))]
        few = Split.__new__(Split)
        few.X, few.Y, few.X_test, few.Y_test = split.X[labelled], split.Y[labelled], split.X_test, split.Y_test
        few.part, few.validation = np.split(np.arange(len(labelled)), [4 * len(labelled) // 5])
        few.seed = split.seed
        for layers in (1, 2, 3):
            sizes = (512,) * layers
            pretrained = DeepDocNADE(
                n_components=sizes, n_annotation_words=split.X.shape[1], max_iter=PRETRAINING, validation_fraction=None,
                dropout=PRETRAINING_DROPOUT[layers], random_state=split.seed,
            ).fit(split.X)  # fmt: skip
            for name, init in (("none", None), (f"{PRETRAINING} passes", pretrained)):
                _, model = chosen_on_validation(few, n_components=sizes, init=init)
                results.setdefault((layers, name), []).append(split.score(model.predict_proba(split.X_test)))
        report(
            f"{LABELLED:.0%} of the labels, split {split.seed}",
            **{f"{layers} layers, pretraining {name}": values[-1] for (layers, name), values in results.items()},
        )
    for (layers, name), values in results.items():
        report(
            f"MAP with {LABELLED:.0%} of the labels", layers=layers, pretraining=name, mean=float(np.mean(values)),
            std=float(np.std(values)),
        )  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.multilabel", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with mirflickr_tags/metadata.csv")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--only", choices=["all_labels", "few_labels"])
    options = parser.parse_args(arguments)
    tags, Y = read(options.data)
    splits = [Split(tags, Y, seed) for seed in range(options.splits)]
    with threadpool_limits(1):
        if options.only != "few_labels":
            all_labels(splits)
        if options.only != "all_labels":
            few_labels(splits)


if __name__ == "__main__":
    main()
