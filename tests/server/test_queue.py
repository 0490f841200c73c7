"""Functions that wait for threads, calls that several requests share, and the memory that is given back."""

import asyncio
import io
import re
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from PIL import Image

from pictopic import PictureModel
from pictopic.server.problems import ProblemError
from pictopic.server.queue import WorkQueue
from tests.server.conftest import check_problem, files, picture, served
from tests.support.serving import post, serving

# What is made once takes long: one process makes it for all.

MEGABYTE = 1 << 20


class Doubling:
    """Twice each number; remembers what it was called with, and lets the first call wait."""

    def __init__(self, bad=()):
        self.calls, self.bad = [], bad
        self.is_called, self.may_go_on = threading.Event(), threading.Event()

    def __call__(self, numbers):
        self.calls.append(numbers)
        if len(self.calls) == 1:
            self.is_called.set()
            assert self.may_go_on.wait(30)
        if set(self.bad) & set(numbers):
            raise ValueError("a bad number")
        return [2 * number for number in numbers]


def share(double, *requests, n_threads=1, **options):
    """Answers to requests (key, numbers) that wait while the first one is worked on, or the errors."""
    queue = WorkQueue(n_threads, **({"max_waiting": 100, "timeout": 30, "name": "test"} | options))

    async def run():
        waiting = [asyncio.create_task(queue.share(*requests[0][:1], double, requests[0][1]))]
        await asyncio.to_thread(double.is_called.wait, 30)
        waiting += [asyncio.create_task(queue.share(key, double, numbers)) for key, numbers in requests[1:]]
        await asyncio.sleep(0)  # each enters the queue in its first step; a free thread may have answered by then
        double.may_go_on.set()
        return await asyncio.gather(*waiting, return_exceptions=True)

    try:
        return asyncio.run(run())
    finally:
        queue.close()


def test_requests_that_wait_share_a_call_and_each_gets_its_own():
    double = Doubling()
    assert share(double, ("a", [1]), ("a", [2]), ("a", [3, 4]), ("a", [5])) == [[2], [4], [6, 8], [10]]
    assert double.calls == [[1], [2, 3, 4, 5]]


def test_requests_with_another_key_do_not_share():
    double = Doubling()
    assert share(double, ("a", [1]), ("a", [2]), ("b", [3]), ("a", [4])) == [[2], [4], [6], [8]]
    assert double.calls == [[1], [2, 4], [3]]


def test_a_call_takes_at_most_eight_things_but_one_request_goes_whole():
    double = Doubling()
    share(double, ("a", [0]), *(("a", [k]) for k in range(1, 12)), ("a", list(range(20, 32))))
    assert double.calls == [[0], list(range(1, 9)), [9, 10, 11], list(range(20, 32))]


def test_a_thread_leaves_the_others_their_part():
    double = Doubling()
    share(double, ("a", [0]), *(("a", [k]) for k in range(1, 5)), n_threads=2)
    assert max(len(call) for call in double.calls) <= 2


def test_who_fails_fails_alone():
    found = share(Doubling(bad=[3]), ("a", [1]), ("a", [2]), ("a", [3]), ("a", [4]))
    assert [found[0], found[1], found[3]] == [[2], [4], [8]]
    assert str(found[2]) == "a bad number"


def test_too_many_that_wait_are_refused():
    found = share(Doubling(), ("a", [1]), ("a", [2]), ("a", [3]), max_waiting=2)
    assert found[:2] == [[2], [4]]
    assert isinstance(found[2], ProblemError)
    assert found[2].status_code == 429


def test_who_waited_too_long_is_not_worked_on_any_more():
    double, queue = Doubling(), WorkQueue(1, max_waiting=10, timeout=0.2, name="test")

    async def run():
        first = asyncio.create_task(queue.share("a", double, [1]))
        await asyncio.to_thread(double.is_called.wait, 30)
        found = await asyncio.gather(first, queue.share("a", double, [2]), return_exceptions=True)
        n_left = queue.waiting
        double.may_go_on.set()
        while queue.waiting:
            await asyncio.sleep(0.001)
        return found, n_left, await queue.share("a", double, [3])

    found, n_left, last = asyncio.run(run())
    queue.close()
    assert [error.status_code for error in found] == [504, 504]
    assert n_left == 1  # the one that runs cannot be stopped
    assert last == [6]
    assert double.calls == [[1], [3]]


def test_closing_tells_those_that_wait():
    double, queue = Doubling(), WorkQueue(1, max_waiting=10, timeout=30, name="test")

    async def run():
        first = asyncio.create_task(queue.share("a", double, [1]))
        await asyncio.to_thread(double.is_called.wait, 30)
        second = asyncio.create_task(queue.share("a", double, [2]))
        await asyncio.sleep(0.01)
        queue.close()
        with pytest.raises(asyncio.CancelledError):
            await second
        double.may_go_on.set()
        return await first

    assert asyncio.run(run()) == [2]


def test_nothing_is_kept_of_keys_that_nobody_waits_for():
    queue = WorkQueue(2, max_waiting=10, timeout=30, name="test")

    async def run():
        for key in range(20):
            assert await queue.share(key, list, [key]) == [key]

    asyncio.run(run())
    queue.close()
    assert queue._shares == {}


# ---- requests that wait ----------------------------------------------------------------------------------------------


@pytest.fixture
def blocked(monkeypatch):
    """Let the model answer only when it is allowed to."""
    allowed, answer = threading.Event(), PictureModel.annotate

    def wait(*arguments, **options):
        allowed.wait(10)
        return answer(*arguments, **options)

    monkeypatch.setattr(PictureModel, "annotate", wait)
    yield allowed
    allowed.set()


def test_when_too_many_wait_others_are_told_to_come_back(folder, blocked):
    with served(folder, threads=1, max_waiting=2) as client, ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(client.post, "/api/v1/annotate", files=files(picture())) for _ in range(2)]
        queue = client.app.state.server.queue
        for _ in range(200):
            if queue.waiting == 2:
                break
            time.sleep(0.01)
        response = client.post("/api/v1/annotate", files=files(picture()))
        check_problem(response, 429, "busy")
        assert int(response.headers["retry-after"]) >= 1
        assert client.get("/healthz").status_code == 200
        blocked.set()
        assert [own.result().status_code for own in waiting] == [200, 200]
        assert client.post("/api/v1/annotate", files=files(picture())).status_code == 200
        assert queue.waiting == 0


def test_an_answer_that_takes_too_long_is_a_timeout(folder, blocked):
    with served(folder, timeout=0.2) as client:
        check_problem(client.post("/api/v1/annotate", files=files(picture())), 504, "timeout")
        blocked.set()


# ---- memory ----------------------------------------------------------------------------------------------------------


def memory(process, kind):
    """Bytes of another process: now ("VmRSS"), or at its highest ("VmHWM")."""
    text = Path(f"/proc/{process.pid}/status").read_text()
    return int(re.search(rf"{kind}:\s+(\d+) kB", text)[1]) * 1024


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system does not tell it in this way")
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "LA", "I;16"])
def test_the_memory_of_a_large_picture_is_given_back(folder, mode):
    buffer = io.BytesIO()
    Image.new(mode, (7000, 7000)).save(buffer, "PNG")
    with serving(folder) as (process, address):
        for route in ("annotate", "look"):  # once, so that all code is loaded
            post(f"{address}/api/v1/{route}", picture())
        before = memory(process, "VmRSS")
        for route in ("annotate", "look", "annotate"):
            post(f"{address}/api/v1/{route}", buffer.getvalue())
        # Decoded, with four bytes a pixel, and once more without transparency.
        assert memory(process, "VmHWM") < before + 550 * MEGABYTE
        assert memory(process, "VmRSS") < before + 120 * MEGABYTE
