"""Tags: those of the collection, those that pictures lack or have wrongly, and what people decided about them."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Response

from pictopic.server import schemas
from pictopic.server.problems import ProblemError
from pictopic.server.routers.dependencies import (
    K,
    KnownTag,
    Limit,
    Offset,
    ServerState,
    State,
    ask_model,
    computed,
    listed,
    next_offset,
    page_of,
    probable,
    queued,
    scored,
)
from pictopic.server.served_model import ServedModel
from pictopic.tasks.annotate import Ranking
from pictopic.tasks.decisions import ACCEPTED, REJECTED, Decision, decided_tags, decisions_about, sidecars, zip_sidecars
from pictopic.tasks.exports import tags_csv
from pictopic.words.tags import normalise_tag

_log = logging.getLogger("pictopic.server")

_FILES = {"csv": "tags.csv", "xmp": "sidecars.zip"}
_MEDIA_TYPES = {"csv": "text/csv; charset=utf-8", "xmp": "application/zip"}

router = APIRouter(prefix="/api/v1")


@router.get("/tags", response_model=schemas.TagsAnswer)
@queued
def tags(state: State, offset: Offset = 0, limit: Limit = 1000) -> schemas.TagsAnswer:
    """All tags, with how many pictures have them."""
    counts = state.models.current.tag_counts
    page, rest = page_of(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])), offset, limit)
    return schemas.TagsAnswer(tags=[schemas.TagCount(name=name, count=count) for name, count in page], **rest)


@router.get("/tags/{name:path}", response_model=schemas.TagAnswer)
@queued
def tag(name: str, state: State, k: K = 10, offset: Offset = 0, limit: Limit = 20) -> schemas.TagAnswer:
    """A tag: the k that are similar, and the pictures that have it."""
    served, name = state.models.current, normalise_tag(name)
    if name not in served.tag_counts:
        raise ProblemError(404, f"no picture of the collection has the tag {name[:100]!r}")
    rows = served.rows_with(tag=name)
    # A tag that few pictures have need not be a word.
    similar = ask_model(served, served.model.similar_tags, name, k) if name in served.vocabulary else []
    return schemas.TagAnswer(
        name=name,
        count=len(rows),
        similar=scored(similar),
        pictures=listed(served, rows[offset : offset + limit]),
        next_offset=next_offset(offset, limit, len(rows)),
    )


@router.get("/missing", response_model=schemas.SuggestedAnswer)
async def missing(state: State, tag: KnownTag, offset: Offset = 0, limit: Limit = 50) -> schemas.SuggestedAnswer:
    """Pictures without a tag that probably should have it, the most probable first."""
    return await _suggested(state, "missing", tag, offset, limit)


@router.get("/doubtful", response_model=schemas.SuggestedAnswer)
async def doubtful(state: State, tag: KnownTag, offset: Offset = 0, limit: Limit = 50) -> schemas.SuggestedAnswer:
    """Pictures with a tag that probably does not belong to them, the least probable first."""
    return await _suggested(state, "doubtful", tag, offset, limit)


async def _suggested(state: ServerState, which: str, tag: str, offset: int, limit: int) -> schemas.SuggestedAnswer:
    """Pictures of a ranking of `Suggestions`, without those about which it is decided already."""
    served = state.models.current
    number = ask_model(served, served.model.tag_number, tag)  # before anybody waits for nothing
    ranking: Ranking = getattr(await computed(state, served, "suggestions"), which)

    def answer() -> schemas.SuggestedAnswer:
        decided = {served.row_of_name.get(name) for name in state.decisions.decided(normalise_tag(tag))}
        pairs, rest = page_of([(row, p) for row, p in ranking.of(number) if row not in decided], offset, limit)
        name = served.vocabulary.annotations[number]
        return schemas.SuggestedAnswer(tag=name, pictures=probable(served, pairs), **rest)

    return await state.queue.run(answer)


@router.get("/decisions", response_model=schemas.DecisionsAnswer)
@queued
def decisions(state: State, offset: Offset = 0, limit: Limit = 100) -> schemas.DecisionsAnswer:
    """What was decided about tags, the newest first."""
    served = state.models.current
    decisions = _decisions(state, served)
    page, rest = page_of(decisions, offset, limit)
    pictures = listed(served, [served.row_of_name[decision.file_name] for decision in page])
    decided = [
        schemas.Decided(picture=picture, tag=decision.tag, decision=decision.decision, time=decision.time)
        for picture, decision in zip(pictures, page, strict=True)
    ]
    return schemas.DecisionsAnswer(decisions=decided, **rest, **_counts(decisions).model_dump())


@router.put("/decisions", response_model=schemas.Counts)
@queued
def decide(body: schemas.Wanted, state: State) -> schemas.Counts:
    """Decide whether a tag belongs to a picture.  `pictopic update` lets the model learn from it."""
    served = state.models.current
    name = served.names[served.row(body.picture)]
    if not normalise_tag(body.tag):
        raise ProblemError(422, "a tag must have at least one letter")
    with _file_errors("written"):
        state.decisions.add(name, body.tag, body.decision)
    return _counts(_decisions(state, served))


@router.get(
    "/decisions/export",
    response_class=Response,
    responses={200: {"content": {kind: {"schema": {"type": "string"}} for kind in _MEDIA_TYPES.values()}}},
)
@queued
def export(
    state: State,
    format: Annotated[Literal["csv", "xmp"], Query(description="A CSV file, or a ZIP of XMP sidecars.")] = "csv",
) -> Response:
    """All tags of the pictures about which something is decided: CSV, or XMP files for photo managers."""
    served = state.models.current
    with _file_errors("read"):
        tags = decided_tags(state.decisions, served.names, served.tags)
    content = tags_csv(tags.items()).encode() if format == "csv" else zip_sidecars(sidecars(tags, served.names))
    disposition = f'attachment; filename="{_FILES[format]}"'
    return Response(content, media_type=_MEDIA_TYPES[format], headers={"Content-Disposition": disposition})


def _decisions(state: ServerState, served: ServedModel) -> list[Decision]:
    """Decisions about pictures of the collection, the newest first."""
    with _file_errors("read"):
        return decisions_about(state.decisions, served.names)


def _counts(decisions: list[Decision]) -> schemas.Counts:
    counts = Counter(decision.decision for decision in decisions)
    return schemas.Counts(n_accepted=counts[ACCEPTED], n_rejected=counts[REJECTED])


@contextmanager
def _file_errors(verb: str) -> Iterator[None]:
    """Turn errors of the file of decisions into problems that do not reveal where it is."""
    try:
        yield
    except (OSError, ValueError) as error:
        _log.error("the decisions cannot be %s: %s", verb, error)
        raise ProblemError(500, f"the decisions cannot be {verb} here; the server's log says why") from None
