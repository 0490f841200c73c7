"""Queries: pictures and tags that are asked about, as rows of words and features."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from PIL import Image
from scipy import sparse

from pictopic.corpus.chunks import CHUNK_SIZE, Chunk, in_processes, make_chunk
from pictopic.corpus.corpus import Corpus
from pictopic.corpus.rows import Rows
from pictopic.tasks.annotate import tag_proba
from pictopic.words.extract import Extractor
from pictopic.words.pictures import PictureError

Answer = list[tuple[str, float]]
_IN_PROCESSES_FROM = 64  # pictures; below, starting processes takes longer than it saves


def is_one(pictures: Any) -> bool:
    """Return whether this is one picture (or None), not a list of them."""
    return pictures is None or isinstance(pictures, str | os.PathLike | bytes | Image.Image | np.ndarray)


class Described(NamedTuple):
    """Pictures with their words and features, for several questions about them; see `PictureModel.describe`."""

    pictures: list[Any]  # as passed to `describe`
    is_one: bool  # True: a single picture, which gets one answer instead of a list
    visual: sparse.csr_array  # (n, n_pairs): words of the readable pictures
    features: np.ndarray  # (n, n_computed_features)
    readable: list[int]  # positions of the readable pictures in `pictures`


class Query:
    """Pictures with their known tags, to ask several questions about; see `PictureModel.query`.

    They pass through the network once, with the first question that needs it.

    Parameters
    ----------
    reader : PictureReader
    estimator : DocNADE, SupDocNADE, DeepDocNADE or SupDeepDocNADE
        Fitted.
    pictures : path, bytes, PIL image or numpy array, a list of them, Described, or None
        None for tags only.
    tags : sequence of str
        Normalised tags, common to all the pictures.

    Attributes
    ----------
    rows : Rows
        Rows of the readable pictures.
    readable : list of int
        Positions of the readable pictures in `pictures`.
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
        """Return one answer for one picture; for a list of pictures a list, with [] for unreadable ones."""
        if self.is_one:
            return answers[0]
        by_number = dict(zip(self.readable, answers, strict=True))
        return [by_number.get(number, []) for number in range(len(self.pictures))]


class PictureReader:
    """Describe pictures with the words of a corpus.

    Parameters
    ----------
    corpus : Corpus
    n_jobs : int or None
        Number of processes for many pictures.
    """

    def __init__(self, corpus: Corpus, n_jobs: int | None):
        self.corpus, self.n_jobs = corpus, n_jobs

    def rows(self, visual: sparse.csr_array, features: np.ndarray, tags: Sequence[str]) -> Rows:
        """Return words and global features, with the same tags for all pictures; unknown features are NaN."""
        vocabulary, collection_features = self.corpus.vocabulary, self.corpus.global_features
        if visual.shape[1] != vocabulary.n_pairs:
            raise ValueError("the picture was described with other visual words than the model's")
        shape = (visual.shape[0], vocabulary.n_annotation_words)
        tag_counts = vocabulary.count_tags([list(tags)] * shape[0]) if tags else sparse.csr_array(shape, dtype=np.int32)
        X = sparse.csr_array(sparse.hstack([visual, tag_counts], format="csr", dtype=np.int32))
        f = None
        if collection_features is not None:
            f = np.full((X.shape[0], collection_features.shape[1]), np.nan, np.float32)
            f[:, : features.shape[1]] = features
        return Rows(X, f, n_annotation_words=vocabulary.n_annotation_words)

    def describe(self, pictures: Any) -> Described:
        """Compute visual words and features of a picture, of the readable ones of a list, or of no picture (None).

        An unreadable picture raises an error, in a list a warning.  A `Described` is returned as it is.
        """
        if isinstance(pictures, Described):
            return pictures
        one = is_one(pictures)
        picture_list = [pictures] if one else list(pictures)
        if len(picture_list) == 1 and picture_list[0] is None:
            return Described(picture_list, one, self._no_pictures(1), np.zeros((1, 0)), [0])
        files = [self.file_of(picture) for picture in picture_list]
        parts = [files[k : k + CHUNK_SIZE] for k in range(0, len(files), CHUNK_SIZE)]
        n_jobs = self.n_jobs if len(files) >= _IN_PROCESSES_FROM else 1
        chunks = list(in_processes(make_chunk, ((part, self.extractor) for part in parts), n_jobs))
        readable: list[int] = []
        for k, (part, chunk) in enumerate(zip(parts, chunks, strict=True)):
            readable += (k * CHUNK_SIZE + chunk.readable).tolist()
            for number, reason in chunk.skipped:
                self._report(f"{_display_name(part[number])}: {reason}", is_error=len(files) == 1)
        counts = sparse.vstack([chunk.counts for chunk in chunks], format="csr") if chunks else self._no_pictures(0)
        return Described(picture_list, one, sparse.csr_array(counts), _features(chunks), readable)

    @cached_property
    def extractor(self) -> Extractor:
        """Counts words of pictures as they were counted for the corpus."""
        return self.corpus.extractor

    def _no_pictures(self, n: int) -> sparse.csr_array:
        return sparse.csr_array((n, self.corpus.vocabulary.n_pairs), dtype=np.int32)

    @staticmethod
    def _report(text: str, is_error: bool) -> None:
        if is_error:
            raise PictureError(text)
        warnings.warn(text, stacklevel=6)

    def file_of(self, picture: Any) -> Any:
        """Return the path of a picture that is given by its name in the collection; other pictures as they are."""
        row = self.row_of(picture)
        return self.corpus.paths[row] if row is not None and not os.path.exists(picture) else picture

    def row_of(self, picture: Any) -> int | None:
        """Return the picture's row in the collection, or None."""
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


def _features(chunks: list[Chunk]) -> np.ndarray:
    features = [chunk.features for chunk in chunks if len(chunk.readable)]
    return np.concatenate(features) if features else np.zeros((0, 0), np.float32)


def _display_name(picture: Any) -> str:
    return os.fspath(picture) if isinstance(picture, str | os.PathLike) else f"a {type(picture).__name__}"
