"""Errors as programs can read them: RFC 9457, ``application/problem+json``."""

from __future__ import annotations

import http
from collections.abc import Mapping

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

MEDIA_TYPE = "application/problem+json"

KINDS = {
    "bad-request": "The request is not as HTTP wants it.",
    "unauthorized": "The server wants a token: send the header 'Authorization: Bearer TOKEN'.",
    "cross-site": "The request comes from a page of another site.",
    "wrong-host": "The server does not know itself by this name.",
    "not-found": "There is no such thing.",
    "method-not-allowed": "The address does not take this method.",
    "timeout": "It took too long.",
    "too-large": "The request has too many bytes or too many pictures.",
    "unsupported-media-type": "The body must be multipart/form-data.",
    "invalid": "A parameter is missing or wrong, or the model cannot answer this.",
    "unreadable-picture": "What was sent cannot be read as a picture.",
    "busy": "Too many requests at once: come back after as many seconds as Retry-After says.",
    "damaged-model": "A file of the model is damaged: put another one in its place, such as with pictopic fit.",
    "internal": "Something went wrong in the server; its log says what.",
}
_KIND_OF_STATUS = {
    400: "bad-request", 401: "unauthorized", 403: "cross-site", 404: "not-found", 405: "method-not-allowed",
    408: "timeout", 413: "too-large", 415: "unsupported-media-type", 421: "wrong-host", 422: "invalid", 429: "busy",
    504: "timeout",
}  # fmt: skip


class WrongParameter(BaseModel):
    """What is wrong with a parameter."""

    where: str
    message: str


class Problem(BaseModel):
    """An error, as in RFC 9457."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[WrongParameter] = []


class ProblemError(HTTPException):
    """An error that is answered with a problem.

    Parameters
    ----------
    status : int
    detail : str
        For people; must not reveal anything about the machine.
    kind : str, optional
        One of `KINDS`; default: the usual one of the status.
    headers : mapping, optional

    Examples
    --------
    >>> from pictopic.server.problems import ProblemError
    >>> ProblemError(404, "there is no tag 'see'").problem().type
    '/docs#not-found'
    """

    def __init__(
        self, status: int, detail: str, kind: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, detail, headers)
        self.kind = kind or _KIND_OF_STATUS.get(status, "internal" if status >= 500 else "bad-request")

    def problem(self) -> Problem:
        """The problem that the client gets."""
        title = http.HTTPStatus(self.status_code).phrase
        return Problem(type=f"/docs#{self.kind}", title=title, status=self.status_code, detail=self.detail)

    def response(self) -> Response:
        """The problem as a response."""
        return _response(self.problem(), self.headers)


def internal_error() -> ProblemError:
    """An error of the server itself; what went wrong is in its log only."""
    return ProblemError(500, KINDS["internal"])


def no_answer_within(seconds: float) -> ProblemError:
    """The error of a request that took too long."""
    return ProblemError(504, f"no answer within {seconds:g} seconds")


def add_handlers(app: FastAPI) -> None:
    """Answer all errors of an app with problems."""
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _validation_error)


def _response(problem: Problem, headers: Mapping[str, str] | None = None) -> Response:
    content = problem.model_dump(exclude_defaults=True)
    return JSONResponse(content, problem.status, dict(headers or {}), MEDIA_TYPE)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)  # noqa: S101
    if not isinstance(error, ProblemError):
        error = ProblemError(error.status_code, str(error.detail), headers=error.headers)
    return error.response()


async def _validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    problem = ProblemError(422, "some parameters are missing or wrong").problem()
    problem.errors = [
        WrongParameter(where=".".join(str(part) for part in wrong["loc"])[:200], message=str(wrong["msg"])[:200])
        for wrong in error.errors()[:20]
    ]
    return _response(problem)
