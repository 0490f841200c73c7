"""Caches: results in memory, thumbnails on disk, and the folder that is theirs as long as the server runs."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import tempfile
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Generic, TypeVar

from filelock import FileLock

from pictopic.processes import lock
from pictopic.storage import cache_folder
from pictopic.words.pictures import PictureError, open_picture

T = TypeVar("T")
_QUALITY = 82
_LEFT_OVER = 3600.0  # seconds: nothing takes that long to be written
_PREFIX = "run-"
_LOCK = ".lock"  # held as long as the folder is used; the system frees that of a process that was killed

# Reading rows of a corpus goes through all arrays that are mapped, which opening another corpus adds to.
reading = threading.Lock()


class LRUCache(Generic[T]):
    """Cache of the most recently used results.

    Parameters
    ----------
    max_items, max_bytes : int
    size : callable
        Bytes of a result.

    Examples
    --------
    >>> from pictopic.server.cache import LRUCache
    >>> cache = LRUCache(max_items=2, max_bytes=100, size=len)
    >>> [cache.get(name, lambda: print("made") or b"some bytes") for name in ("a", "a")]
    made
    [b'some bytes', b'some bytes']
    """

    def __init__(self, max_items: int, max_bytes: int, size: Callable[[T], int]):
        self.max_items, self.max_bytes, self._size = max_items, max_bytes, size
        self._items: OrderedDict[Hashable, T] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The result under a key; computed and cached if it is not there."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                return self._items[key]
        made = make()  # others need not wait: at worst it is made twice
        with self._lock:
            if key not in self._items:
                self._items[key] = made
                self._bytes += self._size(made)
            while len(self._items) > self.max_items or self._bytes > self.max_bytes:
                _, oldest = self._items.popitem(last=False)
                self._bytes -= self._size(oldest)
        return made


class ComputedOnce:
    """Results that are computed on first use, once, however many ask at the same time.

    Parameters
    ----------
    functions : mapping of str to callable
        That compute them.

    Examples
    --------
    >>> from pictopic.server.cache import ComputedOnce
    >>> results = ComputedOnce({"sum": lambda: print("working") or 3})
    >>> results.has("sum"), results.get("sum"), results.get("sum"), results.has("sum")
    working
    (False, 3, 3, True)
    """

    def __init__(self, functions: Mapping[str, Callable[[], Any]]):
        self._functions, self._results = functions, dict[str, Any]()

    def has(self, name: str) -> bool:
        """Whether a result is there already."""
        return name in self._results

    def get(self, name: str) -> Any:
        """A result; the first to ask computes it, and all others wait for that."""
        if name not in self._results:
            # One after the other: together they would not be faster.
            with reading:
                if name not in self._results:
                    self._results[name] = self._functions[name]()
        return self._results[name]


class Thumbnails:
    """Cache of thumbnails: a folder of bounded size.

    Parameters
    ----------
    folder : Path
        Made if it does not exist.
    max_bytes : int
        Together; the longest unused go first.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from pictopic.server.cache import Thumbnails
    >>> path = Path(tempfile.mkdtemp()) / "large.png"
    >>> Image.new("RGB", (900, 600)).save(path)
    >>> thumbnails = Thumbnails(path.parent / "small", max_bytes=1_000_000)
    >>> key = thumbnails.key(path, 96)
    >>> len(thumbnails.get(path, 96, key)) < 1000
    True
    """

    def __init__(self, folder: Path, max_bytes: int):
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.max_bytes = folder, max_bytes
        self._lock = threading.Lock()
        self._remove_leftovers()
        self._size = sum(size for _, size, _ in self._files())

    def key(self, path: Path, side: int) -> str:
        """Key of a thumbnail, which changes whenever the picture's file does; a PictureError if there is no file."""
        try:
            about = path.stat()
        except OSError:
            raise PictureError("missing") from None
        text = f"{path}\0{about.st_mtime_ns}\0{about.st_size}\0{side}"
        return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

    def get(self, path: Path, side: int, key: str) -> bytes:
        """A JPEG whose longest side is at most `side` pixels; `key` is its key."""
        file = self.folder / f"{key}.jpg"
        try:
            content = file.read_bytes()
            os.utime(file)  # it was used
            return content
        except OSError:
            pass
        buffer = io.BytesIO()
        open_picture(path, max_side=side).convert("RGB").save(buffer, "JPEG", quality=_QUALITY)
        self._keep(file, buffer.getvalue())
        return buffer.getvalue()

    def _keep(self, file: Path, content: bytes) -> None:
        """Write to the cache; if that does not work there is none, and thumbnails are made again."""
        # Not pictopic.files: waiting for the disk at each thumbnail would be for nothing.
        temporary = file.with_name(f".{file.stem}.{os.getpid()}.{threading.get_ident()}")
        try:
            temporary.write_bytes(content)
            os.replace(temporary, file)
        except OSError:
            return
        with self._lock:
            self._size += len(content)
            if self._size > self.max_bytes:
                self._shrink()

    def _remove_leftovers(self) -> None:
        """Remove what a process that was killed had not finished writing."""
        for entry in os.scandir(self.folder):
            with suppress(OSError):
                if entry.name.startswith(".") and time.time() - entry.stat().st_mtime > _LEFT_OVER:
                    os.unlink(entry)

    def _shrink(self) -> None:
        """Remove the longest unused until a tenth is free."""
        files = sorted(self._files())
        self._size = sum(size for _, size, _ in files)
        for _, size, path in files:
            if self._size <= 0.9 * self.max_bytes:
                break
            Path(path).unlink(missing_ok=True)
            self._size -= size

    def _files(self) -> list[tuple[int, int, str]]:
        files = []
        for entry in os.scandir(self.folder):
            with suppress(OSError):  # another process was faster
                if entry.name.endswith(".jpg"):
                    files.append((entry.stat().st_mtime_ns, entry.stat().st_size, entry.path))
        return files


def scratch_root() -> Path:
    """Where the folders of all runs are: below PICTOPIC_CACHE, or the user's cache folder."""
    return cache_folder("server").absolute().with_name("server")


class Scratch:
    """A folder for what is needed only as long as a server runs.

    Those of servers that were killed are removed at the same time.  If nothing can be written in the user's cache
    folder, it is in the system's folder for temporary files.

    Attributes
    ----------
    folder : Path

    Examples
    --------
    >>> from pictopic.server.cache import Scratch
    >>> scratch = Scratch()
    >>> scratch.folder.is_dir()
    True
    >>> scratch.close()
    >>> scratch.folder.exists()
    False
    """

    def __init__(self) -> None:
        root = scratch_root()
        try:
            root.mkdir(parents=True, exist_ok=True)
            with lock(root / _LOCK, str(root)):  # otherwise another one could remove it before it is locked
                _sweep(root)
                held = self._make(_PREFIX, root)
        except OSError:
            held = self._make("pictopic-server-", None)
        self._finalizer = weakref.finalize(self, _remove, self.folder, held, os.getpid())

    def _make(self, prefix: str, root: Path | None) -> FileLock:
        self.folder = Path(tempfile.mkdtemp(prefix=prefix, dir=root))
        held = _lock_of(self.folder)
        held.acquire(timeout=0)
        return held

    def close(self) -> None:
        """Remove the folder."""
        self._finalizer()


def _lock_of(folder: Path) -> FileLock:
    # Not bound to a thread: the server may be closed by another than made it.
    return FileLock(folder / _LOCK, thread_local=False)


def _sweep(root: Path) -> None:
    """Remove the folders that nobody holds the lock of."""
    for folder in root.glob(_PREFIX + "*"):
        held = _lock_of(folder)
        with suppress(OSError):  # it is in use
            held.acquire(timeout=0)
            shutil.rmtree(folder, ignore_errors=True)
            held.release()


def _remove(folder: Path, held: FileLock, process: int) -> None:
    if os.getpid() == process:  # and not a process that was forked from it
        shutil.rmtree(folder, ignore_errors=True)
        held.release()
