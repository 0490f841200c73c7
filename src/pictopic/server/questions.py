"""From requests to the model's methods, and from what they return to answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, cast

from PIL import Image

from pictopic.server import schemas
from pictopic.server.problems import ProblemError
from pictopic.server.queue import WorkQueue
from pictopic.server.served_model import UNREADABLE, ServedModel
from pictopic.server.settings import Settings
from pictopic.server.uploads import Upload, open_upload
from pictopic.tasks.reading import Answer
from pictopic.words.pictures import PictureError
from pictopic.words.tags import normalise_tag

Ask = Callable[[list[Image.Image]], list[Answer]]

_AT_ONCE = 8  # pictures that the model is asked about together: then it is seen whether anybody still waits
PREDICTED = 5  # tags and classes that are told of a picture of the collection


def ask_model(served: ServedModel, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What the model answers; 422 if it cannot."""
    try:
        return function(*arguments, **options)
    except PictureError:
        raise  # its text may name a file
    except ValueError as error:
        text = str(error)
        is_private = str(served.model.corpus_.folder.parent) in text or any(
            word.startswith(os.sep) for word in text.split()
        )
        raise ProblemError(422, "the model cannot answer this" if is_private else text) from error


async def worked_out(gate: WorkQueue, served: ServedModel, name: str) -> Any:
    """What takes long to work out: waited for where nobody else has to wait, and only the first time."""
    if not served.worked_out.has(name):
        await gate.run(ask_model, served, served.worked_out.get, name)
    return served.worked_out.get(name)


def about_uploads(
    served: ServedModel, settings: Settings, uploads: Sequence[Upload], ask: Ask
) -> list[tuple[str, Answer | ProblemError]]:
    """Name and answer of each picture that was sent, or what is wrong with it."""
    answers_of: list[tuple[str, Answer | ProblemError]] = []
    for start in range(0, len(uploads), _AT_ONCE):
        answers_of += _about_some(served, settings, uploads[start : start + _AT_ONCE], ask)
    return answers_of


def _about_some(
    served: ServedModel, settings: Settings, uploads: Sequence[Upload], ask: Ask
) -> list[tuple[str, Answer | ProblemError]]:
    opened: list[Image.Image | ProblemError] = []
    for upload in uploads:
        try:
            opened.append(open_upload(upload, served, settings))
        except ProblemError as error:
            opened.append(error)
    images = [image for image in opened if not isinstance(image, ProblemError)]
    found = iter(ask(images) if images else [])
    return [
        (upload.name, image if isinstance(image, ProblemError) else next(found))
        for upload, image in zip(uploads, opened, strict=True)
    ]


def annotate(served: ServedModel, images: list[Image.Image], k: int, tags: list[str], thresholds: bool) -> list[Answer]:
    """Tags of each picture."""
    return cast("list[Answer]", ask_model(served, served.model.annotate, images, k, tags=tags, thresholds=thresholds))


def classify(
    served: ServedModel, images: list[Image.Image], k: int | None, tags: list[str], dont_know: bool
) -> list[Answer]:
    """Classes of each picture."""
    return cast("list[Answer]", ask_model(served, served.model.classify, images, k, tags=tags, dont_know=dont_know))


def search(
    served: ServedModel,
    picture: Any,
    tags: list[str],
    label: str | None,
    tag: str | None,
    offset: int,
    limit: int,
) -> schemas.SearchAnswer:
    """Pictures like a picture, by tags, or both."""
    k = min(offset + limit + 1, len(served.names))  # one more, to know whether there is more
    try:
        found = ask_model(served, served.model.search, picture, tags or None, k, label=label, tag=tag)
    except PictureError:
        raise ProblemError(404, UNREADABLE) from None
    pictures = [
        schemas.Found(**about(served, served.row_of_name[name]), similarity=round(value, 6)) for name, value in found
    ]
    return schemas.SearchAnswer(
        pictures=pictures[offset : offset + limit], next_offset=next_offset(offset, limit, len(pictures))
    )


def picture(served: ServedModel, row: int) -> schemas.PictureAnswer:
    """A picture of the collection, and what the model would say of it."""
    model = served.model
    try:
        path = served.path_of(row)
        has_tags = bool(served.vocabulary.annotations)
        tags = ask_model(served, model.annotate, path, PREDICTED) if has_tags else []
        classes = ask_model(served, model.classify, path, PREDICTED) if model.has_classes else []
        predicted = schemas.Predicted(tags=schemas.Scored.of(tags), classes=schemas.Scored.of(classes))
    except (PictureError, ProblemError):  # moved away, or a collection of tags only
        predicted = None
    return schemas.PictureAnswer(**about(served, row), predicted=predicted)


def pictures(
    served: ServedModel, label: str | None, tag: str | None, offset: int, limit: int
) -> schemas.PicturesAnswer:
    """The collection, page by page."""
    rows = served.rows_with(label, None if tag is None else normalise_tag(tag))
    return schemas.PicturesAnswer(
        pictures=listed(served, rows[offset : offset + limit]),
        total=len(rows),
        next_offset=next_offset(offset, limit, len(rows)),
    )


def tags(served: ServedModel, offset: int, limit: int) -> schemas.TagsAnswer:
    """All tags."""
    ranked = sorted(served.tag_counts.items(), key=lambda own: (-own[1], own[0]))
    counts = [schemas.TagCount(name=name, count=count) for name, count in ranked[offset : offset + limit]]
    return schemas.TagsAnswer(tags=counts, total=len(ranked), next_offset=next_offset(offset, limit, len(ranked)))


def tag(served: ServedModel, name: str, k: int, offset: int, limit: int) -> schemas.TagAnswer:
    """One tag."""
    name = normalise_tag(name)
    if name not in served.tag_counts:
        raise ProblemError(404, f"no picture of the collection has the tag {name[:100]!r}")
    rows = served.rows_with(tag=name)
    # A tag that few pictures have need not be a word.
    similar = ask_model(served, served.model.similar_tags, name, k) if name in served.vocabulary else []
    return schemas.TagAnswer(
        name=name,
        count=len(rows),
        similar=schemas.Scored.of(similar),
        pictures=listed(served, rows[offset : offset + limit]),
        next_offset=next_offset(offset, limit, len(rows)),
    )


def topics(served: ServedModel, offset: int, limit: int) -> schemas.TopicsAnswer:
    """What the collection is about."""
    found = served.topics()
    units, quality = found["units"], found["quality"]
    return schemas.TopicsAnswer(
        classes=[_class_topic(own) for own in found["classes"]],
        topics=[_topic(served, own) for own in units[offset : offset + limit]],
        total=len(units),
        next_offset=next_offset(offset, limit, len(units)),
        coherence=quality.get("coherence"),
        diversity=quality.get("diversity"),
    )


def _class_topic(found: Any) -> schemas.ClassTopic:
    return schemas.ClassTopic(
        label=found.label,
        units=found.units,
        visual_words=schemas.VisualWord.of(found.visual_words),
        tags=schemas.Scored.of(found.tags),
    )


def _topic(served: ServedModel, found: dict[str, Any]) -> schemas.Topic:
    rows = [served.row_of_name[name] for name in found["Representative_Docs"]]
    return schemas.Topic(
        topic=found["Topic"],
        count=found["Count"],
        tags=found["Representation"],
        visual_words=schemas.VisualWord.of(found["Visual_Words"]),
        pictures=listed(served, rows),
    )


def listed(served: ServedModel, rows: Sequence[int]) -> list[schemas.Picture]:
    """Pictures of the collection."""
    return [schemas.Picture(**about(served, row)) for row in rows]


def about(served: ServedModel, row: int) -> dict[str, Any]:
    """A picture of the collection, as `schemas.Picture` takes it."""
    return {
        "id": served.ids[row], "file_name": served.names[row], "tags": served.tags[row], "labels": served.labels[row],
    }  # fmt: skip


def next_offset(offset: int, limit: int, total: int) -> int | None:
    """Where to go on; None: that was all."""
    return offset + limit if offset + limit < total else None
