"""The collection as a whole: map, topics, quality, and collections that have not everything."""

import numpy as np
import pytest
from PIL import Image

from pictopic import PictureModel, __version__
from pictopic.server.served_model import picture_id
from pictopic.tasks.exports import cut_patch
from tests.server.conftest import QUICK, check_problem, close, files, get, opened, picture, served
from tests.support.patterns import SMALL_NETWORK

# What is made once takes long: one process makes it for all.

UNKNOWN = "0" * 16
ALL = 1000


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


def test_topics_are_the_models(client, learnt):
    found = client.get("/api/v1/topics?limit=7").json()
    assert [own["label"] for own in found["classes"]] == [own.label for own in learnt.topics()]
    assert len(found["topics"]) == 7
    assert found["next_offset"] == 7
    assert found["topics"][0]["topic"] == learnt.get_topic_info()[0]["Topic"]
    assert found["topics"][0]["pictures"][0]["id"]
    words = [(own["word"], own["weight"]) for own in found["topics"][0]["visual_words"]]
    assert words == [(word, round(weight, 6)) for word, weight in learnt.get_topic_info()[0]["Visual_Words"]]


def test_a_visual_word_is_shown_by_its_patches(client, learnt):
    response = client.get("/api/v1/visual-words/3")
    assert response.headers["cache-control"].startswith("private")
    found = opened(response)
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
    PictureModel(**QUICK | {"model": "deep"}, options=SMALL_NETWORK).fit(place / "photos").save(place / "model")
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
