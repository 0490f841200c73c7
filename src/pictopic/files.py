"""Files and folders that are old or new, never half: writing, swapping, and paths that stay inside."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import socket
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pictopic.processes import lock_beside

_MAX_JSON = 1 << 30  # bytes
_MAX_NAME, _MAX_PATH = 255, 4096  # bytes, where the system does not say
_ATTEMPTS, _PAUSE = 20, 0.05  # to read what others are replacing; seconds in between
T = TypeVar("T")


# ---- files -----------------------------------------------------------------------------------------------------------


@contextmanager
def writing(path: Path) -> Iterator[Path]:
    """Write a file under a temporary name, then rename it: nobody ever sees half of it, even after a power cut.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.files import writing
    >>> path = Path(tempfile.mkdtemp()) / "a.txt"
    >>> with writing(path) as temporary:
    ...     _ = temporary.write_text("all of it")
    >>> path.read_text()
    'all of it'
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with temporary.open("rb+") as file:
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~umask())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    sync_folder(path.parent)


def write_bytes(path: Path, content: bytes) -> None:
    """Write a file whole or not at all; see `writing`."""
    with writing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    write_bytes(path, text.encode("utf-8"))


def csv_text(rows: Iterable[Iterable[str]]) -> str:
    r"""Rows as CSV that any reader takes apart into the same cells.

    The `csv` module leaves a carriage return unquoted where lines end with a newline alone, and its own reader then
    takes it for the end of the row.

    Examples
    --------
    >>> from pictopic.files import csv_text
    >>> csv_text([("file_name", "reason"), ("a\rb.jpg", "missing")])
    'file_name,reason\n"a\rb.jpg",missing\n'
    """
    return "".join(",".join(map(_csv_cell, row)) + "\n" for row in rows)


def _csv_cell(text: str) -> str:
    return '"' + text.replace('"', '""') + '"' if any(mark in text for mark in ',"\r\n') else text


def check_regular(path: Path) -> None:
    """Refuse what exists but is no file: a pipe or a device in a folder from elsewhere would be read for ever.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pictopic.files import check_regular
    >>> check_regular(Path("/dev/zero"))
    Traceback (most recent call last):
        ...
    ValueError: /dev/zero is not a file
    """
    try:
        mode = path.stat().st_mode  # once: it may be removed meanwhile
    except OSError:
        return
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is not a file")


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object; a ValueError names the file and what is wrong, whatever is in it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.files import read_json
    >>> path = Path(tempfile.mkdtemp()) / "config.json"
    >>> _ = path.write_text('{"format_version": 1}')
    >>> read_json(path)
    {'format_version': 1}
    """
    try:
        if not path.is_file():  # a device could be read for ever
            raise ValueError("it is missing")
        if path.stat().st_size > _MAX_JSON:
            raise ValueError("it is too large")
        content = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError(f"{path} is damaged: it is nested too deeply") from None
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is damaged: it is not a JSON object")
    return content


def read_unchanged(read: Callable[[], T], identity: Callable[[], Any], what: str) -> T:
    """What `read` returns, read again as long as somebody else has replaced the thing meanwhile.

    Parameters
    ----------
    read : callable
        What it raises counts only if nothing was replaced.
    identity : callable
        What changes when the thing is replaced.
    what : str
        What is read, for the error.
    """
    for _ in range(_ATTEMPTS):
        before = identity()
        try:
            found = read()
        except (OSError, ValueError):
            if identity() == before:
                raise
        else:
            if identity() == before:
                return found
        time.sleep(_PAUSE)
    raise ValueError(f"{what} is replaced all the time: try again when the other process has ended")


def sync_file(path: Path) -> None:
    """Wait until a file's content is on the disk."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk; nothing happens where folders cannot be synced (Windows)."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def sync_tree(folder: Path) -> None:
    """Wait until everything below a folder is on the disk."""
    for root, _, names in os.walk(folder):
        for name in names:
            sync_file(Path(root, name))
        sync_folder(Path(root))


def umask() -> int:
    """Permission bits that new files do not get."""
    current = os.umask(0)
    os.umask(current)
    return current


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """A temporary folder of this process; those that killed processes have left are removed first.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pictopic.files import temporary_folder
    >>> with temporary_folder() as folder:
    ...     Path(folder).is_dir()
    True
    """
    user = os.getuid() if hasattr(os, "getuid") else 0
    root = Path(tempfile.gettempdir(), f"pictopic-{user}-{socket.gethostname()}")
    with suppress(FileExistsError):
        root.mkdir(mode=0o700)
    about = root.lstat()
    if not stat.S_ISDIR(about.st_mode) or (hasattr(os, "getuid") and about.st_uid != user):
        return tempfile.TemporaryDirectory(prefix="pictopic-")  # somebody else's: not to be trusted
    for path in root.iterdir():
        owner = path.name.partition("-")[0]
        if owner.isdecimal() and not _is_alive(int(owner)):
            shutil.rmtree(path, ignore_errors=True)
    return tempfile.TemporaryDirectory(dir=root, prefix=f"{os.getpid()}-")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # of another user
        return True
    return True


# ---- paths -----------------------------------------------------------------------------------------------------------


def is_relative(name: str) -> bool:
    """Whether a name from a file, as it is written, stays below any folder; `is_inside` also follows links.

    Examples
    --------
    >>> from pictopic.files import is_relative
    >>> is_relative("2024/sea.jpg"), is_relative("../sea.jpg"), is_relative("/etc/passwd"), is_relative("a/..")
    (True, False, False, False)
    """
    if not name or "\0" in name or os.path.isabs(name):
        return False
    normal = os.path.normpath(name)
    return normal != os.curdir and normal.split(os.sep)[0] != os.pardir


def is_inside(root: str | os.PathLike[str], name: str) -> bool:
    """Whether a name from a file is one of something inside a folder, links followed.

    Every path that comes from metadata, a corpus or a model passes here before it is opened.

    Examples
    --------
    >>> from pictopic.files import is_inside
    >>> is_inside("photos", "2024/sea.jpg"), is_inside("photos", "../sea.jpg"), is_inside("photos", "/etc/passwd")
    (True, False, False)
    """
    if not is_relative(name):
        return False
    try:
        real_root, real = os.path.realpath(root), os.path.realpath(os.path.join(root, name))
    except (OSError, ValueError):
        return False
    return real.startswith(real_root.rstrip(os.sep) + os.sep)


def has_too_long_name(path: str | os.PathLike[str]) -> bool:
    """Whether the file system cannot hold a file of this name, or the system cannot open a path of this length.

    Examples
    --------
    >>> from pictopic.files import has_too_long_name
    >>> has_too_long_name("photo.xmp"), has_too_long_name("x" * 300 + ".xmp")
    (False, True)
    """
    absolute = Path(os.path.abspath(path))
    folder = next(parent for parent in absolute.parents if _exists(parent))
    longest_name, longest_path = _MAX_NAME, _MAX_PATH
    if hasattr(os, "pathconf"):
        with suppress(OSError, ValueError):
            longest_name, longest_path = (os.pathconf(folder, f"PC_{kind}_MAX") for kind in ("NAME", "PATH"))
    parts = absolute.relative_to(folder).parts
    return any(len(os.fsencode(part)) > longest_name for part in parts) or len(os.fsencode(absolute)) >= longest_path


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # its name is too long, or it is behind a folder without permission
        return False


# ---- folders that are to be written ----------------------------------------------------------------------------------


def check_place(folder: Path, what: str, *markers: str, replaced: bool = False) -> None:
    """Find out, before long work begins, whether its result can be written to a folder.

    Parameters
    ----------
    folder : Path
        Absent, empty, or with one of the markers in it; its parents are made.
    what : str
        What may be there, for the error.
    *markers : str
        Names of files or folders by which that is known.
    replaced : bool, default=False
        Whether the folder will be replaced as a whole: hidden files in it would be lost, and count as content.

    Raises
    ------
    ValueError, OSError
        If something else is there, or nothing can be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.files import check_place
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "letter.txt").write_text("precious")
    >>> check_place(folder / "model", "a model", "config.json")
    >>> check_place(folder, "a model", "config.json")
    Traceback (most recent call last):
    ValueError: ... holds something that is not a model: choose another folder
    """
    real = recovered(folder)
    if real.exists() and not real.is_dir():
        raise ValueError(f"{folder} is a file: choose another folder")
    names = [path.name for path in real.iterdir()] if real.is_dir() else []
    content = [name for name in names if replaced or not name.startswith(".")]
    if content and not any((real / marker).exists() for marker in markers):
        raise ValueError(f"{folder} holds something that is not {what}: choose another folder")
    real.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=real.parent):
        pass


# ---- folders that are replaced as a whole ----------------------------------------------------------------------------


def fresh_folder(folder: Path) -> Path:
    """An empty folder beside another one, to be written and then put in its place by `replace_folder`.

    There is only one, ``.NAME.new``: what a killed process has left of it is removed.  The caller holds the lock
    (`lock_beside`).
    """
    folder = recovered(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    new, old = _beside(folder, "new"), _beside(folder, "old")
    for leftover in (new, old):
        _remove(leftover)
    new.mkdir()
    return new


def replace_folder(new: Path, folder: Path) -> None:
    """Put a folder in another's place, in one step where the system can: afterwards there is the old one or the new.

    Everything in `new` is on the disk first.  Where folders cannot be exchanged, a kill between two renames leaves the
    old one under another name, which `recovered` finds.
    """
    folder = Path(os.path.realpath(folder))
    sync_tree(new)
    if not folder.exists():
        os.rename(new, folder)
    elif _exchange(new, folder):
        _remove(new)
    else:
        old = _beside(folder, "old")
        os.rename(folder, old)
        os.rename(new, folder)
        _remove(old)
    sync_folder(folder.parent)


def recovered(folder: Path) -> Path:
    """The folder itself, links followed; brought back first, if a kill in `replace_folder` left it without its name."""
    real = Path(os.path.realpath(folder))
    old = _beside(real, "old")
    if not real.exists() and old.is_dir():
        # Locked: a process that is alive may be between the two renames, and must find the name free.
        with suppress(OSError), lock_beside(real):
            if not real.exists():
                os.rename(old, real)
    return real


def _beside(folder: Path, role: str) -> Path:
    return folder.with_name(f".{folder.name}.{role}")


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    else:
        shutil.rmtree(path, ignore_errors=True)


_AT_FDCWD, _RENAME_EXCHANGE, _RENAME_SWAP = -100, 2, 2
_NOT_HERE = (errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP)


def _exchange(one: Path, other: Path) -> bool:
    """Let two folders change their names in one step; False where the system or the file system cannot."""
    names = os.fsencode(one), os.fsencode(other)
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            result = libc.renamex_np(names[0], names[1], ctypes.c_uint(_RENAME_SWAP))
        else:
            result = libc.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], ctypes.c_uint(_RENAME_EXCHANGE))
    except (AttributeError, OSError, TypeError):  # no such function; Windows
        return False
    if result == 0:
        return True
    number = ctypes.get_errno()
    if number in _NOT_HERE:
        return False
    raise OSError(number, os.strerror(number), str(other))
