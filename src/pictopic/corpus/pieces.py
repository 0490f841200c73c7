"""Pictures to counts, a piece of some pictures at a time: what the processes of a build do.

A piece is a file.  What is in it depends on its pictures and on the options alone, not on who makes it or when, and it
appears whole or not at all: so a build can be spread over processes and machines, stopped and continued.
"""

from __future__ import annotations

import io
import json
import os
import socket
import sys
import warnings
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from scipy import sparse
from threadpoolctl import ThreadpoolController

from pictopic.processes import end_workers, worker_options
from pictopic.words.codebook import Codebook, Drawn, Sample
from pictopic.words.duplicates import perceptual_hash
from pictopic.words.extract import Extractor, WordOptions
from pictopic.words.pictures import PictureError

T = TypeVar("T")


class Piece(NamedTuple):
    """What became of some pictures."""

    kept: np.ndarray  # numbers, within the piece, of those that could be read
    counts: sparse.csr_array  # (n_kept, n_regions * n_words)
    features: np.ndarray  # (n_kept, n_features)
    sizes: np.ndarray  # (n_kept, 2): width and height, upright, before any scaling
    hashes: np.ndarray  # (n_kept,), uint64
    skipped: list[tuple[int, str]]  # number within the piece, reason


class Workers(Protocol):
    """Who calls a function many times: processes of this machine, or of others."""

    def __call__(self, function: Callable[..., T], calls: Iterable[Sequence[Any]]) -> Iterator[T]:
        """The answers, in the order of the calls, which are taken as workers become free."""


def in_processes(function: Callable[..., T], calls: Iterable[Sequence[Any]], n_jobs: int | None) -> Iterator[T]:
    """Call a function many times, in as many processes as `n_jobs` says, one thread each; answers in order.

    One job is done in this process.  Calls are taken from `calls` as processes become free.  The processes end when
    this one does, or when an error, Ctrl-C or the caller ends the work.
    """
    n_jobs = effective_n_jobs(n_jobs)
    if n_jobs == 1:
        # One thread here as there: sums in another order would be other numbers.
        with _libraries(len(sys.modules)).limit(limits=1):
            for call in calls:
                yield function(*call)
        return
    with parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=1, **worker_options()):
        work = Parallel(return_as="generator", batch_size=1, pre_dispatch=2 * n_jobs)
        try:
            yield from work(delayed(function)(*call) for call in calls)
        except BaseException:
            end_workers()
            raise


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:
    """The libraries that have threads; looking for them takes milliseconds, and more come with modules only."""
    return ThreadpoolController()


def draw_descriptors(
    paths: Sequence[str], numbers: Sequence[int], options: WordOptions, seed: int, size: int, limit: float, folder: str
) -> list[Drawn]:
    """A uniform sample of the pictures' descriptors; pictures that cannot be read have none.

    Parameters
    ----------
    paths : sequence of str
    numbers : sequence of int
        Of the pictures: with the seed, they decide which descriptors are drawn.
    options : WordOptions
    seed : int
    size, limit : int, float
        Of the whole sample; see `Sample`.
    folder : str
        That the pictures are in.
    """
    _check_seen(folder)
    extractor, sample = Extractor(options), Sample(size, limit)
    for path, number in zip(paths, numbers, strict=True):
        try:
            image = extractor.open(path)
        except PictureError:
            continue  # said when words are counted
        sample.add(Drawn.of(extractor.describe(image), number, seed, sample.limit))
    return sample.parts


def learn_codebook(sample: Drawn, n_words: int, file_names: Mapping[int, str], seed: int) -> tuple[Codebook, list[str]]:
    """See `Codebook.learn`; what it warns of is the second answer, as a worker's own warnings are not seen."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        codebook = Codebook.learn(sample, n_words, file_names, seed)
    return codebook, [str(warning.message) for warning in told]


def count_words(paths: Sequence[str], options: WordOptions, centres: np.ndarray, folder: str) -> bytes:
    """Count the words of pictures in a folder, given the centres of a codebook; the contents of the piece's file."""
    _check_seen(folder)
    return piece_bytes(make_piece(paths, Extractor(options, Codebook(centres))))


def _check_seen(folder: str) -> None:
    """Pictures may be deleted while a build runs; but a machine that has no such folder, or an empty one, is misled."""
    try:
        with os.scandir(folder) as entries:
            is_seen = next(entries, None) is not None
    except OSError:
        is_seen = False
    if not is_seen:
        raise FileNotFoundError(
            f"{socket.gethostname()} does not see {folder}: the pictures must be there under the same path on every "
            "machine that takes part"
        )


def make_piece(paths: Sequence[str], extractor: Extractor) -> Piece:
    """Count the words of some pictures."""
    kept, rows, features, sizes, hashes, skipped = [], [], [], [], [], []
    for number, path in enumerate(paths):
        try:
            image, size = extractor.open_with_size(path)
        except PictureError as error:
            skipped.append((number, str(error)))
            continue
        try:
            counts, own = extractor.count(image), extractor.features(image)
        except Exception as error:
            raise RuntimeError(f"{path}: {error}") from error
        kept.append(number)
        words = np.flatnonzero(counts)
        rows.append((words.astype(np.int32), counts[words]))
        features.append(own)
        sizes.append(size)
        hashes.append(perceptual_hash(image))
    n_words = len(extractor.regions) * len(extractor.codebook)  # type: ignore[arg-type]
    ends = np.cumsum([0, *(len(words) for words, _ in rows)])
    indices, data = (np.concatenate([np.zeros(0, np.int32), *(row[k] for row in rows)]) for k in (0, 1))
    return Piece(
        np.array(kept, np.int64),
        sparse.csr_array((data, indices, ends.astype(np.int32)), shape=(len(rows), n_words)),
        np.stack(features) if features else np.zeros((0, 0), np.float32),
        np.array(sizes, np.int32).reshape(-1, 2),
        np.array(hashes, np.uint64),
        skipped,
    )


def piece_bytes(piece: Piece) -> bytes:
    """A piece as the contents of a file."""
    counts = piece.counts
    buffer = io.BytesIO()
    np.savez(
        buffer, kept=piece.kept, indptr=counts.indptr, indices=counts.indices, data=counts.data,
        n_words=np.array(counts.shape[1]), features=piece.features, sizes=piece.sizes, hashes=piece.hashes,
        skipped=np.frombuffer(json.dumps(piece.skipped).encode(), np.uint8),
    )  # fmt: skip
    return buffer.getvalue()


def is_whole(path: Path) -> bool:
    """Whether there is a piece, and nothing has happened to it since it was written."""
    try:
        with zipfile.ZipFile(path) as file:
            return file.testzip() is None
    except (OSError, zipfile.BadZipFile):
        return False


def read_piece(path: Path) -> Piece:
    """Read a piece."""
    with np.load(path, allow_pickle=False) as arrays:
        n_kept = len(arrays["kept"])
        counts = sparse.csr_array(
            (arrays["data"], arrays["indices"], arrays["indptr"]), shape=(n_kept, int(arrays["n_words"]))
        )
        skipped = [(int(number), str(reason)) for number, reason in json.loads(arrays["skipped"].tobytes())]
        return Piece(arrays["kept"], counts, arrays["features"], arrays["sizes"], arrays["hashes"], skipped)
