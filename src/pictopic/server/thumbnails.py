"""Small pictures of the collection, made when they are asked for and kept on disk."""

from __future__ import annotations

import hashlib
import io
import os
import tempfile
import threading
from pathlib import Path

from pictopic.words.pictures import PictureError, open_picture

_QUALITY = 82


class Thumbnails:
    """A folder of thumbnails that does not grow beyond a bound.

    Parameters
    ----------
    folder : Path or None
        None: a temporary one, removed at the end.
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
    >>> thumbnails = Thumbnails(None, max_bytes=1_000_000)
    >>> key = thumbnails.key(path, 96)
    >>> len(thumbnails.get(path, 96, key)) < 1000
    True
    >>> thumbnails.close()
    """

    def __init__(self, folder: Path | None, max_bytes: int):
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        if folder is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="pictopic-thumbnails-")
            folder = Path(self._temporary.name)
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.max_bytes = folder, max_bytes
        self._lock = threading.Lock()
        self._size = sum(size for _, size, _ in self._files())

    def close(self) -> None:
        """Remove the folder, if it is a temporary one."""
        if self._temporary is not None:
            self._temporary.cleanup()

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
        temporary = file.with_name(f".{file.stem}.{threading.get_ident()}")
        try:
            temporary.write_bytes(content)
            os.replace(temporary, file)
        except OSError:
            return
        with self._lock:
            self._size += len(content)
            if self._size > self.max_bytes:
                self._shrink()

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
