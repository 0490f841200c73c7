"""Several labels per picture: the paper's section 6.2, on MIR Flickr."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from pictopic.corpus.sources import Source
from pictopic.files import write_bytes
from pictopic.models.persistence import load
from pictopic.paper.experiments import mirflickr_methods as methods
from pictopic.paper.experiments.figures import draw_curve
from pictopic.paper.experiments.mirflickr_data import (
    MAX_TAGS,
    N_SPLITS,
    WORDS,
    Collection,
    LabelledSplit,
    find,
    labelled_rows,
    open_collection,
)
from pictopic.paper.experiments.mirflickr_pictures import draw, illustrate
from pictopic.paper.experiments.results import Curve, Figure, Line, Measure, Results, Row, Table, slug
from pictopic.paper.experiments.run import Cell, ExperimentRun, largest_peak, versions
from pictopic.tasks.metrics import mean_average_precision

TITLE = "MIR Flickr: several labels a picture (section 6.2)"
FULL_MINUTES = 50.0  # for 12,000 rows of tags, on one core

FEW = 0.1  # share of the labels that is known, where there are no rows without labels to pretrain on
PASSES = 200  # with labels, at most
PRETRAINING = 100  # passes
LAYERS = (1, 2, 3)
WEIGHTS = (1.0, 4000.0, 8000.0, 12_000.0, 16_000.0)  # rho
WEIGHTS_LAYERS = 2  # as many as the paper's 0.671 is of

_ALL, _FEW = "all labels", f"{FEW:.0%} of the labels"
_TFIDF, _FREQUENCIES = "TF-IDF + linear SVM", "classes' frequencies"
_REGRESSION, _SHALLOW = "Logistic regression", "DocNADE + logistic regression"
_WAYS = {"map": "", "own": ", its own head", "linear": ", linear classifier"}
_ELSEWHERE = {"Multiple kernel learning SVM": 0.623, "TagProp": 0.640, "Multimodal DBM": 0.651, "MDRNN": 0.686}
_PAPER = {
    625: {1: 0.654, 2: 0.671, 3: 0.670},
    2325: {2: 0.682, 3: 0.686},
    4125: {2: 0.684, 3: 0.691},
}  # MAP by passes of pretraining and layers
_PAPER_PASSES = 625  # of those that stand beside ours
_PAPER_TFIDF = 0.384
_PAPER_WEIGHTS = {4000.0: 0.658, 8000.0: 0.669, 12_000.0: 0.671, 16_000.0: 0.670}


def full_minutes(source: Source | Path) -> float:
    """About how many minutes the whole experiment takes on one core, for a data set or the folder it is in."""
    source = source if isinstance(source, Source) else find(source)
    with_labels = int(labelled_rows(source).sum())
    others = len(source) - with_labels
    if not source.pictures and source.counts is None:
        return FULL_MINUTES * with_labels / 12_000
    words = 0.4 / 60 * len(source) if source.pictures else 0.0
    a_pass = 0.004 / 60  # minutes a row, with three layers of 2048 units
    pretraining = PRETRAINING * (others or 0.6 * with_labels * N_SPLITS) * a_pass * (len(LAYERS) + len(WEIGHTS) - 1)
    tuning = N_SPLITS * (len(LAYERS) * 4 + len(WEIGHTS)) * 60 * with_labels * a_pass
    return words + pretraining + tuning


def run(data: Path, run: ExperimentRun) -> Results:
    """Tables, curves and figures that the data set in a folder, or in a sub-folder of it, allows."""
    with threadpool_limits(run.n_jobs):
        experiment = _Experiment(open_collection(find(data), run), run)
        experiment.measure()
        return experiment.results()


class _Experiment:
    """All parts of the experiment, and their figures so far."""

    def __init__(self, collection: Collection, run: ExperimentRun):
        self.collection, self.run = collection, run
        self.splits = [collection.split(k + 1) for k in range(run.budget.steps("splits", N_SPLITS))]
        self.passes = run.budget.steps("passes with labels", PASSES, least=5)
        longest = run.budget.steps("passes of pretraining", PRETRAINING)
        self.grid = sorted({max(1, round(longest * share)) for share in (0.25, 0.5, 1.0)})
        self.pretraining = methods.Pretraining(run.folder / "models", self.grid, collection.fingerprint, run.n_jobs)
        self.cells: dict[tuple[str, str, int], Cell] = {}
        self.options: dict[str, Any] = {}
        self.illustrations: dict[str, Any] | None = None

    # ---- methods -----------------------------------------------------------------------------------------------------

    def measure(self) -> None:
        """Everything: the tables split by split, then the curves, so that a run that ends early has its best part."""
        main, few, pretrained = self._main(), self._few(), self._less_pretrained()
        for split in self.splits:
            self._measure_all(_ALL, main, split)
            if split.number == 1:
                self._illustrate(main, split)
            if not self.collection.n_unlabelled:
                self._measure_all(_FEW, few, split.with_few_labels(FEW))
        for split in self.splits:
            if self.collection.n_unlabelled:
                self._measure_all(_ALL, pretrained, split)
            else:
                self._measure_all(_FEW, pretrained, split.with_few_labels(FEW))
        for split in self.splits:
            self._measure_all(_ALL, self._weighted(), split)

    def _baselines(self) -> dict[str, methods.LabelMethod]:
        visual, n_jobs = self.collection.with_visual_words, self.run.n_jobs
        # A picture has tens of thousands of visual words, a row of tags five.
        shallow = min(self.passes, 20) if visual else self.passes
        return {
            _FREQUENCIES: methods.frequencies(),
            _TFIDF: methods.tfidf(),
            _REGRESSION: methods.regression(visual, n_jobs),
            _SHALLOW: methods.docnade(shallow, n_jobs),
        }

    def _main(self) -> dict[str, methods.LabelMethod]:
        main = self._baselines() | {"LDA + linear SVM": methods.lda(self.run.random_state, self.run.n_jobs)}
        # On tags, layers are compared where it matters, with few labels.
        for layers in LAYERS if self.collection.with_visual_words else LAYERS[:1]:
            passes = self.grid[-1] if self.collection.n_unlabelled else 0
            main[_name(layers, passes)] = self._network(layers, passes=passes)
        return main

    def _few(self) -> dict[str, methods.LabelMethod]:
        grid = (0, self.grid[-1])
        return self._baselines() | {
            _name(layers, n): self._network(layers, passes=n) for layers in LAYERS for n in grid
        }

    def _less_pretrained(self) -> dict[str, methods.LabelMethod]:
        """What the curve has and no table."""
        grid = [0, *self.grid[:-1]] if self.collection.n_unlabelled else self.grid[:-1]
        return {_name(layers, n): self._network(layers, passes=n) for n in grid for layers in LAYERS}

    def _weighted(self) -> dict[str, methods.LabelMethod]:
        if not self.collection.with_visual_words:
            return {}
        passes = self.grid[-1] if self.collection.n_unlabelled else 0
        return {
            _weighted_name(weight): self._network(WEIGHTS_LAYERS, passes=passes, annotation_weight=weight)
            for weight in WEIGHTS
        }

    def _network(self, layers: int, **options: Any) -> methods.LabelMethod:
        return methods.network(
            layers, self.collection.with_visual_words, max_iter=self.passes, pretraining=self.pretraining,
            n_jobs=self.run.n_jobs, **options,
        )  # fmt: skip

    def _measure_all(self, setting: str, to_measure: dict[str, methods.LabelMethod], split: LabelledSplit) -> None:
        for name, method in to_measure.items():
            key = f"{name}, {setting}, split {split.number}"
            cell = self.run.cell(key, lambda: self._work(key, method, split), **self._depends_on(method, split))  # noqa: B023
            self.options[f"{name}, {setting}"] = method.options
            if cell is not None:
                self.cells[setting, name, split.number] = cell

    def _depends_on(self, method: methods.LabelMethod, split: LabelledSplit) -> dict[str, Any]:
        words = WORDS | {"max_tags": MAX_TAGS} if self.collection.corpus is not None else {"max_tags": MAX_TAGS}
        return {
            "method": method.options, "data": self.collection.fingerprint, "words": words, "seed": split.seed,
            "labelled": len(split.Y), "unlabelled": self.collection.n_unlabelled,
        }  # fmt: skip

    def _work(self, key: str, method: methods.LabelMethod, split: LabelledSplit) -> dict[str, Any]:
        outcome = method.work(split)
        for way, scores in outcome.scores.items():
            content = io.BytesIO()
            np.save(content, scores.astype(np.float32))
            write_bytes(self.run.folder / "scores" / f"{slug(key)}-{way}.npy", content.getvalue())
        if outcome.model is not None and split.number == 1:
            outcome.model.save(self._model_folder(key))
        maps = {way: mean_average_precision(split.Y_test, scores) for way, scores in outcome.scores.items()}
        return {"map": maps, "validation_map": outcome.validation, "chosen": outcome.chosen}

    def _model_folder(self, key: str) -> Path:
        return self.run.folder / "models" / slug(key)

    def _illustrate(self, main: dict[str, methods.LabelMethod], split: LabelledSplit) -> None:
        """Show what the network does that is the best on the validation part."""
        networks = {name: cell for (_, name, _), cell in self.cells.items() if "own" in cell.values["map"]}
        if not networks:
            return
        best = max(networks, key=lambda name: networks[name].values["validation_map"])
        key = f"{best}, {_ALL}, split {split.number}"

        def work() -> dict[str, Any]:
            try:
                model = load(self._model_folder(key))
            except ValueError:  # was deleted
                model = main[best].work(split).model
            return illustrate(model, split, self.collection.classes)

        cell = self.run.cell("illustrations", work, model=best, **self._depends_on(main[best], split))
        if cell is not None:
            self.illustrations = cell.values

    # ---- results -----------------------------------------------------------------------------------------------------

    def results(self) -> Results:
        """Tables, curves, figures and notes."""
        curves = [curve for curve in (self._passes_curve(), self._weights_curve()) if curve is not None]
        figures: list[Figure] = [figure for curve in curves for figure in draw_curve(curve, self.run.folder)]
        if self.illustrations is not None:
            figures += draw(self.illustrations, self.splits[0], self.collection, self.run.folder)
        return Results(
            "mirflickr", TITLE, data=self.collection.about(self.splits), options=self.options,
            notes=[*self._notes(), *self.run.notes], tables=list(self._tables()), curves=curves, figures=figures,
            versions=versions(), seconds=self.run.seconds,
        )  # fmt: skip

    def _tables(self) -> Iterator[Table]:
        measures = [Measure("map", "MAP", digits=3)]
        rows = [row for name in self._main() for row in self._rows(_ALL, name)]
        if self.collection.is_the_papers:
            rows += _published()
        yield Table("MAP", "Mean average precision over the classes, on the test rows.", measures, rows)
        if not self.collection.n_unlabelled:
            caption = (
                f"The same with the labels of {FEW:.0%} of the training rows; DocNADE and pretraining learn from all "
                "training rows, without labels."
            )
            rows = [row for name in self._few() for row in self._rows(_FEW, name)]
            yield Table(f"MAP with {_FEW}", caption, measures, rows)

    def _cells(self, setting: str, name: str) -> list[Cell]:
        keys = [(setting, name, split.number) for split in self.splits]
        return [self.cells[key] for key in keys if key in self.cells]

    def _rows(self, setting: str, name: str) -> Iterator[Row]:
        """A row of a table for each way in which a method classifies."""
        cells = self._cells(setting, name)
        for way in cells[0].values["map"] if cells else ():
            seconds = [cell.values["chosen"].get("seconds", cell.seconds) for cell in cells]
            paper, note = self._published(setting, name, way)
            yield Row(
                name + _WAYS[way], {"map": [cell.values["map"][way] for cell in cells]}, paper, float(np.mean(seconds)),
                largest_peak(cells), note or self._note(name), ours="DocNADE" in name,
            )  # fmt: skip

    def _note(self, name: str) -> str:
        visual = self.collection.with_visual_words
        return {
            _FREQUENCIES: "chance",
            _TFIDF: "words only, without global features" if visual else "",
            _REGRESSION: "on standardised square roots of counts, and global features" if visual else "on counts",
            _SHALLOW: "learnt without labels; words only" if visual else "learnt without labels",
        }.get(name, "")

    def _published(self, setting: str, name: str, way: str) -> tuple[dict[str, float], str]:
        """The paper's figure for a row, and what there is to say of it."""
        if setting != _ALL or not self.collection.is_the_papers:
            return {}, ""
        if name == _TFIDF:
            return {"map": _PAPER_TFIDF}, ""
        for layers, value in _PAPER[_PAPER_PASSES].items():
            if way == "linear" and name == _name(layers, self.grid[-1]):
                return {"map": value}, f"the paper's: {_PAPER_PASSES} passes"
        return {}, ""

    @property
    def _way(self) -> str:
        """How the networks of the curves classify: where the paper's figures stand beside them, as the paper's do."""
        return "linear" if self.collection.is_the_papers else "own"

    def _maps(self, cells: list[Cell]) -> list[float]:
        return [cell.values["map"][self._way] for cell in cells]

    def _passes_curve(self) -> Curve | None:
        setting = _ALL if self.collection.n_unlabelled else _FEW
        series = []
        for layers in LAYERS:
            x = [0, *self.grid]
            values = [self._maps(self._cells(setting, _name(layers, n))) for n in x]
            line = Line(_layers(layers), [float(n) for n in x], values)
            if any(line.values):
                series.append(self._with_papers(line, layers))
        if not series:
            return None
        caption = f"MAP of SupDeepDocNADE{_WAYS[self._way]}, against passes of pretraining ({setting})."
        return Curve("MAP by pretraining", caption, "passes of pretraining", "MAP", series)

    def _with_papers(self, line: Line, layers: int) -> Line:
        if not self.collection.is_the_papers or not self.collection.n_unlabelled:
            return line
        published = {passes: maps[layers] for passes, maps in _PAPER.items() if layers in maps}
        paper = [*([None] * len(line.x)), *published.values()]
        x, values = [*line.x, *map(float, published)], [*line.values, *([] for _ in published)]
        return Line(line.name, x, values, paper)  # type: ignore[arg-type]

    def _weights_curve(self) -> Curve | None:
        values = [self._maps(self._cells(_ALL, _weighted_name(weight))) for weight in WEIGHTS]
        if not any(values):
            return None
        paper = [_PAPER_WEIGHTS.get(weight) for weight in WEIGHTS] if self.collection.is_the_papers else None
        line = Line(f"SupDeepDocNADE, {_layers(WEIGHTS_LAYERS)}", list(WEIGHTS), values, paper)  # type: ignore[arg-type]
        caption = f"MAP of SupDeepDocNADE{_WAYS[self._way]}, against the annotation weight rho."
        return Curve("MAP by annotation weight", caption, "annotation weight", "MAP", [line])

    def _notes(self) -> list[str]:
        collection = self.collection
        notes = [
            "Everything is chosen on a validation part of the training rows (the SVMs' C by cross-validation in the "
            "training rows), and then learnt from all training rows; no choice has seen a test row.",
        ]
        if not collection.with_visual_words:
            notes.append(
                "There are tags and labels only, no pictures: all is measured on tags alone, with "
                f"{len(collection.classes)} labels.  The paper's MAP (38 classes, pictures and tags) is not comparable "
                "and not shown.  Without a second modality there is no annotation weight to vary, and there are no "
                "tags to generate."
            )
        elif collection.source.pictures:
            sources = {True: "the unlabelled pictures", False: "pictures that are in no split's test part"}
            notes.append(
                f"Visual words were learnt from {sources[collection.n_unlabelled > 0]}; the {MAX_TAGS} most frequent "
                "tags of all pictures are words, as in the paper."
            )
        if not collection.n_unlabelled:
            notes.append(
                f"There are no rows without labels: pretraining is measured with {_FEW}, on the training rows without "
                "them.  With all labels the networks are not pretrained."
            )
        if collection.is_the_papers:
            notes.append(
                f"The networks were pretrained for {self.grid[-1]} passes with AdamW, the paper's for 625 to 4125 with "
                "plain gradient descent."
            )
        return notes


def _layers(layers: int) -> str:
    return f"{layers} layer{'s' * (layers > 1)}"


def _name(layers: int, passes: int) -> str:
    pretrained = f"{passes} pass{'es' * (passes > 1)} of pretraining" if passes else "not pretrained"
    return f"SupDeepDocNADE, {_layers(layers)}, {pretrained}"


def _weighted_name(weight: float) -> str:
    return f"SupDeepDocNADE, {_layers(WEIGHTS_LAYERS)}, annotation weight {weight:g}"


def _published() -> Iterator[Row]:
    """What only the paper has."""
    for name, value in _ELSEWHERE.items():
        yield Row(name, {}, {"map": value}, note="as the paper quotes it")
    for passes, maps in _PAPER.items():
        for layers, value in maps.items() if passes != _PAPER_PASSES else ():
            yield Row(f"The paper's SupDeepDocNADE, {_layers(layers)}, {passes} passes", {}, {"map": value})
