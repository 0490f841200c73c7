"""Corel 5k: tags of photographs, and how much their weight (rho) matters."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.preprocessing import StandardScaler, normalize

from pictopic.models.docnade import DocNADE, SupDocNADE
from pictopic.paper.baselines import (
    LogisticNeighborAnnotator,
    MostFrequent,
    NeighborAnnotator,
    SpatialPyramidAnnotator,
    hsv_histograms,
)
from pictopic.paper.baselines.base import root_shares
from pictopic.paper.datasets import read_corel5k
from pictopic.paper.experiments.figures import draw_curve
from pictopic.paper.experiments.pictures import Captioned, Generated, Neighbors, draw_generated, draw_neighbors
from pictopic.paper.experiments.results import Curve, Figure, Line, Measure, Results, Row, Table
from pictopic.paper.experiments.run import Cell, ExperimentRun, Task, versions
from pictopic.paper.experiments.split import TOP, CorpusSplit, best_tags, on_split
from pictopic.picture_model import PictureModel
from pictopic.tasks.metrics import f_measure_at_k, per_word_scores

TITLE = "Corel 5k: tags of photographs"
FULL_MINUTES = 90.0  # on one core

N_WORDS = 500
N_TEST = 500  # where the data has no test list of its own
SEED_OF_SPLIT = 7
PASSES = 200
PASSES_OF_SHALLOW = 60  # chosen on an eighth of the training pictures; stopping on the classes is too early for tags
NEIGHBOURS = 10
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
    "logistic and neighbours": "no topics: the mean of logistic regression's probabilities and of the shares of the "
    "nearest pictures; visual words, HSV histograms, GIST and MPEG-7",
    "neighbours, SPM": "two-level pyramids of visual words",
}


def run(data: Path, run: ExperimentRun) -> Results:
    """Tables and figures, on a data set in a folder that may hold several."""
    return _Experiment(data, run).results()


class _Experiment:
    def __init__(self, data: Path, run: ExperimentRun):
        self.run, self.source = run, read_corel5k(data)
        names = self.source.rows["file_name"].to_pylist()
        splits = self.source.rows["split"].to_pylist()
        self.draws_split = "test" not in splits
        if self.draws_split:
            order = np.random.RandomState(SEED_OF_SPLIT).permutation(len(names))
            rows = np.sort(order[min(N_TEST, len(names) // 5) :])
        else:
            rows = np.flatnonzero([split != "test" for split in splits])
        self.train = [names[i] for i in rows]
        self.passes = run.budget.steps("passes of the deep model", PASSES, least=2)
        self.shallow_passes = run.budget.steps("passes of DocNADE and SupDocNADE", PASSES_OF_SHALLOW, least=2)
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
            return self._task("PictureModel", picture_model, **options)
        options = {"annotation_weight": rho, "passes": min(self.passes, PASSES_OF_CURVE), "units": UNITS_OF_CURVE}
        return self._task(f"PictureModel, rho = {rho:g}", picture_model, **options)

    def results(self) -> Results:
        """All tables, curves and pictures."""
        tasks = [
            self._task("most frequent", most_frequent),
            self._task("neighbours, SPM", spatial_pyramid),
            self._task("neighbours, SIFT", neighbors, colours=False),
            self._task("neighbours, SIFT and colours", neighbors, colours=True),
            self._task("logistic and neighbours", logistic_neighbors),
            self._task("DocNADE", shallow, supervised=False, passes=self.shallow_passes),
            self._task("SupDocNADE", shallow, supervised=True, passes=self.shallow_passes),
            self._task("by histograms", by_histogram),
            self._task("by tags", by_tags),
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
            Line(title, [rho for rho, _ in done], [[values[key]] for _, values in done])
            for key, title in titles.items()
            if done and key in done[0][1]
        ]
        caption = f"The weight of the tags; one layer of {UNITS_OF_CURVE} units, at most {PASSES_OF_CURVE} passes"
        return Curve("annotation-weight", caption, "rho", "share", series, percent=True, log_x=True)

    def _row(self, name: str, cell: Cell | None, measures: list[Measure]) -> Row:
        if cell is None:
            return Row(name, {}, note=_NOTES.get(name, ""), ours=name in _OURS)
        values = {measure.key: [cell.values[measure.key]] for measure in measures if measure.key in cell.values}
        return Row(name, values, {}, cell.seconds, cell.peak_memory_mb, _NOTES.get(name, ""), name in _OURS)

    def _pictures(self, cell: Cell) -> list[Figure]:
        paths = dict(zip(self.corpus.file_names, self.corpus.paths, strict=True))

        def captioned(item: dict[str, Any]) -> Captioned:
            return Captioned(paths[item["file_name"]], ", ".join(item["tags"]))

        examples = cell.values["examples"]
        neighbors = [Neighbors(captioned(item), list(map(captioned, item["similar"]))) for item in examples]
        generated = [Generated(paths[item["file_name"]], item["tags"], item["generated"]) for item in examples]
        return [draw_neighbors(neighbors, self.run.folder), draw_generated(generated, self.run.folder)]

    def _about(self) -> dict[str, Any]:
        return {
            "pictures": len(self.source), "training pictures": len(self.train),
            "test pictures": len(self.source) - len(self.train), "tags": self.corpus.vocabulary.n_annotation_words,
            "visual words": N_WORDS, "regions": "2 x 2", "fingerprint": self.source.fingerprint,
        }  # fmt: skip

    def _remarks(self) -> list[str]:
        X, n_pairs = self.corpus.X, self.corpus.vocabulary.n_pairs
        balance = X[:, :n_pairs].sum() / max(1, X[:, n_pairs:].sum())
        remarks = [f"The default weight of the tags (balanced) is {balance:.0f} here."]
        if self.draws_split:
            remarks.append(f"The data has no test list: {N_TEST} pictures were drawn (seed {SEED_OF_SPLIT}).")
        return remarks


# ---- methods ---------------------------------------------------------------------------------------------------------
# Each takes a split and its options, which the figures depend on; test pictures come without tags.


def figures(split: CorpusSplit, scores: np.ndarray) -> dict[str, Any]:
    """F-measure per picture of the best five tags; precision and recall per word, and the number of words found."""
    names = split.train.vocabulary.annotations
    true, ranked = split.test.tags, [[names[i] for i in row] for row in best_tags(scores)]
    words = per_word_scores(true, ranked)
    return {
        "f_measure": f_measure_at_k(true, ranked, TOP), "precision": words.precision, "recall": words.recall,
        "n_plus": float(words.n_plus),
    }  # fmt: skip


@on_split
def most_frequent(split: CorpusSplit, **options: Any) -> dict[str, Any]:
    """The five most frequent tags."""
    return figures(split, MostFrequent().fit(split.X, split.Y).decision_function(split.X_test))


@on_split
def spatial_pyramid(split: CorpusSplit, **options: Any) -> dict[str, Any]:
    """Tags of the neighbours by SPM's similarity."""
    model = SpatialPyramidAnnotator(n_regions=split.n_regions, n_annotation_words=split.n_tags)
    return figures(split, model.fit(split.X).decision_function(split.X_test)) | {"neighbours": int(model.n_neighbors_)}


@on_split
def neighbors(split: CorpusSplit, *, colours: bool, **options: Any) -> dict[str, Any]:
    """Tags of the neighbours by visual words, and by colours too."""
    rows = [X[:, : split.n_pairs].toarray() for X in (split.X, split.X_test)]
    if colours:
        # Equal shares of both: the squares are what `NeighborAnnotator` takes the roots of.
        kinds = [hsv_histograms(corpus.paths) for corpus in (split.train, split.test)]
        rows = [np.hstack([root_shares(a) ** 2, root_shares(b) ** 2]) for a, b in zip(rows, kinds, strict=True)]
    model = NeighborAnnotator().fit(rows[0], split.Y)
    return figures(split, model.decision_function(rows[1])) | {"neighbours": int(model.n_neighbors_)}


@on_split
def logistic_neighbors(split: CorpusSplit, **options: Any) -> dict[str, Any]:
    """Half logistic regression, half neighbours, on visual words, colours, GIST and MPEG-7."""
    words = [root_shares(X[:, : split.n_pairs]) for X in (split.X, split.X_test)]
    colours = [root_shares(hsv_histograms(corpus.paths)) for corpus in (split.train, split.test)]
    features = [np.asarray(corpus.global_features, dtype=np.float64) for corpus in (split.train, split.test)]
    scaler = StandardScaler().fit(features[0])
    rows = [[a, b, scaler.transform(c)] for a, b, c in zip(words, colours, features, strict=True)]
    model = LogisticNeighborAnnotator(blocks=[part.shape[1] for part in rows[0]]).fit(np.hstack(rows[0]), split.Y)
    return figures(split, model.predict_proba(np.hstack(rows[1]))) | {"chosen": {"C": model.C_}}


@on_split
def shallow(split: CorpusSplit, *, supervised: bool, passes: int, **options: Any) -> dict[str, Any]:
    """DocNADE or SupDocNADE with the package's defaults, on all training pictures; tags by p(next word)."""
    settings: dict[str, Any] = {
        "n_annotation_words": split.n_tags, "max_iter": passes, "validation_fraction": None,
        "random_state": options["seed"], "n_jobs": 1,
    }  # fmt: skip
    if supervised:
        model: Any = SupDocNADE(**settings).fit(split.X, split.y)
    else:
        model = DocNADE(**settings).fit(split.X)
    return figures(split, split.next_tags(model, split.X_test))


@on_split
def picture_model(split: CorpusSplit, *, annotation_weight: float | str, **options: Any) -> dict[str, Any]:
    """`PictureModel`, with a weight of the tags (rho); similar pictures by picture and tags, too."""
    changes = {"annotation_weight": annotation_weight, "max_iter": options["passes"]}
    if "units" in options:
        changes["n_components"] = options["units"]
    model = PictureModel(options=changes, random_state=options["seed"], n_jobs=1, verbose=0).fit(split.train)
    evaluation = model.evaluate(split.test)
    keys = ("f_measure", "precision", "recall", "n_plus", "accuracy")
    values: dict[str, Any] = {key: evaluation[key] for key in keys if key in evaluation}
    if options.get("illustrate"):
        values["similar"] = precision_of_search(model, split)
        values["examples"] = _examples(model, split)
    return values


def precision_of_search(model: PictureModel, split: CorpusSplit) -> float:
    """Share of the ten most similar training pictures that are of the query's group; it is a picture and its tags."""
    group = dict(zip(split.train.file_names, split.train.label_lists, strict=True))
    shares = []
    for path, tags, labels in zip(split.test.paths, split.test.tags, split.test.label_lists, strict=True):
        known = [tag for tag in tags if tag in split.train.vocabulary]
        similar = model.search(path, tags=known or None, k=NEIGHBOURS)
        shares.append(np.mean([group[str(name)] == labels for name, _ in similar]))
    return float(np.mean(shares))


@on_split
def by_histogram(split: CorpusSplit, **options: Any) -> dict[str, Any]:
    """Similar pictures by the angle between histograms."""
    A, B = (normalize(X[:, : split.n_pairs].astype(float)) for X in (split.X, split.X_test))
    return {"similar": _precision(split, (B @ A.T).toarray())}


@on_split
def by_tags(split: CorpusSplit, **options: Any) -> dict[str, Any]:
    """Similar pictures by the share of tags in common."""
    A, B = split.Y.astype(float), split.Y_test.astype(float)
    common = B @ A.T
    return {"similar": _precision(split, common / np.maximum(B.sum(axis=1)[:, None] + A.sum(axis=1) - common, 1))}


def _precision(split: CorpusSplit, similarity: np.ndarray) -> float:
    best = np.argsort(-similarity, axis=1, kind="stable")[:, :NEIGHBOURS]
    return float((split.y[best] == split.y_test[:, None]).mean())


def _examples(model: PictureModel, split: CorpusSplit, n: int = 6) -> list[dict[str, Any]]:
    """Generated tags and similar pictures of some test pictures, spread over the collection."""
    rows = np.linspace(0, len(split.test) - 1, n).astype(int)
    tags = dict(zip(split.train.file_names, split.train.tags, strict=True))
    examples = []
    for row in rows:
        path, name = split.test.paths[row], split.test.file_names[row]
        near = [str(other) for other, _ in model.search(path, tags=split.test.tags[row], k=4)]
        examples.append(
            {"file_name": name, "tags": split.test.tags[row], "generated": [tag for tag, _ in model.annotate(path, 8)],
             "similar": [{"file_name": other, "tags": tags[other]} for other in near]}
        )  # fmt: skip
    return examples
