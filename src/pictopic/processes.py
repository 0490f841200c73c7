"""Worker processes, which end when their parent does, however it ends; and the command that runs pictopic."""

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
