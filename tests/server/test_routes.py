"""What each address answers, on the small model."""

import io
import json

import pytest
from PIL import Image

from pictopic import PictureModel
from pictopic.server.served_model import picture_id
from tests.server.conftest import check_problem, files, picture, served

# What is made once takes long: one process makes it for all.
pytestmark = pytest.mark.xdist_group("server")


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


def test_search_by_tags_goes_on_page_by_page(client, learnt):
    tag = learnt.corpus_.vocabulary.annotations[0]
    expected = [name for name, _ in learnt.search(tags=[tag], k=96)]
    found, offset = [], 0
    while offset is not None:
        answer = client.get("/api/v1/search", params={"tags": tag, "offset": offset, "limit": 25}).json()
        found += [own["file_name"] for own in answer["pictures"]]
        offset = answer["next_offset"]
    assert found == expected


def test_search_with_a_label_finds_only_that(client):
    found = client.get("/api/v1/search?tags=sky&label=coast").json()["pictures"]
    assert {label for own in found for label in own["labels"]} == {"coast"}


def test_search_like_a_picture_of_the_collection_leaves_itself_out(client, learnt):
    name = learnt.corpus_.file_names[7]
    found = client.get("/api/v1/search", params={"like": picture_id(name), "limit": 100}).json()["pictures"]
    assert len(found) == 95
    assert name not in [own["file_name"] for own in found]
    assert found[0]["file_name"] == learnt.search(name, k=1)[0][0]


def test_search_by_a_picture_that_is_sent_and_tags(client, learnt, scenes):
    path = scenes / learnt.corpus_.file_names[7]
    found = client.post("/api/v1/search?limit=3", files=files(path.read_bytes(), name="picture")).json()["pictures"]
    assert found[0]["file_name"] == learnt.corpus_.file_names[7]
    assert found[0]["similarity"] > 0.99
    with_tags = client.post(
        "/api/v1/search?limit=3&tags=sea,sky", files=files(path.read_bytes(), name="picture")
    ).json()
    expected = learnt.search(path.read_bytes(), ["sea", "sky"], 3)
    assert [own["file_name"] for own in with_tags["pictures"]] == [name for name, _ in expected]


def test_topics_are_the_models(client, learnt):
    found = client.get("/api/v1/topics?limit=7").json()
    assert [own["label"] for own in found["classes"]] == [own.label for own in learnt.topics()]
    assert len(found["topics"]) == 7
    assert found["next_offset"] == 7
    assert found["topics"][0]["topic"] == learnt.get_topic_info()[0]["Topic"]
    assert found["topics"][0]["pictures"][0]["id"]
    words = [(own["word"], own["weight"]) for own in found["topics"][0]["visual_words"]]
    assert words == [(word, round(weight, 6)) for word, weight in learnt.get_topic_info()[0]["Visual_Words"]]


def test_tags_come_with_their_counts(client, learnt):
    found = client.get("/api/v1/tags").json()
    counts = {own["name"]: own["count"] for own in found["tags"]}
    assert counts["sky"] == sum("sky" in own for own in learnt.corpus_.tags)
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    assert found["next_offset"] is None


def test_a_tag_has_neighbours_and_pictures(client, learnt):
    found = client.get("/api/v1/tags/SKY?k=4&limit=2").json()
    assert [own["name"] for own in found["similar"]] == [name for name, _ in learnt.similar_tags("sky", 4)]
    assert len(found["pictures"]) == 2
    assert all("sky" in own["tags"] for own in found["pictures"])
    assert found["next_offset"] == 2


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


def test_health_metrics_and_descriptions(client):
    assert client.get("/healthz").json()["status"] == "ok"
    client.get("/api/v1/tags/sky")
    text = client.get("/metrics").text
    assert 'pictopic_requests_total{method="GET",route="/api/v1/tags/{name:path}",status="200"}' in text
    assert "pictopic_pictures 96.0" in text
    document = client.get("/openapi.json").json()
    assert set(document["paths"]["/api/v1/search"]) == {"get", "post"}
    assert "multipart/form-data" in document["paths"]["/api/v1/annotate"]["post"]["requestBody"]["content"]
    page = client.get("/docs").text
    assert "POST /api/v1/annotate" in page
    assert "http://" not in page.replace("http://127.0.0.1", "")
    assert "https://" not in page


@pytest.fixture(scope="module")
def tags_only(tmp_path_factory):
    """A model of tags without pictures, classes or enough rows for anything else."""
    place = tmp_path_factory.mktemp("tags")
    (place / "metadata.csv").write_text("tags\n" + "\n".join(["sea;sky", "tree;sky", "sea;boat"] * 4) + "\n")
    model = PictureModel(n_jobs=1, verbose=0, features=()).fit(place, pictures="none")
    model.save(place / "model")
    return place / "model"


def test_a_model_of_tags_only_says_what_it_cannot_do(tags_only):
    with served(tags_only) as client:
        assert len(client.get("/api/v1/search?tags=sea&limit=3").json()["pictures"]) == 3
        assert client.get("/api/v1/topics").status_code == 200
        first = client.get("/api/v1/pictures?limit=1").json()["pictures"][0]
        assert client.get(f"/api/v1/pictures/{first['id']}").json()["predicted"] is None
        found = check_problem(client.post("/api/v1/annotate", files=files(picture())), 422, "invalid")
        assert "not made of pictures" in found["detail"]
        check_problem(client.get("/api/v1/search", params={"like": first["id"]}), 422, "invalid")
