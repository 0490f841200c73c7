"""Who may ask, who tries tokens, and what every answer says to browsers."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from pictopic import PictureModel
from pictopic.server import security
from pictopic.server.problems import ProblemError
from pictopic.server.run import ConnectionLimits
from pictopic.server.security import Throttle, client_of
from pictopic.server.served_model import picture_id
from tests.server.conftest import check_problem, files, picture, running, send_raw, served

# What is made once takes long: one process makes it for all.

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


# ---- guessing tokens -------------------------------------------------------------------------------------------------


@pytest.fixture
def waited(monkeypatch):
    """The seconds of each delay, none of which is waited for."""
    seconds = []

    async def sleep(delay):
        seconds.append(delay)

    monkeypatch.setattr(security.asyncio, "sleep", sleep)
    return seconds


def status(throttle, client, credential, is_right=False):
    """0 if it is let through."""
    try:
        asyncio.run(throttle.check(client, credential, is_right))
    except ProblemError as error:
        return error.status_code
    return 0


def test_each_wrong_one_takes_longer_up_to_a_bound(waited):
    throttle = Throttle()
    assert [status(throttle, "a", b"%d" % k) for k in range(8)] == [401] * 8
    assert waited == [0.5, 1, 2, 4, 8, 8, 8, 8]


def test_the_same_wrong_one_counts_once(waited):
    throttle = Throttle()
    assert [status(throttle, "a", b"stale cookie") for _ in range(50)] == [401] * 50
    assert waited == [0.5]


def test_other_clients_and_right_ones_are_not_slowed_down(waited):
    throttle = Throttle()
    for k in range(8):
        status(throttle, "a", b"%d" % k)
    waited.clear()
    assert status(throttle, "b", b"right", is_right=True) == 0
    assert status(throttle, "a", b"right", is_right=True) == 0
    assert waited == []
    assert status(throttle, "b", b"wrong") == 401
    assert waited == [0.5]


def test_many_at_once_are_refused_unseen(monkeypatch):
    """Otherwise the one that is answered at once would be the right one."""
    monkeypatch.setattr(security, "_LONGEST_DELAY", 0.1)

    async def run():
        throttle = Throttle()
        wrong = [asyncio.create_task(throttle.check("a", b"%d" % k, False)) for k in range(20)]
        await asyncio.sleep(0)
        with pytest.raises(ProblemError) as refused:
            await throttle.check("a", b"right", True)
        await throttle.check("b", b"right", True)
        found = await asyncio.gather(*wrong, return_exceptions=True)
        await throttle.check("a", b"right", True)
        return refused.value, [error.status_code for error in found]

    refused, statuses = asyncio.run(run())
    assert refused.status_code == 429
    assert int(refused.headers["Retry-After"]) >= 1
    assert statuses == [401] * 8 + [429] * 12


def test_wrong_ones_are_forgotten(waited, monkeypatch):
    throttle = Throttle()
    for k in range(8):
        status(throttle, "a", b"%d" % k)
    waited.clear()
    monkeypatch.setattr(security, "_FORGOTTEN", -1.0)
    status(throttle, "a", b"0")
    assert waited == [0.5]


def test_the_memory_is_bounded(waited, monkeypatch):
    monkeypatch.setattr(security, "_CLIENTS", 100)
    throttle = Throttle()

    async def run():
        for k in range(1000):
            with pytest.raises(ProblemError):
                await throttle.check(str(k), b"wrong", False)

    asyncio.run(run())
    assert len(throttle._tries) == 100


@pytest.mark.parametrize(
    ("host", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("::1", "::"),
        ("testclient", "testclient"),
    ],
)
def test_who_a_client_is(host, client):
    assert client_of({"client": (host, 1)}) == client
    assert client_of({"client": None}) == ""


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
        patch.setattr("pictopic.server.security._LONGEST_DELAY", 0.01)
        patch.setattr("pictopic.server.security._FIRST_DELAY", 0.001)
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
