"""Pictures: tags, classes, looks and explanations, thumbnails."""

import io
import json

import numpy as np
import pytest
from PIL import Image

from pictopic import PictureModel
from pictopic.server.served_model import picture_id
from tests.server.conftest import QUICK, check_problem, close, files, get, opened, pairs, picture, served

# What is made once takes long: one process makes it for all.


def test_annotate_gives_what_the_model_gives(client, learnt, scenes):
    path = scenes / learnt.corpus_.file_names[3]
    found = client.post("/api/v1/annotate?k=3", files=files(path.read_bytes())).json()["pictures"]
    expected = learnt.annotate(path, 3)
    assert [(own["name"], own["score"]) for own in found[0]["tags"]] == [
        (n, pytest.approx(s, abs=2e-6)) for n, s in expected
    ]
    assert found[0]["file_name"] == "0.jpg"


def test_a_picture_that_lies_on_its_side_is_turned_once(client, learnt):
    exif = Image.Exif()
    exif[0x0112] = 6
    buffer = io.BytesIO()
    Image.open(io.BytesIO(picture(5, size=(96, 40)))).save(buffer, "JPEG", exif=exif)
    found = client.post("/api/v1/annotate?k=3", files=files(buffer.getvalue())).json()["pictures"][0]["tags"]
    assert [own["name"] for own in found] == [name for name, _ in learnt.annotate(buffer.getvalue(), 3)]


def test_thresholds_give_the_tags_one_can_believe(client, learnt, scenes):
    path = scenes / learnt.corpus_.file_names[3]
    found = client.post("/api/v1/annotate?thresholds=true", files=files(path.read_bytes())).json()["pictures"]
    assert [own["name"] for own in found[0]["tags"]] == [name for name, _ in learnt.annotate(path, thresholds=True)]


def test_a_batch_is_answered_in_order_and_a_bad_picture_costs_itself_only(client, learnt):
    found = client.post("/api/v1/classify?k=2", files=files(picture(1), b"nothing", picture(2))).json()["pictures"]
    assert [own["file_name"] for own in found] == ["0.jpg", "1.jpg", "2.jpg"]
    assert [len(own["classes"]) for own in found] == [2, 0, 2]
    assert found[1]["problem"]["type"] == "/docs#unreadable-picture"
    assert found[1]["problem"]["detail"] == "not a picture"
    assert found[2]["classes"][0]["name"] == learnt.classify(picture(2), 1)[0][0]


def test_dont_know_is_passed_on(client, learnt):
    found = client.post("/api/v1/classify?dont_know=true", files=files(picture(1))).json()["pictures"][0]["classes"]
    assert [own["name"] for own in found] == [name for name, _ in learnt.classify(picture(1), 5, dont_know=True)]


def test_many_pictures_come_as_a_line_each(client):
    contents = [picture(k) for k in range(18)] + [b"nothing"]
    response = client.post("/api/v1/annotate", files=files(*contents), headers={"Accept": "application/x-ndjson"})
    assert response.headers["content-type"].startswith("application/x-ndjson")
    lines = [json.loads(line) for line in response.text.splitlines()]
    assert [own["file_name"] for own in lines] == [f"{k}.jpg" for k in range(19)]
    assert all(len(own["tags"]) == 5 for own in lines[:-1])
    assert lines[-1]["problem"]["status"] == 422


def test_pictures_are_listed_and_filtered(client, learnt):
    found = client.get("/api/v1/pictures?limit=10").json()
    assert [own["file_name"] for own in found["pictures"]] == learnt.corpus_.file_names[:10]
    assert (found["total"], found["next_offset"]) == (96, 10)
    coast = client.get("/api/v1/pictures?label=coast&tag=sky").json()
    assert all(own["labels"] == ["coast"] and "sky" in own["tags"] for own in coast["pictures"])


def test_a_picture_comes_with_what_the_model_would_say(client, learnt):
    name = learnt.corpus_.file_names[2]
    found = client.get(f"/api/v1/pictures/{picture_id(name)}").json()
    assert found["file_name"] == name
    assert found["labels"] == learnt.corpus_.label_lists[2]
    assert found["predicted"]["classes"][0]["name"] == learnt.classify(name, 1)[0][0]
    assert len(found["predicted"]["tags"]) == 5


def test_thumbnails_are_small_and_cached(client, learnt):
    address = f"/api/v1/thumbnails/{picture_id(learnt.corpus_.file_names[0])}"
    first = client.get(f"{address}?side=128")
    assert first.headers["content-type"] == "image/jpeg"
    assert max(Image.open(io.BytesIO(first.content)).size) == 128
    assert "max-age" in first.headers["cache-control"]
    again = client.get(f"{address}?side=128", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get(f"{address}?side=512").headers["etag"] != first.headers["etag"]


def test_the_cache_of_thumbnails_is_bounded(folder, learnt, tmp_path):
    with served(folder, cache=tmp_path / "cache", max_cache=30_000) as client:
        for name in learnt.corpus_.file_names:
            assert client.get(f"/api/v1/thumbnails/{picture_id(name)}?side=128").status_code == 200
    assert 0 < sum(path.stat().st_size for path in (tmp_path / "cache").iterdir()) <= 30_000


def test_pictures_that_are_gone_are_a_problem_of_theirs_only(folder, learnt, tmp_path):
    own = picture_id(learnt.corpus_.file_names[0])
    with served(folder, pictures=tmp_path) as client:
        check_problem(client.get(f"/api/v1/thumbnails/{own}"), 404, "not-found")
        check_problem(client.get(f"/api/v1/search?like={own}"), 404, "not-found")
        assert client.get(f"/api/v1/pictures/{own}").json()["predicted"] is None
        assert client.get("/api/v1/search?tags=sky").status_code == 200


def test_a_look_says_what_the_other_addresses_say(client, learnt):
    content = picture(7)
    found = client.post("/api/v1/look?k=6&similar=9", files=files(content, name="picture")).json()
    assert found["picture"] is None
    assert close(pairs(found["classes"]), learnt.classify(content, 6))
    assert close(pairs(found["tags"]), learnt.annotate(content, 6))
    similar = [(own["file_name"], own["similarity"]) for own in found["similar"]]
    assert close(similar, learnt.search(content, k=9))


def test_a_look_says_which_tags_one_can_believe(client, learnt):
    path = learnt.corpus_.paths[0]
    found = client.post("/api/v1/look?k=1000", files=files(path.read_bytes())).json()["tags"]
    sure = {name for name, _ in learnt.annotate(path, thresholds=True)}
    assert sure
    assert {own["name"] for own in found if own["is_sure"]} == sure
    assert {own["is_sure"] for own in found} == {True, False}
    assert {own["name"]: own["probability"] for own in found} == pytest.approx(learnt.tag_probabilities(path))


def test_tags_that_are_known_help(client, learnt):
    content = picture(7)
    found = client.post("/api/v1/look?k=6&similar=9&tags=sky,sea", files=files(content)).json()
    assert close(pairs(found["tags"]), learnt.annotate(content, 6, tags=["sky", "sea"]))
    assert close(pairs(found["classes"]), learnt.classify(content, 6, tags=["sky", "sea"]))


def test_a_look_at_a_picture_of_the_collection_is_a_look_at_its_file(client, learnt):
    name, path = learnt.corpus_.file_names[5], learnt.corpus_.paths[5]
    found = get(client, f"/pictures/{picture_id(name)}/look", k=4, similar=95)
    assert found["picture"] == get(client, "/pictures", offset=5, limit=1)["pictures"][0]
    assert close(pairs(found["tags"]), learnt.annotate(path, 4))
    assert close(pairs(found["classes"]), learnt.classify(path, 4))
    assert len(found["similar"]) == 95
    assert name not in [own["file_name"] for own in found["similar"]]


@pytest.mark.parametrize("name", ["coast", "sky"])
def test_an_explanation_is_the_models(client, learnt, name):
    path = learnt.corpus_.paths[5]
    expected = np.asarray(learnt.explain(path, name).overlay, dtype=float)
    sent = opened(client.post(f"/api/v1/explain?name={name}", files=files(path.read_bytes())))
    own = opened(client.get(f"/api/v1/pictures/{picture_id(learnt.corpus_.file_names[5])}/explain?name={name}"))
    for found in (sent, own):
        assert found.shape == expected.shape
        assert np.abs(found - expected).mean() < 8  # JPEG


def test_a_picture_is_described_once_for_all_that_is_asked(folder, learnt, monkeypatch):
    from pictopic.tasks import reading

    calls, make = [], reading.make_chunk
    monkeypatch.setattr(reading, "make_chunk", lambda *own: calls.append(1) or make(*own))
    own = picture_id(learnt.corpus_.file_names[2])
    with served(folder) as client:
        for _ in range(2):
            assert client.post("/api/v1/look", files=files(picture(8))).status_code == 200
            assert client.post("/api/v1/explain?name=sky", files=files(picture(8))).status_code == 200
        assert len(calls) == 1
        get(client, f"/pictures/{own}/look")
        assert client.get(f"/api/v1/pictures/{own}/explain?name=coast").status_code == 200
        assert len(calls) == 2


@pytest.fixture(scope="module", params=["shallow", "deep"])
def kind_of_model(request, folder, scenes, tmp_path_factory):
    """A shallow model, and a deep one."""
    if request.param == "shallow":
        return folder
    place = tmp_path_factory.mktemp("private-deep") / "model"
    options = {"max_iter": 2, "n_components": 16}
    PictureModel(**QUICK | {"model": "deep", "options": options}).fit(scenes).save(place)
    return place


@pytest.mark.parametrize(
    ("method", "address"),
    [
        ("POST", "annotate"),
        ("POST", "annotate?thresholds=true"),
        ("POST", "classify"),
        ("POST", "look"),
        ("POST", "look?tags=sky,sea"),
        ("POST", "search"),
        ("POST", "explain?name=sky"),
        ("POST", "explain?name=coast"),
        ("GET", "pictures/{id}"),
        ("GET", "pictures/{id}/look"),
        ("GET", "pictures/{id}/explain?name=sky"),
        ("GET", "search?like={id}&tags=sky"),
    ],
)
def test_a_picture_passes_through_the_network_once(kind_of_model, learnt, monkeypatch, method, address):
    address = address.format(id=picture_id(learnt.corpus_.file_names[4]))
    with served(kind_of_model) as client:
        estimator, passes = type(client.app.state.server.models.current.model.estimator_), []
        represent = estimator._represent
        monkeypatch.setattr(estimator, "_represent", lambda *given: passes.append(1) or represent(*given))
        content = files(picture(9)) if method == "POST" else None
        assert client.request(method, f"/api/v1/{address}", files=content).status_code == 200
    assert passes == [1]


def test_a_file_that_has_changed_is_described_again(learnt, tmp_path):
    pictures = tmp_path / "pictures"
    for name, path in list(zip(learnt.corpus_.file_names, learnt.corpus_.paths, strict=True))[:2]:
        (pictures / name).parent.mkdir(parents=True, exist_ok=True)
        (pictures / name).write_bytes(path.read_bytes())
    learnt.save(tmp_path / "model")
    first, second = learnt.corpus_.file_names[:2]
    with served(tmp_path / "model", pictures=pictures) as client:
        before = get(client, f"/pictures/{picture_id(first)}/look")["tags"]
        (pictures / first).write_bytes((pictures / second).read_bytes() + b" ")
        assert get(client, f"/pictures/{picture_id(first)}/look")["tags"] != before
        (pictures / first).unlink()
        (pictures / second).unlink()
        check_problem(client.get("/api/v1/visual-words/3"), 404, "not-found")
        for address in ("look", "explain?name=sky"):
            check_problem(client.get(f"/api/v1/pictures/{picture_id(first)}/{address}"), 404, "not-found")
        (pictures / first).write_bytes(b"no picture")
        for address in ("look", "explain?name=sky"):
            check_problem(client.get(f"/api/v1/pictures/{picture_id(first)}/{address}"), 404, "not-found")


def test_a_name_that_is_neither_class_nor_tag_is_not_explained(client, learnt):
    check_problem(client.post("/api/v1/explain?name=nosuch", files=files(picture())), 422, "invalid")
    own = picture_id(learnt.corpus_.file_names[0])
    check_problem(client.get(f"/api/v1/pictures/{own}/explain?name=nosuch"), 422, "invalid")


@pytest.mark.parametrize("address", ["/look", "/explain?name=sky"])
def test_one_picture_is_looked_at(client, address):
    check_problem(client.post(f"/api/v1{address}", files=files(picture(), picture())), 422, "invalid")
    check_problem(client.post(f"/api/v1{address}", files=files(b"no picture")), 422, "unreadable-picture")
