"""Several processes change the same corpus, the same model and the same decisions at the same time.

Promise: what was said to be done is there afterwards, who had to wait too long was told for whom, nothing else has
happened, and nobody who read meanwhile saw half of a change.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import socket
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pictopic import Corpus
from pictopic.processes import LockedError
from pictopic.tasks.decisions import Decisions
from tests.campaigns import builders
from tests.campaigns.children import Child, in_child
from tests.campaigns.harness import Campaign, expect
from tests.support.patterns import write_patterns

SECONDS = 120
N_LOTS = 6  # of two pictures
N_CHANGES = 6  # of each process
_CHANGED = "was changed since it was opened; open it again"
_HOLDER = re.compile(rf"process \d+ on {re.escape(socket.gethostname())}")


class Rounds(Campaign):
    """A round each: everybody at once, then a look at what is there."""

    name = "rounds"

    def prepare(self) -> None:
        """A corpus, two models, and pictures to add."""
        builders.write_sources(self.shared)
        for lot in range(N_LOTS):
            write_patterns(self.shared / f"lot{lot}", range(100 + 2 * lot, 102 + 2 * lot))
        corpus = builders.build_corpus(self.shared / "p", self.shared / "corpus")
        for seed, name in enumerate("AB"):
            builders.fit_model(corpus, seed).save(self.shared / f"model{name}")
        self.before = builders.corpus_state(self.shared / "corpus")
        self.answers = [builders.model_view(self.shared / f"model{name}", self.shared / "p") for name in "AB"]

    def plan(self) -> list[dict[str, Any]]:
        """In every second round models are saved, in the others they are updated."""
        return [{"model": ("saved", "updated")[k % 2]} for k in range(self.sizes.rounds)]

    def run(self, trial: dict[str, Any], rng: random.Random, folder: Path) -> dict[str, Any]:
        """One round."""
        shutil.copytree(self.shared / "corpus", folder / "corpus")
        shared, corpus, model = self.shared, folder / "corpus", folder / "model"
        saved = in_child(_save, model, shared / "modelA")  # not copied: a model knows its pictures by where it lies
        expect(saved.kind == "answer", f"the model could not be saved: {saved}")
        names = list(self.before["file_names"])
        rng.shuffle(names)
        decisions = folder / "decisions.jsonl"
        changers = {
            "retag 1": (_retag, corpus, names[:N_CHANGES]),
            "retag 2": (_retag, corpus, names[N_CHANGES : 2 * N_CHANGES]),
            "remove": (_remove, corpus, names[2 * N_CHANGES : 3 * N_CHANGES]),
            "append": (_append, corpus, [shared / f"lot{k}" for k in range(2)]),
            "decide 1": (_decide, decisions, [f"a{k}" for k in range(20)]),
            "decide 2": (_decide, decisions, [f"b{k}" for k in range(20)]),
        }
        if trial["model"] == "saved":
            changers |= {f"save {name}": (_save, model, [shared / f"model{name}"] * 3) for name in "AB"}
        else:
            changers |= {f"update {k}": (_update, model, [shared / f"lot{k}"]) for k in (2, 3)}
        readers = {
            "read corpus": (_watch, folder, _corpus_seen, (corpus,)),
            "read model": (_watch, folder, builders.model_view, (model, shared / "p")),
        }
        children = {
            who: Child(_changes, change, place, items, rng.random(), log=folder / f"{who}.log")
            for who, (change, place, items) in changers.items()
        }
        watching = {who: Child(*work, log=folder / f"{who}.log") for who, work in readers.items()}
        ended = {who: child.ended(SECONDS) for who, child in children.items()}
        (folder / "over").touch()
        seen = {who: child.ended(SECONDS) for who, child in watching.items()}
        for who, how in (ended | seen).items():
            expect(how.kind == "answer", f"{who}: {how}")
        done = {who: [item for item, error in how.answer if error is None] for who, how in ended.items()}
        for who, how in ended.items():
            for item, error in how.answer:
                expect(
                    error is None or _HOLDER.search(error), f"{who} {item}: does not say who holds the lock: {error}"
                )
        self._check_corpus(corpus, done, seen["read corpus"].answer)
        self._check_model(model, trial["model"], done, seen["read model"].answer)
        decided = {own.file_name for own in Decisions(decisions).newest()}
        expect(decided == {*done["decide 1"], *done["decide 2"]}, f"decisions are lost: {sorted(decided)}")
        return {
            "done": {who: len(items) for who, items in done.items()},
            "seen": {k: len(v.answer) for k, v in seen.items()},
        }

    def _check_corpus(self, corpus: Path, done: dict[str, list[str]], seen: list[Any]) -> None:
        state = in_child(builders.corpus_state, corpus)
        expect(state.kind == "answer", f"the corpus is broken: {state}")
        added = [f"{100 + k}.png" for lot in done["append"] for k in (2 * int(lot[-1]), 2 * int(lot[-1]) + 1)]
        expected = {name for name in self.before["file_names"] if name not in done["remove"]} | set(added)
        names = state.answer["file_names"]
        expect(len(names) == len(set(names)), f"pictures are there twice: {sorted(names)}")
        expect(set(names) == expected, f"lost or back: {sorted(set(names) ^ expected)}")
        tags = dict(zip(names, state.answer["tags"], strict=True))
        for name in (*done["retag 1"], *done["retag 2"]):
            expect(tags[name] == ["red", f"tag {name}"], f"a change of {name}'s tags is lost: {tags[name]}")
        old = dict(zip(self.before["file_names"], self.before["tags"], strict=True))
        for view in seen:
            for name, own in view.items():
                expect(
                    name in added or own in (old[name], ["red", f"tag {name}"]), f"a reader saw {name} with tags {own}"
                )

    def _check_model(self, model: Path, how: str, done: dict[str, list[str]], seen: list[Any]) -> None:
        state = in_child(builders.model_view, model, self.shared / "p")
        expect(state.kind == "answer", f"the model is broken: {state}")
        if how == "saved":
            for view in (*seen, state.answer):
                owners = _owners(view, self.answers)
                expect(set.intersection(*map(set, owners.values())), f"a mixture of models: {owners}")
            return
        names = set(state.answer["file_names"])
        wanted = {
            f"{100 + 2 * int(lot[-1]) + k}.png" for who in done if "update" in who for lot in done[who] for k in (0, 1)
        }
        news = names - set(self.before["file_names"])
        expect(news == wanted, f"updates said to be done: {sorted(wanted)}, there: {sorted(news)}")


def _owners(view: dict[str, Any], models: list[dict[str, Any]]) -> dict[str, str]:
    """Which of the models each part of a view could be of; JSON has made lists of tuples."""
    known = json.loads(json.dumps(models))
    return {key: "".join("AB"[k] for k, own in enumerate(known) if own[key] == value) for key, value in view.items()}


# ---- what processes do -----------------------------------------------------------------------------------------------


def _changes(
    change: Callable[[Path, Any], None], place: Path, items: list[Any], seed: float
) -> list[tuple[str, str | None]]:
    """Make changes one after the other; of each, why it could not be made."""
    rng, results = random.Random(seed), []  # noqa: S311
    for item in items:
        time.sleep(rng.uniform(0, 0.05))
        try:
            change(place, item)
            results.append((str(item), None))
        except LockedError as error:
            results.append((str(item), str(error)))
    return results


def _retag(corpus: Path, name: str) -> None:
    Corpus.open(corpus).retag({name: ["red", f"tag {name}"]})


def _remove(corpus: Path, name: str) -> None:
    Corpus.open(corpus).remove([name])


def _append(corpus: Path, lot: Path) -> None:
    Corpus.open(corpus).append(lot, n_jobs=1)


def _decide(path: Path, name: str) -> None:
    Decisions(path).add(name, "sea", "accepted")


def _save(model: Path, other: Path) -> None:
    builders.load_model(other).save(model)


def _update(model: Path, lot: Path) -> None:
    """By the command: what is between loading and saving is under its lock."""
    from pictopic.cli import app

    warnings.simplefilter("ignore")
    app(["update", str(model), str(lot), "--passes", "1"], standalone_mode=False)
    sys.stdout.flush()


def _watch(folder: Path, look: Callable[..., Any], arguments: tuple[Any, ...]) -> list[Any]:
    """Look again and again until all is over, and once more; what was seen, if it was new."""
    views: list[Any] = []
    while True:
        is_over = (folder / "over").exists()
        try:
            view = look(*arguments)
        except ValueError as error:
            if _CHANGED not in str(error) or is_over:
                raise
            continue  # told so, it opens it again
        if not views or views[-1] != view:
            views.append(view)
        if is_over:
            return views


def _corpus_seen(folder: Path) -> dict[str, list[str]]:
    """Tags by name; everything else must belong together."""
    corpus = Corpus.open(folder)
    names, tags = corpus.file_names, corpus.tags
    n_rows = {len(names), len(tags), corpus.X.shape[0], len(corpus.label_lists), len(corpus.global_features)}
    if len(n_rows) > 1:
        raise RuntimeError(f"a reader saw parts of several states: {n_rows} rows")
    return dict(zip(names, tags, strict=True))


CAMPAIGN = Rounds
