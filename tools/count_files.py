"""Count the files of pictopic that one action passes through: ``python tools/count_files.py fit`` or ``annotate``.

Files of functions called below ``src/pictopic`` count; module bodies, and what runs only because a module is imported,
do not.  `fit` is the command on a folder of 120 made-up scenes, with its worker processes.  `annotate` is a POST to a
server that has answered one before, in the threads of the event loop and of the workers.  Compiled kernels, which numba
reports to profilers as well, are counted apart.  ``--functions`` lists the functions, too.
"""

from __future__ import annotations

import inspect
import io
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pictopic

ROOT = str(Path(pictopic.__file__).parent)


class Counter:
    """Notes the functions of the package that are called while it is on, in each thread started after it was made.

    Parameters
    ----------
    note : callable, optional
        Called with file and name of each function, once.
    """

    def __init__(self, note: Callable[[str, str], None] | None = None, is_on: bool = False) -> None:
        self.is_on, self.note = is_on, note
        self.functions: set[tuple[str, str]] = set()  # file, relative to the package, and name
        threading.setprofile(self._see)
        sys.setprofile(self._see)

    def _see(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if not self.is_on or event != "call" or not code.co_filename.startswith(ROOT):
            return
        function = (code.co_filename[len(ROOT) + 1 :], code.co_qualname)
        if function not in self.functions and not _is_importing(frame):
            self.functions.add(function)
            if self.note is not None:
                self.note(*function)

    def count(self, action: Callable[[], Any]) -> None:
        """Run an action, and note what it passes through."""
        self.is_on = True
        try:
            action()
        finally:
            self.is_on = False


def _is_kernel(path: str) -> bool:
    return f"{os.sep}kernels{os.sep}" in path


def _is_importing(frame: FrameType | None) -> bool:
    """Whether a call comes from the body of one of our modules or classes, other than the program's first one."""
    while frame is not None:
        code = frame.f_code
        # The frames that numba makes up for compiled kernels have no flags, as if they were bodies of classes.
        is_class_body = not code.co_flags & inspect.CO_OPTIMIZED and not _is_kernel(code.co_filename)
        is_body = code.co_name == "<module>" or is_class_body
        if is_body and code.co_filename.startswith(ROOT) and not code.co_filename.endswith("__main__.py"):
            return True
        frame = frame.f_back
    return False


# Python runs a module of this name in each process that it starts.
_IN_EACH_PROCESS = """
import os, runpy
if "COUNTED_FUNCTIONS" in os.environ:
    def note(file, name):
        with open(os.environ["COUNTED_FUNCTIONS"], "a") as out:
            out.write(f"{file}\\t{name}\\n")
    runpy.run_path(os.environ["COUNTER"])["Counter"](note, is_on=True)
"""


def fit(counter: Counter) -> None:
    """Functions that ``pictopic fit`` passes through, in all its processes."""
    from pictopic.demo.scenes import write_scenes

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        scenes, counted = write_scenes(folder / "scenes", n=120), folder / "counted"
        (folder / "sitecustomize.py").write_text(_IN_EACH_PROCESS)
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([name, str(Path(ROOT).parent)]), "COUNTER": __file__,
            "COUNTED_FUNCTIONS": str(counted),
        }  # fmt: skip
        command = [sys.executable, "-m", "pictopic", "fit", str(scenes), "--out", str(folder / "model"), "--jobs", "2"]
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)  # noqa: S603
        for line in counted.read_text().splitlines():
            file, function = line.split("\t")
            counter.functions.add((file, function))


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


ACTIONS = {"fit": fit, "annotate": annotate}

if __name__ == "__main__":
    arguments = [argument for argument in sys.argv[1:] if argument != "--functions"]
    if len(arguments) != 1 or arguments[0] not in ACTIONS:
        sys.exit(f"usage: python tools/count_files.py {{{','.join(ACTIONS)}}} [--functions]")
    counter = Counter()
    ACTIONS[arguments[0]](counter)
    files = sorted({file for file, _ in counter.functions})
    kernels = [file for file in files if file.startswith("kernels")]
    print(f"{len(files) - len(kernels)} files, and {len(kernels)} of compiled kernels", *files, sep="\n")
    if "--functions" in sys.argv:
        print(*(f"{file}: {name}" for file, name in sorted(counter.functions)), sep="\n")
