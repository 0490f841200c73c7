"""Search: pictures of the collection that are like a picture, go with tags, or both."""

from __future__ import annotations

from fastapi import APIRouter, Request

from pictopic.server import schemas
from pictopic.server.problems import ProblemError
from pictopic.server.routers.dependencies import (
    Label,
    Like,
    Limit,
    Offset,
    State,
    Tag,
    Tags,
    queued,
    search_collection,
    split_tags,
)
from pictopic.server.uploads import body, open_upload, read_uploads, while_connected

router = APIRouter(prefix="/api/v1")


@router.get("/search", response_model=schemas.SearchAnswer)
@queued
def search(
    state: State,
    tags: Tags = [],
    like: Like = None,
    label: Label = None,
    tag: Tag = None,
    offset: Offset = 0,
    limit: Limit = 20,
) -> schemas.SearchAnswer:
    """Pictures of the collection: by tags, like another of its pictures, or both."""
    served = state.models.current
    picture = None if like is None else served.path_of(served.row(like))
    return search_collection(served, picture, split_tags(tags), label, tag, offset=offset, limit=limit)


@router.post("/search", response_model=schemas.SearchAnswer, openapi_extra=body("picture", several=False))
async def search_by_picture(
    request: Request,
    state: State,
    tags: Tags = [],
    label: Label = None,
    tag: Tag = None,
    offset: Offset = 0,
    limit: Limit = 20,
) -> schemas.SearchAnswer:
    """Pictures of the collection: like one that is sent, by tags, or both."""
    uploads = await read_uploads(request, state.settings)
    if len(uploads) > 1:
        raise ProblemError(422, "search takes one picture")
    served = state.models.current

    def answer() -> schemas.SearchAnswer:
        image = open_upload(uploads[0], served, state.settings) if uploads else None
        return search_collection(served, image, split_tags(tags), label, tag, offset=offset, limit=limit)

    if not uploads:
        return await state.queue.run(answer)
    return await while_connected(request, uploads[0].deadline, state.queue.run(answer))
