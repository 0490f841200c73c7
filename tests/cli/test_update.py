"""`pictopic update` as a process that is stopped, killed, or not alone."""

import os
import signal
import sys
import time

import pytest

from pictopic import PictureModel
from pictopic.processes import lock_beside
from tests.support.commands import run
from tests.support.patterns import QUICK, write_patterns
from tests.support.processes import start as start_process

pytestmark = pytest.mark.slow  # processes that learn, are stopped and learn again


@pytest.fixture
def folder(tmp_path):
    """A model of a hundred pictures."""
    PictureModel(**QUICK, model="shallow").fit(write_patterns(tmp_path / "photos", range(100))).save(tmp_path / "m")
    return tmp_path / "m"


def beside(folder):
    """What is there of the model's name, and hidden."""
    names = (path.name for path in folder.parent.iterdir())
    return sorted(name for name in names if name.startswith((f"{folder.name}.", ".")) or name == folder.name)


def test_an_unknown_class_leaves_the_model_and_the_next_update_works(folder, tmp_path):
    odd = write_patterns(tmp_path / "odd", range(400, 403), label="zigzag")
    result = run("update", str(folder), str(odd), "--passes", "1")
    assert result.returncode == 1
    assert "does not know the class 'zigzag'" in result.stderr
    assert beside(folder) == [".m.lock", "m"]
    more = write_patterns(tmp_path / "more", range(500, 503))
    assert run("update", str(folder), str(more), "--passes", "1").stdout.startswith("3 pictures more")
    assert beside(folder) == [".m.lock", "m"]


def test_what_does_not_exist_leaves_nothing_behind(folder, tmp_path):
    assert run("update", str(tmp_path / "no-model"), str(tmp_path / "photos")).returncode == 2
    assert run("update", str(folder), str(tmp_path / "no-pictures")).returncode == 2
    assert run("update", str(folder)).returncode == 2
    assert not list(tmp_path.glob("*.building"))


def test_an_update_beside_another_one_ends_and_names_it(folder, tmp_path):
    more = write_patterns(tmp_path / "more", range(400, 402))
    with lock_beside(folder):
        result = run("update", str(folder), str(more), "--passes", "1")
    assert result.returncode == 1
    assert f"is being changed by process {os.getpid()} on " in result.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_update_that_was_stopped_goes_on(folder, tmp_path, number):
    more = write_patterns(tmp_path / "more", range(400, 410))
    # So many passes that it is never done before it is stopped.
    command = [sys.executable, "-m", "pictopic", "update", str(folder), str(more), "--passes", "100000"]
    process = start_process(command, start_new_session=True)
    checkpoints = tmp_path / "m.building" / "corpus" / "corpus.json"
    until = time.monotonic() + 120
    while not checkpoints.exists() and time.monotonic() < until:
        time.sleep(0.05)
    time.sleep(1)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert len(PictureModel.load(folder, n_jobs=1, verbose=0).corpus_) == 100
    if number != signal.SIGKILL:
        assert process.returncode == {signal.SIGINT: 130, signal.SIGTERM: 143}[number]
        assert "go on with: " in errors
    result = run("update", str(folder), str(more), "--passes", "2")
    assert result.stdout.startswith("10 pictures more"), result.stderr
    assert beside(folder) == [".m.lock", "m"]
