"""The program as a process, and those that it starts: they end when it does, however it ends."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

_EVERY = 1.0  # seconds between two looks at the parent
_TRACKER_FILTER = "ignore:resource_tracker"


def worker_options() -> dict[str, Any]:
    """Options of `joblib.parallel_config("loky", ...)` with which worker processes end when this process does.

    Examples
    --------
    >>> from joblib import Parallel, delayed, parallel_config
    >>> from pictopic.processes import worker_options
    >>> with parallel_config("loky", n_jobs=2, **worker_options()):
    ...     Parallel()(delayed(abs)(number) for number in (-1, -2))
    [1, 2]
    """
    # A process that is stopped while it starts workers leaves names behind, which the tracker of joblib removes.  That
    # it says so is of no use to anybody; the tracker is a process of its own and takes its filters from here.
    filters = [*os.environ.get("PYTHONWARNINGS", "").split(","), _TRACKER_FILTER]
    os.environ["PYTHONWARNINGS"] = ",".join(dict.fromkeys(filter(None, filters)))
    return {"initializer": begin_worker, "initargs": (os.getpid(),)}


def begin_worker(parent: int) -> None:
    """Leave Ctrl-C to the parent, and end when it is gone, killed or not; a worker calls this before its first task."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "win32":  # where the number of a parent that is gone stays
        threading.Thread(target=_end_with, args=(parent,), daemon=True, name="end-with-parent").start()


def end_workers() -> None:
    """End the worker processes of joblib that this process has started, in the middle of their work if need be."""
    from joblib.externals.loky import get_reusable_executor

    get_reusable_executor(reuse=True).shutdown(wait=True, kill_workers=True)  # a new one has no processes yet


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_EVERY)
    os._exit(1)


def program() -> str:
    """How to call pictopic here: where it is installed in a folder of its own, not everybody has that on the path."""
    if shutil.which("pictopic"):
        return "pictopic"
    name = sys.argv[0]
    return shlex.quote(name) if Path(name).name == "pictopic" else f"{shlex.quote(sys.executable)} -m pictopic"
