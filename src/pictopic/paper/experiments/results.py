"""Results of an experiment: tables and curves, as they are written to ``results.json``."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pictopic.files import write_text

T = TypeVar("T")
FILE = "results.json"
_VERSION = 1


@dataclass
class Measure:
    """A column of a table."""

    key: str  # its name in the rows' values
    title: str
    percent: bool = False  # whether it is shown in per cent
    digits: int = 2  # decimal places that are shown
    larger_is_better: bool = True


@dataclass
class Row:
    """A method in a table."""

    name: str
    values: dict[str, list[float]]  # for each measure the figure of each split
    paper: dict[str, float] = field(default_factory=dict)  # as published: 81.97 for a percentage
    seconds: float | None = None  # wall time per split
    peak_memory_mb: float | None = None  # of the process while it ran
    note: str = ""  # what the reader should know about the method
    ours: bool = False  # a model of this package, not something to compare with


@dataclass
class Table:
    """Methods against measures."""

    name: str
    caption: str
    measures: list[Measure]
    rows: list[Row]
    reference: str = ""  # the row to which the others' differences are shown


@dataclass
class Line:
    """A line of a curve: for each x the values of the splits; `paper` are published values, in the same unit."""

    name: str
    x: list[float]
    values: list[list[float]]
    paper: list[float] | None = None


@dataclass
class Curve:
    """Lines over a number that was varied."""

    name: str
    caption: str
    x_title: str
    y_title: str
    series: list[Line]
    percent: bool = False
    log_x: bool = False


@dataclass
class Figure:
    """A picture that was drawn: a file beside ``results.json``."""

    file: str
    caption: str


@dataclass
class Results:
    """Everything that an experiment measured.

    Parameters
    ----------
    experiment : str
        Its name, as the command has it.
    title : str
    data : dict
        What it was measured on: number of pictures, classes, tags, splits, fingerprint.
    options : dict
        The exact options of everything that was learnt.
    notes : list of str
        What was scaled down or left out, and what the reader should know.
    tables, curves, figures : lists
    versions : dict
        Of the packages.
    seconds : float
        Wall time of all parts, those of earlier runs that were taken up included.

    Examples
    --------
    >>> from pictopic.paper.experiments.results import Measure, Results, Row, Table
    >>> table = Table("accuracy", "", [Measure("accuracy", "accuracy", percent=True)], [
    ...     Row("DocNADE", {"accuracy": [0.81, 0.83]}, paper={"accuracy": 81.97})])
    >>> results = Results("labelme", "Scenes", tables=[table])
    >>> Results.from_dict(results.to_dict()) == results
    True
    """

    experiment: str
    title: str
    data: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    versions: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"version": _VERSION} | asdict(self)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Results:
        """From what `to_dict` returned, also by way of JSON."""
        content = dict(content)
        version = content.pop("version", None)
        if version != _VERSION:
            raise ValueError(f"results of version {version!r} cannot be read, only of version {_VERSION}")
        tables = [
            Table(**table | {"measures": _all(Measure, table["measures"]), "rows": _all(Row, table["rows"])})
            for table in content["tables"]
        ]
        curves = [Curve(**curve | {"series": _all(Line, curve["series"])}) for curve in content["curves"]]
        return cls(**content | {"tables": tables, "curves": curves, "figures": _all(Figure, content["figures"])})

    def save(self, folder: Path) -> Path:
        """Write ``results.json``, whole or not at all."""
        path = folder / FILE
        write_text(path, json.dumps(self.to_dict(), indent=1, ensure_ascii=False, default=plain) + "\n")
        return path

    @classmethod
    def load(cls, path: Path) -> Results:
        """Read a ``results.json``, or that of a folder."""
        path = path / FILE if path.is_dir() else path
        try:
            return cls.from_dict(json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            raise ValueError(f"{path} is missing: `pictopic reproduce` writes it") from None
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(f"{path} is no results file: {error}") from None


def _all(kind: type[T], items: list[dict[str, Any]]) -> list[T]:
    return [kind(**item) for item in items]


def plain(value: Any) -> Any:
    """What JSON knows no word for, as something it knows: arrays as lists, paths as names."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    if isinstance(value, Path):
        return value.name  # where a file was on a machine is nobody's business
    raise TypeError(f"{type(value).__name__} cannot be written to JSON")


def mean_and_std(values: list[float]) -> tuple[float, float]:
    """Mean and standard deviation (that of a sample; 0 for a single value)."""
    return float(np.mean(values)), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0


def paired_difference(a: list[float], b: list[float]) -> tuple[float, float] | None:
    """Mean of a - b over the splits and its standard error; None for fewer than two splits, or other ones.

    Examples
    --------
    >>> from pictopic.paper.experiments.results import paired_difference
    >>> mean, error = paired_difference([0.8, 0.9, 0.7], [0.7, 0.7, 0.7])
    >>> round(mean, 3), round(error, 3)
    (0.1, 0.058)
    """
    if len(a) != len(b) or len(a) < 2:
        return None
    mean, std = mean_and_std([x - y for x, y in zip(a, b, strict=True)])
    return mean, std / len(a) ** 0.5


def slug(name: str) -> str:
    """A name as part of a file's name.

    Examples
    --------
    >>> from pictopic.paper.experiments.results import slug
    >>> slug("Accuracy (LabelMe), 2 x 2")
    'accuracy-labelme-2-x-2'
    """
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:80] or "unnamed"
