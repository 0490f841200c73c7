"""A model that is replaced while it answers."""

import shutil
import threading
import time

import pytest

from pictopic import PictureModel
from pictopic.server.live import Live
from pictopic.server.settings import Settings
from tests.server.conftest import QUICK, files, picture, served

# What is made once takes long: one process makes it for all.
pytestmark = pytest.mark.xdist_group("server")


@pytest.fixture(scope="module")
def other(learnt):
    """A model of some of the pictures."""
    return PictureModel(**QUICK).fit(learnt.corpus_[:80])


@pytest.fixture
def place(folder, tmp_path):
    """A model that may be replaced; where its pictures are is said relative to it."""
    learnt = PictureModel.load(folder, n_jobs=1, verbose=0)
    learnt.save(tmp_path / "model")
    return tmp_path / "model"


def _wait_for(condition, seconds=20.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_a_newer_model_takes_over_and_no_request_fails(place, learnt, other):
    with served(place, check_every=0.05) as client:
        stop, statuses = threading.Event(), []

        def ask():
            while not stop.is_set():
                statuses.append(client.post("/api/v1/annotate", files=files(picture(3))).status_code)
                statuses.append(client.get("/api/v1/topics").status_code)
                statuses.append(client.get("/api/v1/search?tags=sky").status_code)

        threads = [threading.Thread(target=ask) for _ in range(2)]
        for thread in threads:
            thread.start()
        try:
            for model in (other, learnt, other):
                model.save(place)
                _wait_for(lambda: client.get("/api/v1/pictures").json()["total"] == len(model.corpus_))  # noqa: B023
            _wait_for(lambda: len(statuses) > 20)
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert set(statuses) == {200}


def test_who_has_the_old_model_can_still_ask_it_everything(place, other):
    live = Live(place, Settings())
    old = live.current
    other.save(place)
    assert live.check()
    assert len(live.current.names) == 80
    assert len(old.topics()["units"]) > 1
    assert len(old.model.search(old.paths[0], k=96)) == 95
    assert old.model.similar_tags("sky", 3)
    assert len(old.worked_out.get("map")) == 96
    assert len(old.worked_out.get("odd")) == 96
    assert old.worked_out.get("quality").n_held_out > 0
    assert len(old.worked_out.get("suggestions").missing.of(0)) > 1


def test_a_broken_model_is_not_taken(place, caplog):
    live = Live(place, Settings())
    old = live.current
    text = (place / "picture_model.json").read_text()
    shutil.rmtree(place / "network")
    (place / "picture_model.json").write_text(text + " ")
    assert not live.check()
    assert live.current is old
    assert "cannot be loaded" in caplog.text
    caplog.clear()
    assert not live.check()
    assert not caplog.text  # said once


def test_while_there_is_no_model_the_old_one_answers(place):
    with served(place, check_every=0.02) as client:
        place.rename(place.with_name("elsewhere"))
        time.sleep(0.1)
        assert client.post("/api/v1/annotate", files=files(picture())).status_code == 200
        place.with_name("elsewhere").rename(place)


def test_threads_get_the_same_answers_as_one_after_the_other(client, learnt):
    from concurrent.futures import ThreadPoolExecutor

    contents = [picture(seed) for seed in range(12)]

    def ask(content):
        return client.post("/api/v1/classify", files=files(content)).json()["pictures"][0]["classes"]

    expected = [ask(content) for content in contents]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(3):
            assert list(pool.map(ask, contents)) == expected
