"""Slowing down who tries one token after the other."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import time
from collections import OrderedDict, deque
from contextlib import suppress
from dataclasses import dataclass, field

from starlette.types import Scope

from pictopic.server.problems import ProblemError

_FIRST_DELAY, _LONGEST_DELAY = 0.5, 8.0  # seconds until somebody with a wrong token is told
_FORGOTTEN = 600.0  # seconds after the last wrong token
_DELAYED, _DELAYED_OF_CLIENT = 32, 8  # answers at once
_CLIENTS = 4096


@dataclass
class _Tries:
    n: int = 0
    last: float = 0.0
    n_delayed: int = 0
    known: deque[bytes] = field(default_factory=lambda: deque(maxlen=8))  # wrong ones, as digests


class Throttle:
    """Slows down who tries one token after the other.

    Each wrong token doubles the time until the client is told that the next one is wrong, up to 8 s; a right one is
    answered at once.  If a client has 8 such answers outstanding, it is told to come back, whatever it sends: otherwise
    it would try many at the same time.  The same wrong token again, as from a browser that was signed in when the token
    was another, counts once.

    Examples
    --------
    >>> import asyncio
    >>> from pictopic.server.throttle import Throttle
    >>> asyncio.run(Throttle().check("192.0.2.7", b"the token", is_right=True))
    """

    def __init__(self) -> None:
        self._tries: OrderedDict[str, _Tries] = OrderedDict()  # the longest unused first
        self._n_delayed = 0

    async def check(self, client: str, credential: bytes, is_right: bool) -> None:
        """Let a client through, or refuse it after a while.

        Parameters
        ----------
        client : str
            See `client_of`.
        credential : bytes
            What it sent.
        is_right : bool

        Raises
        ------
        ProblemError
            401 if it is not right, 429 if the client tries too many.
        """
        now, digest = time.monotonic(), hashlib.blake2b(credential, digest_size=16).digest()
        tries = self._tries.get(client)
        if tries is not None and not tries.n_delayed and now - tries.last > _FORGOTTEN:
            del self._tries[client]
            tries = None
        if tries is None:
            if is_right:
                return
            tries = self._tries[client] = _Tries()
            if len(self._tries) > _CLIENTS:
                self._tries.popitem(last=False)
        wrong = ProblemError(401, "this is not the token", headers={"WWW-Authenticate": "Bearer"})
        if digest in tries.known:
            raise wrong
        delay = min(_LONGEST_DELAY, _FIRST_DELAY * 2**tries.n)
        if tries.n_delayed >= _DELAYED_OF_CLIENT or self._n_delayed >= _DELAYED:
            raise ProblemError(429, "too many wrong tokens", headers={"Retry-After": str(max(1, round(delay)))})
        if is_right:
            return
        tries.known.append(digest)
        tries.n, tries.last = min(tries.n + 1, 30), now
        self._tries.move_to_end(client)
        tries.n_delayed += 1
        self._n_delayed += 1
        try:
            await asyncio.sleep(delay)
        finally:
            tries.n_delayed -= 1
            self._n_delayed -= 1
        raise wrong


def client_of(scope: Scope) -> str:
    """Whom a request comes from: an address, or all that one household or company has of IPv6.

    Examples
    --------
    >>> from pictopic.server.throttle import client_of
    >>> client_of({"client": ("192.0.2.7", 4711)}), client_of({"client": ("2001:db8::1:2:3", 4711)})
    ('192.0.2.7', '2001:db8::')
    """
    host = (scope.get("client") or ("", 0))[0]
    with suppress(ValueError):
        address = ipaddress.ip_address(host)
        if address.version == 6 and address.ipv4_mapped is None:
            return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)).network_address)
    return str(host)
