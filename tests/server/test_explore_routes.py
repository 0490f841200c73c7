"""What the explorer page asks."""

import io

import numpy as np
import pytest
from PIL import Image

from pictopic import PictureModel, __version__
from pictopic.server.served_model import picture_id
from pictopic.tasks.exports import cut_patch
from tests.server.conftest import QUICK, check_problem, files, picture, served

# What is made once takes long: one process makes it for all.
pytestmark = pytest.mark.xdist_group("server")

UNKNOWN = "0" * 16
ALL = 1000


def get(client, address, **parameters):
    response = client.get(f"/api/v1{address}", params=parameters)
    assert response.status_code == 200, response.text
    return response.json()


def pairs(scored):
    return [(own["name"], own["score"]) for own in scored]


def close(ours, expected):
    """Whether names and values are the same, but for the digits that are not told."""
    return [a for a, _ in ours] == [a for a, _ in expected] and np.allclose(
        [b for _, b in ours], [b for _, b in expected], atol=1e-5
    )


@pytest.fixture(scope="module")
def own_place(learnt, tmp_path_factory):
    """A model beside which decisions may be written."""
    place = tmp_path_factory.mktemp("private-decided") / "model"
    learnt.save(place)
    return place


# ---- the collection --------------------------------------------------------------------------------------------------


def test_the_collection_says_what_there_is(client, learnt, folder):
    found, corpus = get(client, "/collection"), learnt.corpus_
    assert (found["name"], found["version"]) == (folder.name, __version__)
    assert (found["n_pictures"], found["n_tags"]) == (len(corpus), len({tag for own in corpus.tags for tag in own}))
    expected = {name: sum(own == [name] for own in corpus.label_lists) for name in corpus.classes}
    assert {own["name"]: own["count"] for own in found["classes"]} == expected
    flags = ("multi_label", "has_pictures", "has_classes", "has_tags", "has_thresholds")
    assert [found[flag] for flag in flags] == [False, True, True, True, True]
    assert found["network"] == "SupDocNADE"
    assert found["figures"] == pytest.approx(learnt.figures_)
    assert found["n_held_out"] == len(learnt._fitted.held_out.rows)
    assert (found["max_upload"], found["max_files"]) == (20_000_000, 64)


def test_the_map_has_a_place_for_each_picture(client, learnt):
    found, corpus = get(client, "/map"), learnt.corpus_
    assert found["ids"] == [picture_id(name) for name in corpus.file_names]
    assert np.allclose(np.stack([found["x"], found["y"]], axis=1), learnt.map(), atol=1e-4)
    assert [found["classes"][k] for k in found["class_of"]] == [own[0] for own in corpus.label_lists]


def test_on_the_map_pictures_of_a_scene_are_nearer_each_other_than_others(client):
    found = get(client, "/map")
    places, own = np.stack([found["x"], found["y"]], axis=1), np.array(found["class_of"])
    distances, same = np.linalg.norm(places[:, None] - places[None], axis=2), own[:, None] == own[None]
    assert distances[same & ~np.eye(len(own), dtype=bool)].mean() < 0.8 * distances[~same].mean()


# ---- pictures --------------------------------------------------------------------------------------------------------


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


def _opened(response):
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "image/jpeg"
    return np.asarray(Image.open(io.BytesIO(response.content)).convert("RGB"), dtype=float)


@pytest.mark.parametrize("name", ["coast", "sky"])
def test_an_explanation_is_the_models(client, learnt, name):
    path = learnt.corpus_.paths[5]
    expected = np.asarray(learnt.explain(path, name).overlay, dtype=float)
    sent = _opened(client.post(f"/api/v1/explain?name={name}", files=files(path.read_bytes())))
    own = _opened(client.get(f"/api/v1/pictures/{picture_id(learnt.corpus_.file_names[5])}/explain?name={name}"))
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


def test_a_visual_word_is_shown_by_its_patches(client, learnt):
    response = client.get("/api/v1/visual-words/3")
    assert response.headers["cache-control"].startswith("private")
    found = _opened(response)
    assert found.shape[0] == found.shape[1]
    patch = learnt.corpus_.codebook.examples[3][0]
    path = learnt.corpus_.paths[learnt.corpus_.file_names.index(patch.file_name)]
    tile = (found.shape[0] - 6) // 4
    expected = cut_patch(patch, path, learnt.corpus_.options.max_side).resize((tile, tile), Image.Resampling.BICUBIC)
    assert np.abs(found[:tile, :tile] - np.asarray(expected, dtype=float)).mean() < 10  # JPEG


@pytest.mark.parametrize(
    ("method", "address", "status"),
    [
        ("GET", "/visual-words/12", 404),
        ("GET", "/visual-words/-1", 404),
        ("GET", "/visual-words/x", 422),
        ("GET", f"/pictures/{UNKNOWN}/look", 404),
        ("GET", f"/pictures/{UNKNOWN}/explain?name=sky", 404),
        ("GET", "/missing", 422),
        ("GET", "/missing?tag=nosuchtag", 422),
        ("GET", "/doubtful?tag=nosuchtag", 422),
        ("GET", "/quality/confused?true=coast", 422),
        ("GET", "/quality/confused?true=coast&predicted=nosuchclass", 422),
        ("POST", "/look", 415),
        ("POST", "/explain?name=sky", 415),
    ],
)
def test_what_there_is_not_is_a_problem(client, method, address, status):
    kind = {404: "not-found", 422: "invalid", 415: "unsupported-media-type"}[status]
    check_problem(client.request(method, f"/api/v1{address}"), status, kind)


def test_a_name_that_is_neither_class_nor_tag_is_not_explained(client, learnt):
    check_problem(client.post("/api/v1/explain?name=nosuch", files=files(picture())), 422, "invalid")
    own = picture_id(learnt.corpus_.file_names[0])
    check_problem(client.get(f"/api/v1/pictures/{own}/explain?name=nosuch"), 422, "invalid")


@pytest.mark.parametrize("address", ["/look", "/explain?name=sky"])
def test_one_picture_is_looked_at(client, address):
    check_problem(client.post(f"/api/v1{address}", files=files(picture(), picture())), 422, "invalid")
    check_problem(client.post(f"/api/v1{address}", files=files(b"no picture")), 422, "unreadable-picture")


# ---- suggestions -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["missing", "doubtful"])
def test_suggestions_are_the_models(client, learnt, which):
    found = get(client, f"/{which}", tag=" Sky", limit=ALL)
    expected = getattr(learnt, which)("sky", ALL)
    assert close([(own["file_name"], own["probability"]) for own in found["pictures"]], expected)
    assert (found["tag"], found["total"], found["next_offset"]) == ("sky", len(expected), None)
    assert all(("sky" in own["tags"]) == (which == "doubtful") for own in found["pictures"])


def test_suggestions_come_in_pages(client):
    whole = get(client, "/missing", tag="sky", limit=ALL)["pictures"]
    first = get(client, "/missing", tag="sky", limit=3)
    assert (first["pictures"], first["total"]) == (whole[:3], len(whole))
    assert get(client, "/missing", tag="sky", offset=first["next_offset"], limit=3)["pictures"] == whole[3:6]


@pytest.mark.parametrize("which", ["missing", "doubtful"])
def test_what_is_decided_is_not_suggested_again(own_place, which):
    with served(own_place) as client:
        before = get(client, f"/{which}", tag="sky", limit=ALL)
        first, second, *others = [own["id"] for own in before["pictures"]]
        for own, decision in ((first, "accepted"), (second, "rejected")):
            body = {"picture": own, "tag": "sky", "decision": decision}
            assert client.put("/api/v1/decisions", json=body).status_code == 200
        after = get(client, f"/{which}", tag="sky", limit=ALL)
        assert [own["id"] for own in after["pictures"]] == others
        assert after["total"] == before["total"] - 2
        body = {"picture": first, "tag": "sky", "decision": "undecided"}
        assert client.put("/api/v1/decisions", json=body).status_code == 200
        assert get(client, f"/{which}", tag="sky")["pictures"][0]["id"] == first


# ---- quality ---------------------------------------------------------------------------------------------------------


def test_quality_is_the_models(client, learnt):
    found, expected = get(client, "/quality"), learnt.quality()
    assert found["n_held_out"] == expected.n_held_out > 0
    assert found["confusion"] == {"classes": learnt.corpus_.classes, "counts": expected.confusion.counts.tolist()}
    assert [own["name"] for own in found["tags"]] == [own.name for own in expected.tags]
    assert {own["f"] for own in found["tags"]} == {own.f for own in expected.tags}
    assert found["figures"] == pytest.approx(learnt.figures_)
    assert [own["title"] for own in found["curves"]] == ["Loss of the classes", "Loss of the words"]
    assert found["curves"][1]["series"][0]["values"] == learnt.estimator_.history_["nll"]
    assert found["odd"] == learnt.odd_means


def test_each_cell_of_the_confusion_has_its_pictures(client):
    confusion = get(client, "/quality")["confusion"]
    for t, true in enumerate(confusion["classes"]):
        for p, predicted in enumerate(confusion["classes"]):
            found = get(client, "/quality/confused", true=true, predicted=predicted)
            assert found["total"] == len(found["pictures"]) == confusion["counts"][t][p]
            assert all(own["labels"] == [true] for own in found["pictures"])


def test_odd_pictures_come_in_pages_the_oddest_first(client, learnt):
    whole = get(client, "/quality/odd", limit=ALL)
    expected = learnt.odd(None)
    assert close([(own["file_name"], own["log_likelihood"]) for own in whole["pictures"]], expected)
    assert (whole["total"], whole["next_offset"]) == (len(expected), None)
    assert get(client, "/quality/odd", offset=4, limit=2)["pictures"] == whole["pictures"][4:6]


# ---- collections that have not everything ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tags_only(tmp_path_factory):
    """Words without pictures and without classes."""
    place = tmp_path_factory.mktemp("private-tags")
    lines = ["file_name,tags", *(f"{k}.jpg,{'sea;sky' if k % 2 else 'tree;grass'}" for k in range(30))]
    (place / "metadata.csv").write_text("\n".join(lines))
    PictureModel(**QUICK | {"features": ()}).fit(place, pictures="none").save(place / "model")
    with served(place / "model") as client:
        yield client


def test_a_collection_of_tags_has_what_it_can_have(tags_only):
    found = get(tags_only, "/collection")
    flags = ("has_pictures", "has_classes", "has_tags", "has_thresholds")
    assert [found[flag] for flag in flags] == [False, False, True, False]
    assert (found["classes"], found["figures"], found["n_held_out"]) == ([], {}, 0)
    assert set(get(tags_only, "/map")["class_of"]) == {-1}
    quality = get(tags_only, "/quality")
    assert (quality["confusion"], quality["tags"]) == (None, [])
    assert get(tags_only, "/quality/odd")["total"] == 30


def test_of_a_collection_of_tags_the_rest_is_a_problem(tags_only):
    own = picture_id("0.jpg")
    for address in ("/missing?tag=sea", "/doubtful?tag=sea", "/quality/confused?true=a&predicted=b"):
        check_problem(tags_only.get(f"/api/v1{address}"), 422, "invalid")
    for address in (f"/pictures/{own}/look", f"/pictures/{own}/explain?name=sea", "/visual-words/0"):
        check_problem(tags_only.get(f"/api/v1{address}"), 404, "not-found")
    check_problem(tags_only.post("/api/v1/look", files=files(picture())), 422, "invalid")


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Pictures with neither tags nor classes, in a deep model."""
    place = tmp_path_factory.mktemp("private-plain")
    (place / "photos").mkdir()
    for k in range(90):
        (place / "photos" / f"{k}.jpg").write_bytes(picture(k))
    PictureModel(**QUICK | {"model": "deep"}).fit(place / "photos").save(place / "model")
    with served(place / "model") as client:
        yield client


def test_pictures_alone_have_topics_of_visual_words_and_typical_pictures(plain):
    found = get(plain, "/topics")
    assert (found["classes"], found["coherence"], found["diversity"]) == ([], None, None)
    topic = found["topics"][0]
    assert topic["tags"] == []
    assert len(topic["pictures"]) == 5
    assert len(topic["visual_words"]) == 4
    for own in topic["visual_words"]:
        assert plain.get(f"/api/v1/visual-words/{own['word']}").headers["content-type"] == "image/jpeg"


def test_pictures_alone_are_looked_at_searched_and_measured(plain):
    flags = ("has_pictures", "has_classes", "has_tags", "has_thresholds")
    assert [get(plain, "/collection")[flag] for flag in flags] == [True, False, False, False]
    found = get(plain, f"/pictures/{picture_id('0.jpg')}/look", similar=3)
    assert (found["classes"], found["tags"], len(found["similar"])) == ([], [], 3)
    assert get(plain, "/tags")["total"] == 0
    quality = get(plain, "/quality")
    assert sorted(quality["figures"]) == ["log_likelihood_per_word", "log_likelihood_per_word_baseline"]
    assert [own["name"] for own in quality["curves"][0]["series"]] == ["training", "held-out pictures"]
    assert get(plain, "/quality/odd")["total"] == 90


def test_no_answer_names_a_place_on_the_machine(client, folder, scenes, learnt, tags_only):
    own = picture_id(learnt.corpus_.file_names[0])
    addresses = [
        "/collection", "/map", f"/pictures/{own}/look", f"/pictures/{own}/explain?name=sky", "/visual-words/0",
        "/visual-words/99", "/missing?tag=sky", "/doubtful?tag=sky", "/missing?tag=x", "/quality",
        "/quality/confused?true=coast&predicted=forest", "/quality/odd", "/topics", f"/pictures/{own}/explain?name=x",
    ]  # fmt: skip
    found = [asked.get(f"/api/v1{address}") for asked in (client, tags_only) for address in addresses]
    found.append(tags_only.get(f"/api/v1/pictures/{picture_id('0.jpg')}/look"))
    for answer in found:
        for place in (folder, scenes, "private-"):
            assert str(place).encode() not in answer.content + str(answer.headers).encode()
