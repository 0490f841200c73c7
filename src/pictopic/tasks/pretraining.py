"""Pretraining without classes, as a start for models that classify pictures."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.store import CODEBOOK, VOCABULARY
from pictopic.models.deep import DeepDocNADE, SupDeepDocNADE
from pictopic.models.persistence import load
from pictopic.models.run import Run
from pictopic.storage import readable, written
from pictopic.tasks.fit import choose_rows, usual_split
from pictopic.words.codebook import Codebook
from pictopic.words.vocabulary import Vocabulary

_NO_LIMIT = 100_000  # passes

Fit = Callable[..., Any]  # estimator, corpus, training rows, held-out rows, run -> the fitted estimator


def pretrain(
    corpus: Corpus,
    *,
    sizes: tuple[int, ...] = (512, 512),
    epochs: int | None = None,
    minutes: float | None = None,
    random_state: int = 0,
    fit: Fit | None = None,
    run: Run | None = None,
    **options: Any,
) -> DeepDocNADE:
    """Train a model of a collection's words without using its classes; rows are read from disk as needed.

    The parts "test" and "validation" of the collection's own split are not used for training.  Early stopping uses the
    validation part or, without one, a tenth of the rows, at most 2,000.

    Parameters
    ----------
    corpus : Corpus
    sizes : tuple of int, default=(512, 512)
        Hidden units of each layer.
    epochs : int, optional
        Maximum number of passes over the collection.
    minutes : float, optional
        Maximum training time.
    random_state : int, default=0
    fit : callable, optional
        Function that trains the estimator, for example on a cluster; default: `fit_rows`.
    run : Run, optional
        Checkpoints, the effect of Ctrl-C, and progress reports.
    **options
        Options of `DeepDocNADE`.

    Returns
    -------
    DeepDocNADE
        To be used as the `init` of a model, or written with `save_pretrained`.
    """
    if epochs is None and minutes is None:
        raise ValueError("say how long to learn: minutes or epochs")
    vocabulary = corpus.vocabulary
    estimator = DeepDocNADE(
        n_components=tuple(sizes), max_iter=_NO_LIMIT if epochs is None else epochs,
        n_annotation_words=vocabulary.n_annotation_words, random_state=random_state,
        split=usual_split(len(vocabulary) - vocabulary.n_annotation_words, vocabulary.n_annotation_words), **options,
    )  # fmt: skip
    rows, held_out = choose_rows(corpus, random_state)
    run = replace(run or Run(), max_minutes=minutes)
    return (fit or fit_rows)(estimator, corpus, rows, held_out, run)


def fit_rows(estimator: Any, corpus: Corpus, rows: np.ndarray, held_out: np.ndarray, run: Run | None = None) -> Any:
    """Fit an estimator without classes to the given rows of a corpus, with early stopping on `held_out`."""
    corpus = corpus.verified()
    if not len(held_out):
        estimator.set_params(validation_fraction=None)
    return estimator.fit(corpus[rows], X_val=corpus[held_out] if len(held_out) else None, run=run)


def save_pretrained(estimator: DeepDocNADE, corpus: Corpus, folder: str | os.PathLike[str]) -> None:
    """Write a pretrained model, with its vocabulary and codebook, to a folder or URL."""

    def write(path: Path) -> None:
        estimator.save(path)
        corpus.vocabulary.save(path / VOCABULARY)
        if corpus.codebook is not None:
            corpus.codebook.save(path / CODEBOOK)

    written(folder, "config.json", write)


def load_pretrained(folder: str | os.PathLike[str], corpus: Corpus) -> Any:
    """Read a pretrained model; raise a ValueError if its words are not those of the corpus.

    Parameters
    ----------
    folder : path or URL
        As `save_pretrained` wrote it; a deep model without a vocabulary is assumed to have the right words.
    corpus : Corpus

    Returns
    -------
    DeepDocNADE or SupDeepDocNADE
    """
    with readable(folder) as path:
        estimator, has_same_words = load(path), _same_words(path, corpus)
    if not isinstance(estimator, DeepDocNADE | SupDeepDocNADE):
        raise ValueError(f"{folder} is a {type(estimator).__name__}: start from a model of pictopic pretrain")
    if not has_same_words or estimator.n_features_in_ != len(corpus.vocabulary):
        raise ValueError(
            f"{folder} was pretrained on other words than those of {corpus.folder}: build both collections as one "
            "corpus, or the second one with --like the first"
        )
    return estimator


def _same_words(folder: Path, corpus: Corpus) -> bool:
    """Return whether the vocabulary and codebook saved with a model, if any, are those of a corpus."""
    vocabulary, codebook = folder / VOCABULARY, folder / CODEBOOK
    if vocabulary.is_file() and Vocabulary.load(vocabulary).annotations != corpus.vocabulary.annotations:
        return False
    if not codebook.is_file() or corpus.codebook is None:
        return True
    return np.array_equal(Codebook.load(codebook).centres, corpus.codebook.centres)
