"""What clients send: bodies, pictures and their pixels, and for how long somebody waits for them."""

import asyncio
import io
import threading
import time
from contextlib import ExitStack

import httpx
import pytest
from PIL import Image
from starlette.requests import ClientDisconnect

from pictopic.server import security, uploads
from pictopic.server.app import create_app
from pictopic.server.problems import ProblemError
from pictopic.server.routers import pictures
from pictopic.server.settings import Settings
from pictopic.server.uploads import Deadline, Upload, check_pixels
from tests.server.conftest import check_problem, connect, files, picture, running, served
from tests.support.pictures import progressive

# What is made once takes long: one process makes it for all.

TOKEN = "a secret of some length"  # noqa: S105


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


# ---- pictures --------------------------------------------------------------------------------------------------------


def large(width=7000, height=7000):
    """A PNG of 49 million pixels, of 50 KB."""
    buffer = io.BytesIO()
    Image.new("L", (width, height), 7).save(buffer, "PNG")
    return buffer.getvalue()


def test_too_many_pixels_together_are_refused_before_any_is_decoded(folder, monkeypatch):
    def decode(*_):
        raise AssertionError("decoded")

    content = large()
    monkeypatch.setattr(Image.Image, "load", decode)
    with served(folder) as client:
        response = client.post("/api/v1/annotate", files=files(*[content] * 24))
    found = check_problem(response, 413, "too-large")
    assert "at most 200,000,000 pixels" in found["detail"]
    assert "1,176,000,000" in found["detail"]


def test_pictures_that_are_not_decoded_do_not_count():
    settings = Settings(max_pixels=1000, max_request_pixels=5000)
    small = [Upload("a", picture(size=(30, 30), kind="PNG"), Deadline(30))] * 5
    check_pixels([*small, Upload("b", picture(), Deadline(30)), Upload("c", b"x", Deadline(30))], settings)
    with pytest.raises(ProblemError, match="413"):
        check_pixels([*small, small[0]], settings)


@pytest.mark.parametrize("address", ["annotate", "look"])
def test_a_jpeg_of_too_many_scans_is_refused_before_it_is_decoded(client, address):
    response = client.post(f"/api/v1/{address}", files=files(progressive(100)))
    assert "more than 50 scans" in check_problem(response, 422, "unreadable-picture")["detail"]


@pytest.fixture
def slow_pictures(monkeypatch):
    """How many pictures were opened; the first one takes until the event is set."""
    opened, may_go_on, open_upload = [], threading.Event(), uploads.open_upload

    def slowly(upload, *others):
        image = open_upload(upload, *others)
        opened.append(upload.name)
        may_go_on.wait(20)
        return image

    monkeypatch.setattr(pictures, "open_upload", slowly)
    yield opened, may_go_on
    may_go_on.set()


def test_when_its_time_is_over_no_other_picture_of_a_request_is_opened(folder, slow_pictures):
    opened, may_go_on = slow_pictures
    with served(folder, timeout=0.3, threads=1) as client:
        check_problem(client.post("/api/v1/annotate", files=files(*[picture()] * 5)), 504, "timeout")
        may_go_on.set()
        _wait_for(lambda: client.app.state.server.queue.waiting == 0)
    assert opened == ["0.jpg"]


def test_when_the_client_is_gone_no_other_picture_of_a_request_is_opened(folder, slow_pictures):
    opened, may_go_on = slow_pictures
    part = b'--x\r\nContent-Disposition: form-data; name="a"; filename="a.jpg"\r\n\r\n' + picture() + b"\r\n"
    body = part * 5 + b"--x--\r\n"
    head = (
        b"POST /api/v1/annotate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=x\r\n"
        b"Content-Length: %d\r\n\r\n" % len(body)
    )
    with running(folder, threads=1) as address:
        with connect(address) as connection:
            connection.sendall(head + body)
            _wait_for(lambda: opened)
        time.sleep(0.3)
        may_go_on.set()
        time.sleep(0.5)
    assert opened == ["a.jpg"]


def test_waiting_ends_when_the_client_is_gone():
    class Gone:
        async def receive(self):
            return {"type": "http.disconnect"}

    deadline = Deadline(30)

    async def run():
        await uploads.while_connected(Gone(), deadline, asyncio.sleep(30))

    with pytest.raises(ClientDisconnect):
        asyncio.run(run())
    assert deadline.is_over


@pytest.mark.parametrize("charset", ["undefined", "idna", "punycode", "rot13", "unicode_escape", "x"])
def test_a_form_in_any_encoding_is_never_a_5xx(client, charset):
    body = b'--x\r\nContent-Disposition: form-data; name="\xff\\x"; filename="\xff.\\N"\r\n\r\nx\r\n--x--\r\n'
    headers = {"Content-Type": f"multipart/form-data; boundary=x; charset={charset}"}
    assert 400 <= client.post("/api/v1/annotate", content=body, headers=headers).status_code < 500


def _wait_for(condition, seconds=20.0):
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.02)
