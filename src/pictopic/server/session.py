"""Signing in to a server with a token, from a browser: a cookie that stands for the token."""

from __future__ import annotations

import hashlib
import hmac
from typing import Annotated

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field
from starlette.datastructures import Headers

from pictopic.server.settings import Settings
from pictopic.server.throttle import Throttle, client_of

ADDRESS = "/api/v1/session"
COOKIE = "pictopic_session"
_DAYS = 30 * 24 * 3600


class Given(BaseModel):
    """What somebody says is the token."""

    token: Annotated[str, Field(max_length=1000)]


def cookie_value(token: str) -> str:
    """What a browser keeps: it follows from the token, so that it outlives the server, but does not tell it.

    Examples
    --------
    >>> from pictopic.server.session import cookie_value
    >>> len(cookie_value("secret")), cookie_value("secret") == cookie_value("other")
    (64, False)
    """
    return hmac.new(token.encode(), b"pictopic session 1", hashlib.sha256).hexdigest()


def given_cookie(headers: Headers) -> bytes:
    """The cookie that a request has; empty if there is none."""
    # By hand: SimpleCookie takes seconds to undo the quotes of a long one, and then everybody waits.
    for pair in headers.get("cookie", "").split(";"):
        name, _, value = pair.partition("=")
        if name.strip() == COOKIE:
            return value.strip().encode("utf-8", "surrogatepass")
    return b""


def make_session_router(settings: Settings, throttle: Throttle) -> APIRouter:
    """The routes that can be reached without a token."""
    router = APIRouter()
    in_public = {"security": list[dict[str, list[str]]]()}

    @router.post(ADDRESS, status_code=204, response_class=Response, openapi_extra=in_public)
    async def sign_in(request: Request, given: Given) -> Response:
        """Sign in with the token: from then on the browser sends a cookie that stands for it."""
        if settings.token is None:
            return Response(status_code=204)
        sent = given.token.encode("utf-8", "surrogatepass")
        is_right = hmac.compare_digest(sent, settings.token.encode())
        await throttle.check(client_of(request.scope), sent, is_right)
        response = Response(status_code=204)
        response.set_cookie(
            COOKIE, cookie_value(settings.token), max_age=_DAYS, path="/", httponly=True, samesite="strict",
            secure=request.scope["scheme"] == "https",
        )  # fmt: skip
        return response

    @router.delete(ADDRESS, status_code=204, response_class=Response, openapi_extra=in_public)
    async def sign_out() -> Response:
        """Sign out: the browser forgets the cookie."""
        response = Response(status_code=204)
        response.delete_cookie(COOKIE, path="/", httponly=True, samesite="strict")
        return response

    return router
