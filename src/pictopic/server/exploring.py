"""From the explorer's requests to the model's methods, and from what they return to answers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from pictopic import __version__
from pictopic.server import schemas
from pictopic.server.problems import ProblemError
from pictopic.server.questions import about, ask_model, next_offset, search
from pictopic.server.served_model import UNREADABLE, ServedModel
from pictopic.server.settings import Settings
from pictopic.server.uploads import Upload, open_upload
from pictopic.tasks.annotate import Ranking, Suggestions
from pictopic.tasks.exports import jpeg, patch_mosaic
from pictopic.tasks.quality import Quality
from pictopic.tasks.reading import Answer, Described
from pictopic.words.pictures import PictureError

_PATCH = 48  # pixels of a patch of a visual word

T = TypeVar("T")


def collection(served: ServedModel, settings: Settings, name: str) -> schemas.Collection:
    """What there is, and what can be asked."""
    model = served.model
    return schemas.Collection(
        name=name,
        version=__version__,
        n_pictures=len(served.names),
        n_tags=len(served.tag_counts),
        classes=[schemas.TagCount(name=own, count=served.class_counts[own]) for own in served.classes],
        multi_label=served.multi_label,
        has_pictures=served.has_pictures,
        has_classes=model.has_classes,
        has_tags=bool(served.vocabulary.annotations),
        has_thresholds=model.has_thresholds,
        network=type(model.estimator_).__name__,
        figures=_finite(model.figures_),
        n_held_out=model.n_held_out,
        max_upload=settings.max_upload,
        max_files=settings.max_files,
    )


# ---- one picture -----------------------------------------------------------------------------------------------------


def described_upload(served: ServedModel, settings: Settings, upload: Upload) -> Described:
    """A picture that was sent, described once for all that is asked about it."""
    key = hashlib.blake2b(upload.content, digest_size=20).digest()
    return served.described.get(key, lambda: _describe(served, open_upload(upload, served, settings)))


def described_row(served: ServedModel, row: int) -> Described:
    """A picture of the collection, described once for all that is asked about it."""
    path = served.path_of(row)
    try:
        file = path.stat()
    except OSError:
        raise ProblemError(404, UNREADABLE) from None
    return served.described.get((row, file.st_mtime_ns, file.st_size), lambda: _describe(served, path))


def _describe(served: ServedModel, picture: Any) -> Described:
    try:
        found: Described = ask_model(served, served.model.describe, picture)
    except PictureError:
        raise ProblemError(404, UNREADABLE) from None
    return found


def look(
    served: ServedModel, described: Described, row: int | None, tags: list[str], k: int, n_similar: int
) -> schemas.LookAnswer:
    """All that the model says of a picture."""
    ask, model = partial(ask_model, served), served.model
    given = ask(model.annotate, described, k, tags=tags) if served.vocabulary.annotations else []
    sure, probable = None, dict[str, float]()
    if given and model.has_thresholds:
        sure = {name for name, _ in ask(model.annotate, described, tags=tags, thresholds=True)}
        probable = ask(model.tag_probabilities, described, tags=tags)
    return schemas.LookAnswer(
        picture=None if row is None else schemas.Picture(**about(served, row)),
        classes=schemas.Scored.of(ask(model.classify, described, k, tags=tags)) if model.has_classes else [],
        tags=[
            schemas.LookTag(
                **own.model_dump(),
                probability=probable.get(own.name),
                is_sure=None if sure is None else own.name in sure,
            )
            for own in schemas.Scored.of(given)
        ],
        similar=search(served, described, tags, None, None, 0, n_similar).pictures,
    )


def explain(served: ServedModel, described: Described, name: str) -> bytes:
    """The picture in grey, red where it speaks for a class or tag, blue where it speaks against it, as JPEG."""
    try:
        return jpeg(ask_model(served, served.model.explain, described, name).overlay)
    except PictureError:
        raise ProblemError(404, UNREADABLE) from None


def visual_word(served: ServedModel, word: int) -> bytes:
    """A visual word as a grid of example patches, as JPEG."""
    examples = [] if served.codebook is None else served.codebook.examples
    if not 0 <= word < len(examples) or not examples[word]:
        raise ProblemError(404, "there is no visual word of this number that has examples")
    return served.word_pictures.get(word, lambda: _word_picture(served, word))


def _word_picture(served: ServedModel, word: int) -> bytes:
    assert served.codebook is not None  # noqa: S101
    patches = served.codebook.examples[word]
    files: dict[str, Path] = {}
    for patch in patches:
        if patch.file_name in served.row_of_name:
            with suppress(ProblemError):  # without those that are elsewhere
                files[patch.file_name] = served.path_of(served.row_of_name[patch.file_name])
    if not any(path.is_file() for path in files.values()):
        raise ProblemError(404, "the files of its pictures cannot be read")
    max_side = None if served.options is None else served.options.max_side
    return jpeg(patch_mosaic(patches, files, max_side, _PATCH))


# ---- the whole collection --------------------------------------------------------------------------------------------


def places(served: ServedModel, found: Any) -> schemas.MapAnswer:
    """The collection as a map."""
    number = {name: k for k, name in enumerate(served.classes)}
    rounded = found.astype(float).round(4)
    return schemas.MapAnswer(
        ids=served.ids,
        x=rounded[:, 0].tolist(),
        y=rounded[:, 1].tolist(),
        class_of=[number[own[0]] if own else -1 for own in served.labels],
        classes=served.classes,
    )


def suggested(
    served: ServedModel, found: Suggestions, which: str, tag: str, decided: Iterable[str], offset: int, limit: int
) -> schemas.SuggestedAnswer:
    """Pictures that probably lack a tag ("missing"), or have it wrongly ("doubtful"); not those already decided."""
    number = ask_model(served, served.model.tag_number, tag)
    ranking: Ranking = getattr(found, which)
    left_out = {served.row_of_name.get(name) for name in decided}
    pairs = [(row, p) for row, p in ranking.of(number) if row not in left_out]
    page = _page(pairs, offset, limit)
    return schemas.SuggestedAnswer(
        tag=served.vocabulary.annotations[number],
        pictures=_probable(served, page),
        total=len(pairs),
        next_offset=next_offset(offset, limit, len(pairs)),
    )


def quality(served: ServedModel, found: Quality) -> schemas.QualityAnswer:
    """How good the model is."""
    confusion = found.confusion
    return schemas.QualityAnswer(
        n_held_out=found.n_held_out,
        confusion=None
        if confusion is None
        else schemas.ConfusionCounts(classes=confusion.classes, counts=confusion.counts.tolist()),
        tags=[schemas.TagQuality(**vars(own)) for own in found.tags],
        figures=_finite(found.figures),
        curves=[
            schemas.Curves(
                title=chart.title,
                series=[
                    schemas.CurveSeries(
                        name=own.name, values=[value if math.isfinite(value) else None for value in own.values]
                    )
                    for own in chart.series
                ],
            )
            for chart in found.curves
        ],
        odd=served.model.odd_means,
    )


def confused(
    served: ServedModel, found: Quality, true: str, predicted: str, offset: int, limit: int
) -> schemas.ProbableAnswer:
    """Held-out pictures of a class that were taken for another."""
    confusion = found.confusion
    if confusion is None:
        raise ProblemError(422, "it is not known which classes the model confuses")
    for name in (true, predicted):
        if name not in confusion.classes:
            raise ProblemError(422, f"there is no class {name[:100]!r}")
    cell = confusion.classes.index(true), confusion.classes.index(predicted)
    pairs = confusion.pictures.get(cell, [])
    return schemas.ProbableAnswer(
        pictures=_probable(served, _page(pairs, offset, limit)),
        total=len(pairs),
        next_offset=next_offset(offset, limit, len(pairs)),
    )


def odd(served: ServedModel, found: Answer, offset: int, limit: int) -> schemas.OddAnswer:
    """The pictures whose words the model finds least probable."""
    pictures = [
        schemas.Odd(**about(served, served.row_of_name[name]), log_likelihood=round(value, 6))
        for name, value in _page(found, offset, limit)
    ]
    return schemas.OddAnswer(pictures=pictures, total=len(found), next_offset=next_offset(offset, limit, len(found)))


def _probable(served: ServedModel, pairs: Sequence[tuple[int, float]]) -> list[schemas.Probable]:
    return [schemas.Probable(**about(served, row), probability=round(p, 6)) for row, p in pairs]


def _page(found: Sequence[T], offset: int, limit: int) -> Sequence[T]:
    return found[offset : offset + limit]


def _finite(figures: dict[str, float]) -> dict[str, float]:
    return {name: value for name, value in figures.items() if math.isfinite(value)}
