"""Functions that wait for threads, and calls that several requests share."""

import asyncio
import threading

import pytest

from pictopic.server.problems import ProblemError
from pictopic.server.queue import WorkQueue


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
    gate = WorkQueue(n_threads, **({"max_waiting": 100, "timeout": 30, "name": "test"} | options))

    async def run():
        waiting = [asyncio.create_task(gate.share(*requests[0][:1], double, requests[0][1]))]
        await asyncio.to_thread(double.is_called.wait, 30)
        waiting += [asyncio.create_task(gate.share(key, double, numbers)) for key, numbers in requests[1:]]
        await asyncio.sleep(0)  # each enters the gate in its first step; a free thread may have answered by then
        double.may_go_on.set()
        return await asyncio.gather(*waiting, return_exceptions=True)

    try:
        return asyncio.run(run())
    finally:
        gate.close()


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
    double, gate = Doubling(), WorkQueue(1, max_waiting=10, timeout=0.2, name="test")

    async def run():
        first = asyncio.create_task(gate.share("a", double, [1]))
        await asyncio.to_thread(double.is_called.wait, 30)
        found = await asyncio.gather(first, gate.share("a", double, [2]), return_exceptions=True)
        n_left = gate.waiting
        double.may_go_on.set()
        while gate.waiting:
            await asyncio.sleep(0.001)
        return found, n_left, await gate.share("a", double, [3])

    found, n_left, last = asyncio.run(run())
    gate.close()
    assert [error.status_code for error in found] == [504, 504]
    assert n_left == 1  # the one that runs cannot be stopped
    assert last == [6]
    assert double.calls == [[1], [3]]


def test_closing_tells_those_that_wait():
    double, gate = Doubling(), WorkQueue(1, max_waiting=10, timeout=30, name="test")

    async def run():
        first = asyncio.create_task(gate.share("a", double, [1]))
        await asyncio.to_thread(double.is_called.wait, 30)
        second = asyncio.create_task(gate.share("a", double, [2]))
        await asyncio.sleep(0.01)
        gate.close()
        with pytest.raises(asyncio.CancelledError):
            await second
        double.may_go_on.set()
        return await first

    assert asyncio.run(run()) == [2]


def test_nothing_is_kept_of_keys_that_nobody_waits_for():
    gate = WorkQueue(2, max_waiting=10, timeout=30, name="test")

    async def run():
        for key in range(20):
            assert await gate.share(key, list, [key]) == [key]

    asyncio.run(run())
    gate.close()
    assert gate._shares == {}
