"""A small model of made-up scenes, and clients of a server that serves it."""

from __future__ import annotations

import io
import socket
import threading
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import uvicorn
from fastapi.testclient import TestClient
from PIL import Image

from pictopic import PictureModel
from pictopic.demo.scenes import write_scenes
from pictopic.server.app import create_app
from pictopic.server.run import Connection, server_options
from pictopic.server.settings import Settings

QUICK = {"n_words": 12, "regions": "1x1", "features": ("cld",), "n_jobs": 1, "verbose": 0, "model": "shallow"}
LEARNT_ENOUGH = {"max_iter": 20}  # passes: what is asked is seldom how good the answers are
BASE = "http://127.0.0.1"


@pytest.fixture(scope="session")
def scenes(tmp_path_factory) -> Path:
    return write_scenes(tmp_path_factory.mktemp("private-place") / "scenes", n=96)


@pytest.fixture(scope="session")
def learnt(scenes) -> PictureModel:
    """Not to be changed."""
    return PictureModel(**QUICK, options=LEARNT_ENOUGH).fit(scenes)


@pytest.fixture(scope="session")
def folder(learnt, tmp_path_factory) -> Path:
    """Of the model; not to be changed."""
    folder = tmp_path_factory.mktemp("private-models") / "model"
    learnt.save(folder)
    return folder


@contextmanager
def served(folder, headers=None, **settings):
    """A client of a new server."""
    app = create_app(folder, Settings(**({"threads": 2} | settings)))
    with TestClient(app, base_url=BASE, headers=headers, raise_server_exceptions=False) as client:
        yield client


@contextmanager
def running(folder, limits=None, **settings):
    """The address of a server in a thread, that listens as `pictopic serve` does."""
    app_settings = Settings(**({"threads": 2} | settings))
    options = server_options(app_settings) | {"log_level": "error"}
    if limits is not None:
        options["http"] = partial(Connection, limits=limits)
    server = uvicorn.Server(uvicorn.Config(create_app(folder, app_settings), **options))
    listening = socket.create_server(("127.0.0.1", 0))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server has ended"
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def connect(address: str) -> socket.socket:
    """A connection to a server."""
    name, _, port = address.removeprefix("http://").rpartition(":")
    return socket.create_connection((name, int(port)), timeout=20)


def send_raw(address: str, request: bytes) -> bytes:
    """All that a server answers to some bytes, until it closes the connection."""
    with connect(address) as connection:
        connection.sendall(request)
        return read_all(connection)


def read_all(connection: socket.socket) -> bytes:
    """All that comes until the connection is closed."""
    parts = []
    try:
        while part := connection.recv(65536):
            parts.append(part)
    except ConnectionResetError:
        pass
    return b"".join(parts)


@pytest.fixture(scope="session")
def client(folder):
    """Of a server with the usual settings."""
    with served(folder) as client:
        yield client


def picture(seed: int = 0, kind: str = "JPEG", size: tuple[int, int] = (64, 48)) -> bytes:
    """A picture's bytes."""
    pixels = np.random.RandomState(seed).randint(256, size=(size[1], size[0], 3), dtype=np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind)
    return buffer.getvalue()


def files(*contents: bytes, name: str = "pictures") -> list[tuple[str, tuple[str, bytes]]]:
    """Contents as the client sends them."""
    return [(name, (f"{number}.jpg", content)) for number, content in enumerate(contents)]


def check_problem(response, status: int, kind: str) -> dict:
    """The problem, if it is the right one."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found = response.json()
    assert found["type"] == f"/docs#{kind}"
    assert found["status"] == status
    assert found["title"]
    assert found["detail"]
    return found


def get(client, address, **parameters):
    response = client.get(f"/api/v1{address}", params=parameters)
    assert response.status_code == 200, response.text
    return response.json()


def pairs(scored):
    return [(own["name"], own["score"]) for own in scored]


def close(ours, expected):
    """Whether names are the same, and values up to the digits that are rounded off."""
    return [a for a, _ in ours] == [a for a, _ in expected] and np.allclose(
        [b for _, b in ours], [b for _, b in expected], atol=1e-5
    )


def opened(response):
    """The pixels of a JPEG that was answered."""
    assert response.status_code == 200, response.text
    assert response.headers["content-type"] == "image/jpeg"
    return np.asarray(Image.open(io.BytesIO(response.content)).convert("RGB"), dtype=float)
