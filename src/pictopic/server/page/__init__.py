"""The explorer: a page on which somebody sees what the model has learnt of their pictures."""

from __future__ import annotations

import os
from pathlib import Path

from fastapi import FastAPI
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

FOLDER = Path(__file__).parent
# Kept by the browser, but asked for again: after an update nobody sees scripts of two versions.
_HEADERS = {"Cache-Control": "no-cache"}


class _Files(StaticFiles):
    """Scripts and styles, with an ETag each."""

    def file_response(
        self,
        full_path: str | os.PathLike[str],
        stat_result: os.stat_result,
        scope: Scope,
        status_code: int = 200,
    ) -> Response:
        response = super().file_response(full_path, stat_result, scope, status_code)
        response.headers.update(_HEADERS)
        return response


def add_page(app: FastAPI) -> None:
    """Serve the page at / and what it loads below /static."""

    @app.api_route("/", methods=["GET", "HEAD"], include_in_schema=False)
    async def index() -> FileResponse:
        return FileResponse(FOLDER / "index.html", headers=_HEADERS)

    app.mount("/static", _Files(directory=FOLDER / "static"), name="static")
