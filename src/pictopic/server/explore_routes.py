"""The addresses that the explorer page needs beside the others."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from pictopic.server import exploring, schemas
from pictopic.server.parameters import (
    JPEG,
    Class,
    K,
    KnownTag,
    Limit,
    Name,
    Offset,
    Parts,
    Similar,
    Tags,
    row_of,
    split_tags,
)
from pictopic.server.problems import ProblemError
from pictopic.server.questions import ask_model, worked_out
from pictopic.server.uploads import Upload, body, read_uploads, while_connected
from pictopic.words.tags import normalise_tag

_KEEP = {"Cache-Control": "private, max-age=3600"}


def make_explore_router(parts: Parts) -> APIRouter:
    """The explorer's routes below /api/v1."""
    router = APIRouter(prefix="/api/v1")
    _add_collection(router, parts)
    _add_pictures(router, parts)
    _add_suggestions(router, parts)
    _add_quality(router, parts)
    return router


async def _one_upload(request: Request, parts: Parts) -> Upload:
    uploads = await read_uploads(request, parts.settings)
    if len(uploads) != 1:
        raise ProblemError(422, "send one picture")
    return uploads[0]


def _add_collection(router: APIRouter, parts: Parts) -> None:
    @router.get("/collection", response_model=schemas.Collection)
    async def collection() -> schemas.Collection:
        """What the collection is, and what the model can be asked."""
        return exploring.collection(parts.live.current, parts.settings, parts.live.folder.name)

    @router.get("/map", response_model=schemas.MapAnswer)
    async def places() -> schemas.MapAnswer:
        """Places of all pictures in a plane; the first time, this may take a while."""
        served = parts.live.current
        found = await worked_out(parts.long_gate, served, "map")
        return await parts.gate.run(exploring.places, served, found)

    @router.get("/visual-words/{word}", response_class=Response, responses=JPEG)
    async def visual_word(word: int) -> Response:
        """A visual word, by its number, as 4 x 4 example patches."""
        found = await parts.thumbnail_gate.run(exploring.visual_word, parts.live.current, word)
        return Response(found, media_type="image/jpeg", headers=_KEEP)


def _add_pictures(router: APIRouter, parts: Parts) -> None:
    @router.post("/look", response_model=schemas.LookAnswer, openapi_extra=body("picture", several=False))
    async def look_at_upload(
        request: Request,
        k: K = 8,
        similar: Similar = 24,
        tags: Tags = [],  # noqa: B006
    ) -> schemas.LookAnswer:
        """All that the model says of a picture that is sent: classes, tags and similar pictures."""
        upload, served = await _one_upload(request, parts), parts.live.current

        def ask() -> schemas.LookAnswer:
            described = exploring.described_upload(served, parts.settings, upload)
            return exploring.look(served, described, None, split_tags(tags), k, similar)

        return await while_connected(request, upload.deadline, parts.gate.run(ask))

    @router.get("/pictures/{id}/look", response_model=schemas.LookAnswer)
    async def look_at_picture(id: str, k: K = 8, similar: Similar = 24) -> schemas.LookAnswer:
        """All that the model says of a picture of the collection, as if it had not known it."""
        served = parts.live.current
        row = row_of(served, id)

        def ask() -> schemas.LookAnswer:
            return exploring.look(served, exploring.described_row(served, row), row, [], k, similar)

        return await parts.gate.run(ask)

    @router.post("/explain", response_class=Response, responses=JPEG, openapi_extra=body("picture", several=False))
    async def explain_upload(request: Request, name: Name) -> Response:
        """Where a picture that is sent speaks for a class or tag (red), or against it (blue)."""
        upload, served = await _one_upload(request, parts), parts.live.current

        def ask() -> bytes:
            return exploring.explain(served, exploring.described_upload(served, parts.settings, upload), name)

        jpeg = await while_connected(request, upload.deadline, parts.gate.run(ask))
        return Response(jpeg, media_type="image/jpeg")

    @router.get("/pictures/{id}/explain", response_class=Response, responses=JPEG)
    async def explain_picture(id: str, name: Name) -> Response:
        """Where a picture of the collection speaks for a class or tag (red), or against it (blue)."""
        served = parts.live.current
        row = row_of(served, id)

        def ask() -> bytes:
            return exploring.explain(served, exploring.described_row(served, row), name)

        return Response(await parts.gate.run(ask), media_type="image/jpeg")


def _add_suggestions(router: APIRouter, parts: Parts) -> None:
    async def suggested(which: str, tag: str, offset: int, limit: int) -> schemas.SuggestedAnswer:
        served = parts.live.current
        ask_model(served, served.model.tag_number, tag)  # before anybody waits for nothing
        found = await worked_out(parts.long_gate, served, "suggestions")

        def ask() -> schemas.SuggestedAnswer:
            decided = parts.decisions.decided(normalise_tag(tag)) if parts.decisions is not None else ()
            return exploring.suggested(served, found, which, tag, decided, offset, limit)

        return await parts.gate.run(ask)

    @router.get("/missing", response_model=schemas.SuggestedAnswer)
    async def missing(tag: KnownTag, offset: Offset = 0, limit: Limit = 50) -> schemas.SuggestedAnswer:
        """Pictures without a tag that probably should have it, the most probable first."""
        return await suggested("missing", tag, offset, limit)

    @router.get("/doubtful", response_model=schemas.SuggestedAnswer)
    async def doubtful(tag: KnownTag, offset: Offset = 0, limit: Limit = 50) -> schemas.SuggestedAnswer:
        """Pictures with a tag that probably does not belong to them, the least probable first."""
        return await suggested("doubtful", tag, offset, limit)


def _add_quality(router: APIRouter, parts: Parts) -> None:
    @router.get("/quality", response_model=schemas.QualityAnswer)
    async def quality() -> schemas.QualityAnswer:
        """How good the model is, on pictures that were held out, and how it was trained."""
        served = parts.live.current
        return exploring.quality(served, await worked_out(parts.long_gate, served, "quality"))

    @router.get("/quality/confused", response_model=schemas.ProbableAnswer)
    async def confused(true: Class, predicted: Class, offset: Offset = 0, limit: Limit = 50) -> schemas.ProbableAnswer:
        """Pictures of a class that were taken for another, the surest first."""
        served = parts.live.current
        found = await worked_out(parts.long_gate, served, "quality")
        return exploring.confused(served, found, true, predicted, offset, limit)

    @router.get("/quality/odd", response_model=schemas.OddAnswer)
    async def odd(offset: Offset = 0, limit: Limit = 50) -> schemas.OddAnswer:
        """The pictures that the model finds oddest."""
        served = parts.live.current
        return exploring.odd(served, await worked_out(parts.long_gate, served, "odd"), offset, limit)
