"""Finding a Ray cluster, or starting one on this machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


def load_ray() -> Any:
    """Ray, or an ImportError that says how to get it."""
    # It would send what is being run to its makers.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    # A worker that is idle for long is no reason for a line; what is wrong is raised.
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
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
        that RAY_ADDRESS names, or one that runs on this machine; if there is none, one is started with this machine's
        processors, and stopped in the end.
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
    if address != "auto":
        try:
            ray.init(address, **options)
        except (ConnectionError, OSError, RuntimeError, ValueError) as error:
            raise ConnectionError(f"there is no Ray cluster at {address}: {error}") from None
        return
    try:
        ray.init(os.environ.get("RAY_ADDRESS") or "auto", **options)
    except ConnectionError:
        if os.environ.get("RAY_ADDRESS"):
            raise ConnectionError(f"there is no Ray cluster at {os.environ['RAY_ADDRESS']} (RAY_ADDRESS)") from None
        ray.init("local", include_dashboard=False, **options)
