"""The tags of scenes: which of them a picture deserves, and which of these people would give it."""

from __future__ import annotations

import numpy as np

# A tag, and the share of a picture in per mille that must show it for the tag to be true.  The commonest tags first.
_VISIBLE = {
    "sky": 20, "tree": 12, "grass": 30, "cloud": 30, "building": 50, "window": 20, "road": 40, "car": 4,
    "sidewalk": 30, "sign": 2.5, "door": 8, "person": 1.5, "shop": 15, "peak": 30, "light": 1.2, "fence": 2.5,
    "leaves": 40, "sea": 20, "trunk": 25, "sun": 0.3, "balcony": 6, "hill": 20, "path": 10, "bird": 0.25, "wave": 6,
    "snow": 15, "sand": 20, "rock": 12, "boat": 0.8, "water": 8, "house": 2, "bush": 8, "truck": 3, "field": 40,
    "bridge": 8, "cow": 0.8, "flower": 2, "cliff": 8, "hay": 1, "bus": 3, "umbrella": 0.8, "lighthouse": 0.4,
    "rainbow": 1, "balloon": 0.5, "moon": 0.2,
}  # fmt: skip
TAGS = tuple(_VISIBLE)
_MISSING, _WRONG = 0.15, 0.04
_FEWEST, _MOST = 3, 9


def visible_tags(shares: dict[str, float]) -> list[str]:
    """Tags of what is large enough to be seen, and of the three most striking things in any case; these come first.

    `shares` says how much of the picture shows what, from 0 to 1.

    Examples
    --------
    >>> from pictopic.demo.scenes.tags import visible_tags
    >>> visible_tags({"sea": 0.4, "boat": 0.001, "sand": 0.01, "sky": 0.5})
    ['sky', 'sea', 'boat']
    """
    striking = {tag: 1000 * share / _VISIBLE[tag] for tag, share in shares.items()}
    ranked = sorted(striking, key=lambda tag: -striking[tag])
    return [tag for rank, tag in enumerate(ranked) if striking[tag] >= 1 or rank < _FEWEST]


def given_tags(rng: np.random.Generator, true_tags: list[str]) -> list[str]:
    """The tags that people give, 3 to 9 if so many are true: some true ones are missing, few are wrong.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.demo.scenes.tags import given_tags
    >>> given_tags(np.random.default_rng(1), ["sky", "sea", "sand", "boat", "bird"])
    ['sky', 'sea', 'boat', 'bird']
    """
    missing = rng.random(len(true_tags)) < _MISSING
    # Whoever gives tags at all gives three.
    missing[np.flatnonzero(missing)[: max(0, _FEWEST - int((~missing).sum()))]] = False
    right = [tag for tag, gone in zip(true_tags, missing, strict=True) if not gone][:_MOST]
    n_wrong = min(rng.binomial(len(right), _WRONG), _MOST - len(right))
    others = [tag for tag in TAGS if tag not in true_tags]
    often = 1 / np.arange(3, len(others) + 3)  # a wrong tag is often a common one
    return right + [str(tag) for tag in rng.choice(others, n_wrong, replace=False, p=often / often.sum())]
