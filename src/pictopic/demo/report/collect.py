"""What a model says of pictures that it has not seen, picture by picture, for a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from pictopic.corpus.corpus import Corpus
from pictopic.demo.report.contents import (
    Confusion,
    Explained,
    Neighbour,
    Neighbours,
    Picture,
    Run,
    Tagged,
    Told,
    Topic,
)
from pictopic.demo.report.pictures import thumbnail, word_picture
from pictopic.picture_model import PictureModel
from pictopic.tasks.quality import training_curves

if TYPE_CHECKING:
    from pictopic.tasks.reading import Answer

_MAX_CLASSES = 12  # that are shown with examples
_N_EXAMPLES = 4  # pictures of a kind of error
_N_TAGS, _N_NEIGHBOURS = 5, 5


def examples(corpus: Corpus, number: int = 0) -> list[int]:
    """A row of each class, in the order of the classes' names: the first (0), the second (1), ... that is listed.

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
    """A picture of each class."""
    return [(label_of(corpus, row), picture_of(corpus, row)) for row in examples(corpus)]


def confusion(model: PictureModel, test: Corpus) -> Confusion:
    """How often pictures of a class were taken for another, with some of them.

    Parameters
    ----------
    model : PictureModel
    test : Corpus
        One class a picture.

    Returns
    -------
    Confusion
    """
    answers = cast("list[Answer]", model.classify(list(test.paths), 1))
    number = {name: k for k, name in enumerate(test.classes)}
    counts = np.zeros((len(number), len(number)), np.int64)
    rows: dict[tuple[int, int], list[int]] = {}
    for row, answer in enumerate(answers):
        if answer and test.label_lists[row]:
            cell = number[label_of(test, row)], number[answer[0][0]]
            counts[cell] += 1
            rows.setdefault(cell, []).append(row)
    pictures = {cell: [picture_of(test, row) for row in own[:_N_EXAMPLES]] for cell, own in rows.items()}
    return Confusion(list(test.classes), counts.tolist(), pictures)


def tagged(model: PictureModel, test: Corpus, rows: list[int]) -> list[Tagged]:
    """The tags that the model gives to pictures, and which of them are right.

    Parameters
    ----------
    model : PictureModel
    test : Corpus
    rows : list of int
        Of the test corpus.

    Returns
    -------
    list of Tagged
    """
    answers = cast("list[Answer]", model.annotate([test.paths[row] for row in rows], _N_TAGS))
    found = []
    for row, answer in zip(rows, answers, strict=True):
        true, given = test.tags[row], [tag for tag, _ in answer]
        told = [Told(tag, tag in true) for tag in given]
        missing = [tag for tag in true if tag not in given]
        found.append(Tagged(picture_of(test, row), test.file_names[row], told, missing))
    return found


def neighbours(model: PictureModel, test: Corpus, rows: list[int]) -> list[Neighbours]:
    """The pictures of the collection that are most like some others.

    Parameters
    ----------
    model : PictureModel
    test : Corpus
    rows : list of int
        Of the test corpus.

    Returns
    -------
    list of Neighbours
    """
    answers = cast("list[Answer]", model.search([test.paths[row] for row in rows], k=_N_NEIGHBOURS))
    collection = model.corpus_
    row_of = {name: row for row, name in enumerate(collection.file_names)}
    found = []
    for row, answer in zip(rows, answers, strict=True):
        label, similar = label_of(test, row), []
        for name, similarity in answer:
            own = label_of(collection, row_of[name])
            similar.append(Neighbour(picture_of(collection, row_of[name]), own, similarity, own == label))
        found.append(Neighbours(picture_of(test, row), label, similar))
    return found


def topics(model: PictureModel, whole: Corpus) -> list[Topic]:
    """What goes with each class: hidden units, visual words and tags.

    Parameters
    ----------
    model : PictureModel
    whole : Corpus
        All pictures that the visual words were learnt from.

    Returns
    -------
    list of Topic
    """
    patches = [] if whole.codebook is None else whole.codebook.examples
    max_side = None if whole.options is None else whole.options.max_side
    files = dict(zip(whole.file_names, whole.paths, strict=True))
    found = []
    for topic in model.topics():
        words = [
            word_picture(
                patches[word], files, max_side, f"visual word {word}: patches of {len(patches[word])} pictures"
            )
            for word, _ in topic.visual_words
            if word < len(patches)
        ]
        found.append(Topic(topic.label, topic.units, words, [tag for tag, _ in topic.tags]))
    return found[:_MAX_CLASSES]


def explained(model: PictureModel, test: Corpus, rows: list[int]) -> list[Explained]:
    """Pictures beside the places that spoke for their class.

    Parameters
    ----------
    model : PictureModel
    test : Corpus
    rows : list of int
        Of the test corpus.

    Returns
    -------
    list of Explained
    """
    answers = cast("list[Answer]", model.classify([test.paths[row] for row in rows], 1))
    found = []
    for row, [(name, probability)] in zip(rows, answers, strict=True):
        label = label_of(test, row)
        why = model.explain(test.paths[row], name)
        overlay = thumbnail(why.overlay, f"the same picture, marked where it speaks for {name} (red) or against (blue)")
        answer = Told(name, name == label)
        found.append(Explained(picture_of(test, row), overlay, answer, probability, label))
    return found


def training_run(name: str, model: PictureModel) -> Run:
    """The curves of a model's training.

    Parameters
    ----------
    name : str
        What to call the model.
    model : PictureModel

    Returns
    -------
    Run
    """
    estimator = model.estimator_
    note = f"{estimator.n_iter_} passes in {estimator.history_['seconds'][-1]:.0f} seconds"
    return Run(name, note, training_curves(estimator))
