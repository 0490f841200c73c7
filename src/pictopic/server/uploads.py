"""What clients send: bodies of bounded size and time, the pictures in them, and for how long somebody waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Sequence
from typing import Any, NamedTuple, TypeVar

from fastapi import Request
from PIL import Image
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pictopic.server.problems import ProblemError, no_answer_within
from pictopic.server.served_model import ServedModel
from pictopic.server.settings import Settings
from pictopic.words.pictures import PictureError, picture_header

T = TypeVar("T")
_LONGEST_NAME = 255
_MAX_ARRIVING = 64  # requests whose body is still arriving


def too_large(max_bytes: int) -> ProblemError:
    """The error of a request that has too many bytes."""
    return ProblemError(413, f"a request may have at most {max_bytes:,} bytes")


def _too_late() -> ProblemError:
    return ProblemError(408, "the request did not arrive in time", headers={"Connection": "close"})


class RequestPool:
    """A bounded number of requests, and of bytes that they send.

    Requests whose body is still arriving take no place: if there are too many of them, or too many bytes, the oldest
    gets a timeout.
    """

    def __init__(self, max_requests: int, timeout: float, max_body: int, max_bytes: int):
        self.max_requests, self.timeout, self.max_body, self.max_bytes = max_requests, timeout, max_body, max_bytes
        self._n_requests = self.n_bytes = 0
        self._arriving: dict[_Body, None] = {}  # the oldest first

    async def run(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the application answer a request."""
        if self._n_requests - len(self._arriving) >= self.max_requests:
            raise ProblemError(429, "too many requests at once", headers={"Retry-After": "1"})
        body = _Body(receive, self)
        self._n_requests += 1
        try:
            await app(scope, body, send)
        finally:
            if not body.gave_way:
                self._arriving.pop(body, None)
                self._forget(body)

    def begin(self, body: _Body) -> None:
        """Register a body that begins to arrive."""
        self._arriving[body] = None
        if len(self._arriving) > _MAX_ARRIVING:
            self._push_out(body)

    def grow(self, body: _Body, n_bytes: int, is_whole: bool) -> None:
        """Count a part of a body that has arrived."""
        self.n_bytes += n_bytes
        if is_whole:
            self._arriving.pop(body, None)
        if self.n_bytes > self.max_bytes and not self._push_out(body):
            raise ProblemError(429, "too many large requests at once", headers={"Retry-After": "1"})

    def _push_out(self, newcomer: _Body) -> bool:
        for body in self._arriving:
            if body is not newcomer:
                del self._arriving[body]
                self._forget(body)
                body.give_way()
                return True
        return False

    def _forget(self, body: _Body) -> None:
        self._n_requests -= 1
        self.n_bytes -= body.n_bytes


class _Body:
    """A request's body, bounded in bytes and time, whether or not it has a Content-Length."""

    def __init__(self, receive: Receive, pool: RequestPool):
        self._receive, self._pool = receive, pool
        self._until = asyncio.get_running_loop().time() + pool.timeout
        self._clock: asyncio.Timeout | None = None
        self._has_begun, self._is_whole = False, False
        self.n_bytes, self.gave_way = 0, False

    async def __call__(self) -> Message:
        if self._is_whole:  # what comes now is that the client has gone
            return await self._receive()
        if not self._has_begun:
            self._has_begun = True
            self._pool.begin(self)
        try:
            async with asyncio.timeout_at(self._until) as self._clock:
                message = await self._receive()
        except TimeoutError:
            raise _too_late() from None
        finally:
            self._clock = None
        if self.gave_way:  # while this was on its way
            raise _too_late()
        n_bytes = len(message.get("body", b""))
        self.n_bytes += n_bytes
        self._is_whole = not message.get("more_body", False)
        self._pool.grow(self, n_bytes, self._is_whole)
        if self.n_bytes > self._pool.max_body:
            raise too_large(self._pool.max_body)
        return message

    def give_way(self) -> None:
        """End its time now."""
        self.gave_way, self._until = True, 0.0
        if self._clock is not None and not self._clock.expired():
            self._clock.reschedule(0.0)


class Deadline:
    """The time until which a client waits for an answer, checked between two pictures.

    Examples
    --------
    >>> from pictopic.server.uploads import Deadline
    >>> deadline = Deadline(30.0)
    >>> deadline.is_over
    False
    """

    def __init__(self, seconds: float):
        self._until = time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        """Whether the client no longer waits."""
        return time.monotonic() >= self._until

    def end(self) -> None:
        """End it now: the client has gone."""
        self._until = 0.0


class Upload(NamedTuple):
    """A picture that somebody sent."""

    name: str  # as the client says: for the answer only, never a file here
    content: bytes
    deadline: Deadline  # of the request


def body(field: str, several: bool) -> dict[str, Any]:
    """A multipart body for the OpenAPI document; the form is read by hand, because of its limits."""
    file = {"type": "string", "format": "binary", "contentMediaType": "application/octet-stream"}
    content = {"type": "array", "items": file, "minItems": 1} if several else file
    schema = {"type": "object", "properties": {field: content}} | ({"required": [field]} if several else {})
    return {"requestBody": {"required": several, "content": {"multipart/form-data": {"schema": schema}}}}


async def read_uploads(request: Request, settings: Settings) -> list[Upload]:
    """All files of a multipart body, whatever their fields are called.

    415 if the body is something else, 413 if it has too many files or pixels, 422 if there is something beside files.
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
    """Refuse pictures that have too many pixels together, by their headers.

    Those that are too large on their own do not count: they are never decoded.
    """
    n_pixels = 0
    for upload in uploads:
        if upload.deadline.is_over:
            raise no_answer_within(settings.timeout)
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
    """Wait for an answer as long as the client is connected; if it goes away, its work stops."""
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


def open_upload(upload: Upload, served: ServedModel, settings: Settings) -> Image.Image:
    """Decode a picture that was sent, as the model takes it; not if its client no longer waits.

    Done here rather than in the model, so that each of several pictures gets its own error.
    """
    if upload.deadline.is_over:
        raise no_answer_within(settings.timeout)
    if served.extractor is None:
        raise ProblemError(422, "the collection was not made of pictures: the model knows tags only")
    try:
        with picture_header(upload.content, settings.max_pixels):
            pass
        image = served.extractor.open(upload.content)
    except PictureError as error:
        raise ProblemError(422, str(error), "unreadable-picture") from None
    image.info = {}  # it is upright now: must not be turned by its metadata again
    return image
