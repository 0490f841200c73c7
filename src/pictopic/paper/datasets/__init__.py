"""The paper's data sets, read as they are distributed.

`LAYOUTS` says for each what to download and how its folder must look.  A reader takes that folder; a ValueError names
what is missing or does not fit the rest.  Readers are loaded when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from pictopic.paper.datasets.layouts import LAYOUTS, Layout

if TYPE_CHECKING:
    from pictopic.paper.datasets.corel5k import read_corel5k
    from pictopic.paper.datasets.mirflickr25k import read_mirflickr25k
    from pictopic.paper.datasets.scenes import read_labelme, read_splits, read_uiuc_sports
    from pictopic.paper.datasets.text import TextPart, find_text_corpora, read_text

__all__ = [
    "LAYOUTS", "Layout", "TextPart", "find_text_corpora", "read_corel5k", "read_labelme", "read_mirflickr25k",
    "read_splits", "read_text", "read_uiuc_sports",
]  # fmt: skip

_HOMES = {
    "TextPart": "text",
    "find_text_corpora": "text",
    "read_corel5k": "corel5k",
    "read_labelme": "scenes",
    "read_mirflickr25k": "mirflickr25k",
    "read_splits": "scenes",
    "read_text": "text",
    "read_uiuc_sports": "scenes",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
