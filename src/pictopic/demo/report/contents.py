"""The contents of a report as plain data: numbers, texts and pictures as data URIs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from pictopic.paper.experiments.results import Measure
from pictopic.tasks.quality import Chart, Confusion


class Picture(NamedTuple):
    """A picture inside the page."""

    uri: str  # data:image/jpeg;base64,...
    alt: str  # for those who do not see it


@dataclass
class Method:
    """A row of figures: a model, or something simpler to compare it with."""

    name: str
    note: str
    figures: dict[str, float]  # by the measure's key; what does not apply is missing
    is_model: bool = False


class Highlight(NamedTuple):
    """A figure to begin with, beside what one would get without a model."""

    name: str
    value: float
    baseline: float


class MarkedAnswer(NamedTuple):
    """An answer, and whether it is right."""

    name: str
    is_right: bool


class Tagged(NamedTuple):
    """A picture with the tags it was given by the model."""

    picture: Picture
    file_name: str
    tags: list[MarkedAnswer]
    missing: list[str]  # true tags that were not given


class Neighbour(NamedTuple):
    """A picture of the collection that is similar to a query."""

    picture: Picture
    label: str
    similarity: float
    is_right: bool  # of the same class


class Neighbours(NamedTuple):
    """A picture, and those of the collection that are like it."""

    query: Picture
    label: str
    similar: list[Neighbour]


class Topic(NamedTuple):
    """What goes with a class."""

    label: str
    units: list[int]
    words: list[Picture]  # each a grid of example patches
    tags: list[str]


class Explained(NamedTuple):
    """A picture beside the places that spoke for its class."""

    picture: Picture
    overlay: Picture
    answer: MarkedAnswer
    probability: float
    label: str  # what is right


class TrainingRun(NamedTuple):
    """How a model was trained."""

    model: str
    note: str
    charts: list[Chart]


class Step(NamedTuple):
    """What to type, and why."""

    text: str
    command: str


@dataclass
class Report:
    """A report; what is empty is left out of the page."""

    title: str
    lead: str = ""  # a sentence below the title
    highlights: list[Highlight] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    methods: list[Method] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)  # below the table of figures
    samples: list[tuple[str, Picture]] = field(default_factory=list)  # with the names of their classes
    confusion: Confusion | None = None
    confused: dict[tuple[int, int], list[Picture]] = field(default_factory=dict)  # by cell of the confusion matrix
    tagged: list[Tagged] = field(default_factory=list)
    neighbours: list[Neighbours] = field(default_factory=list)
    topics: list[Topic] = field(default_factory=list)
    explained: list[Explained] = field(default_factory=list)
    runs: list[TrainingRun] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
