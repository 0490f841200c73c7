"""The application: all parts put together."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI

from pictopic import __version__
from pictopic.server.cache import Scratch, Thumbnails
from pictopic.server.problems import add_handlers
from pictopic.server.queue import WorkQueue, give_back_large_blocks, one_thread_each
from pictopic.server.routers import collection, pictures, search, session, tags
from pictopic.server.routers.dependencies import ServerState
from pictopic.server.routers.service import Metrics, add_service
from pictopic.server.security import SecurityMiddleware, Throttle
from pictopic.server.served_model import ModelStore
from pictopic.server.settings import Settings
from pictopic.tasks.decisions import Decisions

_MAX_THUMBNAILS_WAITING = 512  # a page asks for many at once
_LONG = 600.0  # seconds for what is computed once per model


def create_app(model_folder: str | os.PathLike[str], settings: Settings | None = None) -> FastAPI:
    """Create the server of a model, as an ASGI application.

    Parameters
    ----------
    model_folder : path
        As `PictureModel.save` wrote it.  If another model is put in its place, the server takes it up.
    settings : Settings, optional

    Returns
    -------
    FastAPI
        `app.state.server` holds what its routers work with.

    Raises
    ------
    ValueError
        If the folder is no model.
    """
    settings = settings or Settings()
    one_thread_each()
    give_back_large_blocks()
    scratch = Scratch()
    state = ServerState(
        models=ModelStore(Path(model_folder), settings),
        settings=settings,
        queue=WorkQueue(settings.n_threads, settings.max_waiting, settings.timeout, "pictopic-answers"),
        thumbnail_queue=WorkQueue(settings.n_threads, _MAX_THUMBNAILS_WAITING, settings.timeout, "pictopic-thumbnails"),
        long_queue=WorkQueue(1, settings.max_waiting, _LONG, "pictopic-long-work"),
        thumbnails=Thumbnails(settings.cache or scratch.folder / "thumbnails", settings.max_cache),
        decisions=Decisions.beside(model_folder),
        throttle=Throttle(),
    )
    metrics = Metrics()
    metrics.watch(
        "pictopic_waiting", "Requests that wait for the model or are being answered.", lambda: state.queue.waiting
    )
    metrics.watch("pictopic_models_loaded", "Models loaded since the start.", lambda: state.models.n_loaded)
    metrics.watch("pictopic_pictures", "Pictures of the collection.", lambda: state.models.n_pictures)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        state.models.start()
        yield
        state.models.stop()
        for queue in (state.queue, state.thumbnail_queue, state.long_queue):
            queue.close()
        scratch.close()

    app = FastAPI(title="pictopic", version=__version__, docs_url=None, redoc_url=None, lifespan=lifespan)
    app.state.server, app.state.metrics = state, metrics
    for resource in (pictures, search, collection, tags, session):
        app.include_router(resource.router)
    add_service(app)
    add_handlers(app)
    app.add_middleware(SecurityMiddleware, settings=settings, throttle=state.throttle, count=metrics.count)
    return app
