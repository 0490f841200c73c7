"""Chunks of pictures, and what the worker processes of a build do with them: sample descriptors, count words.

A chunk is a file.  Its contents depend on its pictures and on the options alone, not on who makes it or when, and it
appears whole or not at all: a build can be spread over processes and machines, stopped and continued.
"""

from __future__ import annotations

import io
import json
import os
import socket
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from scipy import sparse
from threadpoolctl import threadpool_limits

from pictopic.processes import end_workers, worker_options
from pictopic.words.codebook import Codebook, Drawn, Sample
from pictopic.words.duplicates import perceptual_hash
from pictopic.words.extract import Extractor, WordOptions
from pictopic.words.pictures import PictureError

CHUNK_SIZE = 32  # pictures, on average

T = TypeVar("T")


class Chunk(NamedTuple):
    """Words and features of some pictures."""

    readable: np.ndarray  # numbers, within the chunk, of the n pictures that could be read
    counts: sparse.csr_array  # (n, n_regions * n_words)
    features: np.ndarray  # (n, n_features)
    sizes: np.ndarray  # (n, 2): width and height, upright, before any scaling
    hashes: np.ndarray  # (n,), uint64; empty without
    skipped: list[tuple[int, str]]  # number within the chunk, reason


def cut(names: list[str]) -> list[np.ndarray]:
    """Cut rows into chunks where the names say so: one picture more or fewer changes its own chunk and no other.

    Examples
    --------
    >>> from pictopic.corpus.chunks import cut
    >>> names = [f"{k}.jpg" for k in range(1000)]
    >>> chunks = {tuple(names[row] for row in rows) for rows in cut(names)}
    >>> without_one = names[:500] + names[501:]
    >>> len(chunks - {tuple(without_one[row] for row in rows) for rows in cut(without_one)})
    1
    """
    chunks, first = [], 0
    for row, name in enumerate(names, 1):
        is_cut = zlib.crc32(name.encode("utf-8", "surrogatepass")) % CHUNK_SIZE == 0
        if is_cut or row - first == 4 * CHUNK_SIZE or row == len(names):
            chunks.append(np.arange(first, row))
            first = row
    return chunks


# ---- workers ---------------------------------------------------------------------------------------------------------


class Workers(Protocol):
    """Calls a function many times, in processes of this machine or of others."""

    def __call__(self, function: Callable[..., T], calls: Iterable[Sequence[Any]]) -> Iterator[T]:
        """The answers in the order of the calls, which are taken as workers become free."""


def in_processes(function: Callable[..., T], calls: Iterable[Sequence[Any]], n_jobs: int | None) -> Iterator[T]:
    """Call a function many times in `n_jobs` processes with one thread each; answers come in order.

    A single job runs in this process.  Calls are taken from `calls` as processes become free.  The processes end when
    this one does, or when an error, Ctrl-C or the caller ends the work.
    """
    n_jobs = effective_n_jobs(n_jobs)
    if n_jobs == 1:
        # One thread here too: sums in another order would be other numbers.
        with threadpool_limits(1):
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


# ---- tasks -----------------------------------------------------------------------------------------------------------


def draw_descriptors(
    paths: Sequence[str], numbers: Sequence[int], options: WordOptions, seed: int, size: int, limit: float, folder: str
) -> list[Drawn]:
    """Draw a uniform sample of the descriptors of pictures; unreadable pictures have none.

    The numbers of the pictures and the seed decide which descriptors are drawn; for `size` and `limit` see `Sample`.
    """
    _check_visible(folder)
    extractor, sample = Extractor(options), Sample(size, limit)
    for path, number in zip(paths, numbers, strict=True):
        try:
            image = extractor.open(path)
        except PictureError:
            continue  # reported when words are counted
        sample.add(Drawn.of(extractor.describe(image), number, seed, sample.limit))
    return sample.parts


def learn_codebook(sample: Drawn, n_words: int, file_names: Mapping[int, str], seed: int) -> tuple[Codebook, list[str]]:
    """See `Codebook.learn`; also returns its warnings, as those of a worker process are not shown."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        codebook = Codebook.learn(sample, n_words, file_names, seed)
    return codebook, [str(warning.message) for warning in caught]


def count_words(paths: Sequence[str], options: WordOptions, centres: np.ndarray, folder: str) -> bytes:
    """Count the words of pictures in a folder, given the centres of a codebook, to the contents of a chunk file."""
    _check_visible(folder)
    return chunk_bytes(make_chunk(paths, Extractor(options, Codebook(centres)), with_hashes=True))


def _check_visible(folder: str) -> None:
    """Refuse to go on where the folder is missing or empty: deleted pictures are skipped, a wrong mount is an error."""
    try:
        with os.scandir(folder) as entries:
            is_visible = next(entries, None) is not None
    except OSError:
        is_visible = False
    if not is_visible:
        raise FileNotFoundError(
            f"{socket.gethostname()} does not see {folder}: the pictures must be there under the same path on every "
            "machine that takes part"
        )


def make_chunk(paths: Sequence[str], extractor: Extractor, with_hashes: bool = False) -> Chunk:
    """Count the words of some pictures; their perceptual hashes are needed in a corpus only."""
    readable, rows, features, sizes, hashes, skipped = [], [], [], [], [], []
    for number, path in enumerate(paths):
        try:
            image, size = extractor.open_with_size(path)
        except PictureError as error:
            skipped.append((number, str(error)))
            continue
        try:
            counts, picture_features = extractor.count(image), extractor.features(image)
        except Exception as error:
            raise RuntimeError(f"{path}: {error}") from error
        readable.append(number)
        words = np.flatnonzero(counts)
        rows.append((words.astype(np.int32), counts[words]))
        features.append(picture_features)
        sizes.append(size)
        if with_hashes:
            hashes.append(perceptual_hash(image))
    n_words = len(extractor.regions) * len(extractor.codebook)  # type: ignore[arg-type]
    ends = np.cumsum([0, *(len(words) for words, _ in rows)])
    indices, data = (np.concatenate([np.zeros(0, np.int32), *(row[k] for row in rows)]) for k in (0, 1))
    return Chunk(
        np.array(readable, np.int64),
        sparse.csr_array((data, indices, ends.astype(np.int32)), shape=(len(rows), n_words)),
        np.stack(features) if features else np.zeros((0, 0), np.float32),
        np.array(sizes, np.int32).reshape(-1, 2),
        np.array(hashes, np.uint64),
        skipped,
    )


# ---- files -----------------------------------------------------------------------------------------------------------


def chunk_bytes(chunk: Chunk) -> bytes:
    """A chunk as the contents of a file."""
    counts = chunk.counts
    buffer = io.BytesIO()
    np.savez(
        buffer, kept=chunk.readable, indptr=counts.indptr, indices=counts.indices, data=counts.data,
        n_words=np.array(counts.shape[1]), features=chunk.features, sizes=chunk.sizes, hashes=chunk.hashes,
        skipped=np.frombuffer(json.dumps(chunk.skipped).encode(), np.uint8),
    )  # fmt: skip
    return buffer.getvalue()


def is_whole(path: Path) -> bool:
    """Whether a chunk file exists and is undamaged."""
    try:
        with zipfile.ZipFile(path) as file:
            return file.testzip() is None
    except (OSError, zipfile.BadZipFile):
        return False


def read_chunk(path: Path) -> Chunk:
    """Read a chunk file."""
    with np.load(path, allow_pickle=False) as arrays:
        shape = len(arrays["kept"]), int(arrays["n_words"])
        counts = sparse.csr_array((arrays["data"], arrays["indices"], arrays["indptr"]), shape=shape)
        skipped = [(int(number), str(reason)) for number, reason in json.loads(arrays["skipped"].tobytes())]
        return Chunk(arrays["kept"], counts, arrays["features"], arrays["sizes"], arrays["hashes"], skipped)
