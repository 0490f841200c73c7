"""Search, by pictures and by tags."""

import pytest

from pictopic import PictureModel
from pictopic.server.served_model import picture_id
from tests.server.conftest import check_problem, files, picture, served

# What is made once takes long: one process makes it for all.


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
