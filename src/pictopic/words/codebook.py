"""The codebook: which visual word a patch is."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors.numpy import save
from threadpoolctl import threadpool_limits

from pictopic.checks import array, read_arrays, texts
from pictopic.files import write_bytes
from pictopic.kernels.nearest import BLOCK, best_columns

_SAMPLES_PER_WORD, _MAX_SAMPLES = 256, 200_000  # descriptors that a codebook is learnt from: at most 100 MB
N_EXAMPLES = 16  # patches that are remembered for each word
_SCORES = 1 << 19  # scores of descriptors and words that are computed at once, to stay in the cache: 2 MB
_ITERATIONS = 25
_MAX_WORDS, _MAX_DIMENSIONS = 10_000_000, 100_000  # of a codebook that is read


def sample_size(n_words: int) -> int:
    """Number of descriptors that a codebook is learnt from."""
    return min(_SAMPLES_PER_WORD * n_words, _MAX_SAMPLES)


class Patch(NamedTuple):
    """A patch of a picture."""

    file_name: str
    x: float
    y: float
    bin_size: float


class Drawn(NamedTuple):
    """A random draw of descriptors, and where they come from."""

    keys: np.ndarray  # (n,), float64: the random numbers
    descriptors: np.ndarray  # (n, 128), float32
    places: np.ndarray  # (n, 3), float32: x, y and bin size
    pictures: np.ndarray  # (n,), int64

    @classmethod
    def of(
        cls, described: Iterable[tuple[np.ndarray, np.ndarray]], picture: int, seed: int, limit: float = 1.0
    ) -> list[Drawn]:
        """Draw from a picture's descriptors, one bin size after the other: those whose number is at most `limit`."""
        rng = np.random.default_rng([seed, picture])
        drawn = []
        for descriptors, places in described:
            keys = rng.random(len(descriptors))
            rows = np.flatnonzero(keys <= limit)
            drawn.append(cls(keys[rows], descriptors[rows], places[rows], np.full(len(rows), picture)))
        return drawn

    @classmethod
    def nothing(cls) -> Drawn:
        """An empty draw."""
        return cls(np.zeros(0), np.zeros((0, 128), np.float32), np.zeros((0, 3), np.float32), np.zeros(0, np.int64))

    @classmethod
    def smallest(cls, parts: Sequence[Drawn], size: int) -> Drawn:
        """The descriptors with the `size` smallest numbers of several draws, in order."""
        order = np.argsort(np.concatenate([part.keys for part in parts]), kind="stable")[:size]
        return cls(*(np.concatenate(arrays)[order] for arrays in zip(*parts, strict=True)))


class Sample:
    """A uniform sample of descriptors out of any number, in bounded memory.

    Every descriptor draws a random number; those with the smallest are kept.  So the sample does not depend on the
    order in which pictures come, nor on who described them.

    Parameters
    ----------
    size : int
        Number of descriptors to keep.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.codebook import Drawn, Sample
    >>> sample = Sample(3)
    >>> for picture in range(5):
    ...     described = [(np.full((4, 128), picture, np.float32), np.zeros((4, 3), np.float32))]
    ...     sample.add(Drawn.of(described, picture, seed=0))
    >>> sample.drawn().pictures.tolist()
    [0, 0, 2]
    """

    def __init__(self, size: int, limit: float = 1.0):
        self.size = size
        self.limit = limit  # a descriptor with a larger number cannot come in any more
        self.parts: list[Drawn] = []
        self._n = self._looked_at = 0  # descriptors in the parts: now, and when the limit was last lowered

    def add(self, parts: Iterable[Drawn]) -> None:
        """Add draws, and drop what exceeds the sample's size."""
        for part in parts:
            self.parts.append(part)
            self._n += len(part.keys)
        if self._n > self.size and self._n > self._looked_at + self.size // 8:
            keys = np.concatenate([part.keys for part in self.parts])
            self.limit = float(np.partition(keys, self.size - 1)[self.size - 1])
            self._looked_at = self._n
        # Seldom, as all of the sample is copied.
        if self._n > 2 * self.size:
            self.drawn()

    def drawn(self) -> Drawn:
        """The sample, smallest numbers first."""
        self.parts = [Drawn.smallest([Drawn.nothing(), *self.parts], self.size)]
        self._n = self._looked_at = len(self.parts[0].keys)
        return self.parts[0]


class Codebook:
    """Visual words: the centres of a K-means clustering of descriptors.

    Parameters
    ----------
    centres : array of shape (n_words, n_dimensions)
    examples : list of lists of Patch, optional
        For each word the patches nearest to its centre, of different pictures.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.codebook import Codebook
    >>> codebook = Codebook(np.eye(3))
    >>> codebook.predict([[0.1, 0.9, 0], [0.2, 0.1, 0.3]]).tolist()
    [1, 2]
    """

    def __init__(self, centres: np.ndarray, examples: list[list[Patch]] | None = None):
        self.centres = np.ascontiguousarray(centres, dtype=np.float32)
        self.examples = [[] for _ in self.centres] if examples is None else examples
        n_words, n_dimensions = self.centres.shape
        # |d - c|^2 = |d|^2 - 2 (d c - |c|^2 / 2): the nearest centre is the one with the largest bracket.
        width = -(-n_words // BLOCK) * BLOCK
        self._across = np.zeros((n_dimensions, width), np.float32)
        self._across[:, :n_words] = self.centres.T
        self._offsets = np.full(width, -1e38, np.float32)
        self._offsets[:n_words] = -0.5 * (self.centres.astype(np.float64) ** 2).sum(axis=1)

    def __len__(self) -> int:
        return len(self.centres)

    @classmethod
    def learn(cls, sample: Drawn, n_words: int, file_names: Mapping[int, str], seed: int = 0) -> Codebook:
        """Cluster a sample of descriptors.

        scikit-learn's K-means, one thread (the same centres whatever the number of cores), from random descriptors:
        two and a half times as fast as faiss' for the same error (``python -m benchmarks.features``).

        Parameters
        ----------
        sample : Drawn
        n_words : int
            Fewer, with a warning, if there are not as many different descriptors.
        file_names : mapping
            From the number of a picture to its name.
        seed : int, default=0

        Returns
        -------
        Codebook
        """
        from sklearn.cluster import KMeans

        if not len(sample.descriptors):
            raise ValueError("no patch to learn visual words from: are the pictures larger than a patch?")
        # A descriptor that is there a hundred times (a flat wall) must not become two words.
        distinct = np.unique(sample.descriptors, axis=0) if len(sample.descriptors) < 50 * n_words else None
        if distinct is not None and len(distinct) <= n_words:
            if len(distinct) < n_words:
                warnings.warn(
                    f"{n_words} visual words asked for, but there are only {len(distinct)} different patches: "
                    f"the codebook has {len(distinct)} words",
                    stacklevel=2,
                )
            centres = distinct
        else:
            with threadpool_limits(1), warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that it has not converged: 25 rounds are enough for a codebook
                kmeans = KMeans(n_words, init="random", n_init=1, max_iter=_ITERATIONS, tol=0, random_state=seed)
                centres = kmeans.fit(sample.descriptors).cluster_centers_
        codebook = cls(centres)
        codebook.examples = codebook._nearest(sample, file_names)
        return codebook

    def _nearest(self, sample: Drawn, file_names: Mapping[int, str]) -> list[list[Patch]]:
        """For each word the patches of the sample nearest to its centre, one per picture."""
        words, distances = self.quantise(sample.descriptors)
        examples: list[list[Patch]] = [[] for _ in self.centres]
        seen: set[tuple[int, int]] = set()
        for i in np.lexsort((sample.keys, distances)):
            word, picture = int(words[i]), int(sample.pictures[i])
            if len(examples[word]) < N_EXAMPLES and (word, picture) not in seen:
                seen.add((word, picture))
                examples[word].append(Patch(file_names[picture], *(float(value) for value in sample.places[i])))
        return examples

    def quantise(self, descriptors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Nearest word of each descriptor, and the squared distance to its centre.

        The search is exhaustive, one block of descriptors at a time, so memory does not grow with their number.

        Returns
        -------
        words : int32 array of shape (n,)
        distances : float32 array of shape (n,)
        """
        descriptors = self._checked(descriptors)
        words, best = self._best(descriptors)
        squares = np.einsum("ij,ij->i", descriptors, descriptors)
        return words, np.maximum(squares - 2 * best, 0)

    def predict(self, descriptors: np.ndarray) -> np.ndarray:
        """Nearest word of each descriptor."""
        return self._best(self._checked(descriptors))[0]

    def _checked(self, descriptors: np.ndarray) -> np.ndarray:
        descriptors = np.ascontiguousarray(descriptors, dtype=np.float32)
        if descriptors.ndim != 2 or descriptors.shape[1] != self.centres.shape[1]:
            raise ValueError(f"expected descriptors of {self.centres.shape[1]} numbers, got {descriptors.shape}")
        return descriptors

    def _best(self, descriptors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The word with the largest d c - |c|^2 / 2, and how large it is."""
        words, best = np.empty(len(descriptors), np.int32), np.empty(len(descriptors), np.float32)
        width = self._across.shape[1]
        n = max(1, _SCORES // width)
        scores = np.empty((min(n, len(descriptors)), width), np.float32)
        for start in range(0, len(descriptors), n):
            block = descriptors[start : start + n]
            np.dot(block, self._across, out=scores[: len(block)])
            best_columns(scores[: len(block)], self._offsets, words[start : start + n], best[start : start + n])
        return words, best

    def save(self, path: str | Path) -> None:
        """Write the codebook to a safetensors file."""
        names = sorted({patch.file_name for patches in self.examples for patch in patches})
        number = {name: i for i, name in enumerate(names)}
        pictures = np.full((len(self), N_EXAMPLES), -1, np.int32)
        places = np.zeros((len(self), N_EXAMPLES, 3), np.float32)
        for word, patches in enumerate(self.examples):
            for k, patch in enumerate(patches):
                pictures[word, k], places[word, k] = number[patch.file_name], patch[1:]
        arrays = {"centres": self.centres, "example_pictures": pictures, "example_places": places}
        write_bytes(Path(path), save(arrays, {"pictures": json.dumps(names, ensure_ascii=False)}))

    @classmethod
    def load(cls, path: str | Path) -> Codebook:
        """Read a codebook that `save` wrote."""
        arrays, metadata = read_arrays(Path(path))
        try:
            centres = array(arrays, "centres", "<f4", (None, None))
            n_words = len(centres)
            names = texts(json.loads(metadata.get("pictures", "null")), "pictures")
            pictures = array(arrays, "example_pictures", "<i4", (n_words, None), -1, len(names) - 1)
            places = array(arrays, "example_places", "<f4", (*pictures.shape, 3))
            if not 0 < n_words <= _MAX_WORDS or not 0 < centres.shape[1] <= _MAX_DIMENSIONS:
                raise ValueError(f"it has {n_words} words of {centres.shape[1]} numbers")
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path} is not a codebook: {error}") from None
        examples = [
            [Patch(names[i], *map(float, place)) for i, place in zip(numbers, at, strict=True) if i >= 0]
            for numbers, at in zip(pictures.tolist(), places, strict=True)
        ]
        return cls(centres, examples)
