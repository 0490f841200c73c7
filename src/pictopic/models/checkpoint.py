"""Checkpoints: the state of a training run on disk, from which it resumes as if it had never stopped.

A checkpoint is one file, ``checkpoint-STEP-HASH.safetensors``: tensors, and everything else as JSON in its header.
It is written under another name and then renamed, and its name holds its SHA-256: a truncated or changed file is
detected, and the checkpoint before it is used.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, from_numpy

from pictopic.files import sync_file, sync_folder
from pictopic.storage import Store, is_remote, local, sha256

_NAME = re.compile(r"checkpoint-(\d{9})-([0-9a-f]{64})\.safetensors")
_STEP = len("checkpoint-123456789")  # characters of a name up to the step
_TEMPORARY = ".checkpoint-*.tmp"


@dataclass
class Checkpoint:
    """Where and how often the state of a training run is saved; see `Run`.

    Parameters
    ----------
    folder : path or URL
        Created if missing.  If it holds a checkpoint of the same run (same options, same data), `fit` resumes from
        there.
    minutes : float or None, default=10
        Minutes between two checkpoints.
    epochs : int or None, default=None
        Passes over the data between two checkpoints.
    keep : int, default=2
        Number of newest checkpoints to keep.

    Examples
    --------
    >>> import tempfile
    >>> from pictopic import Checkpoint, DeepDocNADE, Run
    >>> folder = tempfile.mkdtemp()
    >>> model = DeepDocNADE(n_components=4, max_iter=3, random_state=0)
    >>> model.fit([[2, 1, 0], [0, 1, 2]], run=Run(Checkpoint(folder, epochs=1))).n_iter_
    3
    """

    folder: str | Path
    minutes: float | None = 10.0
    epochs: int | None = None
    keep: int = 2
    _last: tuple[float, int] = field(default=(0.0, 0), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.minutes is None and self.epochs is None:
            raise ValueError("a Checkpoint needs minutes or epochs")
        if self.keep < 1:
            raise ValueError(f"keep must be at least 1, got {self.keep}")

    def below(self, name: str) -> Checkpoint:
        """Return the same settings for a sub-folder."""
        return replace(self, folder=f"{os.fspath(self.folder)}/{name}")

    def begin(self, epoch: int) -> None:
        """Start counting time and epochs."""
        self._last = (time.monotonic(), epoch)

    def due(self, epoch: int) -> bool:
        """Return whether a checkpoint is due after this number of finished epochs."""
        when, last_epoch = self._last
        if self.epochs is not None and epoch - last_epoch >= self.epochs:
            return True
        return self.minutes is not None and time.monotonic() - when >= 60 * self.minutes

    def files(self) -> list[Path]:
        """Return the paths of the checkpoints, newest first."""
        return [local(self.folder) / name for name in self.names()]

    def names(self) -> list[str]:
        """Return the names of the checkpoints, newest first."""
        if is_remote(self.folder):
            names = Store(str(self.folder)).names()
        else:
            folder = local(self.folder)
            names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        return sorted((name for name in names if _NAME.fullmatch(name)), reverse=True)

    def save(self, step: int, epoch: int, tensors: dict[str, Tensor | np.ndarray], state: dict[str, Any]) -> bool:
        """Write a checkpoint; if that fails (full disk), warn, keep the earlier ones and return False."""
        self.begin(epoch)
        remote = is_remote(self.folder)
        folder = Path(tempfile.gettempdir()) if remote else local(self.folder)
        temporary = folder / _TEMPORARY.replace("*", str(os.getpid()))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            save_file({name: _tensor(values).contiguous() for name, values in tensors.items()}, temporary,
                      metadata={"state": json.dumps(state)})  # fmt: skip
            digest = sha256(temporary)
            name = f"checkpoint-{step:09d}-{digest}.safetensors"
            if remote:
                Store(str(self.folder)).put(temporary, name)
            else:
                sync_file(temporary)
                os.replace(temporary, folder / name)
                sync_folder(folder)
        except (OSError, SafetensorError) as error:
            warnings.warn(f"no checkpoint could be written to {self.folder} ({error}); training goes on", stacklevel=2)
            return False
        finally:
            temporary.unlink(missing_ok=True)
        others = [other for other in self.names() if other != name]
        # Others of this step or a later one are damaged, or were written before the epoch's end.
        outdated = [other for other in others if other[:_STEP] >= name[:_STEP]]
        outdated += [other for other in others if other not in outdated][self.keep - 1 :]
        self._remove(outdated)
        return True

    def _remove(self, names: list[str]) -> None:
        for name in names:
            if is_remote(self.folder):
                Store(str(self.folder)).remove(name)
            else:
                (local(self.folder) / name).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Delete the half-written files of killed processes."""
        if not is_remote(self.folder):
            for path in local(self.folder).glob(_TEMPORARY):
                path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Delete the checkpoints of a run whose model is saved, and their folder if it is empty."""
        self._remove(self.names())
        if not is_remote(self.folder):
            self.sweep()
            with suppress(OSError):
                local(self.folder).rmdir()

    def peek(self) -> dict[str, Any] | None:
        """Return the state of the newest intact checkpoint without its tensors; None if there is none."""
        checkpoint = self.load()
        return None if checkpoint is None else checkpoint[1]

    def load(self) -> tuple[dict[str, Tensor], dict[str, Any]] | None:
        """Return tensors and state of the newest intact checkpoint; None if there is none."""
        self.sweep()
        for name in self.names():
            try:
                with self._local_copy(name) as path:
                    return _read(path)
            except (OSError, ValueError, TypeError, KeyError, SafetensorError) as error:
                warnings.warn(
                    f"{self.folder}/{name} is damaged ({error}); the checkpoint before it is used", stacklevel=2
                )
        return None

    @contextmanager
    def _local_copy(self, name: str) -> Iterator[Path]:
        if not is_remote(self.folder):
            yield local(self.folder) / name
            return
        with tempfile.TemporaryDirectory(prefix="pictopic-") as folder:
            Store(str(self.folder)).get(name, Path(folder) / name)
            yield Path(folder) / name


def _tensor(values: Tensor | np.ndarray) -> Tensor:
    return from_numpy(np.ascontiguousarray(values)) if isinstance(values, np.ndarray) else values


def _read(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    match = _NAME.fullmatch(path.name)
    if match is None or sha256(path) != match[2]:
        raise ValueError("it is not what was written")
    with safe_open(path, framework="pt") as file:
        state = json.loads(file.metadata()["state"])
        return {name: file.get_tensor(name) for name in file.keys()}, state  # noqa: SIM118
