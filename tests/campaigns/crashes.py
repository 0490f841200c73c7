"""The process ends, the disk is full or the power is cut at every single operation on files.

Promise: afterwards the old state is there or the new one, it can be opened, the same can be done again, and nothing of
the first attempt is left then.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pictopic import Checkpoint, Corpus, load
from pictopic.tasks.decisions import Decisions
from pictopic.tasks.search import Index
from tests.campaigns import builders
from tests.campaigns.children import Ended, in_child
from tests.campaigns.faults import CRASHED, FAULTS, FaultyDisk
from tests.campaigns.harness import BrokenPromiseError, Campaign, expect

ABSENT = "absent"
_POINTS, _COMMAND_POINTS = 150, 40  # crashes for each thing that is done, at least


@dataclass(frozen=True)
class Operation:
    """Something that changes files in a folder, the ``box``.

    `start` copies the old state there, `act` makes the new one of it, `follow` changes it once more in the same way,
    and `look` tells the states apart.
    """

    start: Callable[[Path, Path], Any]  # shared folder, box
    act: Callable[[Path, Path], Any]
    follow: Callable[[Path, Path], Any]
    look: Callable[[Path, Path], Any]
    may_be_absent: bool = False
    may_fail_silently: bool = False  # a full disk is warned of only


def _copies(*names: str) -> Callable[[Path, Path], Any]:
    def copy(shared: Path, box: Path) -> None:
        for name in names:
            source, _, target = name.partition(":")
            shutil.copytree(shared / source, box / (target or source))

    return copy


def _nothing(shared: Path, box: Path) -> None:
    """There is nothing before."""


def _corpus(shared: Path, box: Path) -> Any:
    return builders.corpus_state(box / "corpus")


def _model(shared: Path, box: Path) -> Any:
    return builders.model_state(box / "model", shared / "p")


def _build(shared: Path, box: Path) -> None:
    builders.build_corpus(shared / "p", box / "corpus", resume=True)


def _append(lot: str) -> Callable[[Path, Path], Any]:
    return lambda shared, box: Corpus.open(box / "corpus").append(
        shared / lot, n_jobs=1, new_tags=True, resume=True
    ) and None  # fmt: skip


def _remove(name: str) -> Callable[[Path, Path], Any]:
    return lambda shared, box: Corpus.open(box / "corpus").remove([name]) and None


def _retag(name: str) -> Callable[[Path, Path], Any]:
    return lambda shared, box: Corpus.open(box / "corpus").retag({name: ["red", "other"]}) and None


def _save(shared: Path, box: Path) -> None:
    builders.load_model(box / "other").save(box / "model")


def _save_without_exchange(shared: Path, box: Path) -> None:
    import pictopic.files

    pictopic.files._exchange = lambda one, other: False
    _save(shared, box)


def _update(lot: str) -> Callable[[Path, Path], Any]:
    def update(shared: Path, box: Path) -> None:
        model = builders.load_model(box / "model")
        model.update(shared / lot, passes=2)
        model.save(box / "model")

    return update


def _command(*arguments: str) -> Callable[[Path, Path], Any]:
    def run(shared: Path, box: Path) -> None:
        from pictopic.cli import app

        app([text.format(shared=shared, box=box) for text in arguments], standalone_mode=False)

    return run


def _decide(tag: str) -> Callable[[Path, Path], Any]:
    return lambda shared, box: Decisions.beside(box / "model").add("1.png", tag, "accepted")


def _checkpoint(step: int) -> Callable[[Path, Path], Any]:
    def save(shared: Path, box: Path) -> None:
        import torch

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            Checkpoint(box / "run", epochs=1).save(step, step, {"weights": torch.full((3,), step)}, {"step": step})

    return save


def _checkpoint_state(shared: Path, box: Path) -> Any:
    content = Checkpoint(box / "run", epochs=1).load()
    return ABSENT if content is None else {"state": content[1], "weights": content[0]["weights"].tolist()}


def _estimator(seed: int) -> Callable[[Path, Path], Any]:
    return lambda shared, box: load(shared / f"estimator{seed}").save(box / "estimator")


def _index(number: int) -> Callable[[Path, Path], Any]:
    return lambda shared, box: Index.load(shared / f"index{number}").save(box / "index")


_FIT = ("fit", "{shared}/p", "--out", "{box}/model", "--words", "12", "--regions", "1x1", "--features", "none",
        "--model", "shallow", "--tuned", "{shared}/best.json", "--jobs", "1")  # fmt: skip
_UPDATE = ("update", "{box}/model", "{shared}/LOT", "--passes", "2")

OPERATIONS = {
    "build": Operation(_nothing, _build, _append("r"), _corpus, may_be_absent=True),
    "append": Operation(_copies("corpus"), _append("q"), _append("r"), _corpus),
    "remove": Operation(_copies("corpus"), _remove("1.png"), _remove("2.png"), _corpus),
    "retag": Operation(_copies("corpus"), _retag("1.png"), _retag("2.png"), _corpus),
    "save": Operation(_copies("modelB:other"), _save, _save, _model, may_be_absent=True),
    "save over": Operation(_copies("modelA:model", "modelB:other"), _save, _save, _model),
    "save over without exchange": Operation(
        _copies("modelA:model", "modelB:other"), _save_without_exchange, _save_without_exchange, _model
    ),
    "update": Operation(_copies("modelA:model"), _update("q"), _update("r"), _model),
    "fit command": Operation(_nothing, _command(*_FIT), _command(*_FIT), _model, may_be_absent=True),
    "update command": Operation(
        _copies("modelA:model"), _command(*(text.replace("LOT", "q") for text in _UPDATE)),
        _command(*(text.replace("LOT", "r") for text in _UPDATE)), _model,
    ),
    "decide": Operation(
        lambda shared, box: _decide("sea")(shared, box), _decide("sky"), _decide("sun"),
        lambda shared, box: [own[:3] for own in Decisions.beside(box / "model").newest()],
    ),
    "checkpoint": Operation(
        lambda shared, box: _checkpoint(1)(shared, box), _checkpoint(2), _checkpoint(3), _checkpoint_state,
        may_fail_silently=True,
    ),
    "estimator": Operation(
        lambda shared, box: _estimator(1)(shared, box), _estimator(2), _estimator(3),
        lambda shared, box: load(box / "estimator").transform([[1, 0, 2, 0, 1, 0]]).tolist(),
    ),
    "index": Operation(
        lambda shared, box: _index(1)(shared, box), _index(2), _index(3),
        lambda shared, box: Index.load(box / "index").vectors.tolist(),
    ),
}  # fmt: skip


class Crashes(Campaign):
    """A trial for each operation on files of each thing that changes some, and for each fault."""

    name = "crashes"

    def prepare(self) -> None:
        """Old states, and what an undisturbed run makes of them."""
        import numpy as np

        shared = self.shared
        builders.write_sources(shared)
        corpus = builders.build_corpus(shared / "p", shared / "corpus")
        for seed, name in enumerate("AB"):
            builders.fit_model(corpus[: -2 - seed], seed).save(shared / f"model{name}")
        (shared / "best.json").write_text(json.dumps(builders.NETWORK))
        for seed in (1, 2, 3):
            builders.small_estimator(seed).save(shared / f"estimator{seed}")
            Index.build(np.random.RandomState(seed).normal(size=(9, 4)).astype(np.float32)).save(
                shared / f"index{seed}"
            )
        self.expected = {name: self._undisturbed(name) for name in OPERATIONS}

    def _undisturbed(self, name: str) -> dict[str, Any]:
        operation, folder = OPERATIONS[name], Path(tempfile.mkdtemp(dir=self.shared.parent))
        box = self._box(operation, folder)
        found: dict[str, Any] = {"old": self._state(name, box)}
        counted = self._run(operation.act, box, folder, fault=None, at=-1)
        if counted.kind != "answer":
            raise RuntimeError(f"{name} fails undisturbed: {counted}")
        found |= {"operations": counted.answer, "new": self._state(name, box), "new files": _listing(box)}
        followed = self._run(operation.follow, box, folder, fault=None, at=-1)
        if followed.kind != "answer":
            raise RuntimeError(f"{name} fails undisturbed, the second time: {followed}")
        found |= {"last": self._state(name, box), "last files": _listing(box)}
        if found["old"] == found["new"]:
            raise RuntimeError(f"{name}: the states before and after are the same")
        shutil.rmtree(folder)
        return found

    def plan(self) -> list[dict[str, Any]]:
        """Every operation on files, or some of them, evenly spread."""
        trials = []
        for name, expected in self.expected.items():
            n = len(expected["operations"])
            for fault in FAULTS:
                # A kill is what happens most: at every operation, but for commands, which do what others do, too.
                least = 0 if fault != "crash" else _COMMAND_POINTS if "command" in name else _POINTS
                points = min(n, max(self.sizes.points, least))
                for k in range(points):
                    trials.append({"operation": name, "fault": fault, "at": k * n // points})
        return trials

    def run(self, trial: dict[str, Any], rng: random.Random, folder: Path) -> dict[str, Any]:
        """One fault."""
        name, fault, at = trial["operation"], trial["fault"], trial["at"]
        operation, expected = OPERATIONS[name], self.expected[name]
        box = self._box(operation, folder)
        ended = self._run(operation.act, box, folder, fault, at)
        where = f"{expected['operations'][at]!r}"
        if fault == "full":
            expect(ended.kind == "answer" or "OSError" in ended.kinds, f"full disk at {where}: {ended}")
        else:
            expect(ended.exit_code == CRASHED, f"did not come to {where}: {ended}")
        state = self._state(name, box)
        expect(state in (expected["old"], expected["new"]), f"{fault} at {where}: neither old nor new: {state}")
        is_new = state == expected["new"]
        if ended.kind == "answer" and not operation.may_fail_silently:
            expect(is_new, f"full disk at {where}: said to be done, but is not")
        again = self._run(operation.follow if is_new else operation.act, box, folder, fault=None, at=-1)
        expect(again.kind == "answer", f"{fault} at {where}: the next run fails: {again}")
        wanted, files = ("last", "last files") if is_new else ("new", "new files")
        expect(self._state(name, box) == expected[wanted], f"{fault} at {where}: the next run gives another result")
        left = Counter(_listing(box))
        left.subtract(Counter(expected[files]))
        surplus = sorted(left.elements())
        expect(not surplus, f"{fault} at {where}: left over after the next run: {surplus[:5]}")
        return {"at": expected["operations"][at], "state": "new" if is_new else "old"}

    def _box(self, operation: Operation, folder: Path) -> Path:
        box = folder / "box"
        (box / "tmp").mkdir(parents=True)
        (folder / "stash").mkdir()
        operation.start(self.shared, box)
        return box

    def _run(self, action: Callable[[Path, Path], Any], box: Path, folder: Path, fault: str | None, at: int) -> Ended:
        def run() -> list[str]:
            tempfile.tempdir = str(box / "tmp")
            disk = FaultyDisk(box, folder / "stash", fault, at)
            disk.install()
            action(self.shared, box)
            return disk.operations

        return in_child(run, log=folder / "log")

    def _state(self, name: str, box: Path) -> Any:
        operation = OPERATIONS[name]
        ended = in_child(operation.look, self.shared, box)
        if ended.kind == "answer":
            return ended.answer
        if operation.may_be_absent and ended.kind == "ValueError" and " is not a " in str(ended.error):
            return ABSENT
        raise BrokenPromiseError(f"it cannot be opened: {ended}")


def _listing(box: Path) -> list[str]:
    """Names of all files and folders, but for hashes and numbers."""
    names = (path.relative_to(box).as_posix() for path in box.rglob("*"))
    return sorted(re.sub(r"[0-9a-f]{8,}|\d+", "#", name) for name in names)


CAMPAIGN = Crashes
