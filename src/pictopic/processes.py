"""Worker processes, which end when their parent does, however it ends; and locks between processes."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

_LOCK_SECONDS = 10.0  # that a process waits for another one
_CHECK_SECONDS = 1.0  # between two checks that the parent is alive
_TRACKER_FILTER = "ignore:resource_tracker"


def worker_options() -> dict[str, Any]:
    """Return options of `joblib.parallel_config("loky", ...)` with which worker processes end with this process.

    Examples
    --------
    >>> from joblib import Parallel, delayed, parallel_config
    >>> from pictopic.processes import worker_options
    >>> with parallel_config("loky", n_jobs=2, **worker_options()):
    ...     Parallel()(delayed(abs)(number) for number in (-1, -2))
    [1, 2]
    """
    # A process that is stopped while it starts workers leaves names behind, which the tracker of joblib removes, with a
    # warning that helps nobody.  The tracker is another process, which takes its filters from the environment.
    filters = [*os.environ.get("PYTHONWARNINGS", "").split(","), _TRACKER_FILTER]
    os.environ["PYTHONWARNINGS"] = ",".join(dict.fromkeys(filter(None, filters)))
    return {"initializer": begin_worker, "initargs": (os.getpid(),)}


def begin_worker(parent: int) -> None:
    """Leave Ctrl-C to the parent, and end when the parent does; a worker calls this before its first task."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":  # where the parent's number stays after its end
        threading.Thread(target=_end_with, args=(parent,), daemon=True, name="end-with-parent").start()


def end_workers() -> None:
    """End the joblib workers of this process, even in the middle of their work."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)  # a new one has no processes yet


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_CHECK_SECONDS)
    os._exit(1)


def program() -> str:
    """Return the command that runs pictopic here, which may not be on the path."""
    if shutil.which("pictopic"):
        return "pictopic"
    name = sys.argv[0]
    return shlex.quote(name) if Path(name).name == "pictopic" else f"{shlex.quote(sys.executable)} -m pictopic"


# ---- locks -----------------------------------------------------------------------------------------------------------


class LockedError(OSError):
    """Another process is changing the same thing."""


_held = threading.local()  # .keys: the locks that this thread holds; with its process, as a fork copies them


@contextmanager
def lock(path: Path, what: str, timeout: float | None = None) -> Iterator[None]:
    """Only one process at a time is inside the block; the system frees the lock of a process that was killed.

    A thread that is inside the block of a lock may enter another block of the same lock; other threads wait.

    Parameters
    ----------
    path : Path
        Of the lock file, which stays; who holds it is written beside it.
    what : str
        What is locked, for the error.
    timeout : float, optional
        Seconds to wait; default: 10, -1: for ever.

    Raises
    ------
    LockedError
        It names the process and the host that hold the lock.
    """
    from filelock import FileLock, Timeout

    key = (os.getpid(), os.path.realpath(path))
    keys = _held.__dict__.setdefault("keys", set())
    if key in keys:
        yield
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    holder = path.with_name(path.name + ".holder")
    own = FileLock(path, timeout=_LOCK_SECONDS if timeout is None else timeout)
    try:
        own.acquire()
    except Timeout:
        try:
            by = f"process {holder.read_text(encoding='utf-8')[:200].strip()}"
        except OSError:
            by = "another process"
        raise LockedError(f"{what} is being changed by {by}: try again when that has ended") from None
    keys.add(key)
    try:
        with suppress(OSError):
            holder.write_text(f"{os.getpid()} on {socket.gethostname()}\n", encoding="utf-8")
        yield
    finally:
        keys.discard(key)
        with suppress(OSError):
            holder.unlink()
        own.release()


def lock_beside(folder: Path, timeout: float | None = None) -> Any:
    """The lock of a folder that is replaced as a whole: ``.NAME.lock`` beside it."""
    folder = Path(os.path.realpath(folder))
    return lock(folder.with_name(f".{folder.name}.lock"), str(folder), timeout)
