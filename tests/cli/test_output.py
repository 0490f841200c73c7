import json
import warnings
from types import SimpleNamespace

import pytest

from pictopic.cli import output
from pictopic.cli.output import Bars, MisuseError, answer, cluster_options, cluster_workers, misuse, training_report
from pictopic.words.pictures import PictureError


@pytest.mark.parametrize("error", [ValueError("no such column"), FileNotFoundError("no such file")])
def test_wrong_input_is_misuse(error):
    with pytest.raises(MisuseError, match=str(error)), misuse():
        raise error


def test_a_picture_that_cannot_be_read_is_a_failure():
    with pytest.raises(PictureError, match="truncated"), misuse():
        raise PictureError("truncated")


def test_without_an_address_there_is_no_cluster():
    with cluster_workers(None) as workers:
        assert workers is None
    assert cluster_options(None, None) is None


def test_a_cluster_has_two_workers_unless_told_otherwise():
    assert cluster_options("auto", None) == {"address": "auto", "workers": 2}
    assert cluster_options("host:6379", 5) == {"address": "host:6379", "workers": 5}
    with pytest.raises(ValueError, match="--workers is for a cluster"):
        cluster_options(None, 2)


def test_warnings_are_lines(capsys, monkeypatch):
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)
    with warnings.catch_warnings():
        output.print_warnings()
        warnings.warn("only 3 different patches", stacklevel=1)
    assert capsys.readouterr().err == "pictopic: only 3 different patches\n"


@pytest.fixture
def clock(monkeypatch):
    """The time, which stands still until it is set."""
    now = SimpleNamespace(time=100.0)
    monkeypatch.setattr(output.time, "monotonic", lambda: now.time)
    return now


def test_without_a_terminal_a_stage_is_a_line_and_another_every_ten_seconds(clock, capsys):
    bars = Bars("pictures")
    for seconds, done in [(0, 0), (5, 10), (11, 20), (12, 30), (22, 100)]:
        clock.time = 100.0 + seconds
        bars("counting words", done, 100)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["counting words (100 pictures)", "counting words: 20%, 44 s left", "counting words: 100%"]


def test_training_is_a_stage_with_its_epoch_loss_and_score(clock, capsys):
    report = training_report(Bars("pictures"))
    status = SimpleNamespace(epoch=0, max_iter=4, loss=float("nan"), score=None, best_score=None, done=0, total=4)
    report("trial", status)
    status.epoch, status.loss, status.score, status.best_score, status.done = 4, 1.25, 0.5, 0.75, 4
    report("trial", status)
    assert capsys.readouterr().err.splitlines() == [
        "trial training",
        "trial training: 100%, epoch 4/4  loss 1.25  held-out score 0.5000 (best 0.7500)",
    ]


def test_an_answer_is_text_or_one_json_object(capsys):
    answer({"class": "côte"}, ["côte", "sure"], as_json=False)
    assert capsys.readouterr().out == "côte\nsure\n"
    answer({"class": "côte"}, ["côte", "sure"], as_json=True)
    assert json.loads(capsys.readouterr().out) == {"class": "côte"}
