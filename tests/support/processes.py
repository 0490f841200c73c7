"""Starting other processes in tests."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def alarm(seconds: int) -> Iterator[None]:
    """An AssertionError for a block that waits for ever."""

    def ring(number: int, frame: object) -> None:
        raise AssertionError(f"still waiting after {seconds} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextmanager
def pipe_in_place_of(path: Path) -> Iterator[None]:
    """A named pipe that nobody writes to, instead of a file."""
    content = path.read_bytes()
    path.unlink()
    os.mkfifo(path)
    yield
    path.unlink()
    path.write_bytes(content)
