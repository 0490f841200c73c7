"""A disk that fails at a chosen operation: the process ends, the disk is full, or the power is cut.

Wraps what Python calls to change files (and what writes files without Python: safetensors, Parquet), inside one folder
and in a process that is thrown away afterwards.
"""

from __future__ import annotations

import builtins
import errno
import io
import os
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

CRASHED = 77  # exit code
# What has happened when the process is gone: all of it ("crash"); what was synced, under the newest names ("data lost")
# or under the names that were synced, too ("names lost").  "full": it goes on, but nothing more can be written.
FAULTS = ("crash", "full", "data lost", "names lost")
_TAKES_SPACE = ("write", "create", "mkdir", "link", "symlink", "sendfile")

_open, _os_open, _stat, _fstat, _link, _unlink = io.open, os.open, os.stat, os.fstat, os.link, os.unlink
_rename, _mkdir, _rmdir, _symlink, _readlink = os.rename, os.mkdir, os.rmdir, os.symlink, os.readlink


class FaultyDisk:
    """Counts the operations inside a folder, and fails at one of them.

    Parameters
    ----------
    root : Path
        The folder; nothing outside of it counts.
    stash : Path
        An empty folder on the same disk for what may have to come back.
    fault : {"crash", "full", "data lost", "names lost"}, optional
    at : int
        Number of the operation that fails.
    """

    def __init__(self, root: Path, stash: Path, fault: str | None = None, at: int = -1):
        self.root, self.stash, self.fault, self.at = os.path.realpath(root), str(stash), fault, at
        self.operations: list[str] = []
        self._is_full = False
        self._durable: dict[int, bytes] = {}  # by inode: what is on the disk of files that were not synced since
        self._pending: list[tuple[int, Callable[[], None]]] = []  # inode of a folder, how to undo a change of its names
        self._n_stashed = 0

    # ---- an operation ------------------------------------------------------------------------------------------------

    def step(self, what: str, path: Any, before: Callable[[], None] | None = None) -> None:
        """An operation is about to happen; perhaps it does not.  `before` is what a crash leaves half done."""
        if not self._counts(path):
            return
        number = len(self.operations)
        self.operations.append(f"{what} {os.path.relpath(path, self.root)}")
        if number == self.at:
            if self.fault == "full":
                self._is_full = True
            else:
                if before is not None:
                    before()
                self._end()
        if self._is_full and what in _TAKES_SPACE:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    def _end(self) -> None:
        if self.fault == "names lost":
            for _, undo in reversed(self._pending):
                with suppress(OSError):
                    undo()
        if self.fault in ("data lost", "names lost"):
            for folder, _, names in os.walk(self.root):
                for name in names:
                    path = os.path.join(folder, name)
                    inode = os.lstat(path).st_ino
                    if inode in self._durable:
                        with _open(path, "wb") as file:
                            file.write(self._durable[inode])
        os._exit(CRASHED)

    def _counts(self, path: Any) -> bool:
        full = os.path.join(os.path.realpath(os.path.dirname(os.path.abspath(path))), os.path.basename(path))
        return full.startswith(self.root + os.sep)

    # ---- what is not on the disk yet ---------------------------------------------------------------------------------

    def soil(self, handle: int) -> None:
        """A file's content is about to change."""
        about = _fstat(handle)
        if stat.S_ISREG(about.st_mode) and about.st_ino not in self._durable:
            with suppress(OSError), _open(f"/proc/self/fd/{handle}", "rb") as file:
                self._durable[about.st_ino] = file.read()

    def soil_path(self, path: Any) -> None:
        """The same, by name."""
        with suppress(OSError), _open(path, "rb") as file:
            self.soil(file.fileno())

    def synced(self, handle: int) -> None:
        """A file's content, or a folder's names, are on the disk from now on."""
        inode = _fstat(handle).st_ino
        self._durable.pop(inode, None)
        self._pending = [entry for entry in self._pending if entry[0] != inode]

    def renamed(self, path: Any, undo: Callable[[], None]) -> None:
        """A name in a folder has changed."""
        if self._counts(path):
            self._pending.append((_stat(os.path.dirname(os.path.abspath(path))).st_ino, undo))

    def kept(self, path: str) -> Callable[[], None]:
        """How to bring back what is at a place now: a file, a link, an empty folder, or nothing."""
        try:
            mode = os.lstat(path).st_mode
        except OSError:
            return lambda: None
        if stat.S_ISDIR(mode):
            return lambda: _mkdir(path)
        place = self._place()
        _link(path, place, follow_symlinks=False)
        return lambda: _link(place, path, follow_symlinks=False)

    def away(self, path: str) -> None:
        """What is at a place was never there."""
        _rename(path, self._place())

    def _place(self) -> str:
        self._n_stashed += 1
        return os.path.join(self.stash, f"{os.getpid()}-{self._n_stashed}")

    # ---- instead of the system's -------------------------------------------------------------------------------------

    def install(self) -> None:
        """From now on everything in this process passes here."""
        disk = self

        class File(io.FileIO):
            def write(self, content: Any) -> int:
                view = memoryview(content).cast("B")
                path = _path_of(self.fileno())
                if disk._counts(path):
                    disk.soil(self.fileno())
                disk.step("write", path, lambda: super(File, self).write(view[: len(view) // 2]) and None)
                return super().write(content)

            def truncate(self, size: int | None = None) -> int:
                path = _path_of(self.fileno())
                if disk._counts(path):
                    disk.soil(self.fileno())
                disk.step("truncate", path)
                return super().truncate(size)

        def open(file, mode="r", buffering=-1, encoding=None, errors=None, newline=None, closefd=True, opener=None):
            if not set(mode) & set("wax+") or (not isinstance(file, int) and not disk._counts(file)):
                return _open(file, mode, buffering, encoding, errors, newline, closefd, opener)
            if not isinstance(file, int):
                disk.entered(file, "w" in mode)
            raw = File(file, mode.replace("b", "").replace("t", ""), closefd, opener)
            if buffering == 0:
                return raw
            kind = io.BufferedRandom if "+" in mode else io.BufferedWriter
            buffered = kind(raw)
            return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)

        builtins.open = io.open = open  # type: ignore[assignment]
        self._install_names()
        self._install_contents()
        self._install_writers()

    def entered(self, path: Any, truncates: bool) -> None:
        """A file is about to be opened for writing."""
        path = os.fspath(path)
        if not os.path.exists(path):
            self.step("create", path)
            self.renamed(path, lambda: self.away(path))
        elif truncates:
            self.soil_path(path)
            self.step("truncate", path)

    def _install_names(self) -> None:
        disk = self

        def os_open(path, flags, mode=0o777, *, dir_fd=None):
            if dir_fd is None and flags & os.O_CREAT and disk._counts(path):
                disk.entered(path, bool(flags & os.O_TRUNC))
            return _os_open(path, flags, mode, dir_fd=dir_fd)

        def removing(what, real):
            def wrapped(path, *, dir_fd=None):
                full = _full(path, dir_fd)
                if not disk._counts(full):
                    return real(path, dir_fd=dir_fd)
                disk.step(what, full)
                undo = disk.kept(full)
                real(path, dir_fd=dir_fd)
                disk.renamed(full, undo)
                return None

            return wrapped

        def moving(what, real):
            def wrapped(source, target, **options):
                source, target = _full(source, options.get("src_dir_fd")), _full(target, options.get("dst_dir_fd"))
                disk.step(what, target)
                back = disk.kept(target) if disk._counts(target) else None
                real(source, target)

                def undo():
                    _rename(target, source)
                    if back is not None:
                        back()

                disk.renamed(target, undo)

            return wrapped

        def making(what, real):
            def wrapped(*arguments, **options):
                path = _full(arguments[-1] if what != "mkdir" else arguments[0], options.get("dir_fd"))
                if not os.path.lexists(path):
                    disk.step(what, path)
                    real(*arguments, **options)
                    disk.renamed(path, lambda: disk.away(path))
                else:
                    real(*arguments, **options)

            return wrapped

        os.open = os_open
        os.unlink, os.remove = removing("unlink", _unlink), removing("unlink", os.remove)
        os.rmdir = removing("rmdir", _rmdir)
        os.rename, os.replace = moving("rename", _rename), moving("rename", os.replace)
        os.mkdir, os.link, os.symlink = making("mkdir", _mkdir), making("link", _link), making("symlink", _symlink)

        import pictopic.files

        exchange = pictopic.files._exchange

        def exchanged(one, other):
            disk.step("exchange", other)
            done = exchange(one, other)
            if done:
                disk.renamed(other, lambda: exchange(one, other) and None)
            return done

        pictopic.files._exchange = exchanged

    def _install_contents(self) -> None:
        disk, sendfile, ftruncate = self, os.sendfile, os.ftruncate

        def fsync(file):
            handle = file if isinstance(file, int) else file.fileno()
            disk.step("fsync", _path_of(handle))
            disk.synced(handle)  # and not for real: it would only take time

        def sent(out, *arguments, **options):
            path = _path_of(out)
            if disk._counts(path):
                disk.soil(out)
                disk.step("sendfile", path)
            return sendfile(out, *arguments, **options)

        def truncated(handle, length):
            disk.soil(handle)
            disk.step("truncate", _path_of(handle))
            return ftruncate(handle, length)

        os.fsync = os.fdatasync = fsync
        os.sendfile, os.ftruncate = sent, truncated

    def _install_writers(self) -> None:
        """What writes files by itself writes by way of Python's instead."""
        import numpy.lib._format_impl as npy
        import pyarrow.parquet as pq
        import safetensors.numpy
        import safetensors.torch

        npy.isfileobj = lambda file: False  # else arrays go to the file's handle
        for library in (safetensors.numpy, safetensors.torch):
            to_bytes, before = library.save, library.save_file

            def save_file(tensors, filename, metadata=None, to_bytes=to_bytes):
                with open(filename, "wb") as file:
                    file.write(to_bytes(tensors, metadata))

            library.save_file = save_file
            for name, module in list(sys.modules.items()):
                if name.startswith("pictopic") and getattr(module, "save_file", None) is before:
                    module.save_file = save_file
        begin, close = pq.ParquetWriter.__init__, pq.ParquetWriter.close

        def opened(writer, where, *arguments, **options):
            writer.through = open(where, "wb") if isinstance(where, str | Path) else None  # noqa: SIM115
            begin(writer, writer.through or where, *arguments, **options)

        def closed(writer):
            close(writer)
            if writer.through is not None:
                writer.through.close()

        pq.ParquetWriter.__init__, pq.ParquetWriter.close = opened, closed


def _path_of(handle: int) -> str:
    return _readlink(f"/proc/self/fd/{handle}")


def _full(path: Any, folder: int | None) -> str:
    name = os.fsdecode(path)
    return os.path.abspath(name if folder is None else os.path.join(_path_of(folder), name))
