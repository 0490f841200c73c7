"""Figures for Prometheus."""

from __future__ import annotations

import os
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.types import Scope

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # in the environment: several workers count together
_METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")


class Metrics:
    """What a server counts.

    Examples
    --------
    >>> from pictopic.server.metrics import Metrics
    >>> metrics = Metrics()
    >>> metrics.count({"method": "GET"}, 404, 0.01)
    >>> b'pictopic_requests_total{method="GET",route="other",status="404"} 1.0' in metrics.text()
    True
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "pictopic_requests", "Requests.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "pictopic_request_seconds", "Time until the end of the answer.", ("route",), registry=self._registry
        )
        self._gauges: list[tuple[Gauge, Callable[[], float]]] = []

    def count(self, scope: Scope, status: int, seconds: float) -> None:
        """Count a request.  By its route and not its path, of which there is no end."""
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Tell a number that changes."""
        gauge = Gauge(name, text, registry=self._registry, multiprocess_mode="livemax")
        self._gauges.append((gauge, value))

    def text(self) -> bytes:
        """All of them, as Prometheus reads it."""
        for gauge, value in self._gauges:
            gauge.set(value())
        if SHARED_FOLDER not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)
        return generate_latest(together)
