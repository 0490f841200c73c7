"""LabelMe and UIUC-Sports: section 6.1 of the paper, classes and tags of pictures of scenes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.sources.listing import Source
from pictopic.paper.datasets import read_labelme, read_splits, read_uiuc_sports
from pictopic.paper.experiments import scenes_methods as methods
from pictopic.paper.experiments.figures import draw_curve
from pictopic.paper.experiments.pictures import Association, Prediction, draw_associations, draw_predictions
from pictopic.paper.experiments.results import (
    Curve,
    Figure,
    Line,
    Measure,
    Results,
    Row,
    Table,
    paired_difference,
)
from pictopic.paper.experiments.run import Cell, ExperimentRun, Task, largest_peak, versions
from pictopic.tasks.exports import cut_patch
from pictopic.words.global_features import n_features

TITLES = {"labelme": "LabelMe: eight kinds of scenes", "uiuc-sports": "UIUC-Sports: eight kinds of sport"}
FULL_MINUTES = 240.0  # on one core

N_SPLITS = 5
N_WORDS = 240
PER_CLASS = {"labelme": 200, "uiuc-sports": None}  # pictures of each class, half of them to learn from
MAX_SIDE = {"labelme": None, "uiuc-sports": 400}
TOPICS = (25, 50, 100, 200)
PASSES = 60
# Of the words: lambda times the mean number of words, which is the paper's lambda = 1.
WEIGHTS: tuple[float | str, ...] = (0.0, 1.0, 10.0, 100.0, "mean length")
_UNCHOSEN = {"generative_weight": 1.0, "svm": {"C": 10, "gamma": 1}}  # of a split whose turn never came
ONE_LAYER = {"topics": 512, "passes": 300, "patience": 30}
FEATURES = ("gist", "mpeg7")
_IN_A_ROW = 4  # pictures that are rightly, and that are wrongly classified
_PATCHES = 16

_PAPER = {
    "labelme": {
        "SPM": (80.88, 43.68), "MMLDA": (81.47, 46.64), "sLDA": (81.87, 38.7), "DocNADE": (81.97, 43.32),
        "SupDocNADE": (83.43, 43.87),
    },
    "uiuc-sports": {
        "SPM": (72.33, 41.78), "MMLDA": (74.65, 44.51), "sLDA": (76.87, 35.0), "DocNADE": (74.23, 46.38),
        "SupDocNADE": (77.29, 46.95),
    },
}  # fmt: skip
_MEASURES = [Measure("accuracy", "accuracy %", percent=True), Measure("f_measure", "F-measure %", percent=True)]
_LOGISTIC = "logistic and neighbours"
_NOTES = {
    _LOGISTIC: "no topics: the mean of logistic regression's probabilities and of the shares of the nearest pictures",
    "SPM": "intersection-kernel SVM on two levels; tags of the k nearest pictures",
    "RBF SVM": "on square-rooted histograms, no topics",
    "SVM, GIST and MPEG-7 too": "mean of the kernels of histograms, GIST and MPEG-7",
    "SVM, semantic too": "mean of the kernels of histograms, GIST, MPEG-7 and the semantic features",
    "MMLDA": "figures of its own paper; not at hand here",
    "DocNADE": "tree, relu, Adam, dropout, 200 topics; RBF SVM on the topics; tags weigh as much as visual words",
    "SupDocNADE": "as DocNADE; λ, C and gamma by 3-fold cross-validation on the training pictures, by the mean of "
    "accuracy and F-measure",
    "SupDeepDocNADE, 1 layer": "square-rooted counts, the same words as the others, its own classes",
    "SupDeepDocNADE, 2 layers": "GIST and MPEG-7 beside the words, all training pictures learnt from",
    "PictureModel": "pictopic's defaults: passes chosen on 15 % of the training pictures, then all learnt from",
    "PictureModel, semantic too": "with the optional semantic features beside GIST and MPEG-7",
}

_ORDER = (
    "most frequent", "SPM", "RBF SVM", "SVM, GIST and MPEG-7 too", "SVM, semantic too", _LOGISTIC,
    f"{_LOGISTIC}, GIST and MPEG-7 too", f"{_LOGISTIC}, semantic too", "MMLDA", "LDA + SVM", "sLDA",
    "DocNADE", "SupDocNADE", "SupDeepDocNADE, 1 layer", "SupDeepDocNADE, 2 layers", "PictureModel",
    "PictureModel, semantic too",
)  # fmt: skip
_OURS = _ORDER[_ORDER.index("DocNADE") :]
_LDA_TOPICS = 100
_VARIANTS: dict[str, dict[str, Any]] = {
    "SupDocNADE": {},
    "SupDocNADE, λ = 0": {"generative_weight": 0.0},
    "SupDocNADE, λ = 1": {"generative_weight": "mean length"},
    "SupDocNADE, 1 x 1": {"regions": "1x1"},
}
_TITLES_OF_VARIANTS = {
    "SupDocNADE": "λ chosen, 2 x 2 regions", "SupDocNADE, λ = 0": "λ = 0", "SupDocNADE, λ = 1": "λ = 1",
    "SupDocNADE, 1 x 1": "λ chosen, 1 x 1 region",
}  # fmt: skip
_Lines = dict[str, dict[int, list[Cell | None]]]  # by name and number of topics, one cell per split


def run(data: Path, run: ExperimentRun, dataset: str = "labelme") -> Results:
    """Tables and figures of section 6.1, on a data set in a folder that may hold several."""
    return _Experiment(data, run, dataset).results()


def random_split(labels: Sequence[str], per_class: int | None, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw `per_class` pictures of each class (None: all), and split each class in halves; rows of train and test.

    Examples
    --------
    >>> from pictopic.paper.experiments.scenes import random_split
    >>> train, test = random_split(["sea"] * 5 + ["city"] * 4, per_class=4, seed=0)
    >>> sorted(len(part) for part in (train, test))
    [4, 4]
    """
    rng = np.random.RandomState(seed)
    names = np.asarray(labels)
    train, test = [], []
    for name in np.unique(names):
        rows = rng.permutation(np.flatnonzero(names == name))[:per_class]
        train.append(rows[: len(rows) // 2])
        test.append(rows[len(rows) // 2 :])
    return np.sort(np.concatenate(train)), np.sort(np.concatenate(test))


class _Experiment:
    """One data set on its way to results."""

    def __init__(self, data: Path, run: ExperimentRun, dataset: str):
        self.data, self.run, self.dataset = data, run, dataset
        self.source: Source = (read_labelme if dataset == "labelme" else read_uiuc_sports)(data)
        self.names = self.source.rows["file_name"].to_pylist()
        self.labels = [labels[0] if labels else "" for labels in self.source.rows["labels"].to_pylist()]
        self.has_tags = any(self.source.rows["tags"].to_pylist())
        self.has_semantic = find_spec("efficientnet_lite_pytorch") is not None
        self.passes = run.budget.steps("passes of DocNADE and SupDocNADE", PASSES, least=2)
        self.layer = ONE_LAYER | {"passes": run.budget.steps("passes of the deep model", ONE_LAYER["passes"], least=2)}
        self.weights = run.budget.grid("weights of the words", WEIGHTS)
        self.topics = run.budget.grid("numbers of topics", TOPICS)
        self.splits = self._splits()[: run.budget.steps("splits", N_SPLITS)]
        self.numbers = range(len(self.splits))
        self._corpora: dict[tuple[int, str], Corpus] = {}

    def _splits(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Rows to learn from and to test on: those that come with the data, or drawn at random."""
        known = read_splits(self.data, self.source)
        if known is not None:
            return [(np.flatnonzero(is_train), np.flatnonzero(~is_train)) for is_train in known]
        seeds = range(self.run.random_state, self.run.random_state + N_SPLITS)
        return [random_split(self.labels, PER_CLASS[self.dataset], seed) for seed in seeds]

    # ---- corpora ---------------------------------------------------------------------------------------------------

    def corpus(self, split: int, kind: str) -> Corpus:
        """Words of a split's pictures, learnt from its training half, with global features of a kind."""
        if (split, kind) not in self._corpora:
            name, source, options = self._words(split, kind)
            # The words are the same with and without features.
            codebook = None if kind == "words" else self.corpus(split, "words").codebook
            self._corpora[split, kind] = self.run.corpus(name, source, codebook, **options)
        return self._corpora[split, kind]

    def _words(self, split: int, kind: str) -> tuple[str, Source, dict[str, Any]]:
        """Name, source and options of a corpus."""
        train, test = self.splits[split]
        options: dict[str, Any] = {
            "preset": "scenes", "n_words": N_WORDS, "max_side": MAX_SIDE[self.dataset], "min_tag_count": 3,
            "random_state": self.run.random_state, "codebook_rows": [self.names[i] for i in train],
        }  # fmt: skip
        if kind != "words":
            options["features"] = (*FEATURES, *(["semantic"] if kind == "semantic" else []))
        return f"split {split + 1}, {kind}", self._part(np.sort(np.concatenate([train, test]))), options

    def _is_built(self, split: int, kind: str) -> bool:
        name, source, options = self._words(split, kind)
        return self.run.is_built(name, source, **options)

    def _part(self, rows: np.ndarray) -> Source:
        """Some rows of the source, as a source."""
        return self.source if len(rows) == len(self.source) else self.source.take(rows)

    def _task(self, name: str, split: int, work: Callable, kind: str = "words", **options: Any) -> Task:
        corpus = self.corpus(split, kind)
        depends = {
            "corpus_fingerprint": self.source.fingerprint, "split_number": split + 1, "seed": self.run.random_state,
            "train_rows": len(self.splits[split][0]), **options,
        }  # fmt: skip
        where = {
            "corpus": str(corpus.folder), "pictures": str(self.source.folder),
            "train": [self.names[i] for i in self.splits[split][0]],
        }  # fmt: skip
        return Task(f"{name}, split {split + 1}", work, depends, {"place": where})

    # ---- parts -----------------------------------------------------------------------------------------------------

    def results(self) -> Results:
        """All tables, curves and pictures; what is most important first, for there may be too little time."""
        cells = self._comparison("words")
        self._choose_weights()
        lines = self._lines()
        cells |= {name: lines[name][max(self.topics)] for name in ("DocNADE", "SupDocNADE")}
        cells |= self._comparison("features") | (self._comparison("semantic") if self.has_semantic else {})
        curves = self._curves()
        caption = "Accuracy, and F-measure of five tags" if self.has_tags else "Accuracy"
        table = Table("comparison", caption, self._measures(), self._rows(cells), "SupDocNADE")
        results = Results(
            self.dataset, TITLES[self.dataset], data=self._about(), options=self.run.options,
            notes=[*self.run.notes, *self._remarks(), *self._order_of_methods(table)],
            tables=[table],
            curves=curves, versions=versions(), seconds=self.run.seconds,
        )  # fmt: skip
        for curve in curves:
            results.figures += draw_curve(curve, self.run.folder)
        first = lines["SupDocNADE"][max(self.topics)][0]
        if first is not None:
            results.figures += _draw_examples(first.values, self.corpus(0, "words"), self.run.folder)
        return results

    def _comparison(self, kind: str) -> dict[str, list[Cell | None]]:
        """Cells of the methods that look at words, or at global features too: for each method, one per split."""
        chosen = [(name, work, options) for name, (looks_at, work, options) in self._methods().items()
                  if looks_at == kind]  # fmt: skip
        if self.run.budget.over and not all(self._is_built(k, kind) for k in self.numbers):
            self.run.left_out += [name for name, *_ in chosen]
            return {name: [] for name, *_ in chosen}
        tasks = [self._task(name, k, work, kind, **options) for k in self.numbers for name, work, options in chosen]
        cells = self.run.cells(tasks)
        return {name: cells[i :: len(chosen)] for i, (name, *_) in enumerate(chosen)}

    def _methods(self) -> dict[str, tuple[str, Callable, dict[str, Any]]]:
        """By name: what a method looks at, its function, and its options."""
        return self._tag_methods() | {
            "most frequent": ("words", methods.most_frequent, {}),
            "SPM": ("words", methods.spatial_pyramid, {}),
            "RBF SVM": ("words", methods.histogram_svm, {}),
            "LDA + SVM": ("words", methods.lda_svm, {"topics": _LDA_TOPICS}),
            "sLDA": ("words", methods.slda, {"topics": _LDA_TOPICS}),
            "SupDeepDocNADE, 1 layer": ("words", methods.one_layer, self.layer),
            "SVM, GIST and MPEG-7 too": ("features", methods.feature_svm, {"sizes": _sizes(FEATURES)}),
            "SupDeepDocNADE, 2 layers": ("features", methods.two_layers, self.layer),
            "PictureModel": ("features", methods.picture_model, {}),
            "SVM, semantic too": ("semantic", methods.feature_svm, {"sizes": _sizes((*FEATURES, "semantic"))}),
            "PictureModel, semantic too": ("semantic", methods.picture_model, {}),
        }

    def _tag_methods(self) -> dict[str, tuple[str, Callable, dict[str, Any]]]:
        """The methods that predict tags only."""
        if not self.has_tags:
            return {}
        sizes = {"features": _sizes(FEATURES), "semantic": _sizes((*FEATURES, "semantic"))}
        return {
            _LOGISTIC: ("words", methods.logistic_neighbors, {}),
            f"{_LOGISTIC}, GIST and MPEG-7 too": ("features", methods.logistic_neighbors, {"sizes": sizes["features"]}),
            f"{_LOGISTIC}, semantic too": ("semantic", methods.logistic_neighbors, {"sizes": sizes["semantic"]}),
        }

    def _choose_weights(self) -> None:
        """The weight of the words, C and gamma for each split, by cross-validation on its training pictures."""
        shared: dict[str, Any] = {"topics": max(self.topics), "passes": self.passes, "regions": "2x2"}
        keys = [(k, weight) for k in self.numbers for weight in self.weights]
        cells = self.run.cells([
            self._task(
                f"cross-validation, weight {weight}", k, methods.cross_validate, generative_weight=weight, **shared
            )
            for k, weight in keys
        ])  # fmt: skip
        self.chosen: list[dict[str, Any]] = []
        for k in self.numbers:
            tried = [
                (_mean_score(cell), {"generative_weight": weight, "svm": cell.values["svm"]})
                for (split, weight), cell in zip(keys, cells, strict=True)
                if split == k and cell
            ]
            self.chosen.append(max(tried, key=lambda pair: pair[0])[1] if tried else dict(_UNCHOSEN))

    def _lines(self, names: Sequence[str] = ("DocNADE", "SupDocNADE"), all_topics: bool = False) -> _Lines:
        """Cells of the paper's models by name and number of topics, one per split."""
        numbers_of_topics = self.topics if all_topics else [max(self.topics)]
        keys = [(k, name, n) for k in self.numbers for n in numbers_of_topics[::-1] for name in names]
        cells = self.run.cells([self._line_task(*key) for key in keys])
        lines: _Lines = {name: {n: [] for n in numbers_of_topics} for name in names}
        for (_, name, n), cell in zip(keys, cells, strict=True):
            lines[name][n].append(cell)
        return lines

    def _line_task(self, split: int, name: str, topics: int) -> Task:
        key = f"{name}, {topics} topics"
        if name == "sLDA":
            key = name if topics == _LDA_TOPICS else key  # the table has it already
            return self._task(key, split, methods.slda, topics=topics)
        options: dict[str, Any] = {"topics": topics, "passes": self.passes, "regions": "2x2"}
        if name == "DocNADE":
            return self._task(key, split, methods.docnade, **options)
        options |= self.chosen[split] | _VARIANTS[name]
        options["examples"] = name == "SupDocNADE" and split == 0 and topics == max(self.topics)
        return self._task(key, split, methods.supdocnade, **options)

    def _curves(self) -> list[Curve]:
        lines = self._lines(("DocNADE", "sLDA", *_VARIANTS), all_topics=True)
        models = {name: lines[name] for name in ("SupDocNADE", "DocNADE", "sLDA")}
        variants = {_TITLES_OF_VARIANTS[name]: lines[name] for name in _VARIANTS}
        return [
            self._curve("topics", "Accuracy against the number of topics", models),
            self._curve("variants", "Accuracy of SupDocNADE's variants", variants),
        ]

    def _curve(self, name: str, caption: str, lines: _Lines) -> Curve:
        series = []
        for title, points in lines.items():
            values = {n: [cell.values["accuracy"] for cell in cells if cell] for n, cells in points.items()}
            known = [n for n in values if values[n]]
            series.append(Line(title, [float(n) for n in known], [values[n] for n in known]))
        return Curve(name, caption, "topics", "accuracy", series, percent=True)

    # ---- what is written down --------------------------------------------------------------------------------------

    def _rows(self, cells: dict[str, list[Cell | None]]) -> list[Row]:
        published = _PAPER[self.dataset]
        rows = []
        for name in _ORDER:
            if name in cells:
                rows.append(self._row(name, [cell for cell in cells[name] if cell], published.get(name)))
            elif name == "MMLDA":
                rows.append(Row(name, {}, self._published(published[name]), note=_NOTES[name]))
        return rows

    def _row(self, name: str, done: list[Cell], paper: tuple[float, float] | None) -> Row:
        keys = [measure.key for measure in self._measures()]
        values = {key: [cell.values[key] for cell in done if key in cell.values] for key in keys}
        return Row(
            name, {key: figures for key, figures in values.items() if figures}, self._published(paper),
            float(np.mean([cell.seconds for cell in done])) if done else None,
            largest_peak(done), _NOTES.get(name, ""), name in _OURS,
        )  # fmt: skip

    def _published(self, paper: tuple[float, float] | None) -> dict[str, float]:
        if paper is None:
            return {}
        return {"accuracy": paper[0]} | ({"f_measure": paper[1]} if self.has_tags else {})

    def _measures(self) -> list[Measure]:
        return _MEASURES if self.has_tags else _MEASURES[:1]

    def _about(self) -> dict[str, Any]:
        train, test = self.splits[0]
        return {
            "pictures": len(self.source), "classes": len(set(self.labels)), "splits": len(self.splits),
            "training pictures a split": len(train), "test pictures a split": len(test), "visual words": N_WORDS,
            "regions": "2 x 2", "tags": self.corpus(0, "words").vocabulary.n_annotation_words,
            "fingerprint": self.source.fingerprint,
        }  # fmt: skip

    def _remarks(self) -> list[str]:
        remarks = [] if self.has_tags else ["The data has no tags: classes only."]
        if not self.has_semantic:
            remarks.append("Semantic features were left out: pip install 'pictopic[semantic]' adds them.")
        chosen = ", ".join(f"{options['generative_weight']}" for options in self.chosen)
        return [*remarks, f"Weight of the words (λ times the mean number of words) chosen for the splits: {chosen}."]

    def _order_of_methods(self, table: Table) -> list[str]:
        """Where the paper's order holds: the differences of its methods to SupDocNADE beside ours, paired by split."""
        remarks = []
        rows = {row.name: row for row in table.rows if row.paper}
        first = rows["SupDocNADE"]
        for measure in table.measures:
            parts = []
            for name, row in rows.items():
                ours = paired_difference(first.values.get(measure.key, []), row.values.get(measure.key, []))
                if name == first.name or ours is None:
                    continue
                paper = first.paper[measure.key] - row.paper[measure.key]
                mean, error = 100 * ours[0], 100 * ours[1]
                verdict = "open" if abs(mean) <= error else "holds" if mean * paper > 0 else "does not hold"
                parts.append(f"{name} {paper:+.2f} in the paper, {mean:+.2f} ± {error:.2f} here ({verdict})")
            if parts:
                remarks.append(f"SupDocNADE's lead in {measure.title.removesuffix(' %')}: {'; '.join(parts)}.")
        return remarks


def _mean_score(cell: Cell) -> float:
    """Mean of accuracy and F-measure in cross-validation; where a network learns no tags, its F-measure is 0."""
    return float(cell.values["accuracy"] + cell.values.get("f_measure", 0.0)) / 2


def _sizes(kinds: Sequence[str]) -> list[int]:
    return [n_features((kind,)) for kind in kinds]


# ---- pictures --------------------------------------------------------------------------------------------------------


def _draw_examples(values: dict[str, Any], corpus: Corpus, folder: Path) -> list[Figure]:
    """Draw what SupDocNADE predicts for the test pictures of a split; `values` are its figures, with examples."""
    paths = dict(zip(corpus.file_names, corpus.paths, strict=True))
    right: list[Prediction] = []
    wrong: list[Prediction] = []
    for item in _spread(values["predictions"]):
        prediction = Prediction(
            paths[item["file_name"]], item["predicted"], item["true"], item["tags"], item["true_tags"]
        )  # fmt: skip
        (right if item["predicted"] == item["true"] else wrong).append(prediction)
    classes = [
        Association(name, [_patches(corpus, word, paths) for word in goes_with["visual_words"]], goes_with["tags"])
        for name, goes_with in values["associations"].items()
    ]
    return [draw_predictions(right[:_IN_A_ROW], wrong[:_IN_A_ROW], folder), draw_associations(classes, folder)]


def _spread(predictions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One picture of each class after the other, so that the first few show several classes."""
    turns: Counter[tuple[str, bool]] = Counter()
    keyed = []
    for item in predictions:
        kind = item["true"], item["predicted"] == item["true"]
        keyed.append((turns[kind], item))
        turns[kind] += 1
    return [item for _, item in sorted(keyed, key=lambda pair: pair[0])]


def _patches(corpus: Corpus, word: int, paths: dict[str, Path]) -> list[Image.Image | None]:
    if corpus.codebook is None or corpus.options is None:
        return []
    side = corpus.options.max_side
    return [
        cut_patch(patch, paths[patch.file_name], side) if patch.file_name in paths else None
        for patch in corpus.codebook.examples[word][:_PATCHES]
    ]
