"""The commands, without logic of their own: they print answers of the package."""

from __future__ import annotations

import sys
import traceback

from pictopic.cli import corpus, demo, fit, model, pretrain, reproduce, serve  # noqa: F401 - they add their commands to `app`
from pictopic.cli.application import app
from pictopic.cli.output import MisuseError


def main() -> None:
    """Run a command: exit code 2 for misuse, 1 for failure, and one line that says what is wrong."""
    try:
        app(standalone_mode=True)
    except (ValueError, OSError, RuntimeError, ImportError, ArithmeticError, MemoryError) as error:
        if "--debug" in sys.argv:
            traceback.print_exc()
        else:
            print(f"pictopic: {_one_line(error)}", file=sys.stderr)
        sys.exit(2 if isinstance(error, MisuseError) else 1)


def _one_line(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "not enough memory: give it fewer or smaller pictures, or fewer --jobs"
    return " ".join(str(error).split()) or type(error).__name__
