"""How good the visual words are: scenes told apart by an SVM on their counts.

``python -m benchmarks.labelme --data DIR`` reads ``DIR/labelme8`` (metadata.csv, splits.csv).  For each of its five
splits the words are learnt from the training half alone; C and gamma by cross-validation on it.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

import numpy as np
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from benchmarks.timing import report
from pictopic import Corpus


def intersection(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What each pair of histograms has in common."""
    return np.array([np.minimum(row, b).sum(axis=1) for row in a])


def accuracies(train: Corpus, test: Corpus) -> dict[str, float]:
    """Accuracy of both classifiers on the test half."""
    a, b = (part.X.toarray() / np.maximum(part.X.sum(axis=1), 1)[:, None] for part in (train, test))
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    grid = {"C": [1, 3, 10, 30, 100], "gamma": [0.3, 1, 3, 10]}
    rbf = GridSearchCV(SVC(), grid, cv=folds).fit(np.sqrt(a), train.labels)
    kernel = GridSearchCV(SVC(kernel="precomputed"), {"C": [1, 3, 10, 30, 100]}, cv=folds)
    kernel.fit(intersection(a, a), train.labels)
    return {
        "RBF SVM, square roots": float(rbf.score(np.sqrt(b), test.labels)),
        "intersection SVM": float(kernel.score(intersection(b, a), test.labels)),
    }


def main(arguments: list[str] | None = None) -> None:
    """Print the accuracy of each split and their mean."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labelme", description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with labelme8/")
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args(arguments)
    source = options.data / "labelme8"
    with (source / "splits.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    found: dict[str, list[float]] = {}
    for split in [name for name in rows[0] if name.startswith("split")]:
        training = {row["file_name"] for row in rows if row[split] == "train"}
        with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
            corpus = Corpus.build(source, Path(folder) / "corpus", codebook_rows=sorted(training), n_jobs=options.jobs)
            is_training = np.array([name in training for name in corpus.file_names])
            scores = accuracies(corpus[is_training], corpus[~is_training])
        report(f"accuracy, {split}", **scores)
        for name, value in scores.items():
            found.setdefault(name, []).append(value)
    for name, values in found.items():
        report(f"mean accuracy, {name}", mean=float(np.mean(values)), std=float(np.std(values)))


if __name__ == "__main__":
    main()
