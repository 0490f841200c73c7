"""Count the files of pictopic that one action passes through: ``python tools/count_files.py annotate``.

Files of called functions below ``src/pictopic`` count, in all threads of this process that started under the counter:
for `annotate` the event loop's as well as the workers'.  Module bodies do not count.  ``--functions`` lists them too.
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


class Counter:
    """Notes the functions of the package that are called while it is on, in each thread started after it was made."""

    def __init__(self) -> None:
        self.is_on = False
        self.functions: set[tuple[str, str]] = set()  # file, relative to the package, and name
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if self.is_on and event == "call" and code.co_name != "<module>" and code.co_filename.startswith(str(ROOT)):
            self.functions.add((str(Path(code.co_filename).relative_to(ROOT)), code.co_qualname))

    def count(self, action: Callable[[], Any]) -> None:
        """Run an action, and note what it passes through."""
        self.is_on = True
        try:
            action()
        finally:
            self.is_on = False


def annotate(counter: Counter) -> None:
    """Functions that a POST to /annotate passes through, of a server that has answered one before."""
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

        settings = Settings(threads=1, check_every=1e6)  # the model's own checks are no part of the request
        with TestClient(create_app(Path(name) / "model", settings), base_url="http://127.0.0.1") as client:

            def post() -> None:
                client.post("/api/v1/annotate", files={"pictures": ("a.jpg", buffer.getvalue())}).raise_for_status()

            post()  # what is compiled or loaded late, is now
            counter.count(post)


ACTIONS = {"annotate": annotate}

if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--functions"]
    if len(arguments) != 1 or arguments[0] not in ACTIONS:
        sys.exit(f"usage: python tools/count_files.py {{{','.join(ACTIONS)}}} [--functions]")
    counter = Counter()
    ACTIONS[arguments[0]](counter)
    files = sorted({file for file, _ in counter.functions})
    print(len(files), *files, sep="\n")
    if "--functions" in sys.argv:
        print(*(f"{file}: {name}" for file, name in sorted(counter.functions)), sep="\n")
