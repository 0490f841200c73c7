"""Topic models of pictures, their tags and their classes.

Names are loaded when they are first used: ``import pictopic`` is quick and needs neither torch nor numba.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pictopic.corpus.corpus import Corpus
    from pictopic.corpus.readers import CountsOnDisk, RowReader
    from pictopic.corpus.rows import Rows
    from pictopic.models.checkpoint import Checkpoint
    from pictopic.models.deep import DeepDocNADE, SupDeepDocNADE
    from pictopic.models.docnade import DocNADE, SupDocNADE
    from pictopic.models.persistence import load
    from pictopic.models.run import Run
    from pictopic.models.tree import WordTree
    from pictopic.picture_model import PictureModel
    from pictopic.words.vocabulary import Vocabulary

__version__ = "0.1.0"

_HOMES = {
    "Checkpoint": "pictopic.models.checkpoint",
    "Corpus": "pictopic.corpus.corpus",
    "CountsOnDisk": "pictopic.corpus.readers",
    "DeepDocNADE": "pictopic.models.deep",
    "DocNADE": "pictopic.models.docnade",
    "PictureModel": "pictopic.picture_model",
    "RowReader": "pictopic.corpus.readers",
    "Rows": "pictopic.corpus.rows",
    "Run": "pictopic.models.run",
    "SupDeepDocNADE": "pictopic.models.deep",
    "SupDocNADE": "pictopic.models.docnade",
    "Vocabulary": "pictopic.words.vocabulary",
    "WordTree": "pictopic.models.tree",
    "load": "pictopic.models.persistence",
}

__all__ = [
    "Checkpoint", "Corpus", "CountsOnDisk", "DeepDocNADE", "DocNADE", "PictureModel", "RowReader", "Rows", "Run",
    "SupDeepDocNADE", "SupDocNADE", "Vocabulary", "WordTree", "__version__", "load",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'pictopic' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
