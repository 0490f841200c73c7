"""A model that is replaced while it answers."""

import shutil
import threading
import time

import pytest

from pictopic import PictureModel
from pictopic.server.served_model import ModelStore
from pictopic.server.settings import Settings
from tests.server.conftest import QUICK, check_problem, files, picture, served

# What is made once takes long: one process makes it for all.


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
    store = ModelStore(place, Settings())
    old = store.current
    other.save(place)
    assert store.check()
    assert len(store.current.names) == 80
    assert len(old.computed.get("topics")["units"]) > 1
    assert len(old.model.search(old.path_of(0), k=96)) == 95
    assert old.model.similar_tags("sky", 3)
    assert len(old.computed.get("map")) == 96
    assert len(old.computed.get("odd")) == 96
    assert old.computed.get("quality").n_held_out > 0
    assert len(old.computed.get("suggestions").missing.of(0)) > 1


def test_a_broken_model_is_not_taken(place, caplog):
    store = ModelStore(place, Settings())
    old = store.current
    text = (place / "picture_model.json").read_text()
    shutil.rmtree(place / "network")
    (place / "picture_model.json").write_text(text + " ")
    assert not store.check()
    assert store.current is old
    assert "cannot be loaded" in caplog.text
    caplog.clear()
    assert not store.check()
    assert not caplog.text  # said once


# ---- files that are damaged ------------------------------------------------------------------------------------------


@pytest.fixture
def damaged(monkeypatch):
    """Let the check of a model's files fail, for the folders in the list."""
    folders = []

    def check_files(self):
        for folder in folders:
            if self.corpus_.folder.is_relative_to(folder) and len(self.corpus_) == 96:
                raise ValueError(f"{folder}/index/vectors.npy was changed")

    monkeypatch.setattr(PictureModel, "check_files", check_files, raising=False)
    return folders


def test_a_damaged_model_does_not_answer_until_another_one_is_there(place, other, damaged, caplog):
    damaged.append(place)
    with served(place, check_every=0.05) as client:
        _wait_for(lambda: client.get("/healthz").status_code == 503)
        for address in ("/healthz", "/api/v1/tags", "/api/v1/collection", "/api/v1/pictures", "/api/v1/map"):
            found = check_problem(client.get(address), 503, "damaged-model")
            assert "index/vectors.npy was changed" in found["detail"]
            assert str(place.parent) not in found["detail"]
        check_problem(client.post("/api/v1/annotate", files=files(picture())), 503, "damaged-model")
        assert client.get("/").status_code == 200
        assert client.get("/metrics").status_code == 200
        assert "is damaged" in caplog.text
        other.save(place)
        _wait_for(lambda: client.get("/healthz").status_code == 200)
        assert client.get("/api/v1/pictures").json()["total"] == 80
        assert client.post("/api/v1/annotate", files=files(picture())).status_code == 200


def test_a_model_whose_files_are_whole_answers(place, damaged):
    store = ModelStore(place, Settings())
    store.start()
    store.stop()
    _join("pictopic-check")
    assert len(store.current.names) == 96


def test_a_check_that_saw_the_files_of_a_newer_model_does_not_count(place, other, monkeypatch):
    may_go_on = threading.Event()

    def check_files(self):
        assert may_go_on.wait(20)
        raise ValueError("index/vectors.npy was changed")

    monkeypatch.setattr(PictureModel, "check_files", check_files, raising=False)
    store = ModelStore(place, Settings(check_every=1000))
    store.start()
    other.save(place)
    may_go_on.set()
    _join("pictopic-check")
    store.stop()
    assert len(store.current.names) == 96  # until the newer one is loaded


def _join(name):
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(20)


# ---- names that lead elsewhere ---------------------------------------------------------------------------------------


@pytest.fixture
def moved(folder, scenes, tmp_path):
    """A client of a server of pictures that may be changed, and their folder."""
    pictures = shutil.copytree(scenes, tmp_path / "pictures")
    with served(folder, pictures=pictures) as client:
        yield client, pictures


def _ask_for(client, id):
    """Statuses of all that opens the file of a picture."""
    addresses = (f"thumbnails/{id}", f"pictures/{id}/look", f"pictures/{id}/explain?name=sky", f"search?like={id}")
    return {address: client.get(f"/api/v1/{address}").status_code for address in addresses}


def test_a_link_out_of_the_folder_is_not_followed(moved, tmp_path):
    client, pictures = moved
    listed = client.get("/api/v1/pictures?limit=1").json()["pictures"][0]
    assert set(_ask_for(client, listed["id"]).values()) == {200}
    path = pictures / listed["file_name"]
    path.rename(tmp_path / "secret.jpg")
    path.symlink_to(tmp_path / "secret.jpg")
    assert set(_ask_for(client, listed["id"]).values()) == {404}
    assert client.get(f"/api/v1/pictures/{listed['id']}").json()["predicted"] is None


@pytest.mark.parametrize("name", ["../secret.jpg", "{outside}", "a/../../secret.jpg", "", ".", "/", "a\0b"])
def test_a_name_that_leads_out_of_the_folder_is_never_opened(moved, tmp_path, name):
    client, pictures = moved
    (tmp_path / "secret.jpg").write_bytes(picture())
    name = name.format(outside=tmp_path / "secret.jpg")
    model = client.app.state.server.models.current
    model.names[0], model._paths[0] = name, pictures / name
    assert set(_ask_for(client, model.ids[0]).values()) == {404}


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
