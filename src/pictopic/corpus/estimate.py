"""What a build will cost, from a few pictures."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

from pictopic.corpus.pieces import make_piece
from pictopic.corpus.source import Source
from pictopic.corpus.stages import CODEBOOK_PICTURES
from pictopic.words.codebook import Codebook, sample_size
from pictopic.words.extract import Extractor, WordOptions
from pictopic.words.global_features import n_features
from pictopic.words.pictures import PictureError

_TRIED = 12  # pictures
_ROUNDS = 25 * 1.5  # of K-means, a comparison of all descriptors with all words each, and what comes with it
_LARGE = 1024  # pixels; pictures above have more patches than they need


@dataclass(frozen=True)
class Estimate:
    """What a build will cost."""

    pictures: int
    unreadable: int  # of those that were tried
    tried: int
    seconds: float
    bytes: int
    longest_side: float  # of the pictures, on average, as they are described
    jobs: int

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """For people."""
        if not self.pictures:
            return ["no pictures to read: seconds"]
        lines = [
            f"{self.pictures:,} pictures, about {_duration(self.seconds)} with {self.jobs} processes and "
            f"{self.bytes / 1e6:,.1f} MB on disk (from {self.tried} of them)"
        ]
        if self.unreadable:
            lines.append(f"{self.unreadable} of {self.tried} could not be read")
        if self.longest_side > _LARGE:
            times = (self.longest_side / 480) ** 2
            lines.append(
                f"the pictures are large ({self.longest_side:.0f} pixels): with --max-side 480 each has "
                f"{times:.0f} times fewer patches"
            )
        return lines


def estimate(source: Source, options: WordOptions, n_jobs: int | None = -1) -> Estimate:
    """Describe a few pictures and reckon what all of them will cost.

    Parameters
    ----------
    source : Source
    options : WordOptions
    n_jobs : int or None, default=-1

    Returns
    -------
    Estimate
    """
    jobs = effective_n_jobs(n_jobs)
    n = len(source) if source.pictures else 0
    if not n:
        return Estimate(0, 0, 0, 0.0, 0, 0.0, jobs)
    names = source.rows["file_name"].to_pylist()
    chosen = np.random.default_rng(0).permutation(n)[:_TRIED]
    paths = [str(source.folder / names[k]) for k in chosen]
    with threadpool_limits(1):
        codebook, side = _some_codebook(paths, options)
        extractor = Extractor(options, codebook)
        make_piece(paths[:1], extractor)  # compiles
        start = time.process_time()
        piece = make_piece(paths, extractor)
        a_picture = (time.process_time() - start) / len(paths)
        learning = _learning_time(codebook, options)
    entries = piece.counts.nnz / max(1, len(piece.kept))
    seconds = a_picture * (n + min(n, CODEBOOK_PICTURES)) / jobs + learning
    a_row = 8 * entries + 4 * n_features(options.features) + 100
    return Estimate(n, len(piece.skipped), len(paths), seconds, int(a_row * n), side, jobs)


def _some_codebook(paths: list[str], options: WordOptions) -> tuple[Codebook, float]:
    """As many words as asked for, of any kind, and the mean longest side of the pictures."""
    extractor, sides = Extractor(options), [0.0]
    descriptors = np.random.default_rng(0).random((options.n_words, 128))
    for path in paths:
        try:
            sides.append(max(extractor.open(path).size))
        except PictureError:
            continue
    return Codebook(descriptors / np.linalg.norm(descriptors, axis=1, keepdims=True)), float(np.mean(sides[1:] or [0]))


def _learning_time(codebook: Codebook, options: WordOptions) -> float:
    some = np.random.default_rng(0).random((2048, 128), dtype=np.float32)
    start = time.process_time()
    codebook.predict(some)
    return _ROUNDS * (time.process_time() - start) * sample_size(options.n_words) / len(some)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"
