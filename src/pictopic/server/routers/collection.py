"""The collection as a whole: what there is, its map and topics, and how good the model is."""

from __future__ import annotations

import math
from contextlib import suppress
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Response

from pictopic import __version__
from pictopic.server import schemas
from pictopic.server.problems import ProblemError
from pictopic.server.routers.dependencies import (
    JPEG,
    PRIVATE,
    Class,
    Limit,
    Offset,
    State,
    computed,
    listed,
    page_of,
    probable,
    scored,
)
from pictopic.server.served_model import ServedModel
from pictopic.tasks.exports import jpeg, patch_mosaic
from pictopic.tasks.quality import Quality

_PATCH = 48  # pixels of a patch of a visual word

router = APIRouter(prefix="/api/v1")


@router.get("/collection", response_model=schemas.Collection)
async def collection(state: State) -> schemas.Collection:
    """What the collection is, and what the model can be asked."""
    served, settings = state.models.current, state.settings
    model = served.model
    return schemas.Collection(
        name=state.models.folder.name,
        version=__version__,
        n_pictures=len(served.names),
        n_tags=len(served.tag_counts),
        classes=[schemas.TagCount(name=name, count=served.class_counts[name]) for name in served.classes],
        multi_label=served.multi_label,
        has_pictures=served.extractor is not None,
        has_classes=model.has_classes,
        has_tags=bool(served.vocabulary.annotations),
        has_thresholds=model.has_thresholds,
        network=type(model.estimator_).__name__,
        figures=_finite(model.figures_),
        n_held_out=model.n_held_out,
        max_upload=settings.max_upload,
        max_files=settings.max_files,
    )


@router.get("/map", response_model=schemas.MapAnswer)
async def places(state: State) -> schemas.MapAnswer:
    """Places of all pictures in a plane; the first time, this may take a while."""
    served = state.models.current
    plane = await computed(state, served, "map")

    def answer() -> schemas.MapAnswer:
        number = {name: k for k, name in enumerate(served.classes)}
        rounded = plane.astype(float).round(4)
        return schemas.MapAnswer(
            ids=served.ids,
            x=rounded[:, 0].tolist(),
            y=rounded[:, 1].tolist(),
            class_of=[number[row_labels[0]] if row_labels else -1 for row_labels in served.labels],
            classes=served.classes,
        )

    return await state.queue.run(answer)


@router.get("/topics", response_model=schemas.TopicsAnswer)
async def topics(state: State, offset: Offset = 0, limit: Limit = 50) -> schemas.TopicsAnswer:
    """What the collection is about: what goes with each class, and what the hidden units stand for."""
    served = state.models.current
    content = await computed(state, served, "topics")
    units, rest = page_of(content["units"], offset, limit)

    def answer() -> schemas.TopicsAnswer:
        return schemas.TopicsAnswer(
            classes=[_class_topic(topic) for topic in content["classes"]],
            topics=[_unit_topic(served, unit) for unit in units],
            coherence=content["quality"].get("coherence"),
            diversity=content["quality"].get("diversity"),
            **rest,
        )

    return await state.queue.run(answer)


def _class_topic(topic: Any) -> schemas.ClassTopic:
    return schemas.ClassTopic(
        label=topic.label,
        units=topic.units,
        visual_words=schemas.VisualWord.of(topic.visual_words),
        tags=scored(topic.tags),
    )


def _unit_topic(served: ServedModel, unit: dict[str, Any]) -> schemas.Topic:
    return schemas.Topic(
        topic=unit["Topic"],
        count=unit["Count"],
        tags=unit["Representation"],
        visual_words=schemas.VisualWord.of(unit["Visual_Words"]),
        pictures=listed(served, [served.row_of_name[name] for name in unit["Representative_Docs"]]),
    )


@router.get("/visual-words/{word}", response_class=Response, responses=JPEG)
async def visual_word(word: int, state: State) -> Response:
    """A visual word, by its number, as 4 x 4 example patches."""
    served = state.models.current

    def answer() -> bytes:
        examples = [] if served.codebook is None else served.codebook.examples
        if not 0 <= word < len(examples) or not examples[word]:
            raise ProblemError(404, "there is no visual word of this number that has examples")
        return served.word_pictures.get(word, lambda: _patches(served, examples[word]))

    return Response(await state.thumbnail_queue.run(answer), media_type="image/jpeg", headers=PRIVATE)


def _patches(served: ServedModel, patches: list[Any]) -> bytes:
    """A grid of example patches, as JPEG."""
    files: dict[str, Path] = {}
    for patch in patches:
        if patch.file_name in served.row_of_name:
            with suppress(ProblemError):  # without those that are elsewhere
                files[patch.file_name] = served.path_of(served.row_of_name[patch.file_name])
    if not any(path.is_file() for path in files.values()):
        raise ProblemError(404, "the files of its pictures cannot be read")
    max_side = None if served.options is None else served.options.max_side
    return jpeg(patch_mosaic(patches, files, max_side, _PATCH))


@router.get("/quality", response_model=schemas.QualityAnswer)
async def quality(state: State) -> schemas.QualityAnswer:
    """How good the model is, on pictures that were held out, and how it was trained."""
    served = state.models.current
    report: Quality = await computed(state, served, "quality")
    confusion = report.confusion
    return schemas.QualityAnswer(
        n_held_out=report.n_held_out,
        confusion=None
        if confusion is None
        else schemas.ConfusionCounts(classes=confusion.classes, counts=confusion.counts.tolist()),
        tags=[schemas.TagQuality(**vars(tag)) for tag in report.tags],
        figures=_finite(report.figures),
        curves=[
            schemas.Curves(
                title=chart.title,
                series=[
                    schemas.CurveSeries(
                        name=series.name, values=[value if math.isfinite(value) else None for value in series.values]
                    )
                    for series in chart.series
                ],
            )
            for chart in report.curves
        ],
        odd=served.model.odd_means,
    )


@router.get("/quality/confused", response_model=schemas.ProbableAnswer)
async def confused(
    state: State, true: Class, predicted: Class, offset: Offset = 0, limit: Limit = 50
) -> schemas.ProbableAnswer:
    """Pictures of a class that were taken for another, the surest first."""
    served = state.models.current
    confusion = (await computed(state, served, "quality")).confusion
    if confusion is None:
        raise ProblemError(422, "it is not known which classes the model confuses")
    for name in (true, predicted):
        if name not in confusion.classes:
            raise ProblemError(422, f"there is no class {name[:100]!r}")
    pairs = confusion.pictures.get((confusion.classes.index(true), confusion.classes.index(predicted)), [])
    page, rest = page_of(pairs, offset, limit)
    return schemas.ProbableAnswer(pictures=probable(served, page), **rest)


@router.get("/quality/odd", response_model=schemas.OddAnswer)
async def odd(state: State, offset: Offset = 0, limit: Limit = 50) -> schemas.OddAnswer:
    """The pictures that the model finds oddest."""
    served = state.models.current
    page, rest = page_of(await computed(state, served, "odd"), offset, limit)
    pictures = [
        schemas.Odd(**served.fields(served.row_of_name[name]), log_likelihood=round(value, 6)) for name, value in page
    ]
    return schemas.OddAnswer(pictures=pictures, **rest)


def _finite(figures: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in figures.items() if math.isfinite(value)}
