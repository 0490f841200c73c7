"""Folders full of hostile files and tables full of hostile rows become a corpus, or one line of error.

Promise: a build ends, within bounds of time and memory; every file is a row of the corpus or a line of ``skipped.csv``;
nothing but ValueError and OSError.
"""

from __future__ import annotations

import csv
import random
from pathlib import Path
from typing import Any

from pictopic import Corpus
from tests.campaigns import builders
from tests.campaigns.children import Ended, in_child
from tests.campaigns.harness import Campaign, expect
from tests.campaigns.hostile_files import (
    hostile_row,
    write_counts,
    write_good_pictures,
    write_hostile_file,
    write_table,
)

BATCH = 50  # files or rows
MEMORY = 3 << 29  # bytes
SECONDS = 180
MAX_TAGS, MAX_TAG_LENGTH = 1_000, 200
_N_GOOD = 4


class Hostile(Campaign):
    """A folder or a table each."""

    name = "hostile"

    def plan(self) -> list[dict[str, Any]]:
        """Half of them pictures, the rest tables and counts."""
        kinds = ("files", "table", "files", "counts")
        return [{"kind": kinds[k % len(kinds)]} for k in range(-(-self.sizes.files // BATCH))]

    def run(self, trial: dict[str, Any], rng: random.Random, folder: Path) -> dict[str, Any]:
        """One build."""
        source = folder / "source"
        source.mkdir()
        return getattr(self, f"_{trial['kind']}")(source, rng, folder)

    def _files(self, source: Path, rng: random.Random, folder: Path) -> dict[str, Any]:
        good = write_good_pictures(source, _N_GOOD)
        names = [write_hostile_file(source, k, rng) for k in range(BATCH)]
        (source / "loop").symlink_to("..")
        ended = self._built(source, folder)
        expect(ended.kind == "answer", f"good pictures among hostile ones are not read: {ended}")
        rows, skipped = ended.answer["names"], [name for name, _ in ended.answer["skipped"]]
        expect(set(good) <= set(rows), f"good pictures were lost: {sorted(set(good) - set(rows))}")
        plain = {name for name in names if name.isascii() and name.isprintable()}
        missing = sorted(plain - set(rows) - set(skipped))
        expect(not missing, f"neither a row nor skipped: {missing}")
        # Links that lead nowhere are told, too, where they are no pictures: the one here, and those of sidecars.
        n = len(rows) + len([name for name in skipped if not (name == "loop" or name.lower().endswith(".xmp"))])
        expect(n == len(names) + len(good), f"{len(names) + len(good)} files, but {n} rows and skipped ones")
        return {"rows": len(rows), "skipped": len(skipped), "peak": ended.peak >> 20}

    def _table(self, source: Path, rng: random.Random, folder: Path) -> dict[str, Any]:
        good = write_good_pictures(source, _N_GOOD)
        rows = [{"file_name": name, "tags": "red", "label": "dots"} for name in good]
        rows += [hostile_row(k, good, rng) for k in range(BATCH)]
        is_proper = write_table(source, rows, rng)
        ended = self._built(source, folder)
        if ended.kind != "answer":
            self._expect_told(ended)
            return {"refused": ended.error}
        if is_proper:
            n = len(ended.answer["names"]) + len(ended.answer["skipped"])
            expect(n >= len(rows), f"{len(rows)} rows, but {n} rows and skipped ones")
        return {"rows": len(ended.answer["names"]), "peak": ended.peak >> 20}

    def _counts(self, source: Path, rng: random.Random, folder: Path) -> dict[str, Any]:
        path = write_counts(source, BATCH, rng)
        ended = self._built(path, folder)
        if ended.kind != "answer":
            self._expect_told(ended)
            return {"refused": ended.error}
        return {"rows": len(ended.answer["names"]), "peak": ended.peak >> 20}

    def _built(self, source: Path, folder: Path) -> Ended:
        ended = in_child(_build, source, folder / "corpus", seconds=SECONDS, memory=2 * MEMORY, log=folder / "log")
        expect(ended.kind not in ("timeout", "MemoryError") and ended.signal is None, f"{ended}")
        expect(ended.peak < MEMORY, f"took {ended.peak >> 20} MB")
        if ended.kind == "answer":
            with (folder / "corpus" / "skipped.csv").open(newline="", encoding="utf-8") as file:
                widths = {len(row) for row in csv.reader(file)}
            expect(widths <= {2}, f"lines of skipped.csv have {widths} cells")
            expect(ended.answer["n_tags"] <= MAX_TAGS, f"a picture has {ended.answer['n_tags']} tags")
            expect(ended.answer["tag_length"] <= MAX_TAG_LENGTH, f"a tag has {ended.answer['tag_length']} characters")
        return ended

    def _expect_told(self, ended: Ended) -> None:
        expect({"ValueError", "OSError"} & set(ended.kinds), f"{ended}")
        expect("\n" not in str(ended.error) and len(str(ended.error)) < 2000, f"not one line: {ended.error!r}")


def _build(source: Path, folder: Path) -> dict[str, Any]:
    import warnings

    warnings.simplefilter("ignore")
    Corpus.build(source, folder, **builders.WORDS, max_side=480)
    corpus = Corpus.open(folder).verified()
    if corpus.X.shape[0] != len(corpus.file_names):
        raise RuntimeError("counts and rows do not belong together")
    return {
        "names": corpus.file_names, "skipped": corpus.skipped,
        "n_tags": max(map(len, corpus.tags), default=0),
        "tag_length": max((len(tag) for tags in corpus.tags for tag in tags), default=0),
    }  # fmt: skip


CAMPAIGN = Hostile
