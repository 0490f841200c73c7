"""The experiment on scenes, on a few made-up pictures."""

import csv
import functools
import json

import numpy as np
import pytest
from PIL import Image

from pictopic import Corpus
from pictopic.demo.scenes import write_scenes
from pictopic.paper.experiments import scenes
from pictopic.paper.experiments.run import Budget, ExperimentRun
from pictopic.paper.experiments.split import CorpusSplit

# What is made once takes long: one process makes it for all.

TAGS_ONLY = ["logistic and neighbours", "logistic and neighbours, GIST and MPEG-7 too"]
METHODS = [
    "most frequent", "SPM", "RBF SVM", "SVM, GIST and MPEG-7 too", *TAGS_ONLY, "MMLDA", "LDA + SVM", "sLDA", "DocNADE",
    "SupDocNADE", "SupDeepDocNADE, 1 layer", "SupDeepDocNADE, 2 layers", "PictureModel",
]  # fmt: skip


SMALL = {
    "N_WORDS": 10, "N_SPLITS": 2, "TOPICS": (3, 6), "PASSES": 2, "WEIGHTS": (0.0, "mean length"), "_LDA_TOPICS": 6,
    "ONE_LAYER": {"topics": 8, "passes": 3, "patience": 2}, "PER_CLASS": {"labelme": 10, "uiuc-sports": None},
    "find_spec": lambda name: None,
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _small():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in SMALL.items():
            patch.setattr(scenes, name, value)
        patch.setattr(scenes.methods, "_CS", (10,))
        patch.setattr(scenes.methods, "_GAMMAS", (1,))
        yield


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    return write_scenes(tmp_path_factory.mktemp("scenes"), n=96)


def started(folder, minutes=None, **options):
    return ExperimentRun(folder, Budget(minutes, scenes.FULL_MINUTES), **options)


@pytest.fixture(scope="module")
def finished(pictures, tmp_path_factory):
    """A folder in which the experiment is done, and its results."""
    folder = tmp_path_factory.mktemp("run")
    return folder, scenes.run(pictures, started(folder))


def test_half_of_each_class_is_learnt_from():
    labels = ["a"] * 9 + ["b"] * 6
    train, test = scenes.random_split(labels, None, seed=3)
    assert sorted([*train, *test]) == list(range(15))
    assert sum(labels[i] == "a" for i in train) == 4
    assert sum(labels[i] == "b" for i in train) == 3


def test_so_many_pictures_of_each_class_are_drawn():
    train, test = scenes.random_split(["a"] * 9 + ["b"] * 6, 4, seed=3)
    assert len(train) == len(test) == 4
    assert not set(train) & set(test)


def test_splits_differ_by_their_seed():
    labels = ["a"] * 50
    assert scenes.random_split(labels, None, 0)[0].tolist() == scenes.random_split(labels, None, 0)[0].tolist()
    assert scenes.random_split(labels, None, 0)[0].tolist() != scenes.random_split(labels, None, 1)[0].tolist()


def test_all_methods_are_measured_beside_the_papers_figures(finished):
    _, results = finished
    (table,) = results.tables
    rows = {row.name: row for row in table.rows}
    assert list(rows) == METHODS
    for name in set(METHODS) - {"MMLDA", *TAGS_ONLY}:
        assert len(rows[name].values["accuracy"]) == 2, name
        assert all(0 <= value <= 1 for value in rows[name].values["accuracy"])
    assert rows["SupDocNADE"].paper == {"accuracy": 83.43, "f_measure": 43.87}
    with_tags = {name for name, row in rows.items() if "f_measure" in row.values}
    assert with_tags == {
        *TAGS_ONLY,
        "most frequent", "SPM", "sLDA", "DocNADE", "SupDocNADE", "SupDeepDocNADE, 1 layer",
        "SupDeepDocNADE, 2 layers", "PictureModel",
    }  # fmt: skip


def test_the_words_weight_is_chosen_by_cross_validation_and_the_svm_with_it(finished):
    folder, results = finished
    for k in (1, 2):
        scores = {}
        for path in (folder / "cells").glob(f"cross-validation-weight-*-split-{k}-*.json"):
            cell = json.loads(path.read_text())
            values = cell["values"]
            score = (values["accuracy"] + values.get("f_measure", 0)) / 2
            scores[cell["options"]["generative_weight"]] = (score, values["svm"])
        assert set(scores) == {0.0, "mean length"}
        best = max(scores, key=lambda weight: scores[weight][0])
        taken = results.options[f"SupDocNADE, 6 topics, split {k}"]
        assert (taken["generative_weight"], taken["svm"]) == (best, scores[best][1])


def test_the_results_say_where_the_papers_order_holds(finished):
    accuracy, f_measure = finished[1].notes[-2:]
    rows = {row.name: row for row in finished[1].tables[0].rows}
    differences = 100 * (np.array(rows["SupDocNADE"].values["accuracy"]) - rows["SPM"].values["accuracy"])
    mean, error = differences.mean(), differences.std(ddof=1) / np.sqrt(2)
    assert f"SPM +2.55 in the paper, {mean:+.2f} ± {error:.2f} here" in accuracy
    assert "MMLDA" not in accuracy  # not measured
    assert "sLDA +5.17 in the paper" in f_measure


def test_the_most_frequent_class_is_as_often_right_as_it_occurs(finished):
    rows = {row.name: row for row in finished[1].tables[0].rows}
    assert rows["most frequent"].values["accuracy"] == [0.125, 0.125]


def test_curves_have_all_variants_and_numbers_of_topics(finished):
    topics, variants = finished[1].curves
    assert [series.name for series in topics.series] == ["SupDocNADE", "DocNADE", "sLDA"]
    assert [series.name for series in variants.series] == [
        "λ chosen, 2 x 2 regions", "λ = 0", "λ = 1", "λ chosen, 1 x 1 region",
    ]  # fmt: skip
    for series in topics.series + variants.series:
        assert series.x == [3.0, 6.0]
        assert [len(values) for values in series.values] == [2, 2]


def test_the_table_and_the_curve_share_what_they_have_in_common(finished):
    folder, _ = finished
    done = [path.name.rpartition("-")[0] for path in (folder / "cells").iterdir()]
    assert len(done) == len(set(done))
    assert "slda-3-topics-split-1" in done
    assert "slda-6-topics-split-1" not in done  # it is the table's
    assert "slda-split-1" in done


def test_all_kinds_of_features_have_the_same_words(finished):
    words, features = (
        Corpus.open(next((finished[0] / "corpora").glob(f"split-1-{kind}-*"))) for kind in ("words", "features")
    )
    np.testing.assert_array_equal(words.codebook.centres, features.codebook.centres)
    assert (words.X != features.X).nnz == 0


def test_figures_are_drawn(finished):
    folder, results = finished
    files = [figure.file for figure in results.figures]
    assert files == ["topics.svg", "topics.png", "variants.svg", "variants.png", "predictions.png", "associations.png"]
    for file in files[4:]:
        assert min(Image.open(folder / file).size) > 200


def test_a_second_run_learns_nothing_again(finished, pictures):
    folder, results = finished
    log = []
    again = scenes.run(pictures, started(folder, log=log.append))
    assert log == []
    assert again.tables == results.tables
    assert again.curves == results.curves


def test_with_little_time_parts_are_left_out_and_the_results_say_so(pictures, tmp_path):
    results = scenes.run(pictures, started(tmp_path, minutes=0.0001))
    assert "Scaled down to 0.0001 minutes" in results.notes[0]
    assert "splits: 1 instead of 2" in results.notes[0]
    assert "SupDocNADE, 6 topics (split 1)" in results.notes[1]
    assert not results.figures or all(figure.file.startswith(("topics", "variants")) for figure in results.figures)


def test_splits_that_come_with_the_data_are_taken(tmp_path, pictures):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "images").symlink_to(pictures / "images")
    with (pictures / "metadata.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    with (folder / "metadata.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    lines = [f"{row['file_name']},{'test' if i < 16 else 'train'}" for i, row in enumerate(rows)]
    (folder / "splits.csv").write_text("\n".join(["file_name,split1", *lines]) + "\n")
    run = started(tmp_path / "run", minutes=0.0001)
    results = scenes.run(folder, run)
    assert (results.data["training pictures a split"], results.data["test pictures a split"]) == (80, 16)


@pytest.fixture
def split(finished, pictures):
    folder, _ = finished
    (corpus,) = (folder / "corpora").glob("split-1-words-*")
    with (pictures / "metadata.csv").open(newline="") as file:
        names = [row["file_name"] for row in csv.DictReader(file)]
    return functools.partial(CorpusSplit, str(corpus), str(pictures), names[:40])


def test_test_pictures_come_without_tags(split):
    own = split()
    assert own.n_tags > 0
    assert own.X[:, -own.n_tags :].sum() > 0
    assert own.X_test[:, -own.n_tags :].sum() == 0
    assert own.Y_test.sum() > 0
    assert own.X_test[:, : -own.n_tags].sum() > 0


def test_one_region_adds_up_the_regions(split):
    grid, whole = split(), split(regions="1x1")
    np.testing.assert_array_equal(whole.X[:, :10].toarray(), grid.X[:, :40].toarray().reshape(-1, 4, 10).sum(axis=1))
    np.testing.assert_array_equal(whole.X[:, 10:].toarray(), grid.X[:, 40:].toarray())


def test_sports_are_scaled_to_400_pixels_and_all_of_them_are_split(pictures, tmp_path):
    run = started(tmp_path, minutes=1)
    run.budget.stop()
    results = scenes.run(pictures, run, dataset="uiuc-sports")
    assert results.experiment == "uiuc-sports"
    assert results.data["training pictures a split"] + results.data["test pictures a split"] == 96
    assert {row.name: row.paper for row in results.tables[0].rows}["SPM"] == {"accuracy": 72.33, "f_measure": 41.78}
    (corpus,) = (tmp_path / "corpora").iterdir()
    assert Corpus.open(corpus).options.max_side == 400
