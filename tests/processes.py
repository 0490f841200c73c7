"""Starting other processes in tests."""

import signal
import subprocess
import time
from pathlib import Path


def start(command, **options):
    """Start a process that can be interrupted.

    Where the tests run in the background, a shell has made them, and so their children, deaf to SIGINT.
    """
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **options,
    )  # fmt: skip


def session(leader):
    """Numbers of the processes of a session (see `start_new_session`) that have not ended."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, number = path.read_text().rpartition(")")[2].split()[:4]
        except OSError:  # it has just ended
            continue
        if int(number) == leader and state != "Z":
            found.append(int(path.parent.name))
    return found


def ended(leader, seconds=20.0):
    """Whether all processes of a session end within some seconds."""
    end = time.monotonic() + seconds
    while session(leader) and time.monotonic() < end:
        time.sleep(0.1)
    return not session(leader)
