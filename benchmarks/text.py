"""How good the shallow models are on real text: perplexity, retrieval, classification.

The data folder holds ``text/TMN`` and ``text/20NSshort`` (or is ``text`` itself), each with ``training_docnade.csv``,
``validation_docnade.csv`` and ``test_docnade.csv`` (rows ``label,word ids``) and ``vocab_docnade.vocab``.  Training
stops on the validation part, the classifier's C is chosen on it; the test part is looked at once.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.timing import report
from pictopic import DocNADE
from pictopic.tasks.metrics import retrieval_precision

TARGETS = {
    "TMN": {"perplexity": 575, "precision": 0.65, "accuracy": 0.80},
    "20NSshort": {"perplexity": 630, "precision": None, "accuracy": None},
}


def read_part(folder: Path, part: str) -> tuple[sparse.csr_array, np.ndarray]:
    """Counts and labels of one part of a corpus."""
    n_words = len((folder / "vocab_docnade.vocab").read_text(encoding="utf-8").splitlines())
    labels, columns, ends = [], [], [0]
    for line in (folder / f"{part}_docnade.csv").read_text(encoding="utf-8").splitlines():
        label, words = line.split(",", 1)
        labels.append(label)
        columns += [int(word) for word in words.split()]
        ends.append(len(columns))
    X = sparse.csr_array((np.ones(len(columns), np.int32), columns, ends), shape=(len(labels), n_words))
    X.sum_duplicates()
    return X, np.array(labels)


def unigram_perplexity(X_train: sparse.csr_array, X_test: sparse.csr_array) -> float:
    """Perplexity per document of the words' frequencies, with one added to each."""
    frequency = np.asarray(X_train.sum(axis=0)).ravel() + 1.0
    lengths = np.asarray(X_test.sum(axis=1)).ravel()
    log_p = X_test @ np.log(frequency / frequency.sum())
    return float(np.exp(-np.mean(log_p[lengths > 0] / lengths[lengths > 0])))


def classifier_accuracy(parts: dict[str, tuple[np.ndarray, np.ndarray]]) -> tuple[float, float]:
    """Test accuracy of logistic regression on representations, with C chosen on the validation part."""
    h, y = parts["training"]
    models = {}
    for C in 10.0 ** np.arange(-4, 2):
        model = make_pipeline(StandardScaler(), LogisticRegression(C=C, max_iter=500))
        models[C] = model.fit(h, y)
    best = max(models, key=lambda C: models[C].score(*parts["validation"]))
    return models[best].score(*parts["test"]), best


def measure(folder: Path, seed: int = 0, **options: object) -> None:
    """Fit with the defaults on one corpus and print its figures."""
    data = {part: read_part(folder, part) for part in ("training", "validation", "test")}
    X, y = data["training"]
    model = DocNADE(**({"output": "softmax", "n_components": 200, "random_state": seed} | options))
    begin, cpu = time.perf_counter(), time.process_time()
    model.fit(X, X_val=data["validation"][0])
    seconds, cpu = time.perf_counter() - begin, time.process_time() - cpu
    X_test, y_test = data["test"]
    h = {part: model.transform(counts) for part, (counts, _) in data.items()}
    accuracy, C = classifier_accuracy({part: (h[part], labels) for part, (_, labels) in data.items()})
    targets = TARGETS.get(folder.name, {})
    name = f"text, {folder.name}, {model.output}"
    report(
        f"{name}: test perplexity per document", value=model.perplexity(X_test, random_state=seed),
        target=targets.get("perplexity"), mean_of_10_orderings=model.perplexity(X_test, n_orderings=10),
        validation=model.perplexity(data["validation"][0], n_orderings=10),
        per_word=model.perplexity(X_test, per="word"), unigram=unigram_perplexity(X, X_test),
    )  # fmt: skip
    report(
        f"{name}: retrieval precision at 0.02", value=retrieval_precision(h["test"], y_test, h["training"], y),
        target=targets.get("precision"),
    )  # fmt: skip
    report(f"{name}: accuracy of logistic regression", value=accuracy, target=targets.get("accuracy"), C=C)
    report(f"{name}: training time", seconds=seconds, cpu_seconds=cpu, passes=model.n_iter_)


def main(arguments: list[str] | None = None) -> None:
    """Measure every corpus that is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with text/TMN and text/20NSshort")
    parser.add_argument("--corpus", choices=sorted(TARGETS), help="only this one")
    parser.add_argument("--output", choices=["softmax", "tree"], default="softmax")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    root = options.data / "text" if (options.data / "text").is_dir() else options.data
    for name in [options.corpus] if options.corpus else sorted(TARGETS):
        if not (root / name / "training_docnade.csv").is_file():
            parser.error(f"{root / name / 'training_docnade.csv'} is missing")
        measure(root / name, options.seed, output=options.output)


if __name__ == "__main__":
    main()
