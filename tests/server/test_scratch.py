"""Folders of servers, also of those that were killed."""

import os
import signal
import time

import pytest

from pictopic.server.scratch import Scratch, scratch_root
from pictopic.server.thumbnails import Thumbnails
from tests.server.conftest import served
from tests.support.serving import get, serving

# What is made once takes long: one process makes it for all.
pytestmark = pytest.mark.xdist_group("server")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The user's cache folder."""
    monkeypatch.setenv("PICTOPIC_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def runs():
    return sorted(folder.name for folder in scratch_root().glob("run-*"))


def test_the_folder_is_in_the_cache_and_of_nobody_else(cache):
    own = Scratch()
    assert own.folder.is_relative_to(cache)
    assert own.folder.stat().st_mode & 0o077 == 0
    own.close()
    own.close()
    assert runs() == []


def test_a_folder_that_is_in_use_stays_and_others_go(cache):
    first = Scratch()
    (scratch_root() / "run-killed").mkdir()
    (scratch_root() / "run-killed" / "thumbnail.jpg").write_bytes(b"x")
    (scratch_root() / "other").mkdir()
    second = Scratch()
    assert runs() == sorted([first.folder.name, second.folder.name])
    assert (scratch_root() / "other").is_dir()
    first.close()
    second.close()


def test_a_forgotten_folder_goes(cache):
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
def test_what_a_killed_server_left_is_removed_by_the_next(folder, cache, workers):
    environment = {"PICTOPIC_CACHE": str(cache)}
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
