"""Small pictures, corpora and models that the campaigns attack, and what can be seen of them."""

from __future__ import annotations

import hashlib
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pictopic import Corpus, DocNADE, PictureModel
from tests.support.patterns import QUICK, write_patterns

torch.set_num_threads(1)
NETWORK = {"n_components": 8, "max_iter": 3}
WORDS = {"n_words": 12, "regions": "1x1", "features": ("cld",), "n_jobs": 1}
N_PICTURES = 24
ASKED = ("1.png", "2.png", "7.png")


def write_sources(folder: Path) -> None:
    """Pictures: a collection (``p``), two lots of four more (``q`` with a tag of its own, and ``r``)."""
    write_patterns(folder / "p", range(N_PICTURES))
    write_patterns(folder / "q", range(24, 28), tags="red;extra")
    write_patterns(folder / "r", range(28, 32))


def build_corpus(source: Path, folder: Path, **options: Any) -> Corpus:
    """A corpus, in a second at most."""
    return Corpus.build(source, folder, **WORDS, **options)


def fit_model(corpus: Corpus, seed: int = 0, model: str = "shallow") -> PictureModel:
    """A model, in a second at most."""
    return PictureModel(**QUICK, model=model, options=NETWORK, random_state=seed).fit(corpus)


def load_model(folder: Path) -> PictureModel:
    """A model of this process alone."""
    return PictureModel.load(folder, n_jobs=1, verbose=0)


def small_estimator(seed: int) -> DocNADE:
    """A fitted estimator."""
    counts = np.random.RandomState(seed).poisson(1.0, (20, 6))
    return DocNADE(n_components=3, max_iter=2, random_state=seed).fit(counts)


def _digest(array: Any) -> str | None:
    return None if array is None else hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def corpus_state(folder: Path) -> dict[str, Any]:
    """Everything that a corpus says, after its bytes were compared with their hashes."""
    corpus = Corpus.open(folder).verified()
    return {
        "file_names": corpus.file_names,
        "tags": corpus.tags,
        "labels": corpus.label_lists,
        "words": list(corpus.vocabulary.annotations),
        "counts": _digest(corpus.X.toarray()),
        "features": _digest(corpus.global_features),
        "codebook": _digest(None if corpus.codebook is None else corpus.codebook.centres),
        "skipped": [list(row) for row in corpus.skipped],
    }


def model_answers(model: PictureModel, pictures: Path) -> dict[str, Any]:
    """What a model answers to some questions."""
    asked = [pictures / name for name in ASKED]

    def rounded(answers: Any) -> Any:
        return [[(name, round(score, 4)) for name, score in own] for own in answers]

    return {
        "annotate": rounded(model.annotate(asked)),
        "classify": rounded(model.classify(asked)),
        "search": rounded(model.search(os.fspath(path), k=5) for path in asked),
        "search_tags": rounded([model.search(tags=["red"], k=5)]),
        "topics": [[own["Topic"], own["Count"], own["Representation"]] for own in model.get_topic_info()],
    }


def model_view(folder: Path, pictures: Path) -> dict[str, Any]:
    """What a model says that was loaded once, whatever is at its place by then."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = load_model(folder)
        corpus = model.corpus_
        return {"file_names": corpus.file_names, "tags": corpus.tags, **model_answers(model, pictures)}


def model_state(folder: Path, pictures: Path) -> dict[str, Any]:
    """Everything that a model says, after its bytes were compared with their hashes."""
    view = model_view(folder, pictures)  # first: loading puts right what a kill has left
    return corpus_state(folder / "corpus") | view
