"""What the routes work with, and what they are asked with."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any

from fastapi import Query

from pictopic.server.problems import ProblemError
from pictopic.server.queue import WorkQueue
from pictopic.server.served_model import ModelStore, ServedModel
from pictopic.server.settings import Settings
from pictopic.server.thumbnails import Thumbnails
from pictopic.tasks.decisions import Decisions

_LAST = 2**31  # no collection has more pictures
_LONGEST = 200  # letters of a name

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

JPEG: dict[int | str, dict[str, Any]] = {
    200: {"content": {"image/jpeg": {"schema": {"type": "string", "format": "binary"}}}}
}


class Side(IntEnum):
    """Pixels of the longest side of a thumbnail: a few only, so that they can be kept."""

    SMALL, MEDIUM, LARGE = 128, 256, 512


@dataclass
class Parts:
    """What the routes work with."""

    live: ModelStore
    settings: Settings
    gate: WorkQueue
    thumbnail_gate: WorkQueue
    long_gate: WorkQueue  # for what is worked out once for a model
    thumbnails: Thumbnails
    decisions: Decisions | None = None


def split_tags(tags: list[str]) -> list[str]:
    """Tags that may be separated by commas, one by one."""
    return [word for own in tags for word in own.split(",") if word.strip()]


def row_of(served: ServedModel, id: str) -> int:
    """The row of a picture of the collection; 404 if there is none."""
    row = served.row_of.get(id)
    if row is None:
        raise ProblemError(404, "there is no picture of this id")
    return row
