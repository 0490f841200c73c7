"""The experiment on Corel 5k, on a few made-up pictures."""

import csv

import numpy as np
import pytest
from PIL import Image

from pictopic.demo.scenes import write_scenes
from pictopic.paper.experiments import corel5k
from pictopic.paper.experiments.run import Budget, ExperimentRun
from pictopic.paper.experiments.split import CorpusSplit

# What is made once takes long: one process makes it for all.

TAGGERS = [
    "most frequent", "neighbours, SPM", "neighbours, SIFT", "neighbours, SIFT and colours",
    "logistic and neighbours", "DocNADE", "SupDocNADE",
    "TagProp", "PictureModel",
]  # fmt: skip
SMALL = {"N_WORDS": 8, "N_TEST": 12, "PASSES": 2, "PASSES_OF_SHALLOW": 2, "RHO": (1.0, 100.0), "UNITS_OF_CURVE": 8}


@pytest.fixture(scope="module", autouse=True)
def _small():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(corel5k, name, value)
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Scenes as Corel has them: tags, and a group instead of a label."""
    folder = write_scenes(tmp_path_factory.mktemp("data") / "corel5k", n=64)
    with (folder / "metadata.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    lines = ["file_name,tags,group", *(f"{row['file_name']},{row['tags']},{row['label']}" for row in rows)]
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n")
    return folder.parent


@pytest.fixture(scope="module")
def finished(data, tmp_path_factory):
    """A folder in which the experiment is done, and its results."""
    folder = tmp_path_factory.mktemp("run")
    return folder, corel5k.run(data, ExperimentRun(folder, Budget(None, corel5k.FULL_MINUTES)))


def test_all_methods_are_measured(finished):
    tags, similar = finished[1].tables
    assert [row.name for row in tags.rows] == TAGGERS
    for row in tags.rows:
        assert set(row.values) == (set() if row.name == "TagProp" else {"f_measure", "precision", "recall", "n_plus"})
    assert [row.name for row in similar.rows] == ["by histograms", "by tags", "PictureModel"]
    assert all(0 <= row.values["similar"][0] <= 1 for row in similar.rows)


def test_the_most_frequent_tags_get_the_f_measure_that_a_loop_computes(finished, data):
    folder, results = finished
    (corpus,) = (folder / "corpora").iterdir()
    order = np.random.RandomState(corel5k.SEED_OF_SPLIT).permutation(64)
    with (data / "corel5k" / "metadata.csv").open(newline="") as file:
        names = [row["file_name"] for row in csv.DictReader(file)]
    own = CorpusSplit(str(corpus), str(data / "corel5k"), [names[i] for i in order[12:]])
    assert len(own.test) == 12
    usual = np.argsort(-own.Y.sum(axis=0), kind="stable")[:5]
    scores = []
    for row in own.Y_test:
        hits = sum(row[i] for i in usual)
        precision, recall = hits / 5, hits / row.sum()
        scores.append(2 * precision * recall / (precision + recall) if hits else 0.0)
    assert results.tables[0].rows[0].values["f_measure"] == [pytest.approx(np.mean(scores))]


def test_the_curve_has_all_weights_of_the_tags(finished):
    (curve,) = finished[1].curves
    assert [series.name for series in curve.series] == ["F-measure of five tags", "accuracy of the group"]
    assert all(series.x == [1.0, 100.0] for series in curve.series)


def test_pictures_are_drawn(finished):
    folder, results = finished
    files = [figure.file for figure in results.figures]
    assert files == ["annotation-weight.svg", "annotation-weight.png", "retrieval.png", "generated-tags.png"]
    assert min(Image.open(folder / "retrieval.png").size) > 200


def test_a_second_run_learns_nothing_again(finished, data):
    folder, results = finished
    log = []
    again = corel5k.run(data, ExperimentRun(folder, Budget(None, corel5k.FULL_MINUTES), log=log.append))
    assert log == []
    assert again.tables == results.tables


def test_a_test_list_that_comes_with_the_data_is_taken(data, tmp_path):
    source = corel5k.read_corel5k(data)
    with pytest.MonkeyPatch.context() as patch:
        parts = ["test" if i < 20 else "train" for i in range(len(source))]
        column = source.rows.column_names.index("split")
        object.__setattr__(source, "rows", source.rows.set_column(column, "split", [parts]))
        patch.setattr(corel5k, "read_corel5k", lambda folder: source)
        budget = Budget(1, corel5k.FULL_MINUTES)
        budget.stop()
        results = corel5k.run(data, ExperimentRun(tmp_path, budget))
    assert (results.data["training pictures"], results.data["test pictures"]) == (44, 20)
    assert not any("no test list" in note for note in results.notes)
