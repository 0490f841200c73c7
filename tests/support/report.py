"""A report of made-up data, with everything a page can show and texts that try to break out of it."""

from __future__ import annotations

import numpy as np
from PIL import Image

from pictopic.demo.report import Report
from pictopic.demo.report.collect import thumbnail
from pictopic.demo.report.contents import (
    Explained,
    Highlight,
    MarkedAnswer,
    Method,
    Neighbour,
    Neighbours,
    Picture,
    Step,
    Tagged,
    Topic,
    TrainingRun,
)
from pictopic.paper.experiments.results import Measure
from pictopic.tasks.quality import Chart, Confusion, Series

HOSTILE = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>&amp;{{ 7 * 7 }}"
LONG = "a_name_without_any_space_" * 8


def picture(colour: str, alt: str) -> Picture:
    return thumbnail(Image.new("RGB", (256, 192), colour), alt)


def made_report(text: str = "coast") -> Report:
    """A report in which `text` is the name of a class, a tag, a file, ..."""
    blue, green = picture("royalblue", text), picture("seagreen", f"forest {text}")
    accuracy = Measure("accuracy", "Right class", percent=True)
    perplexity = Measure("perplexity", "Perplexity", larger_is_better=False)
    curves = [Series("training", [2.0, 1.0]), Series("held out", [2.0, 1.5])]
    return Report(
        title=f"What was learnt from {text}",
        lead=f"Pictures of {text}.",
        highlights=[Highlight("Right class", 0.9, 0.125)],
        measures=[accuracy, perplexity],
        methods=[
            Method("most frequent", text, {"accuracy": 0.125, "perplexity": 700.0}),
            Method("model", "words", {"accuracy": 0.9, "perplexity": 400.0}, is_model=True),
        ],
        notes=[f"About {text}"],
        samples=[(text, blue), ("forest", green)],
        confusion=Confusion([text, "forest"], np.array([[3, 1], [0, 4]]), {}),
        confused={(0, 0): [blue], (0, 1): [blue], (1, 1): [green]},
        tagged=[Tagged(blue, f"{text}.jpg", [MarkedAnswer("sea", True), MarkedAnswer(text, False)], ["boat", text])],
        neighbours=[
            Neighbours(blue, text, [Neighbour(green, "forest", 0.91, False), Neighbour(blue, text, 0.5, True)])
        ],
        topics=[Topic(text, [3, 1, 2], [blue, green, blue, green], ["sea", text])],
        explained=[Explained(blue, green, MarkedAnswer(text, False), 0.7, "forest")],
        runs=[TrainingRun(text, "2 passes", [Chart(text, curves)])],
        steps=[Step(f"Learn from {text}:", f"pictopic fit {text.replace(' ', '_')} --out photos.model")],
    )
