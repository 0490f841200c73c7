"""Pictures that somebody sends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, NamedTuple, TypeVar

from fastapi import Request
from PIL import Image
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

from pictopic.server.problems import ProblemError
from pictopic.server.security import Deadline
from pictopic.server.served_model import ServedModel
from pictopic.server.settings import Settings
from pictopic.words.pictures import PictureError, picture_header

T = TypeVar("T")
_LONGEST_NAME = 255


class Upload(NamedTuple):
    """A picture that somebody sent."""

    name: str  # as the client says: for the answer only, never a file here
    content: bytes
    deadline: Deadline  # of the request


def body(field: str, several: bool) -> dict[str, Any]:
    """A multipart body for the OpenAPI document; the form is read by hand, because of its limits."""
    file = {"type": "string", "format": "binary", "contentMediaType": "application/octet-stream"}
    own = {"type": "array", "items": file, "minItems": 1} if several else file
    schema = {"type": "object", "properties": {field: own}} | ({"required": [field]} if several else {})
    return {"requestBody": {"required": several, "content": {"multipart/form-data": {"schema": schema}}}}


async def read_uploads(request: Request, settings: Settings) -> list[Upload]:
    """All files of a multipart body, whatever their fields are called.

    Raises
    ------
    ProblemError
        415 if the body is something else, 413 if it has too many files or too many pixels, 422 if there is something
        other than files.
    """
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise ProblemError(415, "send the pictures as multipart/form-data, such as with curl -F pictures=@new.jpg")
    parser = MultiPartParser(
        request.headers, request.stream(), max_files=settings.max_files, max_fields=10, max_part_size=10_000
    )
    # In memory, where they are needed: as files they would take a descriptor each, of which there are few.
    parser.spool_max_size = settings.max_upload + 1
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise ProblemError(413 if error.message.startswith("Too many") else 400, error.message) from None
    except UnicodeError:
        raise ProblemError(400, "the names in the form cannot be decoded: send them as UTF-8") from None
    deadline = Deadline(settings.timeout)
    try:
        files = [value for _, value in form.multi_items()]
        if not all(isinstance(file, UploadFile) for file in files):
            raise ProblemError(422, "each part of the body must be a file, with a file name")
        uploads = [
            Upload((file.filename or "")[:_LONGEST_NAME], await file.read(), deadline)  # type: ignore[union-attr]
            for file in files
        ]
    finally:
        await form.close()
    if len(uploads) * settings.max_pixels > settings.max_request_pixels:
        await asyncio.to_thread(check_pixels, uploads, settings)
    return uploads


def check_pixels(uploads: Sequence[Upload], settings: Settings) -> None:
    """Refuse pictures that have too many pixels together, from their headers: none is decoded.

    Those that are too large by themselves do not count: they will never be decoded.
    """
    n_pixels = 0
    for upload in uploads:
        if upload.deadline.is_over:
            raise _too_late(settings)
        try:
            with picture_header(upload.content, settings.max_pixels) as image:
                n_pixels += image.width * image.height
        except PictureError:
            continue  # said of each when it is opened
    if n_pixels > settings.max_request_pixels:
        raise ProblemError(
            413,
            f"the pictures of a request may have at most {settings.max_request_pixels:,} pixels together, and these "
            f"have {n_pixels:,}: send fewer at once, or smaller ones",
        )


async def while_connected(request: Request, deadline: Deadline, work: Awaitable[T]) -> T:
    """Wait for an answer as long as the client does; if it goes away, nothing more is worked on for it."""
    answer, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait({answer, gone}, return_when=asyncio.FIRST_COMPLETED)
        if answer.done():
            return answer.result()
        deadline.end()
        raise ClientDisconnect
    finally:
        answer.cancel()
        gone.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _too_late(settings: Settings) -> ProblemError:
    return ProblemError(504, f"no answer within {settings.timeout:g} seconds")


def open_upload(upload: Upload, served: ServedModel, settings: Settings) -> Image.Image:
    """The picture, as the model takes it.

    Opened here and not by the model, so that each of several pictures has its own reason if it cannot be read.  Not
    decoded any more if nobody waits for it.
    """
    if upload.deadline.is_over:
        raise _too_late(settings)
    if not served.has_pictures:
        raise ProblemError(422, "the collection was not made of pictures: the model knows tags only")
    try:
        with picture_header(upload.content, settings.max_pixels):
            pass
        image = served.model.corpus_.extractor.open(upload.content)
    except PictureError as error:
        raise ProblemError(422, str(error), "unreadable-picture") from None
    image.info = {}  # it is upright now: must not be turned by its metadata again
    return image
