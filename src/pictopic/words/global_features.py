"""Features of whole pictures, by name: what the deep models take as `global_features`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module

import numpy as np

KINDS = {
    "gist": 960,
    "mpeg7": 897,
    "csd": 256,
    "scd": 256,
    "cld": 192,
    "ehd": 150,
    "htd": 43,
    "semantic": 1280,
}
"""Known kinds of features, and how many numbers each of them has."""

DEFAULT_KINDS = ("gist", "mpeg7")

# Where each kind is computed.  Looked up when it is asked for, because "semantic" needs torch.
_HOMES = {
    "gist": ("pictopic.words.gist", "gist"),
    "mpeg7": ("pictopic.words.mpeg7", "mpeg7"),
    "csd": ("pictopic.words.mpeg7", "color_structure"),
    "scd": ("pictopic.words.mpeg7", "scalable_color"),
    "cld": ("pictopic.words.mpeg7", "color_layout"),
    "ehd": ("pictopic.words.mpeg7", "edge_histogram"),
    "htd": ("pictopic.words.mpeg7", "homogeneous_texture"),
    "semantic": ("pictopic.words.semantic", "semantic"),
}
_PARTS = {"mpeg7": ("csd", "scd", "cld", "ehd", "htd")}


def global_features(rgb: np.ndarray, kinds: str | Sequence[str] = DEFAULT_KINDS) -> np.ndarray:
    """Features of a whole picture.

    Parameters
    ----------
    rgb : ndarray of shape (height, width, 3), uint8
        Of any size.
    kinds : str or sequence of str, default=("gist", "mpeg7")
        Which features, in this order: "gist", "mpeg7" (which is "csd", "scd", "cld", "ehd" and "htd" together) or
        "semantic" (with ``pip install 'pictopic[semantic]'``).  The default are the 1857 of the paper.

    Returns
    -------
    ndarray of shape (n_features(kinds),), float32
        As they come: standardise them over a collection before training.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.global_features import global_features
    >>> picture = np.zeros((40, 60, 3), np.uint8)
    >>> global_features(picture).shape, global_features(picture, kinds=("cld", "ehd")).shape
    ((1857,), (342,))
    """
    parts = [_function(kind)(rgb) for kind in _checked(kinds)]
    return np.concatenate([np.empty(0, np.float32), *parts])


def n_features(kinds: str | Sequence[str] = DEFAULT_KINDS) -> int:
    """Number of features of these kinds.

    Examples
    --------
    >>> n_features(), n_features("ehd")
    (1857, 150)
    >>> n_features(["gist", "sift"])
    Traceback (most recent call last):
        ...
    ValueError: unknown kind of features 'sift'; known are gist, mpeg7, csd, scd, cld, ehd, htd, semantic
    """
    return sum(KINDS[kind] for kind in _checked(kinds))


def feature_names(kinds: str | Sequence[str] = DEFAULT_KINDS) -> list[str]:
    """A name for each feature.

    Examples
    --------
    >>> names = feature_names()
    >>> len(names), names[0], names[-1]
    (1857, 'gist_0', 'mpeg7_htd_42')
    """
    prefixes = [prefix for kind in _checked(kinds) for prefix in _prefixes(kind)]
    return [f"{prefix}_{i}" for prefix, n in prefixes for i in range(n)]


def _function(kind: str) -> Callable[[np.ndarray], np.ndarray]:
    module, name = _HOMES[kind]
    return getattr(import_module(module), name)


def _checked(kinds: str | Sequence[str]) -> tuple[str, ...]:
    kinds = (kinds,) if isinstance(kinds, str) else tuple(kinds)
    for kind in kinds:
        if kind not in KINDS:
            raise ValueError(f"unknown kind of features {kind!r}; known are {', '.join(KINDS)}")
        if kinds.count(kind) > 1:
            raise ValueError(f"the kind of features {kind!r} is there twice")
    return kinds


def _prefixes(kind: str) -> list[tuple[str, int]]:
    """What a kind's names begin with, and how many of them there are."""
    return [(f"{kind}_{part}", KINDS[part]) for part in _PARTS.get(kind, ())] or [(kind, KINDS[kind])]
