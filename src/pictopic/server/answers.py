"""What the answers look like as JSON."""

from __future__ import annotations

from pydantic import BaseModel

from pictopic.server.problems import Problem


class Scored(BaseModel):
    """A tag or a class, and how probable or similar it is."""

    name: str
    score: float

    @classmethod
    def of(cls, pairs: list[tuple[str, float]]) -> list[Scored]:
        """From what the model answers."""
        return [cls(name=name, score=round(score, 6)) for name, score in pairs]


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


class ClassTopic(BaseModel):
    """What goes with a class."""

    label: str
    units: list[int]
    visual_words: list[VisualWord]
    tags: list[Scored]


class Topic(BaseModel):
    """What a hidden unit stands for: its tags, and the pictures in which it is strongest."""

    topic: int
    count: int
    tags: list[str]
    pictures: list[Picture]


class TopicsAnswer(BaseModel):
    """What the collection is about."""

    classes: list[ClassTopic]
    topics: list[Topic]
    total: int
    next_offset: int | None
    coherence: float | None
    diversity: float | None


class Health(BaseModel):
    """The server is up."""

    status: str
    version: str
