"""Running the server: sockets, workers and signals are uvicorn's."""

from __future__ import annotations

import copy
import os
import signal
import socket
import sys
import threading
import webbrowser
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.supervisors import Multiprocess

from pictopic.server.app import create_app
from pictopic.server.connections import Connection, ConnectionLimits
from pictopic.server.metrics import SHARED_FOLDER
from pictopic.server.scratch import Scratch
from pictopic.server.served_model import ModelStore
from pictopic.server.settings import Settings

_GRACE = 5.0  # seconds beyond the timeout of a request
_KEEP_ALIVE = 5  # seconds between two requests on a connection
_STARTING = 120  # seconds that a worker may take to load its libraries before it is taken for dead


def run(
    model_folder: Path, settings: Settings, host: str, port: int, workers: int = 1, open_page: bool = False
) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that are under way are answered first.

    Parameters
    ----------
    model_folder : Path
    settings : Settings
    host, port
        Where to listen; port 0: any that is free.
    workers : int, default=1
        Processes, each with the model in memory.
    open_page : bool, default=False
        Whether to show the page in the browser.

    Raises
    ------
    ValueError
        If the folder is no model.
    OSError
        If the port is taken.
    """
    signal.signal(signal.SIGTERM, _end)
    if workers == 1:
        app = create_app(model_folder, settings)
        server = uvicorn.Server(uvicorn.Config(app, **server_options(settings)))
        with _listen(host, port, open_page) as own, suppress(KeyboardInterrupt):
            server.run([own])
        return
    # The workers share the cores.
    settings = replace(settings, threads=settings.threads or max(1, settings.n_threads // workers))
    ModelStore(
        model_folder, settings
    )  # if it cannot be loaded that is said once, and not by each worker again and again
    with closing(Scratch()) as scratch:
        os.environ[SHARED_FOLDER] = str(scratch.folder)
        # uvicorn.run wants the name of an application, which would have to find its settings in the environment.
        config = uvicorn.Config(
            partial(create_app, model_folder, settings), factory=True, workers=workers, **server_options(settings)
        )
        with _listen(host, port, open_page) as own:
            own.set_inheritable(True)
            Multiprocess(config, sockets=[own]).run()


def server_options(settings: Settings) -> dict[str, Any]:
    """uvicorn's, for this process as it is now: how many connections it takes depends on the files that are open."""
    limits = ConnectionLimits.of_process(read_seconds=settings.timeout)
    return {
        "log_level": "info", "log_config": _log_config(), "access_log": False, "server_header": False, "lifespan": "on",
        "ws": "none", "http": partial(Connection, limits=limits), "backlog": limits.backlog,
        "timeout_keep_alive": _KEEP_ALIVE, "timeout_graceful_shutdown": int(settings.timeout + _GRACE),
        "timeout_worker_healthcheck": _STARTING,
    }  # fmt: skip


def _log_config() -> dict[str, Any]:
    """uvicorn's, with our own messages among its."""
    config = copy.deepcopy(uvicorn.config.LOGGING_CONFIG)
    config["loggers"]["pictopic.server"] = {"handlers": ["default"], "level": "INFO", "propagate": False}
    return config


def _listen(host: str, port: int, open_page: bool) -> socket.socket:
    """A socket, opened here so that a port that is taken is an error like others, and 0 is known by its number."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    own = socket.create_server((host, port), family=family)
    name = f"[{host}]" if ":" in host else host
    address = f"http://{name}:{own.getsockname()[1]}"
    print(f"Serving at {address} (Ctrl-C ends it)", file=sys.stderr, flush=True)
    if open_page:  # in a thread: some browsers only come back when they are closed
        threading.Thread(target=webbrowser.open, args=[address], daemon=True).start()
    return own


def _end(number: int, frame: FrameType | None) -> None:
    """A server that was asked to end, and did, has not failed: uvicorn would repeat the signal."""
    sys.exit(0)
