"""Commands that take long: they can be stopped and resumed, and what they need meanwhile is in one folder."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import typer

from pictopic.cli.output import MisuseError
from pictopic.files import lock_beside, read_json, write_text
from pictopic.processes import end_workers, program

_JOB = "job.json"
_ONCE = ("--finish", "--restart")  # options that the command that resumes does not have


class TerminatedError(KeyboardInterrupt):
    """SIGTERM: stop as after Ctrl-C, but exit with another code."""


@contextmanager
def stoppable(more: str = "", finish: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end a command with exit code 130 or 143, without its workers, and say how to go on.

    Parameters
    ----------
    more : str
        What the command that resumes has at its end.
    finish : callable
        Whether there is something that ``--finish`` could save.
    """

    def terminate(number: int, frame: Any) -> None:
        raise TerminatedError

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except KeyboardInterrupt as stop:
        with suppress(KeyboardInterrupt):  # another one: it is ending already
            end_workers()
        print(f"stopped; go on with: {_command(more)}", file=sys.stderr)
        if finish():
            print(f"or save the best model so far: {_command('--finish')}", file=sys.stderr)
        raise typer.Exit(143 if isinstance(stop, TerminatedError) else 130) from None
    finally:
        signal.signal(signal.SIGTERM, before)


def _command(more: str) -> str:
    arguments = [argument for argument in sys.argv[1:] if argument not in (*_ONCE, more)]
    return " ".join([program(), shlex.join([*arguments, *([more] if more else [])])])


@contextmanager
def work_folder(out: Path, job: dict[str, Any], restart: bool = False) -> Iterator[Path]:
    """The folder ``OUT.building`` for everything that a command needs until OUT is written.

    Nobody else can write OUT meanwhile.  The folder is removed at the end of the block; after an error or a kill it
    stays, and the next run of the same command finds it.

    Parameters
    ----------
    out : Path
    job : dict
        What decides the result, as plain JSON; another job does not get the folder.
    restart : bool, default=False
        Remove what is there, and start over.
    """
    job = json.loads(json.dumps(job))
    with lock_beside(out):
        folder = building_folder(out)
        shutil.rmtree(folder.with_name(f".{folder.name}.removed"), ignore_errors=True)
        found = _found(folder)
        if restart and found is not None:
            _remove(folder)
        elif found is not None and found != job:
            raise MisuseError(f"{folder} holds an unfinished {_difference(found, job)}: give that command again, or "
                              "start over with --restart")  # fmt: skip
        write_text(folder / _JOB, json.dumps(job, indent=1, ensure_ascii=False) + "\n")
        try:
            yield folder
        except BaseException:
            if {path.name for path in folder.iterdir()} == {_JOB}:  # nothing to go on with
                _remove(folder)
            raise
        _remove(folder)


def building_folder(out: Path) -> Path:
    """Where a command works that writes OUT."""
    return Path(f"{os.path.realpath(out)}.building")


def _found(folder: Path) -> dict[str, Any] | None:
    """The job that has left a folder; None, if there is none."""
    if not folder.exists() or not any(not path.name.startswith(".") for path in folder.iterdir()):
        return None
    if not (folder / _JOB).is_file():
        raise MisuseError(f"{folder} is in the way: rename it, or choose another --out")
    return read_json(folder / _JOB)


def _difference(found: dict[str, Any], job: dict[str, Any]) -> str:
    if found.get("command") != job["command"]:
        return str(found.get("command"))
    name = next(name for name in sorted({*found, *job}) if found.get(name) != job.get(name))
    return f"{job['command']} with {name} {found.get(name)!r} instead of {job.get(name)!r}"


def _remove(folder: Path) -> None:
    """Remove a folder: under another name, so that nobody takes what a kill leaves of it for unfinished work."""
    removed = folder.with_name(f".{folder.name}.removed")
    shutil.rmtree(removed, ignore_errors=True)
    os.rename(folder, removed)
    shutil.rmtree(removed)
