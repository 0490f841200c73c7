"""The addresses of decisions about tags: to decide, to look at them, and to take them to other programs."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response
from pydantic import BaseModel, Field

from pictopic.server import questions, schemas
from pictopic.server.parameters import Limit, Offset, Parts, row_of
from pictopic.server.problems import ProblemError
from pictopic.server.served_model import ServedModel
from pictopic.tasks import decisions as journal
from pictopic.tasks.decisions import decided_tags, decisions_about, sidecars, zip_sidecars
from pictopic.tasks.exports import tags_csv
from pictopic.words.tags import normalise_tag

_log = logging.getLogger("pictopic.server")

_LONGEST_TAG = 200


class Wanted(BaseModel):
    """Whether a tag belongs to a picture; "undecided" takes an earlier decision back."""

    picture: str = Field(description="Id of a picture of the collection.")
    tag: str = Field(max_length=_LONGEST_TAG)
    decision: Literal["accepted", "rejected", "undecided"]


class Counts(BaseModel):
    """How many tags were accepted and how many rejected, of pictures that are in the collection."""

    n_accepted: int
    n_rejected: int


class Decided(BaseModel):
    """A decision."""

    picture: schemas.Picture
    tag: str
    decision: str
    time: str  # ISO 8601


class DecisionsAnswer(Counts):
    """Decisions, the newest first."""

    decisions: list[Decided]
    total: int
    next_offset: int | None


def make_decisions_router(parts: Parts) -> APIRouter:
    """The routes of decisions below /api/v1."""
    router = APIRouter(prefix="/api/v1")

    @router.get("/decisions", response_model=DecisionsAnswer)
    async def decisions(offset: Offset = 0, limit: Limit = 100) -> DecisionsAnswer:
        """What was decided about tags, the newest first."""
        return await parts.gate.run(_listed, parts, parts.live.current, offset, limit)

    @router.put("/decisions", response_model=Counts)
    async def decide(wanted: Wanted) -> Counts:
        """Decide whether a tag belongs to a picture.  `pictopic update` lets the model learn from it."""
        return await parts.gate.run(_decide, parts, parts.live.current, wanted)

    content = {200: {"content": {kind: {"schema": {"type": "string"}} for kind in _MEDIA_TYPES.values()}}}

    @router.get("/decisions/export", response_class=Response, responses=content)  # type: ignore[arg-type]
    async def export(
        format: Annotated[Literal["csv", "xmp"], Query(description="A CSV file, or a ZIP of XMP sidecars.")] = "csv",
    ) -> Response:
        """All tags of the pictures about which something is decided: CSV, or XMP files for photo managers."""
        found = await parts.gate.run(_exported, parts, parts.live.current, format)
        disposition = f'attachment; filename="{_FILES[format]}"'
        return Response(found, media_type=_MEDIA_TYPES[format], headers={"Content-Disposition": disposition})

    return router


_FILES = {"csv": "tags.csv", "xmp": "sidecars.zip"}
_MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "xmp": "application/zip"}


def _journal(parts: Parts) -> journal.Decisions:
    if parts.decisions is None:
        raise ProblemError(404, "this server keeps no decisions")
    return parts.decisions


def _listed(parts: Parts, served: ServedModel, offset: int, limit: int) -> DecisionsAnswer:
    found = _of_collection(parts, served)
    page = found[offset : offset + limit]
    pictures = questions.listed(served, [served.row_of_name[own.file_name] for own in page])
    return DecisionsAnswer(
        decisions=[
            Decided(picture=picture, tag=own.tag, decision=own.decision, time=own.time)
            for picture, own in zip(pictures, page, strict=True)
        ],
        total=len(found),
        next_offset=questions.next_offset(offset, limit, len(found)),
        **_counts(found).model_dump(),
    )


def _decide(parts: Parts, served: ServedModel, wanted: Wanted) -> Counts:
    name = served.names[row_of(served, wanted.picture)]
    if not normalise_tag(wanted.tag):
        raise ProblemError(422, "a tag must have at least one letter")
    with _told("written"):
        _journal(parts).add(name, wanted.tag, wanted.decision)
    return _counts(_of_collection(parts, served))


def _exported(parts: Parts, served: ServedModel, format: str) -> bytes:
    with _told("read"):
        tags = decided_tags(_journal(parts), served.names, served.tags)
    return tags_csv(tags.items()).encode() if format == "csv" else zip_sidecars(sidecars(tags, served.names))


def _of_collection(parts: Parts, served: ServedModel) -> list[journal.Decision]:
    with _told("read"):
        return decisions_about(_journal(parts), served.names)


def _counts(found: list[journal.Decision]) -> Counts:
    words = Counter(own.decision for own in found)
    return Counts(n_accepted=words[journal.ACCEPTED], n_rejected=words[journal.REJECTED])


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Say what does not work, but not where the file is."""
    try:
        yield
    except (OSError, ValueError) as error:
        _log.error("the decisions cannot be %s: %s", what, error)
        raise ProblemError(500, f"the decisions cannot be {what} here; the server's log says why") from None
