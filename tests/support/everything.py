"""Imports every module of pictopic, for a process from which commands are forked."""

from importlib import import_module
from pathlib import Path

import sklearn.svm  # noqa: F401 - by classifiers, when they are fitted
import torch  # noqa: F401 - by most commands, when they run

import pictopic

ROOT = Path(pictopic.__file__).parent
FIRST = len(ROOT.parent.parts)

for path in sorted(ROOT.rglob("*.py")):
    # What needs Ray takes seconds to load and is no part of a quick command.
    if path.stem != "__main__" and "cluster" not in path.parts:
        parts = path.with_suffix("").parts[FIRST:]
        import_module(".".join(parts[:-1] if parts[-1] == "__init__" else parts))
