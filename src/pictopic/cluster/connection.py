"""Connects to a Ray cluster, or starts one on this machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

_PATIENCE = 10.0  # seconds


def load_ray() -> Any:
    """Ray, or an ImportError that says how to get it."""
    # It would send what is being run to its makers.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError:
        raise ImportError("a cluster needs Ray: pip install 'pictopic[cluster]'") from None
    return ray


@contextmanager
def connected(address: str = "auto", log_to_driver: bool = False) -> Iterator[Any]:
    """Ray, connected to a cluster inside the block.

    Parameters
    ----------
    address : str, default="auto"
        Of a cluster, as ``host:6379`` on one of its machines or ``ray://host:10001`` from elsewhere.  "auto": the one
        that RAY_ADDRESS names, or that ``ray start`` has made this machine a part of; if there is none, one is started
        with this machine's processors, and stopped in the end.
    log_to_driver : bool, default=False
        Whether what workers print is printed here.

    Yields
    ------
    module
    """
    ray = load_ray()
    if ray.is_initialized():  # by the caller, who also ends it
        yield ray
        return
    options = {"logging_level": "error", "log_to_driver": log_to_driver}
    try:
        _connect(ray, address, options)
        yield ray
    finally:
        ray.shutdown()


def _connect(ray: Any, address: str, options: dict[str, Any]) -> None:
    known = os.environ.get("RAY_ADDRESS") if address == "auto" else address
    if known:
        _check_answers(known)
        try:
            ray.init(known, **options)
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            raise ConnectionError(f"there is no Ray cluster at {known}: {error}") from None
        return
    try:
        ray.init(include_dashboard=False, **options)
    except ValueError:  # there is a cluster, which has a dashboard or not
        ray.init(**options)
    except ConnectionError:  # there was one
        ray.init("local", include_dashboard=False, **options)


def _check_answers(address: str) -> None:
    """Raise a ConnectionError at once where Ray would wait for minutes."""
    url = urlsplit(address if "://" in address else f"ray://{address}")
    if url.scheme != "ray" or url.hostname is None or url.port is None:
        return
    try:
        socket.create_connection((url.hostname, url.port), timeout=_PATIENCE).close()
    except OSError as error:
        raise ConnectionError(f"there is no Ray cluster at {address}: {error.strerror or error}") from None
