"""Child processes that start with everything loaded, and may die of what they do."""

from __future__ import annotations

import ctypes
import faulthandler
import json
import os
import resource
import select
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass
class Ended:
    """How a child ended."""

    answer: Any = None  # what its function returned, by way of JSON
    error: str | None = None  # "ValueError: text" of an exception
    kinds: tuple[str, ...] = ()  # names of its class and of those above it
    trace: str = ""
    exit_code: int | None = 0
    signal: str | None = None
    timed_out: bool = False
    peak: int = 0  # bytes of memory beyond those at its start

    @property
    def kind(self) -> str:
        """ "answer", the exception's name, "exit 77", the signal's name, or "timeout"."""
        if self.timed_out:
            return "timeout"
        if self.signal:
            return self.signal
        if self.exit_code:
            return f"exit {self.exit_code}"
        return "answer" if self.error is None else self.error.partition(":")[0]

    def __str__(self) -> str:
        return f"{self.kind}: {self.trace or self.error or self.answer}"


def in_child(function: Callable[..., Any], *arguments: Any, seconds: float = 60, **options: Any) -> Ended:
    """Call a function in a fork of this process, and wait for its end; see `Child`."""
    return Child(function, *arguments, **options).ended(seconds)


class Child:
    """A fork of this process that calls a function.

    Parameters
    ----------
    function : callable
        Its answer must be JSON.
    *arguments
    memory : int, optional
        Bytes that it may map beyond what this process has mapped.
    log : Path, optional
        File of what it prints, and of the stack if it crashes; default: nowhere.
    """

    def __init__(
        self, function: Callable[..., Any], *arguments: Any, memory: int | None = None, log: Path | None = None
    ):
        self._log = log
        self._reading, writing = os.pipe()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of fork, where there are threads: theirs wait
            self._pid = os.fork()
        if self._pid == 0:
            _be_child(self._reading, writing, function, arguments, memory, log)
        os.close(writing)

    def ended(self, seconds: float) -> Ended:
        """Wait for its end; it is killed after some seconds."""
        content, timed_out = _read(self._reading, time.monotonic() + seconds)
        os.close(self._reading)
        if timed_out:
            with suppress(ProcessLookupError, PermissionError):  # whatever it has started ends with it
                os.killpg(self._pid, signal.SIGKILL)
        status = os.waitpid(self._pid, 0)[1]
        if timed_out:
            return Ended(timed_out=True)
        if os.WIFSIGNALED(status):
            return Ended(signal=signal.Signals(os.WTERMSIG(status)).name, trace=_last_lines(self._log))
        if os.WEXITSTATUS(status):
            return Ended(exit_code=os.WEXITSTATUS(status), trace=_last_lines(self._log))
        return Ended(**json.loads(content))


def end_with_parent() -> None:
    """Be killed when the process that started this one ends, where the system can do that."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _read(handle: int, deadline: float) -> tuple[bytes, bool]:
    content = b""
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([handle], [], [], left)[0]:
            return content, True
        part = os.read(handle, 1 << 16)
        if not part:
            return content, False
        content += part


def _be_child(reading: int, writing: int, function: Any, arguments: Any, memory: int | None, log: Path | None) -> None:
    """Never returns."""
    end_with_parent()
    os.setpgid(0, 0)
    os.close(reading)
    printed = os.open(os.devnull if log is None else log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    faulthandler.enable(file=printed)
    before = _memory("VmRSS")
    ended = Ended()
    try:
        if memory is not None:
            limit = _memory("VmSize") + memory
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        ended.answer = function(*arguments)
    except BaseException as error:
        ended.error = f"{type(error).__name__}: {error}"
        ended.kinds = tuple(kind.__name__ for kind in type(error).__mro__)
        ended.trace = "".join(traceback.format_exception(error)[-12:])
    ended.peak = _memory("VmHWM") - before
    content = json.dumps(ended.__dict__).encode("utf-8", "backslashreplace")
    while content:
        content = content[os.write(writing, content) :]
    os._exit(0)


def _memory(what: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(what))


def _last_lines(log: Path | None) -> str:
    return "" if log is None or not log.is_file() else log.read_text(errors="replace")[-2000:]
