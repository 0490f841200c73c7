"""The demonstration: the whole way from tags and classes to a report, on the built-in sample."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from pictopic.corpus.sample import load_sample
from pictopic.files import write_text
from pictopic.models.docnade import SupDocNADE
from pictopic.tasks.explore import class_words


def run(folder: Path, seed: int = 0) -> str:
    """Fit SupDocNADE on the sample, save it, and write and return a report on pictures that it has not seen."""
    X, y, vocabulary = load_sample(random_state=seed)
    X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.25, random_state=seed, stratify=y)
    begin = time.perf_counter()
    model = SupDocNADE(n_components=50, activation="relu", random_state=seed).fit(X_train, y_train)
    seconds = time.perf_counter() - begin
    model.save(folder / "model")
    frequency = np.asarray(X_train.sum(axis=0)).ravel() + 1.0
    log_frequency = np.log(frequency / frequency.sum())
    by_frequency = np.exp(-(X_test @ log_frequency / X_test.sum(axis=1)).mean())
    most_frequent = max(np.mean(y_test == name) for name in model.classes_)
    lines = [
        "# What pictopic found in its sample",
        "",
        f"{X_train.shape[0]} made-up pictures with {len(vocabulary)} tags and {len(model.classes_)} kinds of scene, "
        f"learnt in {seconds:.1f} s ({model.n_iter_} passes).",
        "",
        f"On {X_test.shape[0]} pictures that were kept aside:",
        "",
        "| | model | without a model |",
        "|---|---|---|",
        f"| right scene | {model.score(X_test, y_test):.1%} | {most_frequent:.1%} (always the same scene) |",
        f"| perplexity of the tags | {model.perplexity(X_test):.1f} | {by_frequency:.1f} (how often a tag occurs) |",
        "",
        "The tags that go with each scene:",
        "",
    ]
    for name, columns in class_words(model, n_units=10).items():
        lines.append(f"- {name}: {', '.join(str(vocabulary[int(k)].word) for k in columns)}")
    lines += ["", "Tags that go with the ones you have:", ""]
    for tags in (["sea", "sand"], ["car", "road"], ["plate"]):
        p = model.next_word_proba(vocabulary.count_tags([tags]))[0]
        p[[vocabulary.index(tag) for tag in tags]] = 0
        best = ", ".join(f"{vocabulary.annotations[k]} ({p[k]:.2f})" for k in np.argsort(-p)[:4])
        lines.append(f"- {', '.join(tags)}: {best}")
    report = "\n".join(lines) + "\n"
    write_text(folder / "report.md", report)
    return f"{report}\nWritten: {folder / 'report.md'}, and the model in {folder / 'model'}"
