"""The service itself: the explorer page, health, metrics, and the description of the API."""

from __future__ import annotations

import os
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse, PlainTextResponse
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from starlette.responses import FileResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from pictopic import __version__
from pictopic.server.problems import KINDS, MEDIA_TYPE, Problem, WrongParameter
from pictopic.server.routers.dependencies import State
from pictopic.server.schemas import Health
from pictopic.server.security import HEALTH

PAGE = Path(__file__).parents[1] / "page"
SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # in the environment: several workers count together
_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = ("GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE")
# The browser keeps files but asks again, so that after an update nobody sees scripts of two versions.
_REVALIDATE = {"Cache-Control": "no-cache"}

router = APIRouter()


def add_service(app: FastAPI) -> None:
    """Add the page's files and the description of all operations to an app, after its other routers."""
    app.include_router(router)
    app.mount("/static", _StaticFiles(directory=PAGE / "static"), name="static")
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign]


@router.get(HEALTH, response_model=Health)
async def health(state: State) -> Health:
    """Whether the server is up, and its model whole."""
    state.models.current  # noqa: B018 - 503 if it is damaged
    return Health(status="ok", version=__version__)


@router.get("/metrics", response_class=PlainTextResponse)
def figures(request: Request) -> Response:
    """Figures for Prometheus."""
    return Response(request.app.state.metrics.text(), media_type=_PROMETHEUS)


class Metrics:
    """Counters of a server's requests, and figures that are read when they are asked for.

    Examples
    --------
    >>> from pictopic.server.routers.service import Metrics
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
        """Count a request, by its route: there is no end of paths."""
        route = getattr(scope.get("route"), "path", "other")
        method = scope["method"] if scope["method"] in _METHODS else "other"
        self._requests.labels(method, route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def watch(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Add a figure that is read each time."""
        gauge = Gauge(name, text, registry=self._registry, multiprocess_mode="livemax")
        self._gauges.append((gauge, value))

    def text(self) -> bytes:
        """All figures, in the format of Prometheus."""
        for gauge, value in self._gauges:
            gauge.set(value())
        if SHARED_FOLDER not in os.environ:
            return generate_latest(self._registry)
        all_workers = CollectorRegistry()
        MultiProcessCollector(all_workers)
        return generate_latest(all_workers)


@router.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
async def index() -> FileResponse:
    """The explorer."""
    return FileResponse(PAGE / "index.html", headers=_REVALIDATE)


class _StaticFiles(StaticFiles):
    """Scripts and styles, with an ETag each."""

    def file_response(self, *arguments: Any, **options: Any) -> Response:
        response = super().file_response(*arguments, **options)
        response.headers.update(_REVALIDATE)
        return response


@router.get("/docs", response_class=HTMLResponse, include_in_schema=False)
async def docs(request: Request) -> HTMLResponse:
    """The description as a page."""
    return HTMLResponse(docs_page(request.app.openapi()))


def _openapi(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI document, with errors as they really are, and the token if there is one."""
    if app.openapi_schema is None:
        document = get_openapi(title=app.title, version=app.version, routes=app.routes)
        schemas = document.setdefault("components", {}).setdefault("schemas", {})
        for model in (Problem, WrongParameter):
            schemas[model.__name__] = model.model_json_schema(ref_template="#/components/schemas/{model}")
            schemas[model.__name__].pop("$defs", None)
        for unused in ("HTTPValidationError", "ValidationError"):
            schemas.pop(unused, None)
        error = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
        for operation in (operation for operations in document["paths"].values() for operation in operations.values()):
            operation["responses"].pop("422", None)
            for status in ("4XX", "5XX"):
                operation["responses"][status] = {"description": "A problem, as in RFC 9457.", "content": error}
        if app.state.server.settings.token is not None:
            document["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
            document["security"] = [{"token": []}]
        app.openapi_schema = document
    return app.openapi_schema


def docs_page(document: dict[str, Any]) -> str:
    """All operations and kinds of problems as a page, without scripts.

    Examples
    --------
    >>> from pictopic.server.routers.service import docs_page
    >>> operation = {"description": "Whether it is up.", "parameters": [{"name": "k", "in": "query"}]}
    >>> "<h3>GET /healthz</h3><p>Whether it is up.</p>" in docs_page({"paths": {"/healthz": {"get": operation}}})
    True
    """
    schemas = document.get("components", {}).get("schemas", {})
    operations = "".join(
        _operation(f"{method.upper()} {path}", operation, schemas)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    )
    kinds = "".join(f'<dt id="{kind}">{kind}</dt><dd>{escape(text)}</dd>' for kind, text in KINDS.items())
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        '<meta name="color-scheme" content="light dark"><title>pictopic: the API</title><h1>The API</h1>'
        '<p>For programs: <a href="/openapi.json">/openapi.json</a></p>'
        f"<h2>Operations</h2>{operations}<h2>Problems</h2><dl>{kinds}</dl></html>\n"
    )


def _operation(title: str, operation: dict[str, Any], schemas: dict[str, Any]) -> str:
    parameters = "".join(_parameter(parameter) for parameter in operation.get("parameters", []))
    forms = operation.get("requestBody", {}).get("content", {}).items()
    for kind, form in forms:
        schema = form["schema"]
        if "$ref" in schema:
            schema = schemas[schema["$ref"].rpartition("/")[2]]
        fields = ", ".join(schema["properties"])
        parameters += f"<li><code>{escape(fields)}</code> in the body ({escape(kind)})</li>"
    listed = f"<ul>{parameters}</ul>" if parameters else ""
    return f"<h3>{escape(title)}</h3><p>{escape(operation.get('description', ''))}</p>{listed}"


def _parameter(parameter: dict[str, Any]) -> str:
    schema = parameter.get("schema", {})
    default = f" [{schema['default']}]" if schema.get("default") not in (None, []) else ""
    text = f"{parameter.get('description', '')}{default}"
    return f"<li><code>{escape(parameter['name'])}</code> in the {escape(parameter['in'])}: {escape(text)}</li>"
