import pytest

from pictopic.paper.datasets import LAYOUTS
from pictopic.paper.experiments import reproduce as module
from pictopic.paper.experiments.reproduce import EXPERIMENTS, Experiment, reproduce
from pictopic.paper.experiments.results import Measure, Results, Row, Table


def interrupted_after(n):
    """An experiment of three parts that the user stops after the n-th."""
    stopped = []

    def run(data, run):
        values = []
        for k in range(3):
            if k == n and not stopped:
                stopped.append(k)
                raise KeyboardInterrupt
            cell = run.cell(f"part {k}", lambda k=k: {"value": float(k)})
            values += [cell.values["value"]] if cell else []
        table = Table("t", "", [Measure("value", "value")], [Row("a", {"value": values})])
        return Results("text", "Parts", notes=run.notes, tables=[table])

    return Experiment(run, lambda data: 1.0)


def test_every_layout_has_an_experiment():
    assert list(EXPERIMENTS) == list(LAYOUTS)


def test_an_unknown_experiment_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no experiment 'imagenet'; there are labelme"):
        reproduce("imagenet", tmp_path, tmp_path / "out")


def test_an_interrupted_run_writes_what_it_has(tmp_path, monkeypatch):
    monkeypatch.setitem(module.EXPERIMENTS, "text", interrupted_after(2))
    results = reproduce("text", tmp_path, tmp_path / "out")
    assert results.tables[0].rows[0].values["value"] == [0.0, 1.0]
    assert results.notes == ["No time was left for: part 2."]
    assert Results.load(tmp_path / "out") == results


def test_a_run_interrupted_before_anything_is_done_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.setitem(module.EXPERIMENTS, "text", interrupted_after(0))
    with pytest.raises(KeyboardInterrupt):
        reproduce("text", tmp_path, tmp_path / "out")
    assert not (tmp_path / "out" / "results.json").exists()


def test_the_next_run_goes_on_where_it_was_interrupted(tmp_path, monkeypatch):
    monkeypatch.setitem(module.EXPERIMENTS, "text", interrupted_after(2))
    reproduce("text", tmp_path, tmp_path / "out")
    log = []
    results = reproduce("text", tmp_path, tmp_path / "out", log=log.append)
    assert log == ["part 2"]
    assert results.tables[0].rows[0].values["value"] == [0.0, 1.0, 2.0]
