import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pictopic import PictureModel
from pictopic.server.cache import ComputedOnce
from tests.server.conftest import check_problem, files, picture, served

# What is made once takes long: one process makes it for all.
pytestmark = pytest.mark.xdist_group("server")


def test_ten_at_once_get_one_answer():
    made = []

    def work():
        time.sleep(0.05)
        made.append(object())
        return made[-1]

    found = ComputedOnce({"it": work})
    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda _: found.get("it"), range(10)))
    assert len(made) == 1
    assert all(own is made[0] for own in answers)


def test_what_failed_is_tried_again():
    tries = []

    def work():
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("not yet")
        return 3

    found = ComputedOnce({"it": work})
    with pytest.raises(ValueError, match="not yet"):
        found.get("it")
    assert not found.has("it")
    assert found.get("it") == 3


@pytest.fixture
def blocked(monkeypatch):
    """Let the map be made only when it is allowed, and count how often it is."""
    allowed, make, calls = threading.Event(), PictureModel.map, []

    def wait(self):
        calls.append(1)
        allowed.wait(20)
        return make(self)

    monkeypatch.setattr(PictureModel, "map", wait)
    yield allowed, calls
    allowed.set()


def test_long_work_is_done_once_is_no_timeout_and_holds_nobody_up(folder, blocked):
    allowed, calls = blocked
    with served(folder, threads=1, timeout=0.5) as client, ThreadPoolExecutor(10) as pool:
        client.post("/api/v1/annotate", files=files(picture()))  # the first takes longer than others
        waiting = [pool.submit(client.get, "/api/v1/map") for _ in range(10)]
        until = time.monotonic() + 1.0  # longer than the time for other answers
        while time.monotonic() < until:
            assert client.post("/api/v1/annotate", files=files(picture())).status_code == 200
        allowed.set()
        answers = [own.result() for own in waiting]
        assert {own.status_code for own in answers} == {200}
        assert len({own.text for own in answers}) == 1
        assert client.get("/api/v1/map").text == answers[0].text
    assert calls == [1]


def test_too_many_that_wait_for_long_work_are_told_to_come_back(folder, blocked):
    allowed, _ = blocked
    with served(folder, max_waiting=2) as client, ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(client.get, "/api/v1/map") for _ in range(2)]
        gate = client.app.state.parts.long_gate
        until = time.monotonic() + 10
        while gate.waiting < 2 and time.monotonic() < until:
            time.sleep(0.01)
        check_problem(client.get("/api/v1/map"), 429, "busy")
        allowed.set()
        assert [own.result().status_code for own in waiting] == [200, 200]
