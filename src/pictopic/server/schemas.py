"""Schemas: the JSON of requests and answers.

Docstrings and field descriptions are part of the OpenAPI document.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from pictopic.server.problems import Problem


class Scored(BaseModel):
    """A tag or a class, and how probable or similar it is."""

    name: str
    score: float


class Annotated(BaseModel):
    """Tags of a picture that was sent, best first; or why there are none."""

    file_name: str
    tags: list[Scored] = []
    problem: Problem | None = None


class Classified(BaseModel):
    """Classes of a picture that was sent, most probable first; or why there are none."""

    file_name: str
    classes: list[Scored] = []
    problem: Problem | None = None


class AnnotateAnswer(BaseModel):
    """Of each picture, in the order in which they were sent."""

    pictures: list[Annotated]


class ClassifyAnswer(BaseModel):
    """Of each picture, in the order in which they were sent."""

    pictures: list[Classified]


class Picture(BaseModel):
    """A picture of the collection, as it was described when it was learnt from."""

    id: str
    file_name: str
    tags: list[str]
    labels: list[str] | None  # None: not known


class Found(Picture):
    """A picture that was searched for."""

    similarity: float


class Predicted(BaseModel):
    """What the model would say of a picture."""

    tags: list[Scored]
    classes: list[Scored]


class PictureAnswer(Picture):
    """A picture, and what the model would say of it; None if its file cannot be read."""

    predicted: Predicted | None


class SearchAnswer(BaseModel):
    """Pictures, most similar first."""

    pictures: list[Found]
    next_offset: int | None  # where to go on; None: that was all


class PicturesAnswer(BaseModel):
    """Pictures, in the order of the collection."""

    pictures: list[Picture]
    total: int
    next_offset: int | None


class TagCount(BaseModel):
    """A tag, and how many pictures have it."""

    name: str
    count: int


class TagsAnswer(BaseModel):
    """Tags, the most frequent first."""

    tags: list[TagCount]
    total: int
    next_offset: int | None


class TagAnswer(TagCount):
    """A tag, those that the model takes for similar, and the pictures that have it."""

    similar: list[Scored]
    pictures: list[Picture]
    next_offset: int | None


class VisualWord(BaseModel):
    """A visual word, by its number in the codebook."""

    word: int
    weight: float

    @classmethod
    def of(cls, pairs: list[tuple[int, float]]) -> list[VisualWord]:
        """From what the model answers."""
        return [cls(word=word, weight=round(weight, 6)) for word, weight in pairs]


class ClassTopic(BaseModel):
    """What goes with a class."""

    label: str
    units: list[int]
    visual_words: list[VisualWord]
    tags: list[Scored]


class Topic(BaseModel):
    """What a hidden unit stands for: its tags and visual words, and the pictures in which it is strongest."""

    topic: int
    count: int  # pictures in which no other unit is stronger
    tags: list[str]
    visual_words: list[VisualWord]
    pictures: list[Picture]


class TopicsAnswer(BaseModel):
    """What the collection is about."""

    classes: list[ClassTopic]
    topics: list[Topic]
    total: int
    next_offset: int | None
    coherence: float | None  # of the topics' tags; None: there are fewer than two tags
    diversity: float | None  # of the topics' tags; None: there are no tags


class Health(BaseModel):
    """The server is up."""

    status: str
    version: str


class Collection(BaseModel):
    """The collection that the model was learnt from, and what it can be asked."""

    name: str
    version: str
    n_pictures: int
    n_tags: int
    classes: list[TagCount]  # names, and how many pictures they have
    multi_label: bool
    has_pictures: bool
    has_classes: bool
    has_tags: bool
    has_thresholds: bool
    network: str
    figures: dict[str, float]  # on pictures that were held out; those that are known
    n_held_out: int
    max_upload: int  # bytes of a request
    max_files: int


class LookTag(Scored):
    """A tag of a picture, how probable it is that it belongs there, and whether one can believe it; None: not known."""

    probability: float | None
    is_sure: bool | None


class LookAnswer(BaseModel):
    """All that the model says of a picture."""

    picture: Picture | None  # None: it was sent
    classes: list[Scored]
    tags: list[LookTag]
    similar: list[Found]


class MapAnswer(BaseModel):
    """Places of all pictures, within 0 and 1; those that are alike lie near each other."""

    ids: list[str]
    x: list[float]
    y: list[float]
    class_of: list[int]  # number of the first class; -1: none is known
    classes: list[str]


class Probable(Picture):
    """A picture, and how probable it is that it has the tag, or is of the class."""

    probability: float


class ProbableAnswer(BaseModel):
    """Pictures that were taken for a class, the surest first."""

    pictures: list[Probable]
    total: int
    next_offset: int | None


class SuggestedAnswer(ProbableAnswer):
    """Pictures that probably lack a tag, or have it wrongly; the most probable mistakes first."""

    tag: str


class ConfusionCounts(BaseModel):
    """How often pictures of a class (rows) were taken for another (columns)."""

    classes: list[str]
    counts: list[list[int]]


class TagQuality(BaseModel):
    """How well a tag is found on pictures that were held out."""

    name: str
    count: int
    precision: float | None  # None: it was never given
    recall: float | None  # None: no picture has it
    f: float


class CurveSeries(BaseModel):
    """A line: a value for each pass."""

    name: str
    values: list[float | None]


class Curves(BaseModel):
    """A chart of the training."""

    title: str
    series: list[CurveSeries]


class QualityAnswer(BaseModel):
    """How good the model is."""

    n_held_out: int
    confusion: ConfusionCounts | None  # None: there are no classes, several a picture, or no pictures were held out
    tags: list[TagQuality]
    figures: dict[str, float]
    curves: list[Curves]
    odd: str | None  # what the log-likelihood of odd pictures is


class Odd(Picture):
    """A picture, and how probable its words are for the model."""

    log_likelihood: float


class OddAnswer(BaseModel):
    """Pictures, the oddest first."""

    pictures: list[Odd]
    total: int
    next_offset: int | None


class Given(BaseModel):
    """What somebody says is the token."""

    token: str = Field(max_length=1000)


class Wanted(BaseModel):
    """Whether a tag belongs to a picture; "undecided" takes an earlier decision back."""

    picture: str = Field(description="Id of a picture of the collection.")
    tag: str = Field(max_length=200)
    decision: Literal["accepted", "rejected", "undecided"]


class Counts(BaseModel):
    """How many tags were accepted and how many rejected, of pictures that are in the collection."""

    n_accepted: int
    n_rejected: int


class Decided(BaseModel):
    """A decision."""

    picture: Picture
    tag: str
    decision: str
    time: str  # ISO 8601


class DecisionsAnswer(Counts):
    """Decisions, the newest first."""

    decisions: list[Decided]
    total: int
    next_offset: int | None
