"""`pictopic fit`, stopped at any moment and resumed: the model must be that of an undisturbed run."""

import json
import os
import shutil
import signal
import socket
import sys
import time

import numpy as np
import pytest

import pictopic
from pictopic import Corpus
from pictopic.cli.fit import _unfinished_source
from pictopic.processes import lock_beside
from tests.support.commands import run
from tests.support.patterns import write_patterns
from tests.support.processes import ended, start

pytestmark = pytest.mark.slow  # processes that learn, are stopped and learn again

# When to send a signal: as soon as there is such a file in OUT.building.
STAGES = {
    "counting": "corpus/building/plan.json",
    "trial": "checkpoints/trial/checkpoint-*",
    "final": "checkpoints/final/checkpoint-*",
}
NETWORK = {"n_components": 16, "max_iter": 25, "n_iter_no_change": 25}


@pytest.fixture(scope="module")
def arguments(tmp_path_factory):
    """Of a fit that takes seconds; --out is missing."""
    folder = tmp_path_factory.mktemp("fit")
    write_patterns(folder / "photos", range(100))
    (folder / "best.json").write_text(json.dumps(NETWORK))
    return [
        "fit", str(folder / "photos"), "--words", "12", "--features", "cld", "--jobs", "2", "--tuned",
        str(folder / "best.json"), "--out",
    ]  # fmt: skip


@pytest.fixture(scope="module")
def undisturbed(arguments, tmp_path_factory):
    out = tmp_path_factory.mktemp("undisturbed") / "m"
    result = run(*arguments, str(out))
    assert result.returncode == 0, result.stderr
    return out


@pytest.fixture
def begin(arguments, tmp_path):
    """Start a fit, with a temporary folder and a session of its own, and wait for a stage."""
    processes = []
    (tmp_path / "tmp").mkdir()

    def begin(stage, *more):
        command = [sys.executable, "-m", "pictopic", *arguments, str(tmp_path / "m"), *more]
        environment = os.environ | {"TMPDIR": str(tmp_path / "tmp")}
        process = start(command, start_new_session=True, env=environment)
        processes.append(process)
        while process.poll() is None and not list((tmp_path / "m.building").glob(STAGES[stage])):
            time.sleep(0.01)
        return process

    yield begin
    for process in processes:
        if not ended(process.pid, 0):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def assert_same_model(one, two):
    networks = [pictopic.load(folder / "network") for folder in (one, two)]
    for name, array in networks[0]._get_arrays().items():
        np.testing.assert_array_equal(array, networks[1]._get_arrays()[name], err_msg=name)
    configs = [json.loads((folder / "picture_model.json").read_text()) for folder in (one, two)]
    assert configs[0]["figures"] == configs[1]["figures"]
    assert configs[0]["thresholds"] == configs[1]["thresholds"]


@pytest.mark.parametrize(
    ("stage", "number"),
    [
        ("counting", signal.SIGINT),
        ("trial", signal.SIGKILL),
        ("final", signal.SIGTERM),
        ("counting", signal.SIGKILL),
        ("counting", signal.SIGTERM),
        ("trial", signal.SIGINT),
        ("trial", signal.SIGTERM),
        ("final", signal.SIGINT),
        ("final", signal.SIGKILL),
    ],
)
def test_a_fit_that_was_stopped_goes_on_to_the_same_model(arguments, undisturbed, begin, tmp_path, stage, number):
    process = begin(stage, "--checkpoint-minutes", "0")
    os.kill(process.pid, number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -9}[number], errors
    assert ended(process.pid)
    assert list((tmp_path / "tmp").glob("pictopic-*")) == []
    assert not (tmp_path / "m").exists()
    if number != signal.SIGKILL:
        command = f"pictopic {' '.join(arguments)} {tmp_path / 'm'} --checkpoint-minutes 0"
        line = next(line for line in errors.splitlines() if line.startswith("stopped; go on with: "))
        assert line.endswith(command)
        assert any(line.endswith(f"{command} --finish") for line in errors.splitlines()) == (stage != "counting")
    again = run(*arguments, str(tmp_path / "m"))
    assert again.returncode == 0, again.stderr
    assert_same_model(tmp_path / "m", undisturbed)
    assert not (tmp_path / "m.building").exists()


def test_a_fit_that_is_killed_again_and_again_comes_to_the_same_model(arguments, undisturbed, begin, tmp_path):
    rng = np.random.RandomState(0)
    for stage in ("counting", "counting", "trial", "trial", "trial", "final", "final"):
        process = begin(stage, "--checkpoint-minutes", "0")
        time.sleep(rng.uniform(0, 1))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        assert ended(process.pid)
    assert run(*arguments, str(tmp_path / "m")).returncode == 0
    assert_same_model(tmp_path / "m", undisturbed)


@pytest.mark.parametrize("stage", ["trial", "final"])
def test_finish_saves_the_best_model_so_far(arguments, begin, tmp_path, stage):
    process = begin(stage, "--checkpoint-minutes", "0")
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(60) == 143
    finished = run(*arguments, str(tmp_path / "m"), "--finish", "--json")
    assert finished.returncode == 0, finished.stderr
    assert "classes" in json.loads(finished.stdout)["figures"]
    assert pictopic.load(tmp_path / "m" / "network").n_iter_ <= NETWORK["max_iter"]
    assert not (tmp_path / "m.building").exists()


def test_finish_without_a_checkpoint_is_misuse(arguments, tmp_path):
    result = run(*arguments, str(tmp_path / "m"), "--finish")
    assert result.returncode == 2
    assert result.stderr == f"pictopic: there is nothing to finish: {tmp_path / 'm.building'} has no checkpoint yet\n"
    assert list(tmp_path.iterdir()) == []


def test_another_fit_does_not_take_over_unless_it_starts_over(arguments, begin, tmp_path):
    process = begin("counting")
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert ended(process.pid)
    other = [*arguments, str(tmp_path / "m"), "--seed", "5"]
    refused = run(*other)
    assert refused.returncode == 2
    assert "holds an unfinished fit with random_state 0 instead of 5" in refused.stderr
    assert "--restart" in refused.stderr
    assert len(refused.stderr.splitlines()) == 1
    assert run(*other, "--restart").returncode == 0
    assert json.loads((tmp_path / "m" / "picture_model.json").read_text())["options"]["random_state"] == 5


def test_a_folder_of_that_name_that_is_not_ours_is_left_alone(arguments, tmp_path):
    (tmp_path / "m.building").mkdir()
    (tmp_path / "m.building" / "letter.txt").write_text("precious")
    for more in ([], ["--restart"]):
        result = run(*arguments, str(tmp_path / "m"), *more)
        assert result.returncode == 2
        assert "m.building is in the way" in result.stderr
    assert (tmp_path / "m.building" / "letter.txt").read_text() == "precious"


@pytest.mark.parametrize("place", ["file", "file/m", "foreign", "/proc/nowhere/m"])
def test_out_is_tried_before_anything_is_learnt(arguments, tmp_path, place):
    (tmp_path / "file").write_text("in the way")
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "letter.txt").write_text("precious")
    result = run(*arguments, str(tmp_path / place))
    assert result.returncode == 2, result.stderr
    assert len(result.stderr.splitlines()) == 1  # not even a stage was begun
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "foreign", "letter.txt"]


def test_a_hidden_file_that_would_be_lost_is_found_before_anything_is_learnt(arguments, tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / ".precious").write_text("precious")
    result = run(*arguments, str(tmp_path / "m"))
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "m holds something that is not a picture model" in result.stderr
    assert (tmp_path / "m" / ".precious").read_text() == "precious"


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() == 0, reason="root may write everywhere")
def test_a_parent_that_cannot_be_written_is_misuse(arguments, tmp_path):
    tmp_path.chmod(0o500)
    try:
        assert run(*arguments, str(tmp_path / "m")).returncode == 2
    finally:
        tmp_path.chmod(0o700)


def test_wrong_options_leave_nothing_behind(arguments, tmp_path):
    result = run(*arguments, str(tmp_path / "m"), "--label-column", "colour")
    assert result.returncode in (1, 2)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == []


def test_two_at_once_the_second_waits_and_names_the_first(arguments, tmp_path):
    with lock_beside(tmp_path / "m"):
        result = run(*arguments, str(tmp_path / "m"))
    assert result.returncode == 1
    assert f"process {os.getpid()} on {socket.gethostname()}" in result.stderr


def test_a_fit_over_a_linked_model_works_beside_the_model(arguments, undisturbed, tmp_path):
    (tmp_path / "disk").mkdir()
    shutil.copytree(undisturbed, tmp_path / "disk" / "real")
    (tmp_path / "m").symlink_to(tmp_path / "disk" / "real")
    process = start([sys.executable, "-m", "pictopic", *arguments, str(tmp_path / "m"), "--seed", "1"])
    while process.poll() is None and not (tmp_path / "disk" / "real.building").exists():
        time.sleep(0.01)
    assert process.poll() is None
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert (tmp_path / "m").exists()
    assert not (tmp_path / "disk" / "real.building").exists()


def test_progress_without_a_terminal_is_lines_with_the_figures(arguments, tmp_path):
    errors = run(*arguments, str(tmp_path / "m"), "--json").stderr.splitlines()
    assert "trial training" in errors
    assert any(line.startswith("trial training: 100%, epoch 25/25  loss ") and "held-out" in line for line in errors)
    assert any(line.startswith("final training: 100%, epoch ") for line in errors)


def test_pictures_that_were_added_since_a_fit_was_stopped_do_not_stop_it(tmp_path):
    photos, columns = write_patterns(tmp_path / "photos", range(4)), {"label_column": "label", "tags_column": "tags"}
    assert _unfinished_source(str(photos), tmp_path / "corpus", columns) == str(photos)
    Corpus.build(photos, tmp_path / "corpus", n_words=4, regions="1x1", n_jobs=1)
    assert len(_unfinished_source(str(photos), tmp_path / "corpus", columns)) == 4
    write_patterns(photos, range(5))
    with pytest.warns(UserWarning, match="has changed since the fit was begun"):
        begun = _unfinished_source(str(photos), tmp_path / "corpus", columns)
    assert isinstance(begun, Corpus)
    assert len(begun) == 4
