"""Signing in from a browser."""

import time

import pytest
from starlette.datastructures import Headers

from pictopic.server import security
from pictopic.server.security import given_cookie
from tests.server.conftest import check_problem, served

# What is made once takes long: one process makes it for all.

TOKEN = "un sécret assez long"  # noqa: S105
ADDRESS = "/api/v1/session"


@pytest.fixture(scope="module")
def shared(folder):
    with served(folder, token=TOKEN) as client:
        yield client


@pytest.fixture
def client(shared, monkeypatch):
    """A browser without cookies."""
    monkeypatch.setattr(security, "_LONGEST_DELAY", 0.01)  # many wrong tokens come from here
    shared.cookies.clear()
    return shared


def test_with_the_cookie_there_is_an_answer_until_one_signs_out(client):
    check_problem(client.get("/api/v1/tags"), 401, "unauthorized")
    assert client.post(ADDRESS, json={"token": TOKEN}).status_code == 204
    assert client.get("/api/v1/tags").status_code == 200
    assert client.get("/metrics").status_code == 200
    assert client.delete(ADDRESS).status_code == 204
    check_problem(client.get("/api/v1/tags"), 401, "unauthorized")


def test_the_cookie_is_out_of_reach_and_does_not_tell_the_token(client):
    cookie = client.post(ADDRESS, json={"token": TOKEN}).headers["set-cookie"]
    parts = [part.strip().lower() for part in cookie.split(";")]
    assert {"httponly", "samesite=strict", "path=/"} <= set(parts)
    assert TOKEN not in cookie


def test_the_cookie_outlives_the_server(client, folder):
    client.post(ADDRESS, json={"token": TOKEN})
    value = client.cookies["pictopic_session"]
    headers = {"Cookie": f"other=1; pictopic_session={value}"}
    with served(folder, token=TOKEN, headers=headers) as again:
        assert again.get("/api/v1/tags").status_code == 200
    with served(folder, token="another one of some length", headers=headers) as other:  # noqa: S106
        check_problem(other.get("/api/v1/tags"), 401, "unauthorized")


@pytest.mark.parametrize("token", ["", "secret", TOKEN + " ", "\ud800"])
def test_a_wrong_token_is_refused(client, token):
    response = client.post(ADDRESS, content=f'{{"token": "{token}"}}'.encode("utf-8", "surrogatepass"))
    assert response.status_code in (401, 422, 400)
    assert "set-cookie" not in response.headers
    check_problem(client.get("/api/v1/tags"), 401, "unauthorized")


def test_a_wrong_token_takes_a_while_and_the_next_one_longer(folder):
    with served(folder, token=TOKEN) as client:
        for token, seconds in (("wrong", 0.5), ("wrong again", 1.0)):
            start = time.monotonic()
            check_problem(client.post(ADDRESS, json={"token": token}), 401, "unauthorized")
            assert time.monotonic() - start >= 0.9 * seconds
        assert client.post(ADDRESS, json={"token": TOKEN}).status_code == 204


@pytest.mark.parametrize(
    "cookie",
    [b"", b"pictopic_session", b"pictopic_session=", b"pictopic_session=x", b"pictopic_session=\xff", b'"; ;='],
)
def test_a_wrong_cookie_is_refused(client, cookie):
    check_problem(client.get("/api/v1/tags", headers={"Cookie": cookie}), 401, "unauthorized")


def test_a_long_cookie_keeps_nobody_waiting():
    start = time.monotonic()
    given_cookie(Headers({"cookie": 'pictopic_session="' + '\\"' * 30_000 + '"'}))
    assert time.monotonic() - start < 0.5


@pytest.mark.parametrize("others", ["a=1; {}; b=2", "{};", " {} ", "a b=[1]; {}", 'a="; {}', "é=ü;{}", "=; ;; {}"])
def test_the_cookie_is_found_among_others(others):
    cookie = others.format("pictopic_session=0123abcd")
    assert given_cookie(Headers(raw=[(b"cookie", cookie.encode())])) == b"0123abcd"


@pytest.mark.parametrize("cookie", ["", ";", "a=1", "pictopic_session", "pictopic_session=", "xpictopic_session=1"])
def test_without_the_cookie_there_is_none(cookie):
    assert given_cookie(Headers({"cookie": cookie})) == b""


def test_pages_of_other_sites_cannot_sign_in(client):
    response = client.post(ADDRESS, json={"token": TOKEN}, headers={"Sec-Fetch-Site": "cross-site"})
    check_problem(response, 403, "cross-site")


def test_without_a_token_everybody_is_signed_in(folder):
    with served(folder) as client:
        response = client.post(ADDRESS, json={"token": "any"})
        assert (response.status_code, response.headers.get("set-cookie")) == (204, None)
        assert client.delete(ADDRESS).status_code == 204


def test_the_description_says_that_it_needs_no_token(client):
    document = client.get("/openapi.json").json()
    assert document["paths"][ADDRESS]["post"]["security"] == []
    assert document["security"] == [{"token": []}]
    assert client.get("/docs").status_code == 200
