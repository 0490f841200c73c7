"""What every request passes first, and every answer last: who may ask, how much, how fast, and what browsers may do."""

from __future__ import annotations

import asyncio
import hmac
import logging
import re
import time
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pictopic.server import session
from pictopic.server.metrics import Metrics
from pictopic.server.problems import ProblemError, internal_error
from pictopic.server.settings import Settings
from pictopic.server.throttle import Throttle, client_of

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
_SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
_BODIES = 64  # requests whose body is still arriving
_BODIES_AT_ONCE = 16  # that may be as large as is allowed
_CLIENT_GONE = 499  # as nginx counts it
_SESSION_SECONDS = 5.0  # for a body of a few bytes


class Guard:
    """ASGI middleware around everything.

    Parameters
    ----------
    app : ASGI application
    settings : Settings
    metrics : Metrics
    throttle : Throttle
    """

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics, throttle: Throttle):
        self.app, self.settings, self.metrics, self.throttle = app, settings, metrics, throttle
        max_bytes = _BODIES_AT_ONCE * settings.max_upload
        # Places of their own: whoever floods one of them is in nobody's way at the others.
        self._pools = {
            name: _Pool(settings.max_requests, timeout, max_bytes)
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
                await self._pools[_pool_name(scope["path"])].run(self.app, inner, receive, answer.send, self.settings)
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
            self.metrics.count({**inner, "method": scope["method"]}, answer.status or 500, seconds)

    async def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        check_host(headers, self.settings.hosts)
        check_site(scope["method"], scope["path"], headers)
        if self.settings.token is not None and _is_private(scope["path"]) and scope["path"] != session.ADDRESS:
            await check_token(headers, self.settings.token, client_of(scope), self.throttle)
        length = headers.get("content-length", "0")
        if not re.fullmatch("[0-9]{1,18}", length):
            raise ProblemError(400, "Content-Length must be a number")
        if int(length) > self.settings.max_upload:
            raise _too_large(self.settings.max_upload)


# ---- who may ask -----------------------------------------------------------------------------------------------------


def check_host(headers: Headers, hosts: tuple[str, ...] | None) -> None:
    """Refuse a request for a name that is not ours: its page would be of the same site as we are.

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
    """Refuse what a page of another site makes a browser send.

    Programs send neither header.  "same-site" is another site for us: on one machine every port is.
    """
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    foreign = site not in (None, "same-origin", "none")
    if method in _SAFE_METHODS:
        if foreign and _is_private(path):
            raise ProblemError(403, "a page of another site may not ask")
    elif foreign or (origin is not None and _place(origin) != headers.get("host", "").lower()):
        raise ProblemError(403, "a page of another site may not send anything")


async def check_token(headers: Headers, token: str, client: str, throttle: Throttle) -> None:
    """Refuse who does not know the token, and has not signed in with it.

    Takes equally long however much of it is right.
    """
    kind, _, given = headers.get("authorization", "").partition(" ")
    # As the bytes that were sent: what they mean is not said anywhere, and clients take them for UTF-8.
    sent = given.strip().encode("latin-1") if kind.lower() == "bearer" else b""
    cookie = session.given_cookie(headers)
    right = (
        hmac.compare_digest(sent, token.encode()),
        hmac.compare_digest(cookie, session.cookie_value(token).encode()),
    )
    if not sent and not cookie:
        raise ProblemError(401, "send the header 'Authorization: Bearer TOKEN'", headers={"WWW-Authenticate": "Bearer"})
    await throttle.check(client, sent + b"\0" + cookie, any(right))


def _is_private(path: str) -> bool:
    """Whether an answer says something of the collection; pages and the API's description do not."""
    return path.startswith("/api/") or path == "/metrics"


def _pool_name(path: str) -> str:
    if path == session.ADDRESS:
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


# ---- how much, and how fast ------------------------------------------------------------------------------------------


def _too_large(max_bytes: int) -> ProblemError:
    return ProblemError(413, f"a request may have at most {max_bytes:,} bytes")


def _too_late() -> ProblemError:
    return ProblemError(408, "the request did not arrive in time", headers={"Connection": "close"})


class Deadline:
    """Until when somebody waits for an answer: who works on it looks between two pictures.

    Examples
    --------
    >>> from pictopic.server.security import Deadline
    >>> deadline = Deadline(30.0)
    >>> deadline.is_over
    False
    """

    def __init__(self, seconds: float):
        self._until = time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        """Whether nobody waits any more."""
        return time.monotonic() >= self._until

    def end(self) -> None:
        """Nobody waits any more: the client has gone."""
        self._until = 0.0


class _Pool:
    """A bounded number of requests, and of bytes that they send.

    Requests whose body is still arriving take no place: if there are too many of them, or too many bytes, the oldest is
    told that it took too long.
    """

    def __init__(self, max_requests: int, timeout: float, max_bytes: int):
        self.max_requests, self.timeout, self.max_bytes = max_requests, timeout, max_bytes
        self._n_requests = self.n_bytes = 0
        self._arriving: dict[_Body, None] = {}  # the oldest first

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send, settings: Settings) -> None:
        """Let the application answer a request."""
        if self._n_requests - len(self._arriving) >= self.max_requests:
            raise ProblemError(429, "too many requests at once", headers={"Retry-After": "1"})
        body = _Body(receive, settings.max_upload, self)
        self._n_requests += 1
        try:
            await app(scope, body, send)
        finally:
            if not body.gave_way:
                self._arriving.pop(body, None)
                self._forget(body)

    def begin(self, body: _Body) -> None:
        """A body begins to arrive."""
        self._arriving[body] = None
        if len(self._arriving) > _BODIES:
            self._push_out(body)

    def grow(self, body: _Body, n_bytes: int, is_whole: bool) -> None:
        """A part of it has arrived."""
        self.n_bytes += n_bytes
        if is_whole:
            self._arriving.pop(body, None)
        if self.n_bytes > self.max_bytes and not self._push_out(body):
            raise ProblemError(429, "too many large requests at once", headers={"Retry-After": "1"})

    def _push_out(self, newcomer: _Body) -> bool:
        for body in self._arriving:
            if body is not newcomer:
                del self._arriving[body]
                self._forget(body)
                body.give_way()
                return True
        return False

    def _forget(self, body: _Body) -> None:
        self._n_requests -= 1
        self.n_bytes -= body.n_bytes


class _Body:
    """A request's body: at most so many bytes, within so much time, whether or not it says its length."""

    def __init__(self, receive: Receive, max_bytes: int, pool: _Pool):
        self._receive, self._max_bytes, self._pool = receive, max_bytes, pool
        self._until = asyncio.get_running_loop().time() + pool.timeout
        self._clock: asyncio.Timeout | None = None
        self._has_begun, self._is_whole = False, False
        self.n_bytes, self.gave_way = 0, False

    async def __call__(self) -> Message:
        if self._is_whole:  # what comes now is that the client has gone
            return await self._receive()
        if not self._has_begun:
            self._has_begun = True
            self._pool.begin(self)
        try:
            async with asyncio.timeout_at(self._until) as self._clock:
                message = await self._receive()
        except TimeoutError:
            raise _too_late() from None
        finally:
            self._clock = None
        if self.gave_way:  # while this was on its way
            raise _too_late()
        n_bytes = len(message.get("body", b""))
        self.n_bytes += n_bytes
        self._is_whole = not message.get("more_body", False)
        self._pool.grow(self, n_bytes, self._is_whole)
        if self.n_bytes > self._max_bytes:
            raise _too_large(self._max_bytes)
        return message

    def give_way(self) -> None:
        """Let its time be over now."""
        self.gave_way, self._until = True, 0.0
        if self._clock is not None and not self._clock.expired():
            self._clock.reschedule(0.0)


# ---- what every answer says ------------------------------------------------------------------------------------------


class _Answer:
    """Puts the headers on an answer, leaves out the body for HEAD, and remembers the status."""

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
