"""Corel 5k: tags of photographs, and how much their weight (rho) matters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from pictopic.paper.datasets import read_corel5k
from pictopic.paper.experiments import corel5k_methods as methods
from pictopic.paper.experiments.figures import draw_curve
from pictopic.paper.experiments.pictures import Captioned, Generated, Neighbors, draw_generated, draw_neighbors
from pictopic.paper.experiments.results import Curve, Figure, Measure, Results, Row, Series, Table
from pictopic.paper.experiments.run import Cell, ExperimentRun, Task, versions

TITLE = "Corel 5k: tags of photographs"
FULL_MINUTES = 90.0  # on one core

N_WORDS = 500
N_TEST = 500  # where the data has no test list of its own
SEED_OF_SPLIT = 7
PASSES = 200
RHO = (1.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
# Of the curve: six networks, so each is small.
UNITS_OF_CURVE = 256
PASSES_OF_CURVE = 40

_PAPER = {"TagProp": {"precision": 33.0, "recall": 42.0, "n_plus": 160.0}}
_TAGS = [
    Measure("f_measure", "F-measure %", percent=True), Measure("precision", "precision a word %", percent=True),
    Measure("recall", "recall a word %", percent=True), Measure("n_plus", "words found", digits=0),
]  # fmt: skip
_SIMILAR = [Measure("similar", "precision at 10 %", percent=True)]
_OURS = ("DocNADE", "SupDocNADE", "PictureModel")
_NOTES = {
    "TagProp": "published for the standard split of 4,999 pictures and 15 kinds of features: another test set",
    "PictureModel": "pictopic's defaults: SupDeepDocNADE with GIST and MPEG-7, tags by p(next word)",
    "neighbours, SIFT and colours": "visual words and HSV histograms of 2 x 2 regions",
    "neighbours, SPM": "two-level pyramids of visual words",
}


def run(data: Path, run: ExperimentRun) -> Results:
    """Work out the tables and figures.

    Parameters
    ----------
    data : Path
        Folder of the data set, or of several.
    run : ExperimentRun

    Returns
    -------
    Results
    """
    return _Experiment(data, run).results()


class _Experiment:
    def __init__(self, data: Path, run: ExperimentRun):
        self.run, self.source = run, read_corel5k(data)
        names = self.source.rows["file_name"].to_pylist()
        splits = self.source.rows["split"].to_pylist()
        self.own_split = "test" not in splits
        if self.own_split:
            order = np.random.RandomState(SEED_OF_SPLIT).permutation(len(names))
            rows = np.sort(order[min(N_TEST, len(names) // 5) :])
        else:
            rows = np.flatnonzero([split != "test" for split in splits])
        self.train = [names[i] for i in rows]
        self.passes = run.budget.steps("passes of the deep model", PASSES, least=2)
        self.rho = run.budget.grid("weights of the tags", RHO)
        self.corpus = run.corpus(
            "corel5k", self.source, preset="scenes", n_words=N_WORDS, max_side=480, features=("gist", "mpeg7"),
            codebook_rows=self.train, random_state=run.random_state,
        )  # fmt: skip

    def _task(self, name: str, work: Callable, **options: Any) -> Task:
        depends = {
            "corpus_fingerprint": self.source.fingerprint, "train_rows": len(self.train),
            "seed": self.run.random_state, **options,
        }  # fmt: skip
        place = {"corpus": str(self.corpus.folder), "pictures": str(self.source.folder), "train": self.train}
        return Task(name, work, depends, {"place": place})

    def _rho_task(self, rho: float | str) -> Task:
        if rho == "balanced":
            options = {"annotation_weight": rho, "passes": self.passes, "illustrate": True}
            return self._task("PictureModel", methods.picture_model, **options)
        options = {"annotation_weight": rho, "passes": min(self.passes, PASSES_OF_CURVE), "units": UNITS_OF_CURVE}
        return self._task(f"PictureModel, rho = {rho:g}", methods.picture_model, **options)

    def results(self) -> Results:
        """All tables, curves and pictures."""
        tasks = [
            self._task("most frequent", methods.most_frequent),
            self._task("neighbours, SPM", methods.spatial_pyramid),
            self._task("neighbours, SIFT", methods.neighbors, colours=False),
            self._task("neighbours, SIFT and colours", methods.neighbors, colours=True),
            self._task("DocNADE", methods.shallow, supervised=False),
            self._task("SupDocNADE", methods.shallow, supervised=True),
            self._task("by histograms", methods.by_histogram),
            self._task("by tags", methods.by_tags),
        ]
        ours, *others = self.run.cells([self._rho_task("balanced"), *tasks])
        curve = self._rho_curve()
        tags = [self._row(task.key, cell, _TAGS) for task, cell in zip(tasks[:-2], others[:-2], strict=True)]
        tags += [Row("TagProp", {}, _PAPER["TagProp"], note=_NOTES["TagProp"]), self._row("PictureModel", ours, _TAGS)]
        similar = [self._row(task.key, cell, _SIMILAR) for task, cell in zip(tasks[-2:], others[-2:], strict=True)]
        similar.append(self._row("PictureModel", ours, _SIMILAR))
        tables = [
            Table("tags", "Five tags a picture, from the picture alone", _TAGS, tags),
            Table("similar", "Ten similar pictures of the same group, for a picture with its tags", _SIMILAR, similar),
        ]
        figures = draw_curve(curve, self.run.folder) + (self._pictures(ours) if ours else [])
        return Results(
            "corel5k", TITLE, data=self._about(), options=self.run.options, notes=[*self.run.notes, *self._remarks()],
            tables=tables, curves=[curve], figures=figures, versions=versions(), seconds=self.run.seconds,
        )  # fmt: skip

    def _rho_curve(self) -> Curve:
        cells = self.run.cells([self._rho_task(rho) for rho in self.rho])
        done = [(rho, cell.values) for rho, cell in zip(self.rho, cells, strict=True) if cell]
        titles = {"f_measure": "F-measure of five tags", "accuracy": "accuracy of the group"}
        series = [
            Series(title, [rho for rho, _ in done], [[values[key]] for _, values in done])
            for key, title in titles.items()
            if done and key in done[0][1]
        ]
        caption = f"The weight of the tags; one layer of {UNITS_OF_CURVE} units, at most {PASSES_OF_CURVE} passes"
        return Curve("annotation-weight", caption, "rho", "share", series, percent=True, log_x=True)

    def _row(self, name: str, cell: Cell | None, measures: list[Measure]) -> Row:
        if cell is None:
            return Row(name, {}, note=_NOTES.get(name, ""), ours=name in _OURS)
        values = {own.key: [cell.values[own.key]] for own in measures if own.key in cell.values}
        return Row(name, values, {}, cell.seconds, cell.peak_memory_mb, _NOTES.get(name, ""), name in _OURS)

    def _pictures(self, cell: Cell) -> list[Figure]:
        paths = dict(zip(self.corpus.file_names, self.corpus.paths, strict=True))

        def captioned(own: dict[str, Any]) -> Captioned:
            return Captioned(paths[own["file_name"]], ", ".join(own["tags"]))

        found = cell.values["examples"]
        neighbors = [Neighbors(captioned(own), [captioned(other) for other in own["similar"]]) for own in found]
        generated = [Generated(paths[own["file_name"]], own["tags"], own["generated"]) for own in found]
        return [draw_neighbors(neighbors, self.run.folder), draw_generated(generated, self.run.folder)]

    def _about(self) -> dict[str, Any]:
        return {
            "pictures": len(self.source), "training pictures": len(self.train),
            "test pictures": len(self.source) - len(self.train), "tags": self.corpus.vocabulary.n_annotation_words,
            "visual words": N_WORDS, "regions": "2 x 2", "fingerprint": self.source.fingerprint,
        }  # fmt: skip

    def _remarks(self) -> list[str]:
        balance = self.corpus.X[:, : self.corpus.vocabulary.n_pairs].sum() / max(
            1, self.corpus.X[:, self.corpus.vocabulary.n_pairs :].sum()
        )
        found = [f"The default weight of the tags (balanced) is {balance:.0f} here."]
        if self.own_split:
            found.append(f"The data has no test list: {N_TEST} pictures were drawn (seed {SEED_OF_SPLIT}).")
        return found
