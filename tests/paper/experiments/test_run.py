import json
import time

import numpy as np
import pytest

from pictopic.paper.experiments.run import Budget, ExperimentRun, Task


def square(number, **context):
    """Something that takes no time, in this or another process."""
    return {"value": number * number}


def allocate(megabytes, **context):
    return {"sum": float(np.ones(megabytes << 17).sum())}


def refuse(**options):
    raise AssertionError("this was known already")


def tasks(work=square, numbers=(1, 2, 3)):
    return [Task(f"square of {n}", work, {"number": n}, {"place": f"/somewhere/{time.time()}"}) for n in numbers]


def unlimited(folder, **options):
    return ExperimentRun(folder, Budget(None, 1), **options)


def test_without_a_budget_nothing_is_scaled_down():
    budget = Budget(None, 100)
    assert budget.steps("passes", 200) == 200
    assert budget.grid("topics", [1, 2, 3]) == [1, 2, 3]
    assert (budget.notes, budget.over) == ([], False)


def test_more_time_than_needed_scales_nothing_up():
    assert Budget(1000, 100).steps("passes", 200) == 200


def test_scaling_leaves_at_least_one_and_keeps_the_last_value():
    budget = Budget(0.01, 100)
    assert budget.steps("splits", 5) == 1
    assert budget.steps("passes", 200, least=7) == 7
    assert budget.grid("topics", [25, 50, 100, 200]) == [200]
    assert budget.notes == [
        "splits: 1 instead of 5", "passes: 7 instead of 200", "topics: 200 instead of 25, 50, 100, 200",
    ]  # fmt: skip


def test_a_grid_that_is_scaled_down_spans_the_same_range():
    assert Budget(25, 100).grid("topics", [1, 2, 3, 4, 5, 6]) == [1, 3, 6]  # half of it


@pytest.mark.parametrize("minutes", [0, -1])
def test_a_budget_of_nothing_is_refused(minutes):
    with pytest.raises(ValueError, match="above 0 minutes"):
        Budget(minutes, 100)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_parts_come_in_the_order_of_their_tasks(tmp_path, n_jobs):
    cells = unlimited(tmp_path, n_jobs=n_jobs).cells(tasks())
    assert [cell.values["value"] for cell in cells] == [1, 4, 9]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_is_done_is_not_done_again(tmp_path, n_jobs):
    unlimited(tmp_path).cells(tasks())
    cells = unlimited(tmp_path, n_jobs=n_jobs).cells(tasks(work=refuse))
    assert [cell.values["value"] for cell in cells] == [1, 4, 9]


def test_other_options_make_another_part(tmp_path):
    run = unlimited(tmp_path)
    assert run.cell("a", lambda: {"value": 1}, topics=5).values == {"value": 1}
    assert run.cell("a", lambda: {"value": 2}, topics=6).values == {"value": 2}


def test_a_damaged_part_is_worked_out_again(tmp_path):
    unlimited(tmp_path).cell("a", lambda: {"value": 1})
    (path,) = (tmp_path / "cells").iterdir()
    path.write_text(path.read_text()[:20])
    assert unlimited(tmp_path).cell("a", lambda: {"value": 2}).values == {"value": 2}


def test_a_part_that_fails_is_not_written_down(tmp_path):
    with pytest.raises(ZeroDivisionError):
        unlimited(tmp_path).cell("a", lambda: {"value": 1 / 0})
    assert not list(tmp_path.rglob("*.json"))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_when_time_is_up_the_rest_is_left_out_and_named_once(tmp_path, n_jobs):
    unlimited(tmp_path).cells(tasks(numbers=(1,)))
    budget = Budget(10, 100)
    budget.stop()
    run = ExperimentRun(tmp_path, budget, n_jobs=n_jobs)
    for _ in range(2):
        assert [cell and cell.values["value"] for cell in run.cells(tasks())] == [1, None, None]
    assert run.notes[-1] == "No time was left for: square of 2; square of 3."


def test_splits_that_are_left_out_are_named_together(tmp_path):
    run = unlimited(tmp_path)
    run.budget.stop()
    for key in ("sLDA, split 1", "LDA", "sLDA, split 2"):
        run.cell(key, lambda: {})
    assert run.notes == ["No time was left for: sLDA (split 1, 2); LDA."]


def test_a_run_that_is_stopped_without_a_budget_says_so(tmp_path):
    run = unlimited(tmp_path)
    run.budget.stop()
    assert run.cell("a", lambda: {"value": 1}) is None
    assert run.notes == ["No time was left for: a."]


def test_time_and_memory_are_written_down(tmp_path):
    small, large = unlimited(tmp_path).cells(
        [Task("small", allocate, {"megabytes": 1}, {}), Task("large", allocate, {"megabytes": 400}, {})]
    )
    assert large.peak_memory_mb > small.peak_memory_mb + 300
    assert large.seconds > 0


def test_the_peak_of_one_part_is_not_the_next_ones(tmp_path):
    large, small = unlimited(tmp_path).cells(
        [Task("large", allocate, {"megabytes": 400}, {}), Task("small", allocate, {"megabytes": 1}, {})]
    )
    assert small.peak_memory_mb < large.peak_memory_mb - 300


def test_where_files_are_is_not_written_down(tmp_path):
    unlimited(tmp_path).cells(tasks(numbers=(1,)))
    (path,) = (tmp_path / "cells").iterdir()
    content = json.loads(path.read_text())
    assert content["options"] == {"number": 1}
    assert "somewhere" not in path.read_text()
    assert content["versions"]["numpy"] == np.__version__
