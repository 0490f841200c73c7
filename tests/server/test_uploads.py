"""Pictures that are sent: how many pixels, and for how long somebody waits for them."""

import asyncio
import io
import threading
import time

import pytest
from PIL import Image
from starlette.requests import ClientDisconnect

from pictopic.server import questions, uploads
from pictopic.server.problems import ProblemError
from pictopic.server.security import Deadline
from pictopic.server.settings import Settings
from pictopic.server.uploads import Upload, check_pixels
from tests.server.conftest import check_problem, connect, files, picture, running, served
from tests.support.pictures import progressive

# What is made once takes long: one process makes it for all.
pytestmark = pytest.mark.xdist_group("server")


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

    monkeypatch.setattr(questions, "open_upload", slowly)
    yield opened, may_go_on
    may_go_on.set()


def test_when_its_time_is_over_no_other_picture_of_a_request_is_opened(folder, slow_pictures):
    opened, may_go_on = slow_pictures
    with served(folder, timeout=0.3, threads=1) as client:
        check_problem(client.post("/api/v1/annotate", files=files(*[picture()] * 5)), 504, "timeout")
        may_go_on.set()
        _wait_for(lambda: client.app.state.parts.gate.waiting == 0)
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
