"""From a picture to counts of visual words and global features."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

import numpy as np
from PIL import Image

from pictopic.checks import mapping, number, shown, text, texts, values, whole, yes_or_no
from pictopic.words.codebook import Codebook
from pictopic.words.global_features import global_features, n_features
from pictopic.words.pictures import gray, open_with_size, rgb
from pictopic.words.regions import Regions
from pictopic.words.sift import each_bin_size


@dataclass(frozen=True)
class WordOptions:
    """How pictures become words.

    Parameters
    ----------
    n_words : int, default=240
        Size of the codebook.
    regions : str, default="2x2"
        Grid over the picture; see `Regions`.
    step : int, default=8
        Distance of neighbouring patches, in pixels.
    bin_sizes : tuple of int, default=(4,)
        A quarter of the patches' sides.
    max_side : int or None, default=None
        Scale pictures down to this many pixels along the longest side.
    smooth : bool, default=False
        Blur before describing; see `dense_sift`.
    min_contrast : float, default=0
        Patches with less become zero; see `dense_sift`.
    features : tuple of str, default=()
        Kinds of global features; see `global_features`.

    Examples
    --------
    >>> from pictopic.words.extract import WordOptions
    >>> WordOptions.preset("flickr", n_words=500).bin_sizes
    (4, 6, 8, 10)
    """

    n_words: int = 240
    regions: str = "2x2"
    step: int = 8
    bin_sizes: tuple[int, ...] = (4,)
    max_side: int | None = None
    smooth: bool = False
    min_contrast: float = 0.0
    features: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.n_words < 1:
            raise ValueError(f"the number of words must be at least 1, got {self.n_words}")
        if self.step < 1 or not self.bin_sizes or min(self.bin_sizes) < 1:
            raise ValueError(f"step and bin_sizes must be at least 1, got {self.step} and {self.bin_sizes}")
        if self.max_side is not None and self.max_side < 1:
            raise ValueError(f"max_side must be at least 1, got {self.max_side}")
        Regions.parse(self.regions)
        n_features(self.features)

    @classmethod
    def preset(cls, name: str = "scenes", **changes: Any) -> WordOptions:
        """Options by name: "scenes" (the paper's section 6.1) or "flickr" (6.2), with some of them changed.

        A change to None keeps the preset's.
        """
        if name not in PRESETS:
            raise ValueError(f"there is no preset {name!r}; there are {', '.join(PRESETS)}")
        known = {field.name for field in fields(cls)}
        unknown = sorted(set(changes) - known)
        if unknown:
            raise ValueError(f"there is no option {unknown[0]!r}; there are {', '.join(sorted(known))}")
        return replace(PRESETS[name], **_with_tuples({key: v for key, v in changes.items() if v is not None}))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> WordOptions:
        """From what `to_dict` returned, also by way of JSON; a ValueError says which value is wrong."""
        content = mapping(content, "words")
        unknown = sorted(set(content) - set(_CHECKS))
        if unknown:
            raise ValueError(f"there is no option {shown(unknown[0])} of words")
        return cls(**{name: check(content[name], name) for name, check in _CHECKS.items() if name in content})


def _as_list(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "n_words": lambda value, name: whole(value, name, 1, 10_000_000),
    "regions": text,
    "step": lambda value, name: whole(value, name, 1, 1_000_000),
    "bin_sizes": lambda value, name: tuple(whole(item, name, 1, 10_000) for item in values(_as_list(value), name)),
    "max_side": lambda value, name: None if value is None else whole(value, name, 1, 1_000_000),
    "smooth": yes_or_no,
    "min_contrast": lambda value, name: number(value, name, 0, 1e9),
    "features": lambda value, name: tuple(texts(_as_list(value), name)),
}  # of values that are read from a file


def _with_tuples(options: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}


PRESETS = {
    "scenes": WordOptions(),
    "flickr": WordOptions(n_words=2000, regions="1x1", step=3, bin_sizes=(4, 6, 8, 10), max_side=480),
}


class Extractor:
    """Counts the visual words of pictures and computes their global features.

    Parameters
    ----------
    options : WordOptions
    codebook : Codebook or None, default=None
        Needed for `count`.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.codebook import Codebook
    >>> from pictopic.words.extract import Extractor, WordOptions
    >>> rng = np.random.RandomState(0)
    >>> extractor = Extractor(WordOptions(n_words=3, regions="2x2"), Codebook(rng.uniform(0, 0.2, (3, 128))))
    >>> image = extractor.open(rng.randint(256, size=(64, 48), dtype=np.uint8))
    >>> counts = extractor.count(image)
    >>> counts.shape, int(counts.sum())
    ((12,), 35)
    """

    def __init__(self, options: WordOptions, codebook: Codebook | None = None):
        self.options = options
        self.codebook = codebook
        self.regions = Regions.parse(options.regions)

    def open(self, source: Any) -> Image.Image:
        """A picture as `count`, `describe` and `features` take it; see `open_picture`."""
        return self.open_with_size(source)[0]

    def open_with_size(self, source: Any) -> tuple[Image.Image, tuple[int, int]]:
        """The same, and the picture's size before scaling; see `pictopic.words.pictures.open_with_size`."""
        return open_with_size(source, colour=bool(self.options.features), max_side=self.options.max_side)

    def describe(self, image: Image.Image) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Descriptors and places of the patches, one bin size after the other."""
        options = self.options
        return each_bin_size(
            gray(image), step=options.step, bin_sizes=options.bin_sizes, smooth=options.smooth,
            min_contrast=options.min_contrast,
        )  # fmt: skip

    def count(self, image: Image.Image) -> np.ndarray:
        """How often each pair of a visual word and a region occurs.

        Returns
        -------
        int32 array of shape (n_regions * n_words,)
        """
        if self.codebook is None:
            raise ValueError("there is no codebook to count the words of")
        n_words = len(self.codebook)
        counts = np.zeros(len(self.regions) * n_words, np.int64)
        for descriptors, places in self.describe(image):
            words = self.codebook.predict(descriptors)
            for region in self.regions.of(places, image.height, image.width):
                counts += np.bincount(region * n_words + words, minlength=len(counts))
        return counts.astype(np.int32)

    def features(self, image: Image.Image) -> np.ndarray:
        """Global features, float32; none if the options name no kind."""
        kinds: Sequence[str] = self.options.features
        return global_features(rgb(image), kinds) if kinds else np.zeros(0, np.float32)
