"""MIR Flickr in each form it comes in, and its splits."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.rows import Rows
from pictopic.corpus.sources import Source
from pictopic.corpus.sources.mirflickr import is_mirflickr, read_mirflickr
from pictopic.corpus.splits import labels_as_y
from pictopic.paper.datasets import read_mirflickr25k
from pictopic.paper.experiments.run import ExperimentRun
from pictopic.words.vocabulary import Vocabulary

N_SPLITS = 5
N_CLASSES = 38  # of the paper's MIR Flickr
MAX_TAGS = 2000
WORDS: dict[str, Any] = {"preset": "flickr", "features": ("gist", "mpeg7")}
_LEAST_PICTURES = 1000  # however little time there is


class Parts(NamedTuple):
    """Row numbers: to learn from, to choose by, to test on."""

    part: np.ndarray
    validation: np.ndarray
    test: np.ndarray


class PretrainingRows(NamedTuple):
    """Rows to pretrain on, perhaps on disk; splits that share them have the same name and seed."""

    rows: Rows
    name: str
    seed: int


@dataclass(frozen=True)
class LabelledSplit:
    """One split of the labelled rows."""

    number: int  # from 1 on
    seed: int  # of everything that is learnt on it
    train: Rows  # the rows whose labels are known while learning
    Y: np.ndarray  # their labels, (n, n_classes)
    test: Rows
    Y_test: np.ndarray
    part: np.ndarray  # rows of `train` to learn from while something is chosen
    validation: np.ndarray  # those to choose by
    documents: Rows  # all training rows, those too whose labels are hidden
    annotations: tuple[str, ...]  # names of the tags
    test_rows: np.ndarray  # numbers of the test rows in the collection
    unlabelled: PretrainingRows | None = None  # rows to pretrain on

    def with_few_labels(self, share: float) -> LabelledSplit:
        """The same split with the labels of a share of its training rows; all of these serve to pretrain."""
        n = len(self.Y)
        labelled = np.random.RandomState(self.seed).permutation(n)[: int(share * n)]
        part, validation = np.split(np.arange(len(labelled)), [4 * len(labelled) // 5])
        return replace(
            self, train=self.train[labelled], Y=self.Y[labelled], part=part, validation=validation,
            unlabelled=PretrainingRows(self.train, f"training rows of split {self.number}", self.seed),
        )  # fmt: skip


def find(data: Path) -> Source:
    """The data set in a folder, or in a sub-folder of it; see `read_mirflickr25k`."""
    inside = data / "mirflickr"  # also the name of the folder of pictures inside the data set
    if is_mirflickr(inside) or (inside / "mirflickr").is_dir() or (inside / "metadata.csv").is_file():
        data = inside
    return read_mirflickr25k(data)


def labelled_rows(source: Source) -> np.ndarray:
    """Which rows have labels, perhaps none of them."""
    return np.asarray(source.rows["labels"].is_valid())


def random_parts(n: int, seed: int, with_pictures: bool) -> Parts:
    """A random split of n rows in the paper's proportions, 10 : 5 : 10, or 8 : 2 : 5 for the fewer without pictures.

    Examples
    --------
    >>> from pictopic.paper.experiments.mirflickr_data import random_parts
    >>> [len(part) for part in random_parts(25_000, 0, with_pictures=True)]
    [10000, 5000, 10000]
    >>> [len(part) for part in random_parts(12_000, 0, with_pictures=False)]
    [6400, 1600, 4000]
    """
    n_train = 3 * n // 5 if with_pictures else 2 * n // 3
    n_part = 2 * n_train // 3 if with_pictures else 4 * n_train // 5
    order = np.random.RandomState(seed).permutation(n)
    return Parts(order[:n_part], order[n_part:n_train], order[n_train:])


class Collection:
    """The labelled rows, their splits, and rows to pretrain on.  Made by `open_collection`."""

    form = "tags"
    with_visual_words = False
    corpus: Corpus | None = None
    n_unlabelled = 0

    def __init__(self, source: Source, seed: int):
        self.source, self.seed = source, seed
        self.fingerprint = source.fingerprint
        labels = source.rows["labels"].filter(source.rows["labels"].is_valid()).to_pylist()
        self.classes = sorted({name for row_labels in labels for name in row_labels})

    @property
    def is_the_papers(self) -> bool:
        """Whether figures can stand beside the paper's: visual words and tags, 38 classes."""
        return self.with_visual_words and len(self.classes) == N_CLASSES

    def split(self, number: int) -> LabelledSplit:
        """The split of this number, from 1 on."""
        raise NotImplementedError

    def path(self, row: int) -> Path | None:
        """The picture of a row, if there are pictures."""
        return None

    def about(self, splits: Sequence[LabelledSplit]) -> dict[str, Any]:
        """A description for the results."""
        first = splits[0]
        return {
            "form": self.form, "rows": len(first.test_rows) + len(first.Y), "labels": len(self.classes),
            "classes": self.classes, "tags": len(first.annotations), "visual words": first.train.n_visual,
            "global features": first.train.n_global_features,
            "unlabelled rows": self.n_unlabelled, "splits": len(splits), "training rows": len(first.part),
            "validation rows": len(first.validation), "test rows": len(first.Y_test),
            "skipped": len(self.source.skipped) if self.corpus is None else len(self.corpus.skipped),
            "fingerprint": self.fingerprint,
        }  # fmt: skip


class TagCollection(Collection):
    """Tags and labels without pictures.  The tags that become words are those of the training rows of a split."""

    @cached_property
    def _rows(self) -> tuple[list[list[str]], np.ndarray]:
        rows = self.source.rows.filter(self.source.rows["labels"].is_valid())
        tags = [row_tags or [] for row_tags in rows["tags"].to_pylist()]
        return tags, labels_as_y(rows["labels"].to_pylist(), self.classes, True)

    def split(self, number: int) -> LabelledSplit:
        """The split of this number, from 1 on."""
        tags, Y = self._rows
        parts = random_parts(len(tags), self.seed + number - 1, with_pictures=False)
        train = np.concatenate([parts.part, parts.validation])
        vocabulary = Vocabulary.from_tags([tags[k] for k in train], max_words=MAX_TAGS)

        def counted(numbers: np.ndarray) -> Rows:
            return Rows(vocabulary.count_tags([tags[k] for k in numbers]), n_annotation_words=len(vocabulary))

        rows = counted(train)
        part, validation = np.split(np.arange(len(train)), [len(parts.part)])
        return LabelledSplit(
            number, self.seed + number - 1, rows, Y[train], counted(parts.test), Y[parts.test], part, validation,
            rows, vocabulary.annotations, parts.test,
        )  # fmt: skip


class PictureCollection(Collection):
    """Visual words, tags and global features: counted in pictures, or the authors' arrays."""

    with_visual_words = True

    def __init__(self, source: Source, run: ExperimentRun):
        super().__init__(source, run.random_state)
        self.form = "pictures" if source.pictures else "the authors' arrays"
        self._has_splits = (source.folder / "splits" / "train_indices_1.npy").is_file() and not source.pictures
        with_labels = labelled_rows(source)
        self._labelled, unlabelled = np.flatnonzero(with_labels), np.flatnonzero(~with_labels)
        options: dict[str, Any] = {}
        if source.pictures:
            rows = unlabelled if len(unlabelled) else self._never_tested()
            options = {**WORDS, "max_tags": MAX_TAGS, "codebook_rows": source.listed[rows]}
        self.corpus: Corpus = run.corpus("mirflickr", source, **options)
        # For each row of the source its number in the corpus, -1 for a picture that cannot be read.
        places = {name: k for k, name in enumerate(self.corpus.file_names)}
        self._places = np.array([places.get(name, -1) for name in source.rows["file_name"].to_pylist()])
        readable = self._places[unlabelled][self._places[unlabelled] >= 0]
        if len(readable) and not source.pictures:  # arrays are read as a whole, so that scaling down comes after
            readable = readable[: run.budget.steps("unlabelled rows", len(readable), _LEAST_PICTURES)]
        self._unlabelled = readable
        self.n_unlabelled = len(readable)

    def _never_tested(self) -> np.ndarray:
        """Rows that are in the training part of every split: visual words are learnt from no test picture."""
        always_train = np.ones(len(self._labelled), bool)
        for number in range(1, N_SPLITS + 1):
            always_train[self._parts(number).test] = False
        if not always_train.any():
            n = len(always_train)
            raise ValueError(f"{self.source.folder}: {n} labelled pictures are too few for {N_SPLITS} splits")
        return self._labelled[always_train]

    def _parts(self, number: int) -> Parts:
        """Numbers among the labelled rows."""
        if not self._has_splits:
            return random_parts(len(self._labelled), self.seed + number - 1, with_pictures=True)
        rows = read_mirflickr(self.source.folder, split=str(number)).rows["split"].to_pylist()
        names = np.array(rows, dtype=object)[self._labelled]
        return Parts(*(np.flatnonzero(names == name) for name in ("train", "validation", "test")))

    @cached_property
    def _labelled_rows(self) -> tuple[Rows, np.ndarray, np.ndarray]:
        """Counts and labels of the labelled pictures that were read, and which of them each labelled row is."""
        places = self._places[self._labelled]
        part = self.corpus[places[places >= 0]]
        number = np.where(places >= 0, np.cumsum(places >= 0) - 1, -1)
        return Rows.of(part), labels_as_y(part.label_lists, self.classes, True), number

    def split(self, number: int) -> LabelledSplit:
        """The split of this number, from 1 on."""
        rows, Y, places = self._labelled_rows
        readable = [places[numbers] for numbers in self._parts(number)]
        part, validation, test = (numbers[numbers >= 0] for numbers in readable)
        train = np.concatenate([part, validation])
        first, then = np.split(np.arange(len(train)), [len(part)])
        unlabelled = None
        if self.n_unlabelled:
            unlabelled = PretrainingRows(Rows.of(self.corpus)[self._unlabelled], "unlabelled rows", self.seed)
        return LabelledSplit(
            number, self.seed + number - 1, rows[train], Y[train], rows[test], Y[test], first, then, rows[train],
            self.corpus.vocabulary.annotations, test, unlabelled,
        )  # fmt: skip

    def path(self, row: int) -> Path | None:
        """The picture of a row, if there are pictures."""
        return self._pictures[row] if self.source.pictures else None

    @cached_property
    def _pictures(self) -> list[Path]:
        places = self._places[self._labelled]
        return self.corpus[places[places >= 0]].paths


def open_collection(source: Source, run: ExperimentRun) -> Collection:
    """Words and labels of a source; words are counted in as many pictures as there is time for."""
    if not labelled_rows(source).any():
        raise ValueError(f"{source.folder} has no labels, so that there is nothing to measure")
    if not source.pictures and source.counts is None:
        return TagCollection(source, run.random_state)
    return PictureCollection(_within_budget(source, run) if source.pictures else source, run)


def _within_budget(source: Source, run: ExperimentRun) -> Source:
    """Some of the pictures, by chance, if there is no time to count the words of all."""
    with_labels, rng, parts = labelled_rows(source), np.random.RandomState(run.random_state), []
    for name, rows in (("labelled", np.flatnonzero(with_labels)), ("unlabelled", np.flatnonzero(~with_labels))):
        n = run.budget.steps(f"{name} pictures", len(rows), _LEAST_PICTURES) if len(rows) else 0
        parts.append(np.sort(rng.permutation(rows)[:n]))
    rows = np.concatenate(parts)
    if len(rows) == len(source):
        return source
    fingerprint = hashlib.sha256(source.fingerprint.encode() + rows.astype("<i8").tobytes()).hexdigest()
    return replace(source, rows=source.rows.take(rows), listed=source.listed[rows], fingerprint=fingerprint)
