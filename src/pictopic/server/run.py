"""Running the server: sockets, workers and signals are uvicorn's; how long a client may keep it waiting is not."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import signal
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.supervisors import Multiprocess

from pictopic.server.app import create_app
from pictopic.server.cache import Scratch
from pictopic.server.problems import MEDIA_TYPE, ProblemError
from pictopic.server.routers.service import SHARED_FOLDER
from pictopic.server.security import HEALTH, SECURITY_HEADERS
from pictopic.server.served_model import ModelStore
from pictopic.server.settings import Settings

try:
    import resource
except ImportError:  # Windows has no such limit
    resource = None  # type: ignore[assignment]

_GRACE = 5.0  # seconds beyond the timeout of a request
_KEEP_ALIVE = 5  # seconds between two requests on a connection
_STARTING = 120  # seconds that a worker may take to load its libraries before it is taken for dead
_MOST = 512  # connections
_BACKLOG = 128  # connections that wait to be accepted
_USUALLY_OPEN = 32  # files of a process, where they cannot be counted
_UNREAD = 64  # connections whose clients do not take up their answers
_FEW_CHUNKS, _SMALL_CHUNK = 1000, 256  # chunks of a body that may be of any size; bytes of the others, on average


def run(
    model_folder: Path, settings: Settings, host: str, port: int, workers: int = 1, open_page: bool = False
) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that are under way are answered first.

    Listens at `host` and `port` (0: any free one) with some processes, each with the model in memory.  Raises a
    ValueError if the folder is no model, and an OSError if the port is taken.
    """
    signal.signal(signal.SIGTERM, _end)
    if workers == 1:
        app = create_app(model_folder, settings)
        server = uvicorn.Server(uvicorn.Config(app, **server_options(settings)))
        with _listen(host, port, open_page) as listening, suppress(KeyboardInterrupt):
            server.run([listening])
        return
    # The workers share the cores.
    settings = replace(settings, threads=settings.threads or max(1, settings.n_threads // workers))
    ModelStore(model_folder, settings)  # what cannot be loaded is reported once, and not by each worker
    with closing(Scratch()) as scratch:
        os.environ[SHARED_FOLDER] = str(scratch.folder)
        # uvicorn.run wants the name of an application, which would have to find its settings in the environment.
        config = uvicorn.Config(
            partial(create_app, model_folder, settings), factory=True, workers=workers, **server_options(settings)
        )
        with _listen(host, port, open_page) as listening:
            listening.set_inheritable(True)
            Multiprocess(config, sockets=[listening]).run()


def server_options(settings: Settings) -> dict[str, Any]:
    """Options of uvicorn for this process; how many connections it takes depends on the files that are open now."""
    limits = ConnectionLimits.of_process(read_seconds=settings.timeout)
    return {
        "log_level": "info", "log_config": _log_config(), "access_log": False, "server_header": False, "lifespan": "on",
        "ws": "none", "http": partial(Connection, limits=limits), "backlog": limits.backlog,
        "timeout_keep_alive": _KEEP_ALIVE, "timeout_graceful_shutdown": int(settings.timeout + _GRACE),
        "timeout_worker_healthcheck": _STARTING,
    }  # fmt: skip


def _log_config() -> dict[str, Any]:
    """Logging configuration of uvicorn, extended by our messages."""
    config = copy.deepcopy(uvicorn.config.LOGGING_CONFIG)
    config["loggers"]["pictopic.server"] = {"handlers": ["default"], "level": "INFO", "propagate": False}
    return config


def _listen(host: str, port: int, open_page: bool) -> socket.socket:
    """Open the socket here, so that a taken port is an error like others, and the number behind port 0 is known."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.create_server((host, port), family=family)
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{listening.getsockname()[1]}"
    print(f"Serving at {address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
    if open_page:  # in a thread: some browsers only come back when they are closed
        threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
    return listening


def _end(number: int, frame: FrameType | None) -> None:
    """Exit with 0 when asked to end; uvicorn would repeat the signal, which looks like a failure."""
    sys.exit(0)


# ---- connections -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections a process takes, and how long it waits for them.

    Parameters
    ----------
    max_connections : int, default=512
        More than these push out the one that has kept the server waiting longest.
    backlog : int, default=128
        Connections that wait to be accepted; as many may be accepted at once, before one is pushed out.
    reserve : int, default=16
        Connections above `max_connections`, for health checks while all others are being answered.
    max_unread : int, default=64
        Connections whose clients do not take up their answers: more push out the one that has not for longest.
    head_seconds : float, default=10
        For the head of a request to arrive, from the beginning of the connection or the end of the last answer.
    read_seconds : float, default=30
        For the client to take up what was sent to it.
    """

    max_connections: int = _MOST
    backlog: int = _BACKLOG
    reserve: int = 16
    max_unread: int = _UNREAD
    head_seconds: float = 10.0
    read_seconds: float = 30.0

    @classmethod
    def of_process(cls, **options: Any) -> ConnectionLimits:
        """As many as the process may still open files: half for connections, the rest for those that come and files.

        Examples
        --------
        >>> from pictopic.server.run import ConnectionLimits
        >>> 0 < ConnectionLimits.of_process().max_connections <= 512
        True
        """
        free = _free_files()
        if free is None:
            return cls(**options)
        backlog = max(1, min(_BACKLOG, free // 4))
        n = max(2, min(_MOST, free // 2))
        return cls(
            max_connections=n,
            backlog=backlog,
            reserve=max(1, min(16, n // 8)),
            max_unread=min(_UNREAD, n // 2),
            **options,
        )


def _free_files() -> int | None:
    """How many files the process may still open; None: there is no bound."""
    if resource is None:
        return None
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if limit == resource.RLIM_INFINITY:
        return None
    for folder in ("/proc/self/fd", "/dev/fd"):
        try:
            return limit - len(os.listdir(folder))
        except OSError:
            continue
    return limit - _USUALLY_OPEN


class _Parser(h11.Connection):
    """h11's parser, without bodies of tiny chunks: four of one-byte chunks blocked the server for five seconds."""

    def __init__(self, *arguments: Any, **options: Any):
        super().__init__(*arguments, **options)
        self._n_chunks = self._n_bytes = 0

    def next_event(self) -> Any:
        """What comes next."""
        event = super().next_event()
        if isinstance(event, h11.Request):
            self._n_chunks = self._n_bytes = 0
        elif isinstance(event, h11.Data):
            self._n_chunks += event.chunk_start
            self._n_bytes += len(event.data)
            if self._n_bytes < _SMALL_CHUNK * (self._n_chunks - _FEW_CHUNKS):
                raise h11.RemoteProtocolError("the chunks of the body are too small")
        return event


class Connection(H11Protocol):
    """A client's connection, closed when the client keeps the server waiting.

    uvicorn bounds the time between requests only: a client that sends half a head, or does not read its answer, would
    keep a file descriptor for ever.

    Parameters
    ----------
    limits : ConnectionLimits
    **options
        uvicorn's.
    """

    def __init__(self, *, limits: ConnectionLimits, **options: Any):
        super().__init__(**options)
        self.limits = limits
        self.conn = _Parser(h11.SERVER)
        self._is_answering = False
        self._since = 0.0  # when the last request began or ended
        self._head_clock: asyncio.TimerHandle | None = None
        self._read_clock: asyncio.TimerHandle | None = None

    @property
    def waits_for_client(self) -> bool:
        """Whether there is nothing to do until the client sends more, or takes up what was sent to it."""
        return not self._is_answering or self.cycle.more_body or self._read_clock is not None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, if need be in place of another."""
        super().connection_made(transport)
        self._since = self.loop.time()
        self._watch()
        if len(self.connections) > self.limits.max_connections:
            self._make_room()

    def _make_room(self) -> None:
        others = [
            other for other in self.connections
            if isinstance(other, Connection) and other is not self and not other.transport.is_closing()
        ]  # fmt: skip
        if len(others) < self.limits.max_connections:
            return  # others are just being closed
        waiting = [other for other in others if other.waits_for_client]
        if waiting:
            # Those without a request first: who is sending a body may have nearly done.
            min(waiting, key=lambda other: (other._is_answering, other._since)).transport.abort()
        elif len(others) < self.limits.max_connections + self.limits.reserve:
            self.app = _only_health(self.app)
        else:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Process what the client sends."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Start waiting for the next request."""
        super().on_response_complete()
        if self.transport.is_closing() and self.transport.get_write_buffer_size():
            self._start_read_clock()
        self._watch()

    def _watch(self) -> None:
        """Let the clock run while there is no request."""
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering != self._is_answering:
            self._is_answering, self._since = is_answering, self.loop.time()
        if is_answering:
            _stop(self._head_clock)
            self._head_clock = None
        elif self._head_clock is None and not self.transport.is_closing():
            self._head_clock = self.loop.call_later(self.limits.head_seconds, self._too_late)

    def _too_late(self) -> None:
        if self.conn.our_state is h11.IDLE and self.conn.trailing_data[0]:
            self._refuse(ProblemError(408, f"no request within {self.limits.head_seconds:g} seconds"))
        self._drop()

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection between two requests."""
        self._drop()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP."""
        self._refuse(ProblemError(400, msg))
        self._drop()

    def _refuse(self, error: ProblemError) -> None:
        """Answer without an application."""
        content = json.dumps(error.problem().model_dump(exclude_defaults=True)).encode()
        headers = {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(content)), "Connection": "close"}
        try:
            for event in (
                h11.Response(status_code=error.status_code, headers=list((headers | SECURITY_HEADERS).items())),
                h11.Data(data=content),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:
            pass  # an answer has begun already

    def _drop(self) -> None:
        """Close the connection; what the client has not read by now is lost."""
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    def pause_writing(self) -> None:
        """Wait until the client has read, but not for ever."""
        super().pause_writing()
        self._start_read_clock()
        unread = [
            (other._read_clock.when(), other.transport)
            for other in self.connections
            if isinstance(other, Connection) and other._read_clock is not None and not other.transport.is_closing()
        ]
        if len(unread) > self.limits.max_unread:
            # Their requests take the places of others.
            min(unread, key=lambda pair: pair[0])[1].abort()

    def resume_writing(self) -> None:
        """Go on: the client has read."""
        _stop(self._read_clock)
        self._read_clock = None
        super().resume_writing()

    def _start_read_clock(self) -> None:
        if self._read_clock is None:
            self._read_clock = self.loop.call_later(self.limits.read_seconds, self.transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the clocks of a closed connection."""
        _stop(self._head_clock)
        _stop(self._read_clock)
        super().connection_lost(exc)


def _stop(clock: asyncio.TimerHandle | None) -> None:
    if clock is not None:
        clock.cancel()


def _only_health(app: Callable[..., Any]) -> ASGIApp:
    """An application that answers health checks, and nothing else."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["path"] == HEALTH:
            await app(scope, receive, send)
            return
        error = ProblemError(
            429, "too many connections", headers={"Retry-After": "1", "Connection": "close"} | SECURITY_HEADERS
        )
        await error.response()(scope, receive, send)

    return answer
