"""Pictures: what the model says of those that are sent and those of the collection."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from PIL import Image
from pydantic import BaseModel

from pictopic.server import schemas
from pictopic.server.problems import ProblemError, internal_error
from pictopic.server.routers.dependencies import (
    JPEG,
    PRIVATE,
    K,
    Label,
    Limit,
    Name,
    Offset,
    ServerState,
    Similar,
    State,
    Tag,
    Tags,
    ask_model,
    listed,
    page_of,
    queued,
    scored,
    search_collection,
    split_tags,
)
from pictopic.server.served_model import UNREADABLE, ServedModel
from pictopic.server.settings import Settings
from pictopic.server.uploads import Upload, body, open_upload, read_uploads, while_connected
from pictopic.tasks.exports import jpeg
from pictopic.tasks.reading import Answer, Described
from pictopic.words.pictures import PictureError
from pictopic.words.tags import normalise_tag

T = TypeVar("T")

_log = logging.getLogger("pictopic.server")

_NDJSON = "application/x-ndjson"
_CHUNK = 8  # pictures: between two chunks it is seen whether anybody still waits, and answers are streamed
_PREDICTED = 5  # tags and classes of a picture of the collection

router = APIRouter(prefix="/api/v1")


class Side(IntEnum):
    """Pixels of the longest side of a thumbnail: a few only, so that they can be kept."""

    SMALL, MEDIUM, LARGE = 128, 256, 512


class _Method(NamedTuple):
    """A method of `PictureModel` that takes pictures, and the schemas of what it answers."""

    name: str
    answer: type[BaseModel]
    item: type[BaseModel]
    field: str


_ANNOTATE = _Method("annotate", schemas.AnnotateAnswer, schemas.Annotated, "tags")
_CLASSIFY = _Method("classify", schemas.ClassifyAnswer, schemas.Classified, "classes")
_Outcome = tuple[str, Answer | ProblemError]  # the file's name, and its answer or what is wrong with it


@router.post("/annotate", response_model=schemas.AnnotateAnswer, openapi_extra=body("pictures", several=True))
async def annotate(request: Request, state: State, k: K = 5, tags: Tags = [], thresholds: bool = False) -> Response:
    """Tags for pictures: the best k, or with `thresholds` all that one can believe."""
    return await _answer_uploads(request, state, _ANNOTATE, k=k, tags=split_tags(tags), thresholds=thresholds)


@router.post("/classify", response_model=schemas.ClassifyAnswer, openapi_extra=body("pictures", several=True))
async def classify(request: Request, state: State, k: K = 5, tags: Tags = [], dont_know: bool = False) -> Response:
    """Classes of pictures; with `dont_know`, "don't know" comes first where it is not sure."""
    return await _answer_uploads(request, state, _CLASSIFY, k=k, tags=split_tags(tags), dont_know=dont_know)


async def _answer_uploads(request: Request, state: ServerState, method: _Method, **options: Any) -> Response:
    """Answers for all pictures of a request: together, or as a line of JSON each while others are still in work."""
    uploads = await read_uploads(request, state.settings)
    if not uploads:
        raise ProblemError(422, "there is no picture in the request")
    served = state.models.current
    ask = partial(ask_model, served, getattr(served.model, method.name), **options)
    answer = partial(_answer_each, served, state.settings, ask)
    # Requests for the same model that differ only in their pictures are answered together: a batch costs less.
    share = partial(state.queue.share, (served, method, repr(options)), answer)

    def item(name: str, answer: Answer | ProblemError) -> BaseModel:
        if isinstance(answer, ProblemError):
            return method.item(file_name=name, problem=answer.problem())
        return method.item(**{"file_name": name, method.field: scored(answer)})

    if _NDJSON in request.headers.get("accept", ""):
        return await _streamed(uploads, share, item)
    outcomes = await while_connected(request, uploads[0].deadline, share(uploads))
    errors = [answer for _, answer in outcomes if isinstance(answer, ProblemError)]
    if len(errors) == len(outcomes):
        raise errors[0]
    content = method.answer(pictures=[item(*outcome) for outcome in outcomes])
    return JSONResponse(content.model_dump(exclude_none=True))


def _answer_each(
    served: ServedModel, settings: Settings, ask: Callable[[list[Image.Image]], list[Answer]], uploads: list[Upload]
) -> list[_Outcome]:
    """Name and answer of each picture that was sent, or what is wrong with it."""
    outcomes: list[_Outcome] = []
    for start in range(0, len(uploads), _CHUNK):
        chunk = uploads[start : start + _CHUNK]
        opened: list[Image.Image | ProblemError] = []
        for upload in chunk:
            try:
                opened.append(open_upload(upload, served, settings))
            except ProblemError as error:
                opened.append(error)
        images = [image for image in opened if not isinstance(image, ProblemError)]
        answers = iter(ask(images) if images else [])
        outcomes += [
            (upload.name, image if isinstance(image, ProblemError) else next(answers))
            for upload, image in zip(chunk, opened, strict=True)
        ]
    return outcomes


async def _streamed(
    uploads: list[Upload], share: Callable[..., Awaitable[list[_Outcome]]], item: Callable[..., BaseModel]
) -> Response:
    """A line of JSON for each picture, a chunk of pictures at a time."""
    chunks = [uploads[start : start + _CHUNK] for start in range(0, len(uploads), _CHUNK)]
    first = await share(chunks[0])  # before the answer begins: there may be no place in the queue

    async def lines() -> AsyncIterator[bytes]:
        for number, chunk in enumerate(chunks):
            try:
                outcomes = first if not number else await share(chunk, is_inside=True)
            except ProblemError as error:
                outcomes = [(upload.name, error) for upload in chunk]
            except Exception:  # the status is sent already: the lines must say it
                _log.exception("a part of a request failed")
                outcomes = [(upload.name, internal_error()) for upload in chunk]
            for outcome in outcomes:
                yield item(*outcome).model_dump_json(exclude_none=True).encode() + b"\n"

    return StreamingResponse(lines(), media_type=_NDJSON)


@router.get("/pictures", response_model=schemas.PicturesAnswer)
@queued
def pictures(
    state: State, label: Label = None, tag: Tag = None, offset: Offset = 0, limit: Limit = 100
) -> schemas.PicturesAnswer:
    """The pictures of the collection."""
    served = state.models.current
    rows, rest = page_of(served.rows_with(label, None if tag is None else normalise_tag(tag)), offset, limit)
    return schemas.PicturesAnswer(pictures=listed(served, rows), **rest)


@router.get("/pictures/{id}", response_model=schemas.PictureAnswer)
@queued
def picture(id: str, state: State) -> schemas.PictureAnswer:
    """A picture of the collection: its tags and labels, and what the model would say of it."""
    served = state.models.current
    row, model, tags, classes = served.row(id), served.model, list[Any](), list[Any]()
    has_tags = bool(served.vocabulary.annotations)
    predicted = None
    try:
        if has_tags or model.has_classes:
            query = ask_model(served, model.query, _described_row(served, row))
            tags = ask_model(served, model.annotate, query, _PREDICTED) if has_tags else []
            classes = ask_model(served, model.classify, query, _PREDICTED) if model.has_classes else []
        predicted = schemas.Predicted(tags=scored(tags), classes=scored(classes))
    except (PictureError, ProblemError):  # moved away, or a collection of tags only
        pass
    return schemas.PictureAnswer(**served.fields(row), predicted=predicted)


@router.get("/thumbnails/{id}", response_class=Response, responses=JPEG)
async def thumbnail(request: Request, id: str, state: State, side: Side = Side.MEDIUM) -> Response:
    """A picture of the collection, small, as JPEG."""
    served = state.models.current
    row = served.row(id)

    def file_and_key() -> tuple[Path, str]:
        path = served.path_of(row)
        return path, state.thumbnails.key(path, int(side))

    try:
        path, key = await state.thumbnail_queue.run(file_and_key)
        headers = {"ETag": f'"{key}"'} | PRIVATE
        if f'"{key}"' in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=headers)
        content = await state.thumbnail_queue.run(state.thumbnails.get, path, int(side), key)
    except PictureError:
        raise ProblemError(404, UNREADABLE) from None
    return Response(content, media_type="image/jpeg", headers=headers)


@router.post("/look", response_model=schemas.LookAnswer, openapi_extra=body("picture", several=False))
async def look_at_upload(
    request: Request, state: State, k: K = 8, similar: Similar = 24, tags: Tags = []
) -> schemas.LookAnswer:
    """All that the model says of a picture that is sent: classes, tags and similar pictures."""
    return await _about_upload(request, state, _look, None, split_tags(tags), k, similar)


@router.get("/pictures/{id}/look", response_model=schemas.LookAnswer)
@queued
def look_at_picture(id: str, state: State, k: K = 8, similar: Similar = 24) -> schemas.LookAnswer:
    """All that the model says of a picture of the collection, as if it had not known it."""
    served = state.models.current
    row = served.row(id)
    return _look(served, _described_row(served, row), row, [], k, similar)


def _look(
    served: ServedModel, described: Described, row: int | None, tags: list[str], k: int, n_similar: int
) -> schemas.LookAnswer:
    """Classes, tags and similar pictures, from one pass through the network."""
    ask, model = partial(ask_model, served), served.model
    query = ask(model.query, described, tags)
    ranked = ask(model.annotate, query, k) if served.vocabulary.annotations else []
    sure, probabilities = None, dict[str, float]()
    if ranked and model.has_thresholds:
        sure = {name for name, _ in ask(model.annotate, query, thresholds=True)}
        probabilities = ask(model.tag_probabilities, query)
    return schemas.LookAnswer(
        picture=None if row is None else schemas.Picture(**served.fields(row)),
        classes=scored(ask(model.classify, query, k)) if model.has_classes else [],
        tags=[
            schemas.LookTag(
                **tag.model_dump(),
                probability=probabilities.get(tag.name),
                is_sure=None if sure is None else tag.name in sure,
            )
            for tag in scored(ranked)
        ],
        similar=search_collection(served, query, [], limit=n_similar).pictures,
    )


@router.post("/explain", response_class=Response, responses=JPEG, openapi_extra=body("picture", several=False))
async def explain_upload(request: Request, state: State, name: Name) -> Response:
    """Where a picture that is sent speaks for a class or tag (red), or against it (blue)."""
    return await _about_upload(request, state, _explain, name)


@router.get("/pictures/{id}/explain", response_class=Response, responses=JPEG)
@queued
def explain_picture(id: str, state: State, name: Name) -> Response:
    """Where a picture of the collection speaks for a class or tag (red), or against it (blue)."""
    served = state.models.current
    return _explain(served, _described_row(served, served.row(id)), name)


def _explain(served: ServedModel, described: Described, name: str) -> Response:
    """The picture in grey, red where it speaks for a class or tag, blue where it speaks against it, as JPEG."""
    try:
        overlay = ask_model(served, served.model.explain, described, name).overlay
    except PictureError:
        raise ProblemError(404, UNREADABLE) from None
    return Response(jpeg(overlay), media_type="image/jpeg")


async def _about_upload(request: Request, state: ServerState, ask: Callable[..., T], *arguments: Any) -> T:
    """Ask about the only picture of a request, which is described once for all requests about it."""
    uploads = await read_uploads(request, state.settings)
    if len(uploads) != 1:
        raise ProblemError(422, "send one picture")
    upload, served = uploads[0], state.models.current

    def answer() -> T:
        key = hashlib.blake2b(upload.content, digest_size=20).digest()
        described = served.described.get(key, lambda: _describe(served, open_upload(upload, served, state.settings)))
        return ask(served, described, *arguments)

    return await while_connected(request, upload.deadline, state.queue.run(answer))


def _described_row(served: ServedModel, row: int) -> Described:
    """A picture of the collection, described once for all requests about it."""
    path = served.path_of(row)
    try:
        file = path.stat()
    except OSError:
        raise ProblemError(404, UNREADABLE) from None
    return served.described.get((row, file.st_mtime_ns, file.st_size), lambda: _describe(served, path))


def _describe(served: ServedModel, picture: Any) -> Described:
    try:
        described: Described = ask_model(served, served.model.describe, picture)
    except PictureError:
        raise ProblemError(404, UNREADABLE) from None
    return described
