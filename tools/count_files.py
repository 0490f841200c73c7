"""Count the files of pictopic that one action passes through: ``python tools/count_files.py annotate``.

Files of called functions below ``src/pictopic`` count, in all threads of this process; module bodies do not.
Threads that were started before the count are not followed.  For `annotate` that is the thread of the event loop: the
handlers and the middleware that run there are missing, so the number is a lower bound.
"""

from __future__ import annotations

import io
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pictopic

ROOT = Path(pictopic.__file__).parent


def files_passed(action: Callable[[], Any]) -> list[str]:
    """Paths, relative to the package, of the files whose functions are called while `action` runs.

    Threads that run already are not followed: let `action` start those that matter.
    """
    paths: set[str] = set()

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            paths.add(frame.f_code.co_filename)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
    return sorted(str(Path(path).relative_to(ROOT)) for path in paths if Path(path).is_relative_to(ROOT))


def annotate() -> list[str]:
    """Files that a POST to /annotate passes through, of a server that has answered one before."""
    from fastapi.testclient import TestClient
    from PIL import Image

    from pictopic import PictureModel
    from pictopic.demo.scenes import write_scenes
    from pictopic.server.app import create_app
    from pictopic.server.settings import Settings

    buffer = io.BytesIO()
    Image.effect_noise((64, 48), 60).convert("RGB").save(buffer, "JPEG")
    with tempfile.TemporaryDirectory() as name:
        scenes = write_scenes(Path(name) / "scenes", n=96)
        options = {"n_words": 12, "regions": "1x1", "features": ("cld",), "model": "shallow"}
        PictureModel(n_jobs=1, verbose=0, **options).fit(scenes).save(Path(name) / "model")  # type: ignore[arg-type]

        def ask(app: Any) -> None:
            with TestClient(app, base_url="http://127.0.0.1") as client:
                client.post("/api/v1/annotate", files={"pictures": ("a.jpg", buffer.getvalue())}).raise_for_status()

        settings = Settings(threads=1, check_every=1e6)
        ask(create_app(Path(name) / "model", settings))  # what is compiled or loaded late, is now
        with TestClient(create_app(Path(name) / "model", settings), base_url="http://127.0.0.1") as client:
            # The worker threads start with the first request, and are followed; the model's own checks are not.
            def post() -> None:
                client.post("/api/v1/annotate", files={"pictures": ("a.jpg", buffer.getvalue())}).raise_for_status()

            return files_passed(post)


ACTIONS = {"annotate": annotate}

if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in ACTIONS:
        sys.exit(f"usage: python tools/count_files.py {{{','.join(ACTIONS)}}}")
    passed = ACTIONS[sys.argv[1]]()
    print(len(passed), *passed, sep="\n")
