"""Caches in memory, results that are computed once, and folders of servers, also of those that were killed."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pictopic import PictureModel
from pictopic.server.cache import ComputedOnce, LRUCache, Scratch, Thumbnails, scratch_root
from tests.server.conftest import check_problem, files, picture, served
from tests.support.serving import get, serving

# What is made once takes long: one process makes it for all.


def test_the_longest_unused_goes_first():
    cache, made = LRUCache(2, 100, len), []
    for key in ("a", "b", "a", "c", "a", "b"):
        cache.get(key, lambda key=key: made.append(key) or b"x")
    assert made == ["a", "b", "c", "b"]
    assert len(cache) == 2


def test_together_they_have_at_most_so_many_bytes():
    cache = LRUCache(100, 25, len)
    for key in range(10):
        assert cache.get(key, lambda: b"x" * 10) == b"x" * 10
    assert len(cache) == 2
    assert cache.get("large", lambda: b"x" * 30) == b"x" * 30
    assert len(cache) == 0


def test_what_cannot_be_made_is_not_kept():
    cache, errors = LRUCache(2, 100, len), []

    def fail():
        raise ValueError("no")

    for make in (fail, fail, lambda: b"x"):
        try:
            cache.get("a", make)
        except ValueError as error:
            errors.append(error)
    assert len(errors) == 2
    assert cache.get("a", fail) == b"x"


def test_whoever_makes_something_does_not_let_others_wait():
    cache, go_on, done = LRUCache(4, 100, len), threading.Event(), threading.Event()
    slow = threading.Thread(target=lambda: cache.get("slow", lambda: (done.wait(10) and go_on.set()) or b"x"))
    slow.start()
    assert cache.get("quick", lambda: b"y") == b"y"
    done.set()
    slow.join()
    assert go_on.is_set()


# ---- computed once ---------------------------------------------------------------------------------------------------


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
        queue = client.app.state.server.long_queue
        until = time.monotonic() + 10
        while queue.waiting < 2 and time.monotonic() < until:
            time.sleep(0.01)
        check_problem(client.get("/api/v1/map"), 429, "busy")
        allowed.set()
        assert [own.result().status_code for own in waiting] == [200, 200]


# ---- folders ---------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def cache_folder(tmp_path, monkeypatch):
    """The user's cache folder."""
    monkeypatch.setenv("PICTOPIC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def runs():
    return sorted(folder.name for folder in scratch_root().glob("run-*"))


def test_the_folder_is_in_the_cache_and_of_nobody_else(cache_folder):
    own = Scratch()
    assert own.folder.is_relative_to(cache_folder)
    assert own.folder.stat().st_mode & 0o077 == 0
    own.close()
    own.close()
    assert runs() == []


def test_a_folder_that_is_in_use_stays_and_others_go():
    first = Scratch()
    (scratch_root() / "run-killed").mkdir()
    (scratch_root() / "run-killed" / "thumbnail.jpg").write_bytes(b"x")
    (scratch_root() / "other").mkdir()
    second = Scratch()
    assert runs() == sorted([first.folder.name, second.folder.name])
    assert (scratch_root() / "other").is_dir()
    first.close()
    second.close()


def test_a_forgotten_folder_goes():
    Scratch()
    assert runs() == []


def test_without_a_cache_folder_there_is_another_one(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PICTOPIC_CACHE", str(tmp_path / "file" / "cache"))
    own = Scratch()
    assert own.folder.is_dir()
    own.close()
    assert not own.folder.exists()


def test_a_server_leaves_nothing(folder, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    with served(folder) as client:
        listed = client.get("/api/v1/pictures?limit=1").json()["pictures"][0]
        assert client.get(f"/api/v1/thumbnails/{listed['id']}").status_code == 200
        assert len(runs()) == 1
    assert runs() == []
    assert os.listdir(temporary) == []


def test_half_written_thumbnails_go_when_they_are_old(tmp_path):
    old, new, whole = (tmp_path / name for name in (".a.1.2", ".b.1.2", "c.jpg"))
    for path in (old, new, whole):
        path.write_bytes(b"x")
    os.utime(old, (time.time() - 7200,) * 2)
    os.utime(whole, (time.time() - 7200,) * 2)
    Thumbnails(tmp_path, max_bytes=1000)
    assert not old.exists()
    assert new.exists()
    assert whole.exists()


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_a_killed_server_left_is_removed_by_the_next(folder, cache_folder, workers):
    environment = {"PICTOPIC_CACHE": str(cache_folder)}
    with serving(folder, "--workers", workers, **environment) as (process, address):
        get(f"{address}/healthz")
        left = runs()
        assert left
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(20)
    assert runs() == left
    with serving(folder, **environment) as (_, address):
        get(f"{address}/healthz")
        assert len(runs()) == 1
        assert runs()[0] not in left
    assert runs() == []
