"""Who tries tokens."""

import asyncio

import pytest

from pictopic.server import throttle
from pictopic.server.problems import ProblemError
from pictopic.server.throttle import Throttle, client_of


@pytest.fixture
def waited(monkeypatch):
    """The seconds of each delay, none of which is waited for."""
    seconds = []

    async def sleep(delay):
        seconds.append(delay)

    monkeypatch.setattr(throttle.asyncio, "sleep", sleep)
    return seconds


def status(own, client, credential, is_right=False):
    """0 if it is let through."""
    try:
        asyncio.run(own.check(client, credential, is_right))
    except ProblemError as error:
        return error.status_code
    return 0


def test_each_wrong_one_takes_longer_up_to_a_bound(waited):
    own = Throttle()
    assert [status(own, "a", b"%d" % k) for k in range(8)] == [401] * 8
    assert waited == [0.5, 1, 2, 4, 8, 8, 8, 8]


def test_the_same_wrong_one_counts_once(waited):
    own = Throttle()
    assert [status(own, "a", b"stale cookie") for _ in range(50)] == [401] * 50
    assert waited == [0.5]


def test_other_clients_and_right_ones_are_not_slowed_down(waited):
    own = Throttle()
    for k in range(8):
        status(own, "a", b"%d" % k)
    waited.clear()
    assert status(own, "b", b"right", is_right=True) == 0
    assert status(own, "a", b"right", is_right=True) == 0
    assert waited == []
    assert status(own, "b", b"wrong") == 401
    assert waited == [0.5]


def test_many_at_once_are_refused_unseen(monkeypatch):
    """Otherwise the one that is answered at once would be the right one."""
    monkeypatch.setattr(throttle, "_LONGEST_DELAY", 0.1)

    async def run():
        own = Throttle()
        wrong = [asyncio.create_task(own.check("a", b"%d" % k, False)) for k in range(20)]
        await asyncio.sleep(0)
        with pytest.raises(ProblemError) as refused:
            await own.check("a", b"right", True)
        await own.check("b", b"right", True)
        found = await asyncio.gather(*wrong, return_exceptions=True)
        await own.check("a", b"right", True)
        return refused.value, [error.status_code for error in found]

    refused, statuses = asyncio.run(run())
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) >= 1
    assert statuses == [401] * 8 + [429] * 12


def test_wrong_ones_are_forgotten(waited, monkeypatch):
    own = Throttle()
    for k in range(8):
        status(own, "a", b"%d" % k)
    waited.clear()
    monkeypatch.setattr(throttle, "_FORGOTTEN", -1.0)
    status(own, "a", b"0")
    assert waited == [0.5]


def test_the_memory_is_bounded(waited, monkeypatch):
    monkeypatch.setattr(throttle, "_CLIENTS", 100)
    own = Throttle()

    async def run():
        for k in range(1000):
            with pytest.raises(ProblemError):
                await own.check(str(k), b"wrong", False)

    asyncio.run(run())
    assert len(own._tries) == 100


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("::1", "::"),
        ("testclient", "testclient"),
    ],
)
def test_who_a_client_is(host, client):
    assert client_of({"client": (host, 1)}) == client
    assert client_of({"client": None}) == ""
