"""Pictures that somebody sends."""

from __future__ import annotations

from typing import Any, NamedTuple

from fastapi import Request
from PIL import Image
from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException

from pictopic.server.live import Served
from pictopic.server.problems import ProblemError
from pictopic.server.settings import Settings
from pictopic.words.pictures import PictureError, picture_header

_LONGEST_NAME = 255


class Upload(NamedTuple):
    """A picture that somebody sent."""

    name: str  # as the client says: for the answer only, never a file here
    content: bytes


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
        415 if the body is something else, 413 if it has too many files, 422 if there is something other than files.
    """
    if not request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
        raise ProblemError(415, "send the pictures as multipart/form-data, such as with curl -F pictures=@new.jpg")
    try:
        form = await request.form(max_files=settings.max_files, max_fields=10, max_part_size=10_000)
    except HTTPException as error:
        if isinstance(error, ProblemError):
            raise
        too_many = str(error.detail).startswith("Too many")
        raise ProblemError(413 if too_many else 400, str(error.detail)) from None
    try:
        files = [value for _, value in form.multi_items()]
        if not all(isinstance(file, UploadFile) for file in files):
            raise ProblemError(422, "each part of the body must be a file, with a file name")
        return [Upload((file.filename or "")[:_LONGEST_NAME], await file.read()) for file in files]  # type: ignore[union-attr]
    finally:
        await form.close()


def open_upload(upload: Upload, served: Served, settings: Settings) -> Image.Image:
    """The picture, as the model takes it.

    Opened here and not by the model, so that each of several pictures has its own reason if it cannot be read.
    """
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
