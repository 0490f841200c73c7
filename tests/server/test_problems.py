import http

import pytest
from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient

from pictopic.server import problems


@pytest.fixture
def client():
    app = FastAPI()
    problems.add_handlers(app)

    @app.get("/teapot")
    def teapot():
        raise HTTPException(418, "short and stout")

    @app.get("/busy")
    def busy():
        raise problems.ProblemError(429, "come back", headers={"Retry-After": "2"})

    @app.get("/double")
    def double(number: int):
        return 2 * number

    return TestClient(app)


def check(response, status, kind):
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"
    content = response.json()
    assert (content["status"], content["type"]) == (status, f"/docs#{kind}")
    assert content["title"] == http.HTTPStatus(status).phrase
    return content


def test_an_error_of_the_framework_becomes_a_problem(client):
    assert check(client.get("/teapot"), 418, "bad-request")["detail"] == "short and stout"
    check(client.get("/nowhere"), 404, "not-found")


def test_a_problem_keeps_its_headers(client):
    response = client.get("/busy")
    check(response, 429, "busy")
    assert response.headers["retry-after"] == "2"


def test_each_wrong_parameter_is_named(client):
    [wrong] = check(client.get("/double?number=two"), 422, "invalid")["errors"]
    assert wrong["where"] == "query.number"
    assert client.get("/double?number=2").json() == 4


def test_every_status_has_a_kind_that_is_described():
    for status in http.HTTPStatus:
        if status >= 400:
            assert problems.ProblemError(status, "").kind in problems.KINDS
    assert problems.internal_error().kind == "internal"
    assert problems.no_answer_within(0.5).detail == "no answer within 0.5 seconds"
