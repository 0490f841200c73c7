"""Security: who may ask, how fast tokens can be tried, and what browsers may do with the answers.

`SecurityMiddleware` is around everything else: each request passes it first, and each answer last.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import logging
import re
import time
from collections import OrderedDict, deque
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Receive, Scope, Send

from pictopic.server.problems import ProblemError, internal_error
from pictopic.server.settings import Settings
from pictopic.server.uploads import RequestPool, too_large

_log = logging.getLogger("pictopic.server")

HEALTH = "/healthz"
SECURITY_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; font-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
SESSION = "/api/v1/session"
SESSION_COOKIE = "pictopic_session"
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_BODIES_AT_ONCE = 16  # that may be as large as is allowed
_CLIENT_GONE = 499  # as nginx counts it
_SESSION_SECONDS = 5.0  # for a body of a few bytes
_FIRST_DELAY, _LONGEST_DELAY = 0.5, 8.0  # seconds until a wrong token is refused
_FORGOTTEN = 600.0  # seconds after the last wrong token
_DELAYED, _DELAYED_OF_CLIENT = 32, 8  # answers at once
_CLIENTS = 4096


class SecurityMiddleware:
    """ASGI middleware that refuses what may not come in, and puts security headers on all answers.

    Parameters
    ----------
    app : ASGI application
    settings : Settings
    throttle : Throttle
    count : callable
        Called after each request with its scope, status and seconds.
    """

    def __init__(
        self, app: ASGIApp, settings: Settings, throttle: Throttle, count: Callable[[Scope, int, float], None]
    ):
        self.app, self.settings, self.throttle, self._count = app, settings, throttle, count
        max_bytes = _BODIES_AT_ONCE * settings.max_upload
        # Separate pools: whoever floods one of them does not block the others.
        self._pools = {
            name: RequestPool(settings.max_requests, timeout, settings.max_upload, max_bytes)
            for name, timeout in (
                ("answers", settings.timeout), ("page", settings.timeout),
                ("session", min(_SESSION_SECONDS, settings.timeout)),
            )
        }  # fmt: skip

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            # There is no route for web sockets, and Starlette refuses them.
            await self.app(scope, receive, send)
            return
        answer, start = _Answer(send, is_head=scope["method"] == "HEAD"), time.perf_counter()
        inner = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
        try:
            await self._check(scope)
            if scope["path"] == HEALTH:
                await self.app(inner, receive, answer.send)
            else:
                await self._pools[_pool_name(scope["path"])].run(self.app, inner, receive, answer.send)
        except ClientDisconnect:
            answer.status = answer.status or _CLIENT_GONE
        except Exception as error:
            if answer.status is not None:
                raise  # too late to say anything: the connection is cut
            if not isinstance(error, ProblemError):
                _log.exception("a request failed")
                error = internal_error()
            await error.response()(scope, receive, answer.send)
        finally:
            seconds = time.perf_counter() - start
            self._count({**inner, "method": scope["method"]}, answer.status or 500, seconds)

    async def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        check_host(headers, self.settings.hosts)
        check_site(scope["method"], scope["path"], headers)
        if self.settings.token is not None and _is_private(scope["path"]) and scope["path"] != SESSION:
            await check_token(headers, self.settings.token, client_of(scope), self.throttle)
        length = headers.get("content-length", "0")
        if not re.fullmatch("[0-9]{1,18}", length):
            raise ProblemError(400, "Content-Length must be a number")
        if int(length) > self.settings.max_upload:
            raise too_large(self.settings.max_upload)


# ---- who may ask -----------------------------------------------------------------------------------------------------


def check_host(headers: Headers, hosts: tuple[str, ...] | None) -> None:
    """Refuse a request for a host name that is not ours: a page under that name would count as the same site.

    Examples
    --------
    >>> from starlette.datastructures import Headers
    >>> from pictopic.server.security import check_host
    >>> check_host(Headers({"host": "localhost:8000"}), ("localhost",))
    >>> check_host(Headers({"host": "evil.example"}), ("localhost",))
    Traceback (most recent call last):
    pictopic.server.problems.ProblemError: 421: the server is not called by this name
    """
    name = _host_name(headers.get("host", ""))
    if name is None:
        raise ProblemError(400, "the header Host is not a host")
    if hosts is not None and name not in hosts:
        raise ProblemError(421, "the server is not called by this name")


def check_site(method: str, path: str, headers: Headers) -> None:
    """Refuse what a page of another site makes a browser send; "same-site" may be another port of this machine."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    foreign = site not in (None, "same-origin", "none")
    if method in _SAFE_METHODS:
        if foreign and _is_private(path):
            raise ProblemError(403, "a page of another site may not ask")
    elif foreign or (origin is not None and _place(origin) != headers.get("host", "").lower()):
        raise ProblemError(403, "a page of another site may not send anything")


async def check_token(headers: Headers, token: str, client: str, throttle: Throttle) -> None:
    """Refuse requests with neither the token nor the cookie of a session; takes equally long however wrong they are."""
    kind, _, given = headers.get("authorization", "").partition(" ")
    # As bytes: their encoding is not specified, and clients send UTF-8.
    sent = given.strip().encode("latin-1") if kind.lower() == "bearer" else b""
    cookie = given_cookie(headers)
    right = (
        hmac.compare_digest(sent, token.encode()),
        hmac.compare_digest(cookie, cookie_value(token).encode()),
    )
    if not sent and not cookie:
        raise ProblemError(401, "send the header 'Authorization: Bearer TOKEN'", headers={"WWW-Authenticate": "Bearer"})
    await throttle.check(client, sent + b"\0" + cookie, any(right))


def _is_private(path: str) -> bool:
    """Whether an answer reveals something about the collection; pages and the API's description do not."""
    return path.startswith("/api/") or path == "/metrics"


def _pool_name(path: str) -> str:
    if path == SESSION:
        return "session"
    return "answers" if _is_private(path) else "page"


def _host_name(host: str) -> str | None:
    """Without the port; None if it is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return None


def _place(origin: str) -> str:
    """Host and port of an origin."""
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


# ---- sessions of browsers --------------------------------------------------------------------------------------------


def cookie_value(token: str) -> str:
    """The cookie of a session: derived from the token, so that it outlives the server, without revealing it.

    Examples
    --------
    >>> from pictopic.server.security import cookie_value
    >>> len(cookie_value("secret")), cookie_value("secret") == cookie_value("other")
    (64, False)
    """
    return hmac.new(token.encode(), b"pictopic session 1", hashlib.sha256).hexdigest()


def given_cookie(headers: Headers) -> bytes:
    """The session cookie of a request; empty if there is none."""
    # By hand: SimpleCookie takes seconds to undo the quotes of a long one, and then everybody waits.
    for pair in headers.get("cookie", "").split(";"):
        name, _, value = pair.partition("=")
        if name.strip() == SESSION_COOKIE:
            return value.strip().encode("utf-8", "surrogatepass")
    return b""


# ---- guessing tokens -------------------------------------------------------------------------------------------------


@dataclass
class _Tries:
    n: int = 0
    last: float = 0.0
    n_delayed: int = 0
    known: deque[bytes] = field(default_factory=lambda: deque(maxlen=8))  # wrong ones, as digests


class Throttle:
    """Slows down clients that try one token after the other.

    Each wrong token doubles the delay before the next wrong one is refused, up to 8 s; a right one is answered at once.
    A client with 8 refusals outstanding is told to come back later, whatever it sends: otherwise it could try many at
    the same time.  The same wrong token counts once, as from a browser that signed in with an earlier token.

    Examples
    --------
    >>> import asyncio
    >>> from pictopic.server.security import Throttle
    >>> asyncio.run(Throttle().check("192.0.2.7", b"the token", is_right=True))
    """

    def __init__(self) -> None:
        self._tries: OrderedDict[str, _Tries] = OrderedDict()  # the longest unused first
        self._n_delayed = 0

    async def check(self, client: str, credential: bytes, is_right: bool) -> None:
        """Let a client through, or refuse it after a while: 401 if it is not right, 429 if it tries too many."""
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
    """Client that a request comes from: its IPv4 address, or its IPv6 network, which is one household or company.

    Examples
    --------
    >>> from pictopic.server.security import client_of
    >>> client_of({"client": ("192.0.2.7", 4711)}), client_of({"client": ("2001:db8::1:2:3", 4711)})
    ('192.0.2.7', '2001:db8::')
    """
    host = (scope.get("client") or ("", 0))[0]
    with suppress(ValueError):
        address = ipaddress.ip_address(host)
        if address.version == 6 and address.ipv4_mapped is None:
            return str(ipaddress.ip_network((int(address) >> 64 << 64, 64)).network_address)
    return str(host)


# ---- what every answer says ------------------------------------------------------------------------------------------


class _Answer:
    """Adds the headers to an answer, drops its body for HEAD, and remembers its status."""

    def __init__(self, send: Send, is_head: bool):
        self._send, self._is_head = send, is_head
        self.status: int | None = None

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        elif self._is_head and message["type"] == "http.response.body":
            message = {**message, "body": b""}
        await self._send(message)
