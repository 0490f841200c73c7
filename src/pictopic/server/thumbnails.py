"""Small pictures of the collection, made when they are asked for and kept on disk."""

from __future__ import annotations

import hashlib
import io
import os
import threading
import time
from contextlib import suppress
from pathlib import Path

from pictopic.words.pictures import PictureError, open_picture

_QUALITY = 82
_LEFT_OVER = 3600.0  # seconds: nothing takes that long to be written


class Thumbnails:
    """A folder of thumbnails that does not grow beyond a bound.

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
    >>> from pictopic.server.thumbnails import Thumbnails
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
        """What changes whenever the thumbnail would.

        Raises
        ------
        PictureError
            If the file is not there.
        """
        try:
            about = path.stat()
        except OSError:
            raise PictureError("missing") from None
        text = f"{path}\0{about.st_mtime_ns}\0{about.st_size}\0{side}"
        return hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()

    def get(self, path: Path, side: int, key: str) -> bytes:
        """A JPEG whose longest side is at most `side` pixels; `key` is what `key` said."""
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
        found = []
        for entry in os.scandir(self.folder):
            if entry.name.endswith(".jpg"):
                try:
                    about = entry.stat()
                except OSError:  # another process was faster
                    continue
                found.append((about.st_mtime_ns, about.st_size, entry.path))
        return found
