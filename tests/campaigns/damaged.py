"""Models that are damaged, by accident, by hand or to do harm, are used in every way.

Promise: a right answer, or one line that says what is wrong; never a crash, never much memory, never another file.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

from pictopic import Corpus
from pictopic.tasks.search import Index
from tests.campaigns import builders
from tests.campaigns.children import in_child
from tests.campaigns.damage import damage
from tests.campaigns.harness import Campaign, expect, tree

MEMORY = 1 << 30  # bytes beyond what the process has at its start
SECONDS = 60
BASES = ("shallow", "deep", "8bit")


class Damaged(Campaign):
    """A damaged model each."""

    name = "damaged"

    def prepare(self) -> None:
        """Two models of each kind, and what they answer when they are whole."""
        builders.write_sources(self.shared)
        corpora = [builders.build_corpus(self.shared / "p", self.shared / f"corpus{k}", random_state=k) for k in (0, 1)]
        for kind in BASES:
            for k, corpus in enumerate(corpora):
                folder = self.shared / f"{kind}{k}"
                builders.fit_model(corpus, k, "deep" if kind == "deep" else "shallow").save(folder)
                if kind == "8bit":
                    vectors = np.asarray(Index.load(folder / "index").vectors)
                    self._replace_index(folder, Index.build(vectors, kind="8bit"))
        self.whole = {}
        for kind in BASES:
            box = self._box(kind, self.shared / "whole" / kind)
            ended = in_child(_use, self.shared, box, seconds=SECONDS)
            if ended.kind != "answer" or any("error" in step for step in ended.answer["steps"].values()):
                raise RuntimeError(f"an undamaged model ({kind}) fails: {ended}")
            self.whole[kind] = ended.answer["steps"]

    def _replace_index(self, folder: Path, index: Index) -> None:
        """A model of so few pictures has no quick index by itself."""
        model = builders.load_model(folder)
        model._index = index
        model.save(folder)

    def plan(self) -> list[dict[str, Any]]:
        """As many as wanted."""
        return [{"base": BASES[k % len(BASES)]} for k in range(self.sizes.damaged)]

    def run(self, trial: dict[str, Any], rng: random.Random, folder: Path) -> dict[str, Any]:
        """One damaged model, loaded, asked, updated and changed."""
        kind = trial["base"]
        box = self._box(kind, folder)
        done = damage(box / "a" / "b" / "model", self.shared / f"{kind}1", box / "outside", rng)
        canaries = _canaries(box)
        ended = in_child(_use, self.shared, box, seconds=SECONDS, memory=MEMORY, log=folder / "log")
        what = json.dumps(done)
        expect(ended.kind == "answer", f"{what}: {ended}")
        expect(ended.peak < MEMORY, f"{what}: took {ended.peak >> 20} MB")
        touched = {name for name, content in canaries.items() if _canaries(box).get(name) != content}
        expect(not touched, f"{what}: changed or removed: {sorted(touched)}")
        # Files of a model may be links, as download caches make them; what others say must not be followed.
        expect(done["kind"] == "link" or not ended.answer["opened"], f"{what}: opened {ended.answer['opened']}")
        new = sorted(set(_canaries(box)) - set(canaries))
        expect(not new, f"{what}: made {new}")
        for step, result in ended.answer["steps"].items():
            error = result.get("error")
            if error is not None:
                expect(error["is_told"], f"{what}: {step}: {error['trace']}")
                expect("\n" not in error["text"] and len(error["text"]) < 2000, f"{what}: {step}: {error['text']!r}")
            elif step == "retag" and done["what"] == "corpus":
                continue  # a whole corpus of another model is a corpus of its own
            elif not done["hostile"]:  # who makes the hashes right, too, has made another model
                expect(result == self.whole[kind][step], f"{what}: {step}: silently wrong: {result}")
        refused = [step for step, result in ended.answer["steps"].items() if "error" in result]
        return done | {"refused": refused, "peak": ended.peak >> 20}

    def _box(self, kind: str, folder: Path) -> Path:
        box = folder / "box"
        shutil.copytree(self.shared / f"{kind}0", box / "a" / "b" / "model")
        for place in (box / "outside", box / "a", box / "a" / "b"):
            place.mkdir(exist_ok=True)
            (place / "secret.txt").write_text("nobody's business")
            shutil.copy(self.shared / "p" / "0.png", place / "secret.png")
        return box


def _canaries(box: Path) -> dict[str, str]:
    """Everything around the model, but for what an update may write beside it."""
    return tree(box, without=("a/b/model", "a/b/.model", "a/b/saved", "a/b/.saved"))


def _use(shared: Path, box: Path) -> dict[str, Any]:
    """Use a model in every way; each step's result or error, and files that were opened though they are not its own."""
    opened: list[str] = []
    outside = (os.path.realpath(box / "outside"), "/etc/passwd", *(os.path.realpath(p) for p in box.rglob("secret.*")))

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open" and isinstance(arguments[0], str):
            path = os.path.realpath(arguments[0])
            if path.startswith(outside):
                opened.append(path)

    sys.addaudithook(watch)
    folder, saved = box / "a" / "b" / "model", box / "a" / "b" / "saved"

    def answers() -> Any:
        return builders.model_answers(builders.load_model(folder), shared / "p")

    def show() -> Any:
        from pictopic.tasks.exports import write_thumbnails, write_topics

        model = builders.load_model(folder)
        corpus = model.corpus_
        write_thumbnails(
            saved.with_suffix(".html"), "", [(n, p, "") for n, p in zip(corpus.file_names, corpus.paths, strict=True)]
        )
        write_topics(saved.with_suffix(".html"), corpus, model.topics(), model.get_topic_info())

    def update() -> Any:
        model = builders.load_model(folder)
        model.update(shared / "q", passes=1)
        model.save(saved)
        return builders.model_answers(builders.load_model(saved), shared / "p")

    def retag() -> Any:
        Corpus.open(folder / "corpus").retag({"1.png": ["red", "other"]})
        state = builders.corpus_state(folder / "corpus")
        return {key: value for key, value in state.items() if key != "skipped"}

    steps = {"answer": answers, "show": show, "update": update, "retag": retag}
    return {"steps": {name: _tried(step) for name, step in steps.items()}, "opened": sorted(set(opened))}


def _tried(step: Any) -> dict[str, Any]:
    import traceback

    try:
        return json.loads(json.dumps({"answer": step()}))
    except Exception as error:
        trace = "".join(traceback.format_exception(error)[-4:])
        return {
            "error": {"is_told": isinstance(error, ValueError | FloatingPointError), "text": str(error), "trace": trace}
        }


CAMPAIGN = Damaged
