import json
from pathlib import Path

import numpy as np
import pytest

from pictopic.paper.experiments.results import (
    Curve,
    Figure,
    Line,
    Measure,
    Results,
    Row,
    Table,
    mean_and_std,
    paired_difference,
    slug,
)


def made():
    table = Table("t", "a table", [Measure("accuracy", "accuracy", percent=True)], [
        Row("a", {"accuracy": [0.5, 0.7]}, {"accuracy": 81.0}, 1.5, 200.0, "a note", True), Row("b", {}),
    ])  # fmt: skip
    curve = Curve("c", "a curve", "x", "y", [Line("line", [1.0, 2.0], [[0.1, 0.2], [0.3]], [0.4, 0.5])], log_x=True)
    return Results("labelme", "Scenes", {"pictures": 8}, {"a, split 1": {"topics": 5}}, ["a note"], [table], [curve],
                   [Figure("c.svg", "a curve")], {"numpy": "2"}, 3.0)  # fmt: skip


def test_what_is_saved_is_what_is_loaded(tmp_path):
    made().save(tmp_path)
    assert Results.load(tmp_path) == Results.load(tmp_path / "results.json") == made()


def test_arrays_become_lists_and_paths_lose_their_folders(tmp_path):
    results = made()
    results.options = {"weights": np.array([1.0, 2.0]), "n": np.int64(3), "file": Path("home/me/a.csv")}
    content = json.loads(results.save(tmp_path).read_text())
    assert content["options"] == {"weights": [1.0, 2.0], "n": 3, "file": "a.csv"}


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"results\.json is missing: `pictopic reproduce` writes it"):
        Results.load(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 1}', '{"version": 99, "experiment": "a"}'])
def test_a_file_that_is_something_else_is_refused(tmp_path, text):
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(ValueError, match=r"results\.json is no results file"):
        Results.load(tmp_path)


def test_the_deviation_is_that_of_a_sample():
    assert mean_and_std([1.0, 3.0]) == (2.0, pytest.approx(2**0.5))
    assert mean_and_std([1.0]) == (1.0, 0.0)


@pytest.mark.parametrize(("a", "b"), [([0.5], [0.4]), ([0.5, 0.6], [0.4]), ([], [])])
def test_without_pairs_there_is_no_paired_difference(a, b):
    assert paired_difference(a, b) is None


def test_name_without_latin_letters_still_names_a_file():
    assert slug("日本語") == "unnamed"
