"""Folders that belong to one run of a server, gone when it ends: also when it was killed, by the next one."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

from filelock import FileLock

from pictopic.files import lock
from pictopic.storage import cache_folder

_PREFIX = "run-"
_LOCK = ".lock"  # held as long as the folder is used; the system frees that of a process that was killed


def scratch_root() -> Path:
    """Where the folders of all runs are: below PICTOPIC_CACHE, or the user's cache folder."""
    return cache_folder("server").absolute().with_name("server")


class Scratch:
    """A folder for what is needed only as long as a server runs.

    Those of servers that were killed are removed at the same time.  If nothing can be written in the user's cache
    folder, it is in the system's folder for temporary files.

    Attributes
    ----------
    folder : Path

    Examples
    --------
    >>> from pictopic.server.scratch import Scratch
    >>> scratch = Scratch()
    >>> scratch.folder.is_dir()
    True
    >>> scratch.close()
    >>> scratch.folder.exists()
    False
    """

    def __init__(self) -> None:
        root = scratch_root()
        try:
            root.mkdir(parents=True, exist_ok=True)
            with lock(root / _LOCK, str(root)):  # otherwise another one could remove it before it is locked
                _sweep(root)
                self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
                held = _lock_of(self.folder)
                held.acquire(timeout=0)
        except OSError:
            self.folder = Path(tempfile.mkdtemp(prefix="pictopic-server-"))
            held = _lock_of(self.folder)
            held.acquire(timeout=0)
        self._finalizer = weakref.finalize(self, _remove, self.folder, held, os.getpid())

    def close(self) -> None:
        """Remove the folder."""
        self._finalizer()


def _lock_of(folder: Path) -> FileLock:
    # Not bound to a thread: the server may be closed by another than made it.
    return FileLock(folder / _LOCK, thread_local=False)


def _sweep(root: Path) -> None:
    """Remove the folders that nobody holds the lock of."""
    for folder in root.glob(_PREFIX + "*"):
        held = _lock_of(folder)
        with suppress(OSError):  # it is in use
            held.acquire(timeout=0)
            shutil.rmtree(folder, ignore_errors=True)
            held.release()


def _remove(folder: Path, held: FileLock, process: int) -> None:
    if os.getpid() == process:  # and not a process that was forked from it
        shutil.rmtree(folder, ignore_errors=True)
        held.release()
