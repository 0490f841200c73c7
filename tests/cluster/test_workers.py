import os
import signal
import subprocess
import sys
import time

import pytest

from pictopic import Corpus
from pictopic.cluster.workers import RayWorkers
from pictopic.corpus import chunks
from tests.corpus.conftest import WORDS, write_metadata, write_pictures
from tests.support.dying import call_and_die
from tests.support.folders import contents

pytestmark = pytest.mark.slow
OPTIONS = WORDS | {"features": ("cld",), "step": 4}


class DyingWorkers(RayWorkers):
    """Workers of which one is killed after it has done its work, before it has answered."""

    def __init__(self, ray, folder):
        super().__init__(ray)
        self.folder = folder

    def __call__(self, function, calls):
        marker = str(self.folder / function.__name__)
        return super().__call__(call_and_die, ((marker, function, *call) for call in calls))


@pytest.fixture
def photos(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK_SIZE", 4)
    write_metadata(tmp_path / "photos", [*write_pictures(tmp_path / "photos", 30)])
    (tmp_path / "photos" / "7.jpg").write_bytes(b"not a picture")
    return tmp_path / "photos"


def process(_):
    return os.getpid()


def fail(number):
    raise ValueError(f"no {number}")


def slowly(number):
    time.sleep(0.2 if number % 3 == 0 else 0)
    return number


def test_answers_come_in_the_order_of_the_calls(cluster):
    assert list(RayWorkers(cluster)(slowly, [(k,) for k in range(20)])) == list(range(20))


def test_the_work_is_done_by_several_other_processes(cluster):
    found = set(RayWorkers(cluster)(process, [(k,) for k in range(20)]))
    assert os.getpid() not in found


def test_an_error_is_that_of_the_call(cluster):
    with pytest.raises(ValueError, match=r"^no 0$"):
        list(RayWorkers(cluster)(fail, [(0,)]))


def test_calls_are_taken_as_there_is_room(cluster):
    taken = []
    answers = RayWorkers(cluster)(slowly, ((taken.append(k) or k,) for k in range(100)))
    next(answers)
    assert len(taken) <= 5
    answers.close()


def test_a_build_has_the_same_bytes(cluster, photos, tmp_path):
    Corpus.build(photos, tmp_path / "here", **OPTIONS)
    Corpus.build(photos, tmp_path / "there", **OPTIONS, workers=RayWorkers(cluster))
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


def test_a_worker_that_is_killed_in_each_stage_changes_nothing(cluster, photos, tmp_path):
    Corpus.build(photos, tmp_path / "here", **OPTIONS)
    Corpus.build(photos, tmp_path / "there", **OPTIONS, workers=DyingWorkers(cluster, tmp_path))
    assert {path.name for path in tmp_path.iterdir()} >= {"draw_descriptors", "learn_codebook", "count_words"}
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


def test_a_call_that_kills_every_worker_is_given_up(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr("pictopic.cluster.workers._RETRIES", 1)
    with pytest.raises(RuntimeError, match="workers of the cluster died 2 times"):
        list(RayWorkers(cluster)(os._exit, [(1,)]))


def test_a_driver_that_was_killed_goes_on_to_the_same_bytes(tmp_path):
    folder = tmp_path / "photos"
    write_metadata(folder, write_pictures(folder, 150))
    command = [sys.executable, "-m", "pictopic", "build", str(folder), "--words", "6", "--features", "gist", "--out"]
    subprocess.run([*command, str(tmp_path / "whole"), "--jobs", "1"], check=True, capture_output=True)
    arguments = [*command, str(tmp_path / "killed"), "--cluster", "auto"]
    driver = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while driver.poll() is None and not list((tmp_path / "killed").glob("building/piece-*")):
        time.sleep(0.02)
    assert driver.poll() is None, "it was done before it could be killed"
    driver.send_signal(signal.SIGKILL)
    driver.wait()
    assert not (tmp_path / "killed" / "corpus.json").exists()
    again = subprocess.run([*arguments, "--resume"], capture_output=True, text=True)
    assert again.returncode == 0, again.stderr
    assert contents(tmp_path / "killed") == contents(tmp_path / "whole")
