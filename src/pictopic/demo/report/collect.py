"""Answers of a model about pictures that it has not seen, picture by picture, for a report.

The functions take a model, a corpus of test pictures and the rows of those to show.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from PIL import Image

from pictopic.corpus.corpus import Corpus
from pictopic.demo.report.contents import (
    Explained,
    MarkedAnswer,
    Neighbour,
    Neighbours,
    Picture,
    Tagged,
    Topic,
    TrainingRun,
)
from pictopic.picture_model import PictureModel
from pictopic.tasks import quality
from pictopic.tasks.exports import UNKNOWN, data_uri, patch_mosaic
from pictopic.tasks.quality import training_curves
from pictopic.words.codebook import Patch
from pictopic.words.pictures import PictureError, open_picture

if TYPE_CHECKING:
    from pictopic.tasks.reading import Answer

_MAX_CLASSES = 12  # that are shown with examples
_N_EXAMPLES = 4  # pictures of a kind of error
_N_TAGS, _N_NEIGHBOURS = 5, 5
_SIDE = 160  # pixels of a thumbnail's longest side
_QUALITY = 80


def thumbnail(source: Any, alt: str) -> Picture:
    """A small copy of a picture (a path, bytes, PIL image or numpy array); a grey one if it cannot be read."""
    try:
        image = open_picture(source, max_side=_SIDE)
    except PictureError as error:
        return Picture(data_uri(Image.new("RGB", (_SIDE, _SIDE), UNKNOWN), _QUALITY), f"{alt} ({error})")
    return Picture(data_uri(image, _QUALITY), alt)


def word_picture(patches: Sequence[Patch], files: dict[str, Path], max_side: int | None, alt: str) -> Picture:
    """A visual word as a grid of its example patches; see `pictopic.tasks.exports.patch_mosaic`."""
    return Picture(data_uri(patch_mosaic(patches, files, max_side), _QUALITY), alt)


def examples(corpus: Corpus, number: int = 0) -> list[int]:
    """One row of each class, in the order of the classes' names: the first (0), the second (1), ... that is listed.

    Not the best ones, nor the worst.  Classes with fewer rows start again from their first.
    """
    by_class: dict[str, list[int]] = {}
    for row, labels in enumerate(corpus.label_lists):
        for label in (labels or ())[:1]:
            by_class.setdefault(label, []).append(row)
    return [rows[number % len(rows)] for _, rows in sorted(by_class.items())][:_MAX_CLASSES]


def picture_of(corpus: Corpus, row: int) -> Picture:
    """A small copy of a picture of a corpus."""
    tags = corpus.tags[row]
    alt = f"{label_of(corpus, row)}, tagged {', '.join(tags)}" if tags else label_of(corpus, row)
    return thumbnail(corpus.paths[row], alt)


def label_of(corpus: Corpus, row: int) -> str:
    """The class of a picture."""
    return ", ".join(corpus.label_lists[row] or ["no class"])


def samples(corpus: Corpus) -> list[tuple[str, Picture]]:
    """One picture of each class."""
    return [(label_of(corpus, row), picture_of(corpus, row)) for row in examples(corpus)]


def confusion(model: PictureModel, test: Corpus) -> quality.Confusion:
    """How often pictures of a class, one per picture, were taken for another."""
    answers = [dict(answer) for answer in cast("list[Answer]", model.classify(list(test.paths)))]
    proba = np.array([[answer.get(name, 0.0) for name in test.classes] for answer in answers])
    true = [label_of(test, row) if labels else None for row, labels in enumerate(test.label_lists)]
    return quality.confusion(true, proba, range(len(test)), list(test.classes), list(test.classes))


def confused_pictures(matrix: quality.Confusion, test: Corpus) -> dict[tuple[int, int], list[Picture]]:
    """The first few pictures of each cell of a confusion matrix."""
    rows = {cell: sorted(row for row, _ in pictures) for cell, pictures in matrix.pictures.items()}
    return {cell: [picture_of(test, row) for row in numbers[:_N_EXAMPLES]] for cell, numbers in rows.items()}


def tagged(model: PictureModel, test: Corpus, rows: list[int]) -> list[Tagged]:
    """The tags that the model gives to pictures, and which of them are right."""
    answers = cast("list[Answer]", model.annotate([test.paths[row] for row in rows], _N_TAGS))
    pictures = []
    for row, answer in zip(rows, answers, strict=True):
        true, given = test.tags[row], [tag for tag, _ in answer]
        marked = [MarkedAnswer(tag, tag in true) for tag in given]
        missing = [tag for tag in true if tag not in given]
        pictures.append(Tagged(picture_of(test, row), test.file_names[row], marked, missing))
    return pictures


def neighbours(model: PictureModel, test: Corpus, rows: list[int]) -> list[Neighbours]:
    """The most similar pictures of the collection."""
    answers = cast("list[Answer]", model.search([test.paths[row] for row in rows], k=_N_NEIGHBOURS))
    collection = model.corpus_
    row_of = {name: row for row, name in enumerate(collection.file_names)}
    queries = []
    for row, answer in zip(rows, answers, strict=True):
        label, similar = label_of(test, row), []
        for name, similarity in answer:
            other = row_of[name]
            its_label = label_of(collection, other)
            similar.append(Neighbour(picture_of(collection, other), its_label, similarity, its_label == label))
        queries.append(Neighbours(picture_of(test, row), label, similar))
    return queries


def topics(model: PictureModel, whole: Corpus) -> list[Topic]:
    """Hidden units, visual words and tags of each class; `whole` has the pictures the visual words were learnt from."""
    patches = [] if whole.codebook is None else whole.codebook.examples
    max_side = None if whole.options is None else whole.options.max_side
    files = dict(zip(whole.file_names, whole.paths, strict=True))

    def shown(word: int) -> Picture:
        alt = f"visual word {word}: patches of {len(patches[word])} pictures"
        return word_picture(patches[word], files, max_side, alt)

    return [
        Topic(
            topic.label, topic.units, [shown(word) for word, _ in topic.visual_words if word < len(patches)],
            [tag for tag, _ in topic.tags],
        )
        for topic in model.topics()[:_MAX_CLASSES]
    ]  # fmt: skip


def explained(model: PictureModel, test: Corpus, rows: list[int]) -> list[Explained]:
    """Pictures beside the places that spoke for their class."""
    answers = cast("list[Answer]", model.classify([test.paths[row] for row in rows], 1))
    pictures = []
    for row, [(name, probability)] in zip(rows, answers, strict=True):
        label = label_of(test, row)
        why = model.explain(test.paths[row], name)
        overlay = thumbnail(why.overlay, f"the same picture, marked where it speaks for {name} (red) or against (blue)")
        answer = MarkedAnswer(name, name == label)
        pictures.append(Explained(picture_of(test, row), overlay, answer, probability, label))
    return pictures


def training_run(name: str, model: PictureModel) -> TrainingRun:
    """The curves of a model's training, under a name."""
    estimator = model.estimator_
    seconds = estimator.history_["seconds"]  # of the training that the curves show; the final one may be shorter
    note = f"{len(seconds)} passes in {seconds[-1]:.0f} seconds"
    return TrainingRun(name, note, training_curves(estimator))
