"""Tags, suggestions, and decisions about tags."""

import csv
import io
import json
import zipfile

import pytest

from pictopic.corpus.sources.picture_folder import xmp_keywords
from pictopic.server.served_model import picture_id
from pictopic.tasks.decisions import Decisions
from tests.server.conftest import check_problem, close, get, served

# What is made once takes long: one process makes it for all.

ALL = 1000
ADDRESS = "/api/v1/decisions"


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


# ---- suggestions -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def own_place(learnt, tmp_path_factory):
    """A model beside which decisions may be written."""
    place = tmp_path_factory.mktemp("private-decided") / "model"
    learnt.save(place)
    return place


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


# ---- decisions -------------------------------------------------------------------------------------------------------


@pytest.fixture
def own_folder(folder, tmp_path):
    """The model at a place of its own, where there are no decisions yet."""
    (tmp_path / "private-model").symlink_to(folder)
    return tmp_path / "private-model"


@pytest.fixture
def own_client(own_folder):
    with served(own_folder) as client:
        yield client


def decide(client, name, tag, decision, **options):
    body = {"picture": picture_id(name), "tag": tag, "decision": decision}
    return client.put(ADDRESS, json=body, **options)


def test_decisions_are_counted_and_listed_the_newest_first(own_client, learnt):
    names = learnt.corpus_.file_names
    assert decide(own_client, names[0], "Sea", "accepted").json() == {"n_accepted": 1, "n_rejected": 0}
    assert decide(own_client, names[1], "sky", "rejected").json() == {"n_accepted": 1, "n_rejected": 1}
    found = own_client.get(ADDRESS).json()
    assert [(own["picture"]["file_name"], own["tag"], own["decision"]) for own in found["decisions"]] == [
        (names[1], "sky", "rejected"), (names[0], "sea", "accepted"),
    ]  # fmt: skip
    assert found["decisions"][1]["picture"] == own_client.get("/api/v1/pictures?limit=1").json()["pictures"][0]
    assert (found["total"], found["next_offset"], found["n_accepted"], found["n_rejected"]) == (2, None, 1, 1)


def test_decisions_are_kept_beside_the_model(own_client, own_folder, learnt):
    decide(own_client, learnt.corpus_.file_names[0], "sea", "accepted")
    line = json.loads((own_folder.parent / "private-model.decisions.jsonl").read_text())
    assert (line["file_name"], line["tag"], line["decision"]) == (learnt.corpus_.file_names[0], "sea", "accepted")


def test_a_decision_can_be_taken_back(own_client, learnt):
    decide(own_client, learnt.corpus_.file_names[0], "sea", "accepted")
    assert decide(own_client, learnt.corpus_.file_names[0], "SEA", "undecided").json()["n_accepted"] == 0
    assert own_client.get(ADDRESS).json()["decisions"] == []


def test_decisions_come_page_by_page(own_client, learnt):
    for name in learnt.corpus_.file_names[:5]:
        decide(own_client, name, "sea", "accepted")
    found = own_client.get(ADDRESS, params={"offset": 2, "limit": 2}).json()
    assert [own["picture"]["file_name"] for own in found["decisions"]] == learnt.corpus_.file_names[1:3][::-1]
    assert (found["total"], found["next_offset"]) == (5, 4)


def test_what_another_process_decided_is_seen(own_client, own_folder, learnt):
    assert own_client.get(ADDRESS).json()["total"] == 0
    Decisions.beside(own_folder).add(learnt.corpus_.file_names[0], "sea", "rejected")
    assert own_client.get(ADDRESS).json()["n_rejected"] == 1


def test_decisions_about_pictures_that_are_gone_do_not_count(own_client, own_folder):
    Decisions.beside(own_folder).add("gone.jpg", "sea", "accepted")
    found = own_client.get(ADDRESS).json()
    assert (found["decisions"], found["total"], found["n_accepted"]) == ([], 0, 0)


def test_the_csv_has_all_tags_of_the_pictures_after_the_decisions(own_client, learnt):
    name, tags = learnt.corpus_.file_names[0], learnt.corpus_.tags[0]
    decide(own_client, name, tags[0], "rejected")
    decide(own_client, name, "unicorn", "accepted")
    response = own_client.get(f"{ADDRESS}/export?format=csv")
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"] == 'attachment; filename="tags.csv"'
    assert list(csv.DictReader(io.StringIO(response.text))) == [
        {"file_name": name, "tags": ";".join([*tags[1:], "unicorn"])}
    ]


def test_the_zip_has_a_sidecar_for_each_picture(own_client, learnt):
    name, tags = learnt.corpus_.file_names[0], learnt.corpus_.tags[0]
    decide(own_client, name, "unicorn", "accepted")
    response = own_client.get(f"{ADDRESS}/export?format=xmp")
    assert response.headers["content-disposition"] == 'attachment; filename="sidecars.zip"'
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        assert archive.namelist() == [name.rsplit(".", 1)[0] + ".xmp"]
        assert xmp_keywords(archive.read(archive.namelist()[0])) == [*tags, "unicorn"]


def test_without_decisions_the_exports_are_empty(own_client):
    assert own_client.get(f"{ADDRESS}/export").text == "file_name,tags\n"
    with zipfile.ZipFile(io.BytesIO(own_client.get(f"{ADDRESS}/export?format=xmp").content)) as archive:
        assert archive.namelist() == []


def test_an_unknown_picture_is_a_404(own_client):
    check_problem(decide(own_client, "unknown.jpg", "sea", "accepted"), 404, "not-found")


@pytest.mark.parametrize(
    "wrong", [{"decision": "perhaps"}, {"tag": " \u200b"}, {"tag": "a" * 201}, {"tag": 7}, {"picture": None}]
)
def test_a_wrong_word_or_tag_is_a_422(own_client, learnt, wrong):
    body = {"picture": picture_id(learnt.corpus_.file_names[0]), "tag": "sea", "decision": "accepted"} | wrong
    check_problem(own_client.put(ADDRESS, json=body), 422, "invalid")
    assert own_client.get(ADDRESS).json()["total"] == 0


def test_an_unknown_format_is_a_422(own_client):
    check_problem(own_client.get(f"{ADDRESS}/export?format=exe"), 422, "invalid")


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Sec-Fetch-Site": "cross-site"}])
def test_a_page_of_another_site_cannot_decide(own_client, learnt, headers):
    response = decide(own_client, learnt.corpus_.file_names[0], "sea", "accepted", headers=headers)
    check_problem(response, 403, "cross-site")
    assert own_client.get(ADDRESS).json()["total"] == 0


def test_deciding_needs_the_token(own_folder, learnt):
    with served(own_folder, token="a secret of some length") as client:  # noqa: S106
        check_problem(decide(client, learnt.corpus_.file_names[0], "sea", "accepted"), 401, "unauthorized")


def test_a_file_that_cannot_be_written_is_a_problem_without_a_path(own_client, own_folder, learnt):
    Decisions.beside(own_folder).path.mkdir()  # whoever runs the tests may write to any file
    response = decide(own_client, learnt.corpus_.file_names[0], "sea", "accepted")
    found = check_problem(response, 500, "internal")
    assert found["detail"].startswith("the decisions cannot be written here")
    assert "private" not in response.text


def test_a_damaged_file_is_a_problem_without_a_path(own_client, own_folder):
    Decisions.beside(own_folder).path.write_text("nonsense\n")
    response = own_client.get(ADDRESS)
    assert check_problem(response, 500, "internal")["detail"].startswith("the decisions cannot be read here")
    assert "private" not in response.text


def test_the_description_has_the_addresses(own_client):
    paths = own_client.get("/openapi.json").json()["paths"]
    assert set(paths[ADDRESS]) == {"get", "put"}
    assert set(paths[f"{ADDRESS}/export"]["get"]["responses"]["200"]["content"]) >= {"application/zip"}
