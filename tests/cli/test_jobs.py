"""Long commands that are stopped: exit code, what is said and left, and that they go on."""

import hashlib
import json
import os
import signal
import sys
import time

import numpy as np
import pytest

import pictopic
from pictopic.cli.jobs import work_folder
from pictopic.cli.output import MisuseError
from tests.support.commands import run
from tests.support.patterns import write_patterns
from tests.support.processes import ended, start
from tests.support.texts import make_texts

pytestmark = pytest.mark.slow  # processes that learn, are stopped and learn again

CODES = {signal.SIGINT: 130, signal.SIGTERM: 143}


@pytest.fixture
def stop(tmp_path):
    """Send a signal to a command when something is said on standard error, or there is a file."""
    (tmp_path / "tmp").mkdir()

    def stop(number, when, *arguments):
        command = [sys.executable, "-m", "pictopic", *arguments]
        process = start(command, start_new_session=True, env=os.environ | {"TMPDIR": str(tmp_path / "tmp")})
        if isinstance(when, str):
            while when not in (line := process.stderr.readline()):
                assert line, "it has ended"
        else:
            while process.poll() is None and not when():
                time.sleep(0.01)
        os.kill(process.pid, number)
        _, errors = process.communicate(timeout=60)
        assert process.returncode == CODES[number], errors
        assert ended(process.pid)
        assert [path for path in (tmp_path / "tmp").rglob("*") if path.is_file()] == []
        last = errors.splitlines()[-1]
        assert last.startswith("stopped; go on with: ")
        assert last.endswith(f"pictopic {' '.join(arguments)}")

    return stop


def files(folder):
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_update_that_is_stopped_leaves_the_model_as_it_was(stop, model, tmp_path, number):
    model.save(tmp_path / "m")
    before = files(tmp_path / "m")
    more = write_patterns(tmp_path / "more", range(400, 404))
    stop(number, "final training", "update", str(tmp_path / "m"), str(more), "--passes", "100000")
    assert files(tmp_path / "m") == before
    assert run("update", str(tmp_path / "m"), str(more), "--passes", "1").stdout.startswith("4 pictures more")


def test_tune_goes_on_with_the_trial_that_was_stopped(stop, tmp_path):
    photos = write_patterns(tmp_path / "photos", range(100))
    arguments = ["tune", str(photos), "--out", str(tmp_path / "tuned"), "--minutes", "0.01", "--jobs", "1"]
    stop(signal.SIGTERM, "trial training", *arguments)
    assert (tmp_path / "tuned" / "trials.jsonl").read_text() == ""
    (checkpoint,) = (tmp_path / "tuned" / "checkpoints").glob("0-0/trial/checkpoint-*")
    assert checkpoint.stat().st_size
    result = run(*arguments)
    assert result.returncode == 0, result.stderr
    assert len((tmp_path / "tuned" / "trials.jsonl").read_text().splitlines()) == 1
    assert sorted(path.name for path in (tmp_path / "tuned").iterdir()) == ["best.json", "corpus", "trials.jsonl"]


def test_tune_goes_on_with_a_corpus_that_is_elsewhere(stop, tmp_path):
    corpus = make_texts(tmp_path / "a", n=600)
    arguments = ["tune", str(corpus.folder), "--out", str(tmp_path / "tuned"), "--minutes", "0.01", "--jobs", "1"]
    stop(signal.SIGTERM, "trial training", *arguments)
    assert list((tmp_path / "tuned" / "checkpoints").glob("0-0/trial/checkpoint-*"))
    result = run(*arguments)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("number", CODES)
def test_pretrain_goes_on_to_the_same_model(stop, tmp_path, number):
    corpus = make_texts(tmp_path / "a", n=600)
    arguments = [
        "pretrain", str(corpus.folder), "--layers", "24,12", "--epochs", "30", "--jobs", "1", "--batch", "32",
        "--checkpoint-minutes", "0", "--out",
    ]  # fmt: skip
    folder = tmp_path / "stopped.checkpoints"
    stop(number, lambda: list(folder.glob("checkpoint-*")), *arguments, str(tmp_path / "stopped"))
    assert not (tmp_path / "stopped").exists()
    for name in ("stopped", "whole"):
        assert run(*arguments, str(tmp_path / name)).returncode == 0
    stopped, whole = (pictopic.load(tmp_path / name) for name in ("stopped", "whole"))
    for name, array in whole.parameters_.items():
        np.testing.assert_array_equal(stopped.parameters_[name], array)


@pytest.mark.parametrize("when", ["counting words", "learning: SupDeepDocNADE, final"])
def test_the_demonstration_goes_on(stop, tmp_path, when):
    arguments = ["demo", "--out", str(tmp_path / "demo"), "--pictures", "80"]
    stop(signal.SIGTERM, when, *arguments)
    assert [path.name for path in (tmp_path / "demo" / "building").iterdir()] == ["80-0"]
    result = run(*arguments)
    assert result.returncode == 0, result.stderr
    assert not (tmp_path / "demo" / "building").exists()
    assert (tmp_path / "demo" / "report.html").is_file()
    other = run("demo", "--out", str(tmp_path / "other"), "--pictures", "80")
    table = [line for line in other.stdout.splitlines() if line.startswith("Sup")]
    assert [line for line in result.stdout.splitlines() if line.startswith("Sup")] == table


@pytest.mark.parametrize("command", ["pretrain", "tune", "demo"])
def test_a_foreign_folder_is_misuse_and_left_alone(tmp_path, command):
    write_patterns(tmp_path / "photos", range(2))
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "letter.txt").write_text("precious")
    more = {"pretrain": [str(tmp_path), "--epochs", "1"], "tune": [str(tmp_path / "photos")], "demo": []}[command]
    result = run(command, *more, "--out", str(tmp_path / "foreign"))
    assert result.returncode == 2
    assert "foreign holds something that is not a" in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert [path.name for path in (tmp_path / "foreign").iterdir()] == ["letter.txt"]


# ---- the work folder -------------------------------------------------------------------------------------------------


def fail(folder):
    (folder / "half.txt").write_text("half")
    raise ZeroDivisionError


def test_a_work_folder_stays_after_an_error_and_is_gone_after_success(tmp_path):
    job = {"command": "fit", "source": "photos"}
    with pytest.raises(ZeroDivisionError), work_folder(tmp_path / "m", job) as folder:
        fail(folder)
    assert json.loads((tmp_path / "m.building" / "job.json").read_text()) == job
    with work_folder(tmp_path / "m", job) as folder:
        assert (folder / "half.txt").read_text() == "half"
    assert not folder.exists()


def test_a_job_that_differs_is_told_by_what(tmp_path):
    with pytest.raises(ZeroDivisionError), work_folder(tmp_path / "m", {"command": "fit", "seed": 1}) as folder:
        fail(folder)
    with (
        pytest.raises(MisuseError, match=r"unfinished fit with seed 1 instead of 2: .* --restart"),
        work_folder(tmp_path / "m", {"command": "fit", "seed": 2}),
    ):
        pass
    with work_folder(tmp_path / "m", {"command": "fit", "seed": 2}, restart=True) as folder:
        assert [path.name for path in folder.iterdir()] == ["job.json"]


def test_an_unfinished_update_is_not_taken_for_a_fit(tmp_path):
    (tmp_path / "m.building").mkdir()
    (tmp_path / "m.building" / "job.json").write_text('{"command": "update"}')
    with (
        pytest.raises(MisuseError, match="holds an unfinished update: give that command again"),
        work_folder(tmp_path / "m", {"command": "fit"}),
    ):
        pass
