"""What a report says, as plain data: numbers, texts and pictures as data URIs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from pictopic.tasks.quality import Chart as Chart
from pictopic.tasks.quality import Series as Series


class Picture(NamedTuple):
    """A picture inside the page."""

    uri: str  # data:image/jpeg;base64,...
    alt: str  # for those who do not see it


class Measure(NamedTuple):
    """What a column of figures measures."""

    key: str
    name: str
    short: str  # name where there is little room
    is_share: bool = True  # shown in per cent; otherwise as a number
    larger_is_better: bool = True


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


@dataclass
class Confusion:
    """How often pictures of a class (rows) were taken for another (columns)."""

    classes: list[str]
    counts: list[list[int]]
    examples: dict[tuple[int, int], list[Picture]] = field(default_factory=dict)


class Told(NamedTuple):
    """An answer, and whether it is right."""

    name: str
    is_right: bool


class Tagged(NamedTuple):
    """A picture with the tags it was given by the model."""

    picture: Picture
    file_name: str
    tags: list[Told]
    missing: list[str]  # true tags that were not given


class Neighbour(NamedTuple):
    """A picture that was found."""

    picture: Picture
    label: str
    similarity: float
    is_right: bool  # of the same class


class Neighbours(NamedTuple):
    """A picture, and those of the collection that are like it."""

    query: Picture
    label: str
    found: list[Neighbour]


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
    answer: Told
    probability: float
    label: str  # what is right


class Run(NamedTuple):
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
    """A report; what is empty is left out of the page.

    Parameters
    ----------
    title, lead : str
        Heading, and a sentence below it.
    highlights : list of Highlight
    measures : list of Measure
    methods : list of Method
    notes : list of str
        Below the table of figures.
    samples : list of (name of a class, Picture)
    confusion : Confusion, optional
    tagged : list of Tagged
    neighbours : list of Neighbours
    topics : list of Topic
    explained : list of Explained
    runs : list of Run
    steps : list of Step
    """

    title: str
    lead: str = ""
    highlights: list[Highlight] = field(default_factory=list)
    measures: list[Measure] = field(default_factory=list)
    methods: list[Method] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    samples: list[tuple[str, Picture]] = field(default_factory=list)
    confusion: Confusion | None = None
    tagged: list[Tagged] = field(default_factory=list)
    neighbours: list[Neighbours] = field(default_factory=list)
    topics: list[Topic] = field(default_factory=list)
    explained: list[Explained] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
