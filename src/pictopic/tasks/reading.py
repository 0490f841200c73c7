"""Pictures and tags that somebody asks about, as rows of words and features."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from scipy import sparse

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.pieces import Piece, in_processes, make_piece
from pictopic.corpus.rows import Rows
from pictopic.corpus.stages import PIECE
from pictopic.tasks.annotate import tag_proba
from pictopic.words.extract import Extractor
from pictopic.words.pictures import PictureError

Answer = list[tuple[str, float]]
_IN_PROCESSES_FROM = 64  # pictures; for fewer, starting processes takes longer than it saves


def is_one(pictures: Any) -> bool:
    """Whether it is one picture (or none), and not a list of them."""
    return pictures is None or isinstance(pictures, str | os.PathLike | bytes | Image.Image | np.ndarray)


class Described(NamedTuple):
    """Pictures with their words and features, to ask many things about them; see `PictureModel.describe`."""

    pictures: list[Any]  # as they were given
    is_one: bool  # not a list: one answer is wanted, and not a list of them
    visual: sparse.csr_array  # (n, n_pairs): of those that could be read
    features: np.ndarray  # (n, n_computed_features)
    readable: list[int]  # their numbers among the pictures


class Query:
    """Pictures with the tags they are known to have, to ask many things about; see `PictureModel.query`.

    They pass through the network once, when something is asked that needs it.

    Parameters
    ----------
    reader : PictureReader
    estimator : DocNADE, SupDocNADE, DeepDocNADE or SupDeepDocNADE
        Fitted.
    pictures : path, bytes, PIL image or numpy array, a list of them, Described, or None
        None: tags only.
    tags : sequence of str
        Of all of the pictures, normalised.

    Attributes
    ----------
    rows : Rows
        Of the pictures that could be read.
    readable : list of int
        Their numbers.
    """

    def __init__(self, reader: PictureReader, estimator: Any, pictures: Any, tags: Sequence[str] = ()):
        self.pictures, self.is_one, visual, features, self.readable = reader.describe(pictures)
        self.tags = tuple(tags)
        self.rows = reader.rows(visual, features, self.tags)
        self._estimator = estimator

    @cached_property
    def hidden(self) -> np.ndarray:
        """Representations of the rows."""
        hidden: np.ndarray = self._estimator.transform(self.rows)
        return hidden

    @cached_property
    def tag_proba(self) -> np.ndarray:
        """p(next word) of each tag."""
        return tag_proba(self._estimator, self.rows, self.hidden)

    def answers(self, answers: list[Answer]) -> Answer | list[Answer]:
        """One answer for one picture; for a list of pictures a list, empty for those that could not be read."""
        if self.is_one:
            return answers[0]
        by_number = dict(zip(self.readable, answers, strict=True))
        return [by_number.get(number, []) for number in range(len(self.pictures))]


class PictureReader:
    """Describes pictures with the words of a corpus.

    Parameters
    ----------
    corpus : Corpus
    n_jobs : int or None
        Processes, for many pictures.
    """

    def __init__(self, corpus: Corpus, n_jobs: int | None):
        self.corpus, self.n_jobs = corpus, n_jobs

    def rows(self, visual: sparse.csr_array, features: np.ndarray, tags: Sequence[str]) -> Rows:
        """Words and global features, with the same tags for all; features that are not known are NaN."""
        vocabulary, known = self.corpus.vocabulary, self.corpus.global_features
        if visual.shape[1] != vocabulary.n_pairs:
            raise ValueError("the picture was described with other visual words than the model's")
        counted = vocabulary.count_tags([list(tags)] * visual.shape[0])
        X = sparse.csr_array(sparse.hstack([visual, counted], format="csr", dtype=np.int32))
        f = None
        if known is not None:
            f = np.full((X.shape[0], known.shape[1]), np.nan, np.float32)
            f[:, : features.shape[1]] = features
        return Rows(X, f, n_annotation_words=vocabulary.n_annotation_words)

    def describe(self, pictures: Any) -> Described:
        """Visual words and computed features of a picture, of those of a list that can be read, or of none (None).

        One that cannot be read is an error; one of many costs a warning.  What is described already stays as it is.
        """
        if isinstance(pictures, Described):
            return pictures
        single = is_one(pictures)
        given = [pictures] if single else list(pictures)
        if len(given) == 1 and given[0] is None:
            return Described(given, single, self._no_pictures(1), np.zeros((1, 0)), [0])
        files = [self.file_of(picture) for picture in given]
        parts = [files[k : k + PIECE] for k in range(0, len(files), PIECE)]
        n_jobs = self.n_jobs if len(files) >= _IN_PROCESSES_FROM else 1
        pieces = list(in_processes(make_piece, ((part, self.extractor) for part in parts), n_jobs))
        readable: list[int] = []
        for k, (part, piece) in enumerate(zip(parts, pieces, strict=True)):
            readable += (k * PIECE + piece.kept).tolist()
            for number, reason in piece.skipped:
                self._report(f"{_name(part[number])}: {reason}", is_error=len(files) == 1)
        counts = sparse.vstack([piece.counts for piece in pieces], format="csr") if pieces else self._no_pictures(0)
        return Described(given, single, sparse.csr_array(counts), _features(pieces), readable)

    @cached_property
    def extractor(self) -> Extractor:
        """What counts the words of pictures as they were counted for the corpus."""
        return self.corpus.extractor

    def _no_pictures(self, n: int) -> sparse.csr_array:
        return sparse.csr_array((n, self.corpus.vocabulary.n_pairs), dtype=np.int32)

    @staticmethod
    def _report(text: str, is_error: bool) -> None:
        if is_error:
            raise PictureError(text)
        warnings.warn(text, stacklevel=6)

    def file_of(self, picture: Any) -> Any:
        """The file of a picture that is called by its name in the collection."""
        row = self.row_of(picture)
        return self.corpus.paths[row] if row is not None and not os.path.exists(picture) else picture

    def row_of(self, picture: Any) -> int | None:
        """The picture's row in the collection, if it is one of it."""
        if not isinstance(picture, str | os.PathLike):
            return None
        row = self._row_of_path.get(os.path.realpath(picture))
        return self._row_of_name.get(os.fspath(picture)) if row is None else row

    @cached_property
    def _row_of_path(self) -> dict[str, int]:
        return {os.path.realpath(path): row for row, path in enumerate(self.corpus.paths)}

    @cached_property
    def _row_of_name(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.corpus.file_names)}


def _features(pieces: list[Piece]) -> np.ndarray:
    features = [piece.features for piece in pieces if len(piece.kept)]
    return np.concatenate(features) if features else np.zeros((0, 0), np.float32)


def _name(picture: Any) -> str:
    return os.fspath(picture) if isinstance(picture, str | os.PathLike) else f"a {type(picture).__name__}"
