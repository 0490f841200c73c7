"""What every request passes first, and every answer last: who may ask, how much, and what browsers must not do."""

from __future__ import annotations

import asyncio
import logging
import secrets
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

_log = logging.getLogger("pictopic.server")

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


class Guard:
    """ASGI middleware around everything.

    Parameters
    ----------
    app : ASGI application
    settings : Settings
    metrics : Metrics
    """

    def __init__(self, app: ASGIApp, settings: Settings, metrics: Metrics):
        self.app, self.settings, self.metrics = app, settings, metrics
        self._n_requests = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer it here."""
        if scope["type"] != "http":
            # There is no route for web sockets, and Starlette refuses them.
            await self.app(scope, receive, send)
            return
        answer = _Answer(send)
        start = time.perf_counter()
        self._n_requests += 1
        try:
            self._check(scope)
            await self.app(scope, _Body(receive, self.settings), answer.send)
        except ClientDisconnect:
            pass  # nobody is there any more
        except Exception as error:
            if answer.status is not None:
                raise  # too late to say anything: the connection is cut
            if not isinstance(error, ProblemError):
                _log.exception("a request failed")
                error = internal_error()
            await error.response()(scope, receive, answer.send)
        finally:
            self._n_requests -= 1
            self.metrics.count(scope, answer.status or 500, time.perf_counter() - start)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        check_host(headers, self.settings.hosts)
        check_site(scope["method"], scope["path"], headers)
        if self.settings.token is not None and _is_private(scope["path"]) and scope["path"] != session.ADDRESS:
            check_token(headers, self.settings.token)
        if self._n_requests > self.settings.max_requests:
            raise ProblemError(429, "too many requests at once", headers={"Retry-After": "1"})
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise ProblemError(400, "Content-Length must be a number")
        if int(length) > self.settings.max_upload:
            raise _too_large(self.settings)


def check_host(headers: Headers, hosts: tuple[str, ...] | None) -> None:
    """Refuse a request for a name that is not ours: its page would be of the same site as we are.

    Examples
    --------
    >>> from starlette.datastructures import Headers
    >>> from pictopic.server.guard import check_host
    >>> check_host(Headers({"host": "localhost:8000"}), ("localhost",))
    >>> check_host(Headers({"host": "evil.example"}), ("localhost",))
    Traceback (most recent call last):
    pictopic.server.problems.ProblemError: 421: the server is not called by this name
    """
    if hosts is not None and _host_name(headers.get("host", "")) not in hosts:
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
    elif foreign or (origin is not None and urlsplit(origin).netloc.lower() != headers.get("host", "").lower()):
        raise ProblemError(403, "a page of another site may not send anything")


def check_token(headers: Headers, token: str) -> None:
    """Refuse who does not know the token, and has not signed in with it.

    Takes equally long however much of it is right.
    """
    kind, _, given = headers.get("authorization", "").partition(" ")
    # As the bytes that were sent: what they mean is not said anywhere, and clients take them for UTF-8.
    right = secrets.compare_digest(given.strip().encode("latin-1"), token.encode("utf-8"))
    if (kind.lower() != "bearer" or not right) and not session.has_cookie(headers, token):
        raise ProblemError(401, "send the header 'Authorization: Bearer TOKEN'", headers={"WWW-Authenticate": "Bearer"})


def _is_private(path: str) -> bool:
    """Whether an answer says something of the collection; pages and the API's description do not."""
    return path.startswith("/api/") or path == "/metrics"


def _host_name(host: str) -> str:
    """Without the port."""
    try:
        return (urlsplit(f"//{host}").hostname or "").lower()
    except ValueError:
        return ""


def _too_large(settings: Settings) -> ProblemError:
    return ProblemError(413, f"a request may have at most {settings.max_upload:,} bytes")


class _Body:
    """A request's body: at most so many bytes, within so much time, whether or not it says its length."""

    def __init__(self, receive: Receive, settings: Settings):
        self._receive, self._settings = receive, settings
        self._until = time.monotonic() + settings.timeout
        self._n_bytes, self._is_whole = 0, False

    async def __call__(self) -> Message:
        if self._is_whole:  # what comes now is that the client has gone
            return await self._receive()
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, self._until - time.monotonic()))
        except TimeoutError:
            raise ProblemError(408, "the request did not arrive in time", headers={"Connection": "close"}) from None
        self._n_bytes += len(message.get("body", b""))
        self._is_whole = not message.get("more_body", False)
        if self._n_bytes > self._settings.max_upload:
            raise _too_large(self._settings)
        return message


class _Answer:
    """Puts the headers on an answer, and remembers its status."""

    def __init__(self, send: Send):
        self._send = send
        self.status: int | None = None

    async def send(self, message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            for name, value in SECURITY_HEADERS.items():
                headers[name] = value
            headers.setdefault("Cache-Control", "no-store")
        await self._send(message)
