"""What the routers share: the server's state, query parameters, and how the model is asked."""

from __future__ import annotations

import inspect
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Query, Request

from pictopic.server import schemas
from pictopic.server.cache import Thumbnails
from pictopic.server.problems import ProblemError
from pictopic.server.queue import WorkQueue
from pictopic.server.security import Throttle
from pictopic.server.served_model import UNREADABLE, ModelStore, ServedModel
from pictopic.server.settings import Settings
from pictopic.tasks.decisions import Decisions
from pictopic.words.pictures import PictureError

T = TypeVar("T")

_LAST = 2**31  # no collection has more pictures
_LONGEST = 200  # letters of a name

JPEG: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/jpeg": {"schema": {"type": "string", "format": "binary"}}}}
}
PRIVATE = {"Cache-Control": "private, max-age=3600"}  # pictures: the browser may keep them, proxies may not

K = Annotated[int, Query(ge=1, le=1000, description="How many.")]
Tags = Annotated[list[str], Query(max_length=100, description="Tags, separated by commas, or one after the other.")]
Label = Annotated[str | None, Query(description="Only pictures of this class.")]
Tag = Annotated[str | None, Query(description="Only pictures with this tag.")]
Like = Annotated[str | None, Query(description="Id of a picture of the collection.")]
Offset = Annotated[int, Query(ge=0, le=_LAST, description="How many to leave out.")]
Limit = Annotated[int, Query(ge=1, le=1000, description="How many at most.")]
Name = Annotated[str, Query(min_length=1, max_length=_LONGEST, description="A class or a tag.")]
Class = Annotated[str, Query(min_length=1, max_length=_LONGEST, description="A class.")]
KnownTag = Annotated[str, Query(min_length=1, max_length=_LONGEST, description="A tag that the model knows.")]
Similar = Annotated[int, Query(ge=1, le=1000, description="How many similar pictures.")]


@dataclass
class ServerState:
    """What a server holds between requests: ``app.state.server``."""

    models: ModelStore
    settings: Settings
    queue: WorkQueue
    thumbnail_queue: WorkQueue
    long_queue: WorkQueue  # for what is computed once per model
    thumbnails: Thumbnails
    decisions: Decisions
    throttle: Throttle


async def _state_of(request: Request) -> ServerState:
    state: ServerState = request.app.state.server
    return state


State = Annotated[ServerState, Depends(_state_of)]


def queued(handler: Callable[..., T]) -> Callable[..., Awaitable[T]]:
    """Let a request handler run in the threads of the server's queue."""

    @wraps(handler)
    async def run(state: ServerState, **arguments: Any) -> T:
        return await state.queue.run(partial(handler, state=state, **arguments))

    del run.__wrapped__  # which FastAPI would run in threads of its own
    run.__signature__ = inspect.signature(handler, eval_str=True)  # type: ignore[attr-defined]
    return run


def split_tags(tags: list[str]) -> list[str]:
    """Tags that may be separated by commas, one by one."""
    return [tag for text in tags for tag in text.split(",") if tag.strip()]


def scored(pairs: Sequence[tuple[str, float]]) -> list[schemas.Scored]:
    """Return a model's answer as JSON."""
    return [schemas.Scored(name=name, score=round(score, 6)) for name, score in pairs]


def ask_model(served: ServedModel, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What the model answers; 422 if it cannot."""
    try:
        return function(*arguments, **options)
    except PictureError:
        raise  # its text may name a file
    except ValueError as error:
        text = str(error)
        is_private = str(served.model.corpus_.folder.parent) in text or any(
            word.startswith(os.sep) for word in text.split()
        )
        raise ProblemError(422, "the model cannot answer this" if is_private else text) from error


async def computed(state: ServerState, served: ServedModel, name: str) -> Any:
    """A result that takes long, computed once per model; only those who ask for it wait."""
    if not served.computed.has(name):
        await state.long_queue.run(ask_model, served, served.computed.get, name)
    return served.computed.get(name)


def search_collection(
    served: ServedModel,
    picture: Any,
    tags: list[str],
    label: str | None = None,
    tag: str | None = None,
    *,
    offset: int = 0,
    limit: int,
) -> schemas.SearchAnswer:
    """Pictures like a picture, by tags, or both."""
    k = min(offset + limit + 1, len(served.names))  # one more, to know whether there is more
    try:
        neighbours = ask_model(served, served.model.search, picture, tags or None, k, label=label, tag=tag)
    except PictureError:
        raise ProblemError(404, UNREADABLE) from None
    pictures = [
        schemas.Found(**served.fields(served.row_of_name[name]), similarity=round(similarity, 6))
        for name, similarity in neighbours[offset : offset + limit]
    ]
    return schemas.SearchAnswer(pictures=pictures, next_offset=next_offset(offset, limit, len(neighbours)))


def listed(served: ServedModel, rows: Sequence[int]) -> list[schemas.Picture]:
    """Pictures of the collection."""
    return [schemas.Picture(**served.fields(row)) for row in rows]


def probable(served: ServedModel, pairs: Sequence[tuple[int, float]]) -> list[schemas.Probable]:
    """Pictures of the collection, each with a probability."""
    return [schemas.Probable(**served.fields(row), probability=round(p, 6)) for row, p in pairs]


def next_offset(offset: int, limit: int, total: int) -> int | None:
    """Where the next page begins; None if this was the last one."""
    return offset + limit if offset + limit < total else None


def page_of(items: Sequence[T], offset: int, limit: int) -> tuple[Sequence[T], dict[str, Any]]:
    """A page of some items, and the fields that say how many there are and where the next page begins."""
    return items[offset : offset + limit], {"total": len(items), "next_offset": next_offset(offset, limit, len(items))}
