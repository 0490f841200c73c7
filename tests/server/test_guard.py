"""Who may ask, how much, and what every answer says to browsers."""

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from pictopic import PictureModel
from pictopic.server.app import create_app
from pictopic.server.live import picture_id
from pictopic.server.settings import Settings
from tests.server.conftest import check_problem, files, picture, served

# What is made once takes long: one process makes it for all.
pytestmark = pytest.mark.xdist_group("server")

UNKNOWN = "0" * 16


@pytest.mark.parametrize(
    ("method", "address", "status", "kind"),
    [
        ("GET", "/api/v1/pictures/" + UNKNOWN, 404, "not-found"),
        ("GET", "/api/v1/thumbnails/" + UNKNOWN, 404, "not-found"),
        ("GET", "/api/v1/thumbnails/..%2F..%2Fetc%2Fpasswd", 404, "not-found"),
        ("GET", "/api/v1/search?like=" + UNKNOWN, 404, "not-found"),
        ("GET", "/api/v1/tags/nosuchtag", 404, "not-found"),
        ("GET", "/nowhere", 404, "not-found"),
        ("GET", "/api/v1/annotate", 405, "method-not-allowed"),
        ("POST", "/api/v1/topics", 405, "method-not-allowed"),
        ("GET", "/api/v1/search", 422, "invalid"),
        ("GET", "/api/v1/search?tags=nosuchtag", 422, "invalid"),
        ("GET", "/api/v1/search?tags=sky&label=nosuchclass", 422, "invalid"),
        ("GET", "/api/v1/search?tags=sky&limit=0", 422, "invalid"),
        ("GET", "/api/v1/pictures?offset=-1", 422, "invalid"),
        ("GET", "/api/v1/thumbnails/" + UNKNOWN + "?side=9999", 422, "invalid"),
        ("POST", "/api/v1/annotate", 415, "unsupported-media-type"),
    ],
)
def test_every_error_is_a_problem(client, method, address, status, kind):
    check_problem(client.request(method, address), status, kind)


def test_wrong_parameters_are_named(client):
    found = client.get("/api/v1/pictures?offset=x&limit=0").json()
    assert [own["where"] for own in found["errors"]] == ["query.offset", "query.limit"]


def test_a_body_of_another_type_is_refused(client):
    response = client.post("/api/v1/annotate", content=picture(), headers={"Content-Type": "image/jpeg"})
    check_problem(response, 415, "unsupported-media-type")


@pytest.mark.parametrize(
    "body", [b"", b"--x\r\n", b"nothing", b"--x\r\nContent-Disposition: form-data\r\n\r\nx\r\n--x--\r\n"]
)
def test_a_broken_form_is_a_4xx(client, body):
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    assert 400 <= client.post("/api/v1/annotate", content=body, headers=headers).status_code < 500


def test_an_address_instead_of_a_picture_is_never_fetched(client):
    response = client.post("/api/v1/annotate", files={"pictures": (None, "http://127.0.0.1:1/picture.jpg")})
    check_problem(response, 422, "invalid")


def test_a_single_bad_picture_is_a_problem(client):
    found = check_problem(client.post("/api/v1/annotate", files=files(picture()[:200])), 422, "unreadable-picture")
    assert "truncated" in found["detail"] or "cut off" in found["detail"]


def test_an_error_inside_tells_nothing(folder, monkeypatch):
    def fail(*_, **__):
        raise RuntimeError(f"{folder}: secret")

    monkeypatch.setattr(PictureModel, "annotate", fail)
    with served(folder) as client:
        response = client.post("/api/v1/annotate", files=files(picture()))
        check_problem(response, 500, "internal")
        assert "secret" not in response.text
        assert response.headers["x-content-type-options"] == "nosniff"


def test_an_error_in_the_middle_of_a_stream_is_a_line(folder, monkeypatch):
    answer, calls = PictureModel.annotate, []

    def fail_later(*arguments, **options):
        calls.append(1)
        if len(calls) > 1:
            raise RuntimeError("secret")
        return answer(*arguments, **options)

    monkeypatch.setattr(PictureModel, "annotate", fail_later)
    with served(folder) as client:
        headers = {"Accept": "application/x-ndjson"}
        response = client.post("/api/v1/annotate", files=files(*[picture()] * 10), headers=headers)
    lines = [json.loads(line) for line in response.text.splitlines()]
    assert ["problem" in line for line in lines] == [False] * 8 + [True] * 2
    assert lines[-1]["problem"]["type"] == "/docs#internal"
    assert "secret" not in response.text


# ---- limits ----------------------------------------------------------------------------------------------------------


def test_a_body_that_says_that_it_is_too_large_is_not_read(folder):
    with served(folder, max_upload=5000) as client:
        check_problem(client.post("/api/v1/annotate", files=files(b"x" * 6000)), 413, "too-large")


def _ask_by_hand(app, receive):
    """Status and what is sent, without a client."""
    sent = []

    async def send(message):
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"multipart/form-data; boundary=x")]
    scope = {
        "type": "http", "method": "POST", "path": "/api/v1/annotate", "headers": headers, "query_string": b"",
        "http_version": "1.1", "scheme": "http", "server": ("127.0.0.1", 80), "client": None, "root_path": "",
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return sent


def test_a_body_without_a_length_is_read_up_to_the_limit_only(folder):
    n_read = 0

    async def receive():
        nonlocal n_read
        n_read += 1
        start = b'--x\r\nContent-Disposition: form-data; name="pictures"; filename="a.jpg"\r\n\r\n'
        return {"type": "http.request", "body": start if n_read == 1 else b"x" * 1000, "more_body": True}

    sent = _ask_by_hand(create_app(folder, Settings(max_upload=5000)), receive)
    assert sent[0]["status"] == 413
    assert (b"content-type", b"application/problem+json") in sent[0]["headers"]
    assert n_read == 6


def test_a_body_that_does_not_arrive_is_a_timeout(folder):
    app = create_app(folder, Settings(timeout=0.1))
    sent = _ask_by_hand(app, lambda: asyncio.sleep(10))
    assert sent[0]["status"] == 408
    assert (b"content-type", b"application/problem+json") in sent[0]["headers"]


def test_a_client_that_goes_away_is_no_error(folder, caplog):
    async def gone():
        return {"type": "http.disconnect"}

    assert _ask_by_hand(create_app(folder, Settings()), gone) == []
    assert not caplog.text


def test_too_many_files_are_refused(folder):
    with served(folder, max_files=2) as client:
        assert client.post("/api/v1/annotate", files=files(picture(), picture())).status_code == 200
        check_problem(client.post("/api/v1/annotate", files=files(*[picture()] * 3)), 413, "too-large")


def test_too_many_pixels_are_refused_before_they_are_decoded(folder):
    with served(folder, max_pixels=1000) as client:
        found = check_problem(client.post("/api/v1/annotate", files=files(picture())), 422, "unreadable-picture")
        assert "above the limit" in found["detail"]


@pytest.fixture
def blocked(monkeypatch):
    """Let the model answer only when it is allowed to."""
    allowed, answer = threading.Event(), PictureModel.annotate

    def wait(*arguments, **options):
        allowed.wait(10)
        return answer(*arguments, **options)

    monkeypatch.setattr(PictureModel, "annotate", wait)
    yield allowed
    allowed.set()


def test_when_too_many_wait_others_are_told_to_come_back(folder, blocked):
    with served(folder, threads=1, max_waiting=2) as client, ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(client.post, "/api/v1/annotate", files=files(picture())) for _ in range(2)]
        gate = client.app.state.parts.gate
        for _ in range(200):
            if gate.waiting == 2:
                break
            time.sleep(0.01)
        response = client.post("/api/v1/annotate", files=files(picture()))
        check_problem(response, 429, "busy")
        assert int(response.headers["retry-after"]) >= 1
        assert client.get("/healthz").status_code == 200
        blocked.set()
        assert [own.result().status_code for own in waiting] == [200, 200]
        assert client.post("/api/v1/annotate", files=files(picture())).status_code == 200
        assert gate.waiting == 0


def test_an_answer_that_takes_too_long_is_a_timeout(folder, blocked):
    with served(folder, timeout=0.2) as client:
        check_problem(client.post("/api/v1/annotate", files=files(picture())), 504, "timeout")
        blocked.set()


# ---- who may ask -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [None, "Bearer wrong", "Basic secret", "secret", "Bearer \xff", "Bearer"])
def test_without_the_token_there_is_no_answer(folder, given):
    headers = {} if given is None else {"Authorization": given.encode("latin-1")}
    with served(folder, token="secret") as client:  # noqa: S106
        for address in ("/api/v1/tags", "/metrics", "/api/v1/nowhere"):
            response = client.get(address, headers=headers)
            check_problem(response, 401, "unauthorized")
            assert response.headers["www-authenticate"] == "Bearer"
        assert client.get("/healthz").status_code == 200


def test_with_the_token_there_is(folder):
    with served(folder, token="sécret", headers={"Authorization": b"Bearer s\xc3\xa9cret"}) as client:  # noqa: S106
        assert client.get("/api/v1/tags").status_code == 200
        assert client.get("/openapi.json").json()["security"] == [{"token": []}]


@pytest.mark.parametrize(("host", "status"), [("localhost:8000", 200), ("[::1]:8000", 200), ("evil.example", 421)])
def test_on_loopback_only_its_own_names_are_answered(client, host, status):
    assert client.get("/api/v1/tags", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:3000"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_pages_of_other_sites_cannot_send_anything(client, headers):
    check_problem(client.post("/api/v1/annotate", files=files(picture()), headers=headers), 403, "cross-site")


def test_pages_of_ours_can(client):
    headers = {"Origin": "http://127.0.0.1", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/v1/annotate", files=files(picture()), headers=headers).status_code == 200


@pytest.mark.parametrize("address", ["/healthz", "/docs", "/nowhere", "/api/v1/tags", "/api/v1/search", "/metrics"])
def test_every_answer_has_the_headers_that_protect(client, address):
    headers = client.get(address).headers
    policy = headers["content-security-policy"]
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers
    assert headers["cache-control"] == "no-store"


def test_no_answer_names_a_place_on_the_machine(client, folder, scenes, learnt):
    own = picture_id(learnt.corpus_.file_names[0])
    addresses = [
        "/api/v1/topics?limit=1000", "/api/v1/tags", "/api/v1/tags/sky", "/api/v1/pictures?limit=1000",
        f"/api/v1/pictures/{own}", f"/api/v1/search?like={own}&limit=1000", "/api/v1/search", "/metrics",
        "/openapi.json",
        "/docs", f"/api/v1/thumbnails/{own}", "/api/v1/search?tags=x", "/healthz",
    ]  # fmt: skip
    answers = [client.get(address) for address in addresses]
    answers += [client.post("/api/v1/annotate", files=files(*some)) for some in ([b"x"], [b""], [picture(), b"GIF89a"])]
    for answer in answers:
        for place in (folder, scenes, "private-"):
            assert str(place).encode() not in answer.content + str(answer.headers).encode()
