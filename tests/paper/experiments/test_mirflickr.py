"""The experiment on MIR Flickr, on made copies of its forms."""

import csv
import functools
import shutil

import numpy as np
import pytest
from PIL import Image
from scipy import sparse
from sklearn.metrics import average_precision_score

from pictopic import DeepDocNADE, DocNADE, Rows, SupDeepDocNADE
from pictopic.paper.baselines import LDAClassifier, TfidfClassifier
from pictopic.paper.datasets.mirflickr25k import POTENTIAL, RELEVANT
from pictopic.paper.experiments import mirflickr, mirflickr_data, mirflickr_methods, mirflickr_pictures
from pictopic.paper.experiments.results import Results
from pictopic.paper.experiments.run import Budget, ExperimentRun
from tests.support.pictures import made_photo

# What is made once takes long: one process makes it for all.

CLASSES = ("city", "night", "sea")


def make_small(patch):
    """Models and numbers of passes that take no time."""
    for name in ("SMALL", "LARGE"):
        patch.setattr(mirflickr_methods, name, 6)
    for name in ("_HIDDEN_C", "_COUNTS_C", "_ROOTS_C", "_TOPICS_C"):
        patch.setattr(mirflickr_methods, name, (1.0,))
    patch.setattr(mirflickr_methods, "TfidfClassifier", functools.partial(TfidfClassifier, C=1.0))
    patch.setattr(mirflickr_methods, "LDAClassifier", _quick_lda)
    patch.setattr(mirflickr, "PASSES", 3)
    patch.setattr(mirflickr, "PRETRAINING", 4)
    for module in (mirflickr, mirflickr_data):
        patch.setattr(module, "N_SPLITS", 2)


def _quick_lda(**options):
    return LDAClassifier(**options | {"n_components": 4, "max_iter": 2, "C": 1.0})


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    make_small(monkeypatch)


def made_rows(n, seed=0):
    """Labels, some of them two, and tags that go with them."""
    rng = np.random.RandomState(seed)
    rows = []
    for _ in range(n):
        labels = sorted(set(rng.choice(CLASSES, size=rng.randint(1, 3))))
        tags = [f"{name}{rng.randint(3)}" for name in labels for _ in range(2)] + [f"any{rng.randint(5)}"]
        rows.append((sorted(set(tags)), labels))
    return rows


def write_tags(folder):
    (folder / "mirflickr_tags").mkdir(parents=True)
    with (folder / "mirflickr_tags" / "metadata.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file_name", "tags", "labels"])
        for k, (tags, labels) in enumerate(made_rows(240)):
            writer.writerow([f"mirflickr/im{k}.jpg", ";".join(tags), ";".join(labels)])


def started(folder, minutes=None, log=None):
    return ExperimentRun(folder / "run", Budget(minutes, mirflickr.FULL_MINUTES), log=log)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run on tags alone: its folder, with data in ``data`` and the run in ``run``, and what it found."""
    folder = tmp_path_factory.mktemp("whole")
    write_tags(folder / "data")
    with pytest.MonkeyPatch.context() as patch:
        make_small(patch)
        return folder, mirflickr.run(folder / "data", started(folder))


@pytest.fixture
def again(whole, tmp_path):
    """A copy of that run, to go on with, and what it had found."""
    shutil.copytree(whole[0], tmp_path / "copy")
    return tmp_path / "copy", whole[1]


def names_of(table):
    return [row.name for row in table.rows]


def test_tags_alone_give_both_tables_and_the_curve(whole):
    folder, results = whole
    main, few = results.tables
    assert names_of(main) == [
        "classes' frequencies", "TF-IDF + linear SVM", "Logistic regression", "DocNADE + logistic regression",
        "LDA + linear SVM", "SupDeepDocNADE, 1 layer, not pretrained, its own head",
        "SupDeepDocNADE, 1 layer, not pretrained, linear classifier",
    ]  # fmt: skip
    assert "SupDeepDocNADE, 3 layers, 4 passes of pretraining, its own head" in names_of(few)
    assert {len(row.values["map"]) for table in results.tables for row in table.rows} == {2}
    assert not any(row.paper for table in results.tables for row in table.rows)
    (curve,) = results.curves
    assert [series.x for series in curve.series] == [[0, 1, 2, 4]] * 3
    assert all(len(values) == 2 for series in curve.series for values in series.values)
    assert any("not comparable" in note for note in results.notes)
    assert {figure.file for figure in results.figures} >= {"failures.png", "retrieval.png"}
    assert all((folder / "run" / figure.file).is_file() for figure in results.figures)
    assert Results.load(results.save(folder)).tables == results.tables


def test_data_and_options_are_written_down(whole):
    _, results = whole
    assert results.data["rows"] == 240
    assert results.data["classes"] == list(CLASSES)
    assert (results.data["training rows"], results.data["validation rows"], results.data["test rows"]) == (128, 32, 80)
    own = results.options["SupDeepDocNADE, 3 layers, 4 passes of pretraining, 10% of the labels"]
    assert own["model"]["n_components"] == (6, 6, 6)
    assert (own["pretraining"]["max_iter"], own["pretraining"]["dropout"]) == (4, 0.1)


def test_a_second_run_learns_nothing(again, monkeypatch):
    def refuse(self, *arguments, **options):
        raise AssertionError("something was learnt again")

    for model in (TfidfClassifier, LDAClassifier, DocNADE, DeepDocNADE, SupDeepDocNADE, mirflickr_methods.Linear):
        monkeypatch.setattr(model, "fit", refuse)
    folder, before = again
    assert mirflickr.run(folder / "data", started(folder)) == before


def test_a_damaged_part_is_measured_again(again):
    folder, before = again
    (path,) = (folder / "run" / "cells").glob("docnade*all-labels-split-1-*.json")
    path.write_text(path.read_text()[:100])
    log = []
    results = mirflickr.run(folder / "data", started(folder, log=log.append))
    assert log == ["DocNADE + logistic regression, all labels, split 1"]
    assert [row.values for row in results.tables[0].rows] == [row.values for row in before.tables[0].rows]


def test_without_time_parts_are_left_out_and_named(tmp_path):
    write_tags(tmp_path / "data")
    run = started(tmp_path, minutes=0.01)
    run.budget.end = 0.0  # it is over at once
    results = mirflickr.run(tmp_path / "data", run)
    assert [table.rows for table in results.tables] == [[], []]
    assert results.curves == []
    left_out = next(note for note in results.notes if note.startswith("No time was left"))
    assert "TF-IDF + linear SVM, all labels (split 1" in left_out
    assert any("splits: 1 instead of 2" in note for note in results.notes)


def test_parts_without_time_are_left_out_of_the_means(again):
    folder, before = again
    for path in (folder / "run" / "cells").glob("tf-idf*all-labels-split-2-*.json"):
        path.unlink()
    run = started(folder)
    run.budget.end = 0.0
    results = mirflickr.run(folder / "data", run)
    values = {row.name: row.values["map"] for row in results.tables[0].rows}
    known = {row.name: row.values["map"] for row in before.tables[0].rows}
    assert values["TF-IDF + linear SVM"] == known["TF-IDF + linear SVM"][:1]
    assert values["LDA + linear SVM"] == known["LDA + linear SVM"]
    assert "No time was left for: TF-IDF + linear SVM, all labels (split 2)." in results.notes


def test_map_is_that_of_the_scores_that_were_kept(whole):
    folder, results = whole
    row = next(row for row in results.tables[0].rows if row.name == "TF-IDF + linear SVM")
    for seed, value in enumerate(row.values["map"]):
        test = np.random.RandomState(seed).permutation(240)[160:]
        Y = np.array([[name in own for name in CLASSES] for _, own in made_rows(240)])[test]
        scores = np.load(folder / "run" / "scores" / f"tf-idf-linear-svm-all-labels-split-{seed + 1}-map.npy")
        expected = np.mean([average_precision_score(Y[:, k], scores[:, k]) for k in range(3)])
        assert value == pytest.approx(expected, abs=1e-6)


def test_pretraining_in_steps_is_pretraining_in_one_go(tmp_path):
    rng = np.random.RandomState(0)
    documents = mirflickr_data.PretrainingRows(Rows(rng.poisson(0.5, (40, 12))), "rows", 0)
    options = {"n_components": (6, 5), "random_state": 0, "validation_fraction": None}
    steps = mirflickr_methods.Pretraining(tmp_path / "a", [1, 3, 4], "data")
    whole = mirflickr_methods.Pretraining(tmp_path / "b", [4], "data")
    one, other = (own.model(documents, 4, **options).parameters_ for own in (steps, whole))
    assert all(np.array_equal(one[name], other[name]) for name in one)
    assert steps.model(documents, 3, **options).n_iter_ == 3


def test_a_pretrained_model_that_was_lost_is_made_again(tmp_path):
    documents = mirflickr_data.PretrainingRows(Rows(np.eye(20, dtype=int)), "rows", 0)
    options = {"n_components": (4,), "random_state": 0, "validation_fraction": None}
    kept = mirflickr_methods.Pretraining(tmp_path, [1, 2, 9], "data")
    kept.model(documents, 2, **options)
    first = kept.model(documents, 1, **options).parameters_["W.0"]
    (config,) = tmp_path.glob("*/1-passes/config.json")
    config.unlink()
    for path in config.parent.iterdir():
        path.unlink()
    again = kept.model(documents, 1, **options)
    assert again.n_iter_ == 1
    assert np.array_equal(again.parameters_["W.0"], first)


def write_25k(folder, n, unlabelled=0):
    """MIR Flickr as it is distributed, with n small pictures."""
    (folder / "mirflickr" / "meta" / "tags").mkdir(parents=True)
    (folder / "mirflickr25k_annotations_v080").mkdir()
    rng = np.random.RandomState(0)
    members = {label: rng.uniform(size=n) < 0.4 for label in POTENTIAL + RELEVANT}
    for k in range(n):
        Image.fromarray(made_photo(40, 48, seed=k)).save(folder / "mirflickr" / f"im{k + 1}.jpg")
        tags = [label for label in POTENTIAL if members[label][k]][:5]
        (folder / "mirflickr" / "meta" / "tags" / f"tags{k + 1}.txt").write_text("\n".join(tags))
    for label, own in members.items():
        numbers = "".join(f"{k + 1}\n" for k in np.flatnonzero(own))
        (folder / "mirflickr25k_annotations_v080" / f"{label}.txt").write_text(numbers)
    for k in range(25_000, 25_000 + unlabelled):
        for kind in ("images", "tags"):
            (folder / "mirflickr1m" / kind / "2").mkdir(parents=True, exist_ok=True)
        Image.fromarray(made_photo(40, 48, seed=k)).save(folder / "mirflickr1m" / "images" / "2" / f"{k}.jpg")
        (folder / "mirflickr1m" / "tags" / "2" / f"{k}.txt").write_text("sky\nsea\n")


@pytest.fixture
def few_words(monkeypatch):
    monkeypatch.setattr(mirflickr_data, "WORDS", {"preset": "flickr", "n_words": 5, "step": 12, "bin_sizes": (4,)})
    monkeypatch.setattr(mirflickr, "LAYERS", (2,))
    monkeypatch.setattr(mirflickr, "WEIGHTS", (1.0, 12_000.0))
    monkeypatch.setattr(mirflickr, "PRETRAINING", 1)
    for name in ("_QUERIES", "_EXAMPLES", "_GENERATED"):
        monkeypatch.setattr(mirflickr_pictures, name, 1)
    for module in (mirflickr, mirflickr_data):
        monkeypatch.setattr(module, "N_SPLITS", 1)


@pytest.mark.filterwarnings("ignore:Label")  # of 40 pictures some class has all or none
@pytest.mark.parametrize("unlabelled", [0, 8])
def test_pictures_are_measured_beside_the_paper(tmp_path, few_words, unlabelled):
    write_25k(tmp_path / "data", 40, unlabelled)
    run = started(tmp_path)
    results = mirflickr.run(tmp_path / "data", run)
    rows = {row.name: row for row in results.tables[0].rows}
    assert results.data["labels"] == 38
    assert results.data["unlabelled rows"] == unlabelled
    assert rows["TF-IDF + linear SVM"].paper == {"map": 0.384}
    assert rows["MDRNN"].values == {}
    passes = "1 pass of pretraining" if unlabelled else "not pretrained"
    two = rows[f"SupDeepDocNADE, 2 layers, {passes}, linear classifier"]
    assert two.paper == ({"map": 0.671} if unlabelled else {})
    assert len(results.tables) == (1 if unlabelled else 2)
    assert not any(row.paper for table in results.tables[1:] for row in table.rows)
    by_passes, by_weight = results.curves
    assert by_passes.series[0].paper == ([None, None, 0.671, 0.682, 0.684] if unlabelled else None)
    assert by_weight.series[0].paper == [None, 0.671]
    assert {figure.file for figure in results.figures} >= {"failures.png", "retrieval.png", "generated-tags.png"}


def test_visual_words_are_learnt_from_no_test_picture(tmp_path, few_words, monkeypatch):
    write_25k(tmp_path / "data", 40)
    asked = {}
    monkeypatch.setattr(ExperimentRun, "corpus", lambda self, name, source, **options: asked.update(options) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        mirflickr_data.open_collection(mirflickr_data.find(tmp_path / "data"), started(tmp_path))
    tested = np.concatenate([mirflickr_data.random_parts(40, seed, True).test for seed in range(1)])
    assert len(asked["codebook_rows"])
    assert not set(asked["codebook_rows"]) & set(tested)


def test_the_authors_arrays_come_with_their_splits(tmp_path, few_words):
    rng = np.random.RandomState(0)
    n, n_unlabelled, n_tags = 30, 6, 7
    for part, rows in (("labelled", n), ("unlabelled", n_unlabelled)):
        home = tmp_path / "data" / "image" / part
        home.mkdir(parents=True)
        block = np.hstack([rng.normal(size=(rows, 3)), rng.poisson(0.01, (rows, 2000))])
        np.save(home / "combined-00001.npy", block.astype(np.float32))
        (tmp_path / "data" / "text").mkdir(exist_ok=True)
        X = sparse.csr_array(rng.randint(0, 2, (rows, n_tags)))
        path = tmp_path / "data" / "text" / f"text_all_2000_{part}.npz"
        np.savez(path, data=X.data, indices=X.indices, indptr=X.indptr, shape=np.array(X.shape))
    np.save(tmp_path / "data" / "labels.npy", (rng.uniform(size=(n, 4)) < 0.4).astype(np.int8))
    (tmp_path / "data" / "splits").mkdir()
    for k in (1, 2):
        parts = np.split(rng.permutation(n), [12, 18])
        for name, rows in zip(("train", "valid", "test"), parts, strict=True):
            np.save(tmp_path / "data" / "splits" / f"{name}_indices_{k}.npy", rows)
    collection = mirflickr_data.open_collection(mirflickr_data.find(tmp_path / "data"), started(tmp_path))
    second = collection.split(2)
    assert sorted(second.test_rows) == sorted(parts[2])
    assert (len(second.part), len(second.validation), collection.n_unlabelled) == (12, 6, n_unlabelled)
    labels = np.load(tmp_path / "data" / "labels.npy")
    assert np.array_equal(second.Y_test, labels[second.test_rows])
    assert second.train.read_features().shape == (18, 3)
    assert second.unlabelled.rows.shape == (n_unlabelled, 2000 + n_tags)


def test_a_longer_data_set_takes_longer(tmp_path):
    write_tags(tmp_path)
    assert mirflickr.full_minutes(tmp_path) == pytest.approx(mirflickr.FULL_MINUTES * 240 / 12_000)
