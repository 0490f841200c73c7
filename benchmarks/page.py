"""How soon the explorer can be used, and how smoothly its map moves, for a collection of 25,000 pictures.

``python -m benchmarks.page`` cuts 25,000 small pictures out of 100 drawn scenes, learns from them for one pass with few
visual words (how good the model is does not matter here), serves it with ``pictopic serve``, and opens the page in
Chromium: as often as said below, each time without anything in the browser's cache.

- Interactive: the drop zone and the first pictures of the collection are there, and the browser answers to a key.
- Frames a second: from the time stamps of animation frames while the mouse drags the map to and fro for some seconds;
  in the middle (the median) and at worst (one frame in twenty takes longer).  A browser without a screen draws at most
  60 frames a second, here without a graphics card.

It takes minutes, most of them to describe the pictures, and so is not a part of ``python -m benchmarks``.  ``--folder``
keeps the model and takes it again.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from benchmarks.server import serving
from benchmarks.timing import report

N_PICTURES, N_SCENES, SIDE = 25_000, 100, 64
N_VISITS = 7
SECONDS = 6.0  # of dragging
QUICK: dict[str, Any] = {
    "n_words": 16, "regions": "1x1", "features": ("cld",), "model": "shallow", "verbose": 0,
    "options": {"max_iter": 1, "n_components": 64},
}  # fmt: skip


def write_pictures(folder: Path) -> None:
    """Small parts of scenes, each with most of the scene's tags."""
    from pictopic.demo.scenes import write_scenes

    rng = np.random.default_rng(0)
    scenes = write_scenes(folder.with_name("scenes"), N_SCENES)
    with (scenes / "metadata.csv").open(newline="") as file:
        known = list(csv.DictReader(file))
    (folder / "images").mkdir(parents=True)
    with (folder / "metadata.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["file_name", "tags", "label"])
        for number in range(N_PICTURES):
            scene = known[number % len(known)]
            with Image.open(scenes / scene["file_name"]) as image:
                left, top = (int(rng.integers(side - SIDE)) for side in image.size)
                image.crop((left, top, left + SIDE, top + SIDE)).save(folder / "images" / f"{number:05d}.jpg")
            tags = [tag for tag in scene["tags"].split(";") if rng.random() < 0.8]
            writer.writerow([f"images/{number:05d}.jpg", ";".join(tags), scene["label"]])


def make_model(folder: Path) -> Path:
    """The model's folder; made if it is not there yet."""
    from pictopic import PictureModel

    model = folder / "model"
    if not model.exists():
        shutil.rmtree(folder / "pictures", ignore_errors=True)
        write_pictures(folder / "pictures")
        PictureModel(**QUICK).fit(folder / "pictures").save(model)
    return model


def interactive(browser: Browser, address: str) -> float:
    """Milliseconds from when the address is entered until the first view can be used."""
    context = browser.new_context(viewport={"width": 1280, "height": 860})
    page = context.new_page()
    begin = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.locator(".samples img").first.wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()
    found = 1000 * (time.perf_counter() - begin)
    context.close()
    return found


def drag(page: Page) -> list[float]:
    """Milliseconds between frames while the map is dragged."""
    box = page.locator("canvas").bounding_box()
    assert box is not None
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.evaluate(
        """() => {
            window.frames_ = [];
            const note = (at) => { window.frames_.push(at); requestAnimationFrame(note); };
            requestAnimationFrame(note);
        }"""
    )
    page.mouse.move(*middle)
    page.mouse.down()
    begin = time.perf_counter()
    while (passed := time.perf_counter() - begin) < SECONDS:
        page.mouse.move(middle[0] + 150 * np.sin(3 * passed), middle[1] + 100 * np.cos(2 * passed))
    page.mouse.up()
    return np.diff(page.evaluate("window.frames_")).tolist()


def main(arguments: list[str] | None = None) -> None:
    """Print both figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.page", description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, help="where the model is kept; default: it is not")
    kept = parser.parse_args(arguments).folder
    executable = shutil.which("chromium") or shutil.which("google-chrome")
    if executable is None:
        parser.error("there is no chromium")
    with tempfile.TemporaryDirectory() as temporary:
        folder = kept or Path(temporary)
        model = make_model(folder)
        with (
            serving(model, 1, Path(temporary) / "server.log") as server,
            sync_playwright() as playwright,
        ):
            address = f"http://127.0.0.1:{server.port}/"
            browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
            visits = [interactive(browser, address) for _ in range(N_VISITS)]
            report(
                f"the page's first view, {N_PICTURES} pictures", interactive_ms=statistics.median(visits),
                slowest_ms=max(visits), visits=N_VISITS,
            )  # fmt: skip
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            begin = time.perf_counter()
            page.goto(f"{address}#/topics")
            page.locator("canvas").wait_for(timeout=600_000)
            first = time.perf_counter() - begin
            page.wait_for_timeout(1000)
            frames = drag(page)
            browser.close()
        report(
            f"dragging the map, {N_PICTURES} points", frames_a_second=1000 / statistics.median(frames),
            worst_5_percent=1000 / np.percentile(frames, 95), frames=len(frames), first_map_s=first,
        )  # fmt: skip


if __name__ == "__main__":
    main()
