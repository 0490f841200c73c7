"""What a server allows."""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from pathlib import Path

_SHORTEST_TOKEN = 16  # characters
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Settings:
    """What a server allows.

    Parameters
    ----------
    token : str or None, default=None
        Who does not send it as ``Authorization: Bearer TOKEN`` gets no answer; None: everybody does.  At least 16
        characters.
    hosts : tuple of str or None, default=("localhost", "127.0.0.1", "::1")
        Names by which the server may be called: a page elsewhere that lets its own name point here does not get in.
        None: any.
    pictures : Path, optional
        Where the collection's pictures are now, if they have moved.
    max_upload : int, default=20 million
        Bytes of a request.
    max_files : int, default=64
        Pictures of a request.
    max_pixels : int, default=50 million
        Of an uploaded picture.
    max_request_pixels : int, default=200 million
        Of all pictures of a request together.
    max_waiting : int, default=64
        Requests that wait for the model or are being answered; more are told to come back.
    max_requests : int, default=256
        Requests of any kind at once.
    threads : int, optional
        That the model answers in; default: one for each core.
    timeout : float, default=30
        Seconds for a request to arrive, and again for its answer.
    cache : Path, optional
        Folder of thumbnails; default: one below the user's cache folder, removed at the end.
    max_cache : int, default=256 million
        Bytes of thumbnails on disk.
    check_every : float, default=1
        Seconds between looks at whether the model was replaced.

    Examples
    --------
    >>> from pictopic.server.settings import Settings
    >>> Settings(max_files=2).max_files
    2
    """

    token: str | None = None
    hosts: tuple[str, ...] | None = LOOPBACK_NAMES
    pictures: Path | None = None
    max_upload: int = 20_000_000
    max_files: int = 64
    max_pixels: int = 50_000_000
    max_request_pixels: int = 200_000_000
    max_waiting: int = 64
    max_requests: int = 256
    threads: int | None = None
    timeout: float = 30.0
    cache: Path | None = None
    max_cache: int = 256_000_000
    check_every: float = 1.0

    def __post_init__(self) -> None:
        token = self.token
        if token is None:
            return
        if len(token) < _SHORTEST_TOKEN:
            raise ValueError(
                f"the token has {len(token)} characters, and could be guessed: give at least {_SHORTEST_TOKEN}, such "
                "as those that openssl rand -hex 16 prints"
            )
        if not token.isprintable() or token != token.strip():
            raise ValueError("the token has characters that cannot be sent: give letters and digits")

    @property
    def n_threads(self) -> int:
        """Threads that the model answers in."""
        return self.threads or os.cpu_count() or 1


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server at this address.

    Examples
    --------
    >>> from pictopic.server.settings import is_loopback
    >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "0.0.0.0", "example.org")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
