"""What somebody might send who means no good: always a 4xx, and the server goes on."""

import gc
import io
import os
import struct
import zlib

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.server.conftest import files, picture, served

# What is made once takes long: one process makes it for all.

QUICKLY = {"deadline": None, "suppress_health_check": list(HealthCheck)}


def bomb(width: int, height: int) -> bytes:
    """A PNG of very few bytes for very many pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 1000))
        + chunk(b"IEND", b"")
    )


WHOLE = {kind: picture(1, kind) for kind in ("JPEG", "PNG", "GIF", "BMP", "TIFF", "WEBP")}


@st.composite
def contents(draw) -> bytes:
    """No picture, but nearly one."""
    what = draw(st.sampled_from(["truncated", "bytes", "bomb", "beginning", "text"]))
    if what == "truncated":
        whole = WHOLE[draw(st.sampled_from(["JPEG", "PNG", "BMP"]))]
        return whole[: draw(st.integers(0, len(whole) * 9 // 10))]
    if what == "bomb":
        return bomb(draw(st.integers(7000, 2**31 - 1)), draw(st.integers(8000, 2**31 - 1)))
    if what == "beginning":
        return WHOLE[draw(st.sampled_from(sorted(WHOLE)))][:16] + draw(st.binary(max_size=200))
    if what == "text":
        return draw(
            st.sampled_from([b"<svg xmlns='http://www.w3.org/2000/svg'/>", b"%PDF-1.4", b"<?php ?>", b"PK\3\4"])
        )
    return draw(st.binary(max_size=300))


NAMES = st.one_of(
    st.sampled_from(
        ["../../etc/passwd", "/etc/passwd", "a" * 5000, "\0", "con", "..", "a\r\nb: c", "'\";<script>", "😀"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=50),
)
ROUTES = tuple(f"/api/v1/{own}" for own in ("annotate", "classify", "search", "look", "explain?name=sky"))


def _send(client, route, name, content):
    response = client.post(route, files=[("picture", (name, content))])
    assert 400 <= response.status_code < 500, (route, name, content, response.text)
    assert response.headers["content-type"] == "application/problem+json"


@given(route=st.sampled_from(ROUTES), name=NAMES, content=contents())
@settings(max_examples=60, **QUICKLY)
def test_hostile_uploads_are_4xx(client, route, name, content):
    _send(client, route, name, content)


@given(kind=st.sampled_from(sorted(WHOLE)), data=st.data())
@settings(max_examples=60, **QUICKLY)
def test_pictures_with_wrong_bytes_are_never_a_5xx(client, kind, data):
    content = bytearray(WHOLE[kind])
    for place, value in data.draw(
        st.lists(st.tuples(st.integers(0, len(content) - 1), st.integers(0, 255)), max_size=20)
    ):
        content[place] = value
    assert client.post("/api/v1/annotate", files=files(bytes(content))).status_code in (200, 422)


@pytest.mark.parametrize("size", [(1, 1), (1, 3000), (3000, 1), (7, 7)])
def test_odd_sizes_are_answered(client, size):
    assert client.post("/api/v1/annotate", files=files(picture(size=size, kind="PNG"))).status_code == 200


def _memory() -> int:
    """Bytes of this process in memory."""
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_ten_thousand_hostile_uploads_leave_the_memory_flat(folder):
    sizes = []
    with served(folder) as client:

        def run(n):
            # Without a data base of examples and without shrinking nothing of the test itself stays in memory.
            @given(route=st.sampled_from(ROUTES), name=NAMES, content=contents())
            @settings(max_examples=n, database=None, phases=[Phase.generate], **QUICKLY)
            def send(route, name, content):
                _send(client, route, name, content)

            send()

        for _ in range(5):
            run(2000)
            sizes.append(_memory())
        assert client.get("/healthz").status_code == 200
    assert sizes[-1] < 1.05 * sizes[1], sizes


@pytest.mark.slow
def test_no_request_that_the_description_allows_is_a_5xx(folder):
    import schemathesis
    from schemathesis.checks import not_a_server_error

    with served(folder) as client:
        schema = schemathesis.openapi.from_asgi("/openapi.json", client.app, headers={"Host": "127.0.0.1"})
        n_tried = 0
        for operation in schema.get_all_operations():
            strategy = operation.ok().as_strategy()

            @given(case=strategy)
            @settings(max_examples=60, database=None, **QUICKLY)
            def ask(case):
                nonlocal n_tried
                n_tried += 1
                response = case.call(headers={"Host": "127.0.0.1"})
                case.validate_response(response, checks=[not_a_server_error])

            ask()
        assert n_tried > 300


def test_a_picture_of_many_frames_costs_one(client):
    from PIL import Image

    buffer = io.BytesIO()
    frames = [Image.new("L", (40, 40), shade) for shade in range(200)]
    frames[0].save(buffer, "GIF", save_all=True, append_images=frames[1:])
    assert client.post("/api/v1/annotate", files=files(buffer.getvalue())).status_code == 200
