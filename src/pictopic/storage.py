"""Remote folders: anything that fsspec knows by a URL, such as ``s3://bucket/corpus``.

Folders are downloaded before they are read, because arrays are mapped from files.  They are uploaded file by file, and
the file that makes them valid comes last, so that readers never see half of a folder.  ``file://`` is the local disk.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pictopic.files import check_regular, temporary_folder

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")


def is_remote(place: str | os.PathLike[str]) -> bool:
    """Return whether a place is a URL of a store other than the local disk.

    Examples
    --------
    >>> from pictopic.storage import is_remote
    >>> is_remote("s3://bucket/corpus"), is_remote("file:///data/corpus"), is_remote("data/corpus")
    (True, False, False)
    """
    text = os.fspath(place)
    return bool(_SCHEME.match(text)) and not text.lower().startswith("file://")


def local(place: str | os.PathLike[str]) -> Path:
    """Return a place on the local disk as a path.

    Examples
    --------
    >>> from pictopic.storage import local
    >>> local("file:///data/my%20corpus").as_posix()
    '/data/my corpus'
    """
    text = os.fspath(place)
    return Path(unquote(urlsplit(text).path)) if text.lower().startswith("file://") else Path(text)


def cache_folder(url: str) -> Path:
    """Return the local folder for copies of a URL, below PICTOPIC_CACHE or the user's cache folder."""
    root = os.environ.get("PICTOPIC_CACHE")
    if not root:
        root = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "pictopic")
    clean = url.rstrip("/")
    name = re.sub(r"\W+", "-", posixpath.basename(clean)) or "root"
    return Path(root) / f"{name}-{hashlib.sha256(clean.encode()).hexdigest()[:16]}"


class Store:
    """A folder in an fsspec file system.

    Parameters
    ----------
    url : str

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.storage import Store
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.txt").write_text("sea")
    >>> store = Store("memory://doctest")
    >>> store.upload(folder, last="a.txt")
    >>> store.names(), store.read("a.txt")
    (['a.txt'], b'sea')
    """

    def __init__(self, url: str):
        import fsspec

        self.url = url.rstrip("/")
        try:
            self.files, self.root = fsspec.core.url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise ValueError(f"{url} cannot be opened: {error}") from None

    def place(self, name: str) -> str:
        """Return a file's path in its file system."""
        return posixpath.join(self.root, name)

    def names(self) -> list[str]:
        """Return the names of all files, including those in sub-folders; empty if the folder does not exist."""
        try:
            paths = self.files.find(self.root)
        except FileNotFoundError:
            return []
        root = self.files._strip_protocol(self.root).rstrip("/")
        return sorted(posixpath.relpath(path, root) for path in paths)

    def read(self, name: str) -> bytes:
        """Read a small file; raise a FileNotFoundError if it does not exist."""
        return self.files.cat_file(self.place(name))

    def put(self, path: Path, name: str) -> None:
        """Upload a file.  Object stores show it only when it is complete."""
        self.files.makedirs(posixpath.dirname(self.place(name)), exist_ok=True)
        self.files.put_file(str(path), self.place(name))

    def get(self, name: str, path: Path) -> None:
        """Download a file, whole or not at all."""
        if ".." in name.split("/") or name.startswith("/"):
            raise ValueError(f"{self.url}: {name!r} is not the name of a file in it")
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        os.close(handle)
        try:
            self.files.get_file(self.place(name), temporary)
            os.replace(temporary, path)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise

    def remove(self, name: str) -> None:
        """Delete a file if it exists."""
        with suppress(FileNotFoundError):
            self.files.rm_file(self.place(name))

    def upload(self, folder: Path, last: str, ignore: Callable[[str], bool] = lambda name: False) -> None:
        """Upload all files of a folder, with `last` as the last one; then delete other files that were there before."""
        before = self.names()
        local_names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
        names = [name for name in local_names if not ignore(name)]
        for name in (*(name for name in names if name != last), last):
            self.put(folder / name, name)
        for name in set(before) - set(names):
            self.remove(name)

    def download(self, folder: Path, names: Iterable[str] | None = None) -> None:
        """Download files, all by default, unless there is a local file of the same size."""
        for name in self.names() if names is None else names:
            path = folder / name
            if not path.is_file() or path.stat().st_size != self.files.size(self.place(name)):
                self.get(name, path)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file."""
    check_regular(path)
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def written(place: str | os.PathLike[str], last: str, write: Callable[[Path], Any]) -> None:
    """Write a folder in its place, or for a URL write it locally and upload it."""
    if not is_remote(place):
        write(local(place))
        return
    store = Store(os.fspath(place))
    with temporary_folder() as temporary:
        folder = Path(temporary) / "new"
        names = set(store.names())
        if names and last not in names:
            raise ValueError(f"{place} holds something else; choose another folder")
        write(folder)
        store.upload(folder, last)


@contextmanager
def readable(place: str | os.PathLike[str]) -> Iterator[Path]:
    """Provide a small folder locally, downloaded if it is remote, for the duration of the block."""
    if not is_remote(place):
        yield local(place)
        return
    with temporary_folder() as temporary:
        Store(os.fspath(place)).download(Path(temporary))
        yield Path(temporary)
