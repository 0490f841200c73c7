"""Long commands: they can be stopped and resumed, and keep unfinished work in one folder."""

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
from pictopic.files import read_json, write_text
from pictopic.processes import end_workers, lock_beside, program

_JOB = "job.json"
_ONCE = ("--finish", "--restart")  # options to leave out of the command that resumes


class TerminatedError(KeyboardInterrupt):
    """SIGTERM: stop as after Ctrl-C, but exit with another code."""


@contextmanager
def stoppable(more: str = "", finish: Callable[[], bool] = lambda: False) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM end a command and its workers with exit code 130 or 143, and print how to resume.

    Parameters
    ----------
    more : str
        Option to append to the command that resumes.
    finish : callable
        Returns whether ``--finish`` could save something.
    """

    def terminate(number: int, frame: Any) -> None:
        raise TerminatedError

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    except KeyboardInterrupt as stop:
        with suppress(KeyboardInterrupt):  # another Ctrl-C: the command is already ending
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
    """Provide the folder ``OUT.building`` for a command's unfinished work, and lock OUT.

    The folder is removed at the end of the block; after an error or a kill it stays, and the next run of the same
    command continues from it.

    Parameters
    ----------
    out : Path
    job : dict
        Everything that determines the result, as plain JSON; a folder of another job raises an error.
    restart : bool, default=False
        Remove unfinished work and start over.
    """
    job = json.loads(json.dumps(job))
    with lock_beside(out):
        folder = building_folder(out)
        shutil.rmtree(folder.with_name(f".{folder.name}.removed"), ignore_errors=True)
        unfinished = _unfinished_job(folder)
        if restart and unfinished is not None:
            _remove(folder)
        elif unfinished is not None and unfinished != job:
            raise MisuseError(f"{folder} holds an unfinished {_difference(unfinished, job)}: give that command "
                              "again, or start over with --restart")  # fmt: skip
        write_text(folder / _JOB, json.dumps(job, indent=1, ensure_ascii=False) + "\n")
        try:
            yield folder
        except BaseException:
            if {path.name for path in folder.iterdir()} == {_JOB}:  # nothing to resume from
                _remove(folder)
            raise
        _remove(folder)


def building_folder(out: Path) -> Path:
    """Return the folder for the unfinished work of a command that writes OUT."""
    return Path(f"{os.path.realpath(out)}.building")


def _unfinished_job(folder: Path) -> dict[str, Any] | None:
    """Return the job that left a folder; None if there is none."""
    if not folder.exists() or not any(not path.name.startswith(".") for path in folder.iterdir()):
        return None
    if not (folder / _JOB).is_file():
        raise MisuseError(f"{folder} is in the way: rename it, or choose another --out")
    return read_json(folder / _JOB)


def _difference(unfinished: dict[str, Any], job: dict[str, Any]) -> str:
    if unfinished.get("command") != job["command"]:
        return str(unfinished.get("command"))
    name = next(name for name in sorted({*unfinished, *job}) if unfinished.get(name) != job.get(name))
    return f"{job['command']} with {name} {unfinished.get(name)!r} instead of {job.get(name)!r}"


def _remove(folder: Path) -> None:
    """Remove a folder, renamed first: what a kill leaves of it must not look like unfinished work."""
    removed = folder.with_name(f".{folder.name}.removed")
    shutil.rmtree(removed, ignore_errors=True)
    os.rename(folder, removed)
    shutil.rmtree(removed)
