"""The command that serves a model over HTTP."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from pictopic.cli.application import app
from pictopic.cli.output import MisuseError, misuse


@app.command()
def serve(
    model: Annotated[Path, typer.Argument(help="Folder of a model, made by pictopic fit.")],
    host: Annotated[str, typer.Option(help="Address to listen at; 0.0.0.0: all of this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 8000,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="PICTOPIC_TOKEN",
            show_envvar=True,
            help="What clients must send to be answered: 16 characters or more.",
        ),
    ] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Let other machines ask without a token.")] = False,
    workers: Annotated[int, typer.Option(min=1, help="Processes, each with the model in memory.")] = 1,
    max_upload_mb: Annotated[float, typer.Option(min=0.001, help="How large a request may be.")] = 20.0,
    pictures: Annotated[Path | None, typer.Option(help="Where the collection's pictures are, if they moved.")] = None,
    open_page: Annotated[
        bool | None, typer.Option("--open/--no-open", help="Show the page in the browser.  [if there is a screen]")
    ] = None,
) -> None:
    """Explore a collection in the browser, and answer questions of other programs over HTTP (REST, JSON).

    The page shows what the model says of a picture, searches, maps the collection, reviews its tags and tells how good
    it is.  Decisions about tags go to MODEL.decisions.jsonl, never into pictures.  Only this machine can ask, unless
    you give another --host; then the page asks for a token.  /docs says what programs can ask.  A model that is fitted
    or updated anew is taken up without a restart.

    \b
    Example:
      pictopic serve photos.model

    \b
    For programs:
      curl -F pictures=@new.jpg 'http://127.0.0.1:8000/api/v1/annotate?k=3'
      curl 'http://127.0.0.1:8000/api/v1/search?tags=sea,boat'

    \b
    For other machines:
      export PICTOPIC_TOKEN=$(openssl rand -hex 16)
      pictopic serve photos.model --host 0.0.0.0
      curl -H "Authorization: Bearer $PICTOPIC_TOKEN" http://HOST:8000/api/v1/tags
    """  # noqa: D301 - the help needs the character itself: it keeps line breaks
    from pictopic.server.settings import LOOPBACK_NAMES, Settings, is_loopback

    local = is_loopback(host)
    if not local and not token and not insecure:
        raise MisuseError(f"other machines can reach {host}: give a --token (or PICTOPIC_TOKEN), or --insecure")
    if not (model / "picture_model.json").is_file():
        raise MisuseError(f"{model} is not a picture model; make one with pictopic fit")
    if pictures is not None and not pictures.is_dir():
        raise MisuseError(f"there is no folder {pictures}")
    try:
        from pictopic.server.run import run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "pictopic":
            raise
        raise MisuseError(f"{error.name} is missing: pip install 'pictopic[server]'") from error
    with misuse():
        settings = Settings(
            token=token or None, hosts=(*LOOPBACK_NAMES, host) if local else None,
            max_upload=round(max_upload_mb * 1e6), pictures=None if pictures is None else pictures.absolute(),
        )  # fmt: skip
        run(model, settings, host, port, workers, local and _has_screen() if open_page is None else open_page)


def _has_screen() -> bool:
    """Return whether this machine has a screen for a browser."""
    windows = sys.platform in ("darwin", "win32") or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    return windows and sys.stderr.isatty()
