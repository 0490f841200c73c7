"""The application: all parts put together."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Response
from fastapi.responses import HTMLResponse, PlainTextResponse

from pictopic import __version__
from pictopic.server.decisions import make_decisions_router
from pictopic.server.description import describe, page
from pictopic.server.explore_routes import make_explore_router
from pictopic.server.memory import give_back_large_blocks
from pictopic.server.metrics import MEDIA_TYPE, Metrics
from pictopic.server.page import add_page
from pictopic.server.parameters import Parts
from pictopic.server.problems import add_handlers
from pictopic.server.queue import WorkQueue, one_thread_each
from pictopic.server.routes import make_router
from pictopic.server.schemas import Health
from pictopic.server.scratch import Scratch
from pictopic.server.security import HEALTH, Guard
from pictopic.server.served_model import ModelStore
from pictopic.server.session import make_session_router
from pictopic.server.settings import Settings
from pictopic.server.throttle import Throttle
from pictopic.server.thumbnails import Thumbnails
from pictopic.tasks.decisions import Decisions

_MAX_THUMBNAILS_WAITING = 512  # a page asks for many at once
_LONG = 600.0  # seconds for what is worked out once for a model


def create_app(model_folder: str | os.PathLike[str], settings: Settings | None = None) -> FastAPI:
    """The server of a model, as an ASGI application.

    Parameters
    ----------
    model_folder : path
        As `PictureModel.save` wrote it.  If another one is put in its place, that one answers.
    settings : Settings, optional

    Returns
    -------
    FastAPI
        `app.state.parts` holds what its routes work with.

    Raises
    ------
    ValueError
        If the folder is no model.
    """
    settings = settings or Settings()
    one_thread_each()
    give_back_large_blocks()
    scratch = Scratch()
    parts = Parts(
        live=ModelStore(Path(model_folder), settings),
        settings=settings,
        gate=WorkQueue(settings.n_threads, settings.max_waiting, settings.timeout, "pictopic-answers"),
        thumbnail_gate=WorkQueue(settings.n_threads, _MAX_THUMBNAILS_WAITING, settings.timeout, "pictopic-thumbnails"),
        long_gate=WorkQueue(1, settings.max_waiting, _LONG, "pictopic-long-work"),
        thumbnails=Thumbnails(settings.cache or scratch.folder / "thumbnails", settings.max_cache),
        decisions=Decisions.beside(model_folder),
    )
    metrics, throttle = Metrics(), Throttle()
    metrics.watch(
        "pictopic_waiting", "Requests that wait for the model or are being answered.", lambda: parts.gate.waiting
    )
    metrics.watch("pictopic_models_loaded", "Models loaded since the start.", lambda: parts.live.n_loaded)
    metrics.watch("pictopic_pictures", "Pictures of the collection.", lambda: parts.live.n_pictures)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        parts.live.start()
        yield
        parts.live.stop()
        parts.gate.close()
        parts.thumbnail_gate.close()
        parts.long_gate.close()
        scratch.close()

    app = FastAPI(title="pictopic", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.parts = parts
    app.include_router(make_router(parts))
    app.include_router(make_decisions_router(parts))
    app.include_router(make_explore_router(parts))
    app.include_router(make_session_router(settings, throttle))
    _add_service(app, parts, metrics)
    add_page(app)
    add_handlers(app)
    describe(app, with_token=settings.token is not None)
    app.add_middleware(Guard, settings=settings, metrics=metrics, throttle=throttle)
    return app


def _add_service(app: FastAPI, parts: Parts, metrics: Metrics) -> None:
    """What is not about pictures."""

    @app.get(HEALTH, response_model=Health)
    async def health() -> Health:
        """Whether the server is up, and its model whole."""
        parts.live.current  # noqa: B018 - 503 if it is damaged
        return Health(status="ok", version=__version__)

    @app.get("/metrics", response_class=PlainTextResponse)
    def figures() -> Response:
        """Figures for Prometheus."""
        return Response(metrics.text(), media_type=MEDIA_TYPE)

    @app.get("/docs", response_class=HTMLResponse, include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(page(app.openapi()))
