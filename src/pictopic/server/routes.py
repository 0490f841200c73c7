"""The addresses of the API."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from pydantic import BaseModel

from pictopic.server import questions, schemas
from pictopic.server.parameters import JPEG, K, Label, Like, Limit, Offset, Parts, Side, Tag, Tags, row_of, split_tags
from pictopic.server.problems import ProblemError, internal_error
from pictopic.server.served_model import UNREADABLE
from pictopic.server.uploads import Upload, body, open_upload, read_uploads, while_connected
from pictopic.tasks.reading import Answer
from pictopic.words.pictures import PictureError

_log = logging.getLogger("pictopic.server")

NDJSON = "application/x-ndjson"
_STREAMED_AT_ONCE = 8  # pictures


def make_router(parts: Parts) -> APIRouter:
    """The routes below /api/v1 about pictures that are sent, search, and what is in the collection."""
    router = APIRouter(prefix="/api/v1")
    _add_uploads(router, parts)
    _add_search(router, parts)
    _add_collection(router, parts)
    _add_thumbnails(router, parts)
    return router


def _add_uploads(router: APIRouter, parts: Parts) -> None:
    @router.post("/annotate", response_model=schemas.AnnotateAnswer, openapi_extra=body("pictures", several=True))
    async def annotate(request: Request, k: K = 5, tags: Tags = [], thresholds: bool = False) -> Response:  # noqa: B006
        """Tags for pictures: the best k, or with `thresholds` all that one can believe."""
        options = {"k": k, "tags": split_tags(tags), "thresholds": thresholds}
        return await _about_uploads(
            request, parts, questions.annotate, options, schemas.AnnotateAnswer, schemas.Annotated, "tags"
        )

    @router.post("/classify", response_model=schemas.ClassifyAnswer, openapi_extra=body("pictures", several=True))
    async def classify(request: Request, k: K = 5, tags: Tags = [], dont_know: bool = False) -> Response:  # noqa: B006
        """Classes of pictures; with `dont_know`, "don't know" comes first where it is not sure."""
        options = {"k": k, "tags": split_tags(tags), "dont_know": dont_know}
        return await _about_uploads(
            request, parts, questions.classify, options, schemas.ClassifyAnswer, schemas.Classified, "classes"
        )


async def _about_uploads(
    request: Request,
    parts: Parts,
    question: Callable[..., list[Answer]],
    options: dict[str, Any],
    whole: type[BaseModel],
    one: type[BaseModel],
    field: str,
) -> Response:
    """Answer for each picture of a request: all at once, or as a line each while the others are still worked on."""
    uploads = await read_uploads(request, parts.settings)
    if not uploads:
        raise ProblemError(422, "there is no picture in the request")
    served = parts.live.current
    ask = partial(question, served, **options)
    # Requests for the same model that differ in their pictures only are answered together: a batch costs less.
    key = (served, question, repr(options))

    async def work(some: list[Upload], is_inside: bool = False) -> list[tuple[str, Answer | ProblemError]]:
        function = partial(questions.about_uploads, served, parts.settings, ask=ask)
        return await parts.gate.share(key, function, some, is_inside)

    def item(name: str, found: Answer | ProblemError) -> BaseModel:
        if isinstance(found, ProblemError):
            return one(file_name=name, problem=found.problem())
        return one(**{"file_name": name, field: schemas.Scored.of(found)})

    if NDJSON in request.headers.get("accept", ""):
        return await _streamed(uploads, work, item)
    found = await while_connected(request, uploads[0].deadline, work(uploads))
    errors = [error for _, error in found if isinstance(error, ProblemError)]
    if len(errors) == len(found):
        raise errors[0]
    return JSONResponse(whole(pictures=[item(*own) for own in found]).model_dump(exclude_none=True))


async def _streamed(
    uploads: list[Upload], work: Callable[..., Awaitable[list[Any]]], item: Callable[..., BaseModel]
) -> Response:
    """A line of JSON for each picture, some pictures at a time."""
    groups = [uploads[k : k + _STREAMED_AT_ONCE] for k in range(0, len(uploads), _STREAMED_AT_ONCE)]
    first = await work(groups[0])  # before the answer begins: it may be that there is no place

    async def lines() -> AsyncIterator[bytes]:
        for number, group in enumerate(groups):
            try:
                found = first if not number else await work(group, is_inside=True)
            except ProblemError as error:
                found = [(upload.name, error) for upload in group]
            except Exception:  # the status is sent already: the lines must say it
                _log.exception("a part of a request failed")
                found = [(upload.name, internal_error()) for upload in group]
            for own in found:
                yield item(*own).model_dump_json(exclude_none=True).encode() + b"\n"

    return StreamingResponse(lines(), media_type=NDJSON)


def _add_search(router: APIRouter, parts: Parts) -> None:
    @router.get("/search", response_model=schemas.SearchAnswer)
    async def search(
        tags: Tags = [],  # noqa: B006
        like: Like = None,
        label: Label = None,
        tag: Tag = None,
        offset: Offset = 0,
        limit: Limit = 20,
    ) -> schemas.SearchAnswer:
        """Pictures of the collection: by tags, like another of its pictures, or both."""
        served = parts.live.current
        row = None if like is None else row_of(served, like)

        def ask() -> schemas.SearchAnswer:
            picture = None if row is None else served.path_of(row)
            return questions.search(served, picture, split_tags(tags), label, tag, offset, limit)

        return await parts.gate.run(ask)

    @router.post("/search", response_model=schemas.SearchAnswer, openapi_extra=body("picture", several=False))
    async def search_by_picture(
        request: Request,
        tags: Tags = [],  # noqa: B006
        label: Label = None,
        tag: Tag = None,
        offset: Offset = 0,
        limit: Limit = 20,
    ) -> schemas.SearchAnswer:
        """Pictures of the collection: like one that is sent, by tags, or both."""
        uploads = await read_uploads(request, parts.settings)
        if len(uploads) > 1:
            raise ProblemError(422, "search takes one picture")
        served = parts.live.current

        def ask() -> schemas.SearchAnswer:
            image = open_upload(uploads[0], served, parts.settings) if uploads else None
            return questions.search(served, image, split_tags(tags), label, tag, offset, limit)

        if not uploads:
            return await parts.gate.run(ask)
        return await while_connected(request, uploads[0].deadline, parts.gate.run(ask))


def _add_collection(router: APIRouter, parts: Parts) -> None:
    @router.get("/topics", response_model=schemas.TopicsAnswer)
    async def topics(offset: Offset = 0, limit: Limit = 50) -> schemas.TopicsAnswer:
        """What the collection is about: what goes with each class, and what the hidden units stand for."""
        served = parts.live.current
        await questions.worked_out(parts.long_gate, served, "topics")
        return await parts.gate.run(questions.topics, served, offset, limit)

    @router.get("/tags", response_model=schemas.TagsAnswer)
    async def tags(offset: Offset = 0, limit: Limit = 1000) -> schemas.TagsAnswer:
        """All tags, with how many pictures have them."""
        return await parts.gate.run(questions.tags, parts.live.current, offset, limit)

    @router.get("/tags/{name:path}", response_model=schemas.TagAnswer)
    async def tag(name: str, k: K = 10, offset: Offset = 0, limit: Limit = 20) -> schemas.TagAnswer:
        """A tag: the k that are similar, and the pictures that have it."""
        return await parts.gate.run(questions.tag, parts.live.current, name, k, offset, limit)

    @router.get("/pictures", response_model=schemas.PicturesAnswer)
    async def pictures(
        label: Label = None, tag: Tag = None, offset: Offset = 0, limit: Limit = 100
    ) -> schemas.PicturesAnswer:
        """The pictures of the collection."""
        return await parts.gate.run(questions.pictures, parts.live.current, label, tag, offset, limit)

    @router.get("/pictures/{id}", response_model=schemas.PictureAnswer)
    async def picture(id: str) -> schemas.PictureAnswer:
        """A picture of the collection: its tags and labels, and what the model would say of it."""
        served = parts.live.current
        return await parts.gate.run(questions.picture, served, row_of(served, id))


def _add_thumbnails(router: APIRouter, parts: Parts) -> None:
    @router.get("/thumbnails/{id}", response_class=Response, responses=JPEG)
    async def thumbnail(request: Request, id: str, side: Side = Side.MEDIUM) -> Response:
        """A picture of the collection, small, as JPEG."""
        served = parts.live.current
        row = row_of(served, id)

        def file_and_key() -> tuple[Path, str]:
            path = served.path_of(row)
            return path, parts.thumbnails.key(path, int(side))

        try:
            path, key = await parts.thumbnail_gate.run(file_and_key)
            headers = {"ETag": f'"{key}"', "Cache-Control": "private, max-age=3600"}
            if f'"{key}"' in request.headers.get("if-none-match", ""):
                return Response(status_code=304, headers=headers)
            jpeg = await parts.thumbnail_gate.run(parts.thumbnails.get, path, int(side), key)
        except PictureError:
            raise ProblemError(404, UNREADABLE) from None
        return Response(jpeg, media_type="image/jpeg", headers=headers)
