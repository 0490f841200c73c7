"""Who may ask, how much, and what every answer says to browsers."""

import asyncio
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import httpx
import pytest

from pictopic import PictureModel
from pictopic.server import security
from pictopic.server.app import create_app
from pictopic.server.connections import ConnectionLimits
from pictopic.server.served_model import picture_id
from pictopic.server.settings import Settings
from tests.server.conftest import check_problem, connect, files, picture, running, send_raw, served

# What is made once takes long: one process makes it for all.
pytestmark = pytest.mark.xdist_group("server")

UNKNOWN = "0" * 16
TOKEN = "a secret of some length"  # noqa: S105


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


def _sign_in_slowly(address):
    """A connection on which the body of a request does not arrive."""
    connection = connect(address)
    head = b"POST /api/v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    connection.sendall(head + b"Content-Length: 16\r\n\r\n{")
    return connection


def test_bodies_that_do_not_arrive_are_in_nobodys_way(folder):
    """The oldest of them gives way, here or among the answers."""
    with running(folder, max_requests=4, token=TOKEN) as address, ExitStack() as stack:
        slow = [stack.enter_context(_sign_in_slowly(address)) for _ in range(100)]
        headers = {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=address, headers=headers, timeout=4) as client:
            assert client.get("/healthz").status_code == 200
            assert client.get("/").status_code == 200
            assert client.get("/api/v1/tags").status_code == 200
            assert client.post("/api/v1/session", json={"token": TOKEN}).status_code == 204
        assert slow[0].recv(12) == b"HTTP/1.1 408"
        slow[-1].sendall(b'"token":"nothing"}')
        assert slow[-1].recv(12) == b"HTTP/1.1 422"  # who came last had not to go


def test_bytes_that_are_held_are_bounded(folder, monkeypatch):
    monkeypatch.setattr(security, "_BODIES_AT_ONCE", 2)
    start = b'--x\r\nContent-Disposition: form-data; name="a"; filename="a.jpg"\r\n\r\n' + b"x" * 90_000
    head = (
        b"POST /api/v1/annotate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=x\r\n"
        b"Content-Length: 100000\r\n\r\n"
    )
    with running(folder, max_upload=100_000) as address, ExitStack() as stack:
        slow = [stack.enter_context(connect(address)) for _ in range(3)]
        for connection in slow:
            connection.sendall(head + start)
            time.sleep(0.2)
        assert slow[0].recv(12) == b"HTTP/1.1 408"
        slow[2].sendall(b"x" * (100_000 - len(start)))
        assert slow[2].recv(12) == b"HTTP/1.1 422"  # the whole form has arrived, and has no picture


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


@pytest.mark.parametrize("given", [None, "Bearer wrong", f"Basic {TOKEN}", TOKEN, "Bearer \xff", "Bearer"])
def test_without_the_token_there_is_no_answer(folder, given):
    headers = {} if given is None else {"Authorization": given.encode("latin-1")}
    with served(folder, token=TOKEN) as client:
        for address in ("/api/v1/tags", "/metrics", "/api/v1/nowhere"):
            response = client.get(address, headers=headers)
            check_problem(response, 401, "unauthorized")
            assert response.headers["www-authenticate"] == "Bearer"
        assert client.get("/healthz").status_code == 200


def test_with_the_token_there_is(folder):
    token = "un sécret assez long"  # noqa: S105
    with served(folder, token=token, headers={"Authorization": f"Bearer {token}".encode()}) as client:
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


@pytest.mark.parametrize("origin", ["http://[::1", "http://[", "//", "http://127.0.0.1:x", "\xff", "[::1]"])
def test_an_origin_that_is_none_is_another_site(client, origin):
    headers = {"Origin": origin.encode("latin-1")}
    check_problem(client.post("/api/v1/annotate", files=files(picture()), headers=headers), 403, "cross-site")


def test_pages_of_ours_can(client):
    headers = {"Origin": "http://127.0.0.1", "Sec-Fetch-Site": "same-origin"}
    assert client.post("/api/v1/annotate", files=files(picture()), headers=headers).status_code == 200


def _get_routes(client):
    """An address for each route that answers GET."""
    listed = client.get("/api/v1/pictures").json()["pictures"][0]
    fill = {"id": listed["id"], "name": "sky", "word": "0", "name:path": "sky"}
    needed = {
        "/api/v1/search": "?tags=sky", "/api/v1/missing": "?tag=sky", "/api/v1/doubtful": "?tag=sky",
        "/api/v1/pictures/{id}/explain": "?name=sky", "/api/v1/quality/confused": "?true=coast&predicted=coast",
    }  # fmt: skip
    yield from ("/static/app.js", "/", "/docs", "/openapi.json", "/nowhere", "/api/v1/pictures/" + UNKNOWN)
    for path, operations in client.get("/openapi.json").json()["paths"].items():
        if "get" in operations:
            yield path.format(**fill) + needed.get(path, "")


def test_head_says_what_get_would_say(client):
    addresses = list(_get_routes(client))
    assert len(addresses) > 20
    for address in addresses:
        got, head = client.get(address), client.head(address)
        assert head.status_code == got.status_code, address
        assert head.content == b""
        if address != "/metrics":  # which counts the request itself
            assert head.headers == got.headers, address


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


# ---- headers that are no headers -------------------------------------------------------------------------------------

ODD = [
    b"", b" ", b"\xff\xfe", b"[::1", b"[", b"]", b"[]", b"[::1]:99999", b"a:b:c", b"//", b"http://[", b"http://[::1",
    b"null", b"0", b"-1", b"+1", b"1_0", b"9" * 5000, b"1e9", "\u0663".encode(), b"\xb2", b"1, 1", b"1,2", b"=", b";",
    b",", b'"', b"'", b"%", b"%00", b"*", b"*/*", b"bytes", b"bytes=", b"bytes=-", b"bytes=5-1", b"bytes=0-0,0-0,1-1",
    b"bytes=-99999999", b"bytes=" + b"9" * 5000 + b"-", b"bytes=" + b"0-0," * 500 + b"0-0", b"bytes=a-b",
    b"chars=0-1", b"W/", b'W/"', b'"x", "y"', b"Bearer", b"Bearer ", b"Bearer \xff", b"Basic Og==",
    b"pictopic_session", b"pictopic_session=", b'pictopic_session="\\777"', b'pictopic_session="\\', b"a=b; " * 500,
    b"multipart/form-data", b"multipart/form-data; boundary", b"multipart/form-data; boundary=",
    b'multipart/form-data; boundary="', b"multipart/form-data; boundary=x; charset=undefined",
    b"multipart/form-data; boundary=x; charset=idna", b"multipart/form-data; boundary=x; charset=unicode_escape",
    b"multipart/form-data; boundary=x; charset=\xff", b"multipart/form-data; boundary*=utf-8''%ff",
    b"application/json; charset=x", b"application/json; charset=undefined", b"application/", b"/",
    b"application/json/x", b"Sat, 99 Foo 99999 99:99:99 GMT", b"Sat, 01 Jan 999999999999 00:00:00 GMT", b"chunked",
    b"gzip", b"x" * 8000,
]  # fmt: skip
PARSED = (
    "Host", "Origin", "Authorization", "Cookie", "Content-Length", "Content-Type", "Range", "If-None-Match", "If-Range",
    "If-Modified-Since", "Accept", "Sec-Fetch-Site", "Transfer-Encoding", "Expect", "Upgrade",
)  # fmt: skip
FORM = b'--x\r\nContent-Disposition: form-data; name="a"; filename="a.jpg"\r\n\r\nx\r\n--x--\r\n'
ASKED = (
    ("GET", "/", b""), ("GET", "/static/app.js", b""), ("GET", "/api/v1/tags", b""), ("GET", "/docs/", b""),
    ("POST", "/api/v1/annotate", FORM), ("POST", "/api/v1/session", b'{"token": "x"}'),
    ("PUT", "/api/v1/decisions", b'{"picture": "x", "tag": "x", "decision": "accepted"}'),
)  # fmt: skip


@pytest.fixture(scope="module", params=["loopback", "public"])
def address(request, folder):
    """Of a server for this machine, or of one with a token for others."""
    settings = {} if request.param == "loopback" else {"token": TOKEN, "hosts": None}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pictopic.server.throttle._LONGEST_DELAY", 0.01)
        patch.setattr("pictopic.server.throttle._FIRST_DELAY", 0.001)
        with running(folder, ConnectionLimits(head_seconds=5.0), timeout=10.0, **settings) as address:
            yield address


@pytest.mark.parametrize("name", PARSED)
def test_no_header_is_a_5xx(address, name):
    with ThreadPoolExecutor(8) as pool:
        requests = [_request(*asked, name, value) for asked in ASKED for value in ODD]
        answers = list(pool.map(lambda request: send_raw(address, request), requests))
    for request, answer in zip(requests, answers, strict=True):
        status = answer.split(b" ", 2)[1:2] or [b"none"]
        assert status[0][:1] in (b"2", b"3", b"4"), (request, answer)


def _request(method, path, body, name, value):
    headers = {
        "Host": b"127.0.0.1", "Connection": b"close", "Content-Length": str(len(body)).encode(),
        "Content-Type": b"multipart/form-data; boundary=x" if body == FORM else b"application/json",
        "Authorization": f"Bearer {TOKEN}".encode(),
    }  # fmt: skip
    headers[name] = value
    lines = [f"{method} {path} HTTP/1.1".encode(), *(key.encode() + b": " + text for key, text in headers.items())]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


@pytest.mark.parametrize(
    "path", ["/%00", "/static/%00", "/static/%ff", "/static/" + "x" * 5000, "/api/v1/tags/%00", "//", "*"]
)
def test_no_path_is_a_5xx(address, path):
    answer = send_raw(address, _request("GET", path, b"", "Accept", b"*/*"))
    assert answer.split(b" ", 2)[1][:1] in (b"2", b"3", b"4"), answer
