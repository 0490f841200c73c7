"""Signing in from a browser: a cookie stands for the token."""

from __future__ import annotations

import hmac

from fastapi import APIRouter, Request, Response

from pictopic.server import schemas
from pictopic.server.routers.dependencies import State
from pictopic.server.security import SESSION, SESSION_COOKIE, client_of, cookie_value

_MAX_AGE = 30 * 24 * 3600  # seconds
_PUBLIC = {"security": list[dict[str, list[str]]]()}  # it can be reached without a token

router = APIRouter()


@router.post(SESSION, status_code=204, response_class=Response, openapi_extra=_PUBLIC)
async def sign_in(request: Request, state: State, body: schemas.Given) -> Response:
    """Sign in with the token: from then on the browser sends a cookie that stands for it."""
    token, response = state.settings.token, Response(status_code=204)
    if token is not None:
        sent = body.token.encode("utf-8", "surrogatepass")
        is_right = hmac.compare_digest(sent, token.encode())
        await state.throttle.check(client_of(request.scope), sent, is_right)
        response.set_cookie(
            SESSION_COOKIE, cookie_value(token), max_age=_MAX_AGE, path="/", httponly=True, samesite="strict",
            secure=request.scope["scheme"] == "https",
        )  # fmt: skip
    return response


@router.delete(SESSION, status_code=204, response_class=Response, openapi_extra=_PUBLIC)
async def sign_out() -> Response:
    """Sign out: the browser forgets the cookie."""
    response = Response(status_code=204)
    response.delete_cookie(SESSION_COOKIE, path="/", httponly=True, samesite="strict")
    return response
