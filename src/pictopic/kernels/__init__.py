"""Hot loops, compiled with numba.  Nothing here imports anything else of pictopic."""

from __future__ import annotations

from pathlib import Path


def _drop_stale_machine_code() -> None:
    """Delete numba's cache files here that are older than any source file here.

    numba compares a function with its own file only.  A kernel that calls one in another file would go on running the
    old machine code after that other file has changed.
    """
    folder = Path(__file__).parent
    newest = max(path.stat().st_mtime for path in folder.glob("*.py"))
    for path in (folder / "__pycache__").glob("*.nb[ic]"):
        try:
            if path.stat().st_mtime < newest:
                path.unlink()
        except OSError:  # another process was quicker, or the folder is read-only
            continue


_drop_stale_machine_code()
