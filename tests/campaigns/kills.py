"""Commands are killed at a random moment, and then given again.

Promise: the second run succeeds with the result of an undisturbed one; five seconds after a kill no process is left,
and after a success nothing in the temporary folder or beside the result.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pictopic import load
from pictopic.tasks.decisions import Decisions
from tests.campaigns import builders
from tests.campaigns.children import in_child
from tests.campaigns.harness import Campaign, expect
from tests.support.patterns import write_patterns

SECONDS = 180
_MARK = "PICTOPIC_CAMPAIGN"  # in the environment of everything that a command starts
_THREADS = {"OMP_NUM_THREADS": "1", "LOKY_MAX_CPU_COUNT": "2"}  # the same in both runs: sums depend on it
_N_DECISIONS = 200


@dataclass(frozen=True)
class Command:
    """What is run in a folder, the ``box``, and what must come out."""

    arguments: tuple[str, ...]  # of Python
    result: Callable[[Path, Path], Any]  # shared folder, box
    start: tuple[str, ...] = ()  # folders of the shared one that are there before: name:new name


def _model_result(shared: Path, box: Path) -> Any:
    network = load(box / "model" / "network")
    tensors = {name: builders._digest(array) for name, array in network._get_arrays().items()}
    return {"tensors": tensors} | builders.model_state(box / "model", shared / "p")


def _corpus_result(shared: Path, box: Path) -> Any:
    shards = json.loads((box / "corpus" / "corpus.json").read_text())["shards"]
    return {"sha256": [shard["sha256"] for shard in shards]} | builders.corpus_state(box / "corpus")


def _decisions_result(shared: Path, box: Path) -> Any:
    return sorted(own.file_name for own in Decisions(box / "decisions.jsonl").newest())


def _tune_result(shared: Path, box: Path) -> Any:
    """How many trials there is time for is chance; options that nobody can read are not."""
    from pictopic.tasks.tuning import read_options

    return sorted(read_options(box / "tuned" / "best.json"))


_FIT = ("-m", "pictopic", "fit", "{shared}/p", "--out", "{box}/model", "--words", "12", "--regions", "1x1",
        "--features", "none", "--model", "{kind}", "--tuned", "{shared}/best.json", "--jobs", "{jobs}")  # fmt: skip


def _fit(kind: str, jobs: int) -> Command:
    return Command(tuple(text.replace("{kind}", kind).replace("{jobs}", str(jobs)) for text in _FIT), _model_result)


COMMANDS = {
    "fit": _fit("shallow", 2),
    "fit deep": _fit("deep", 1),
    "update": Command(
        ("-m", "pictopic", "update", "{box}/model", "{shared}/q", "--passes", "20"), _model_result, ("model",)
    ),
    "build": Command(
        ("-m", "pictopic", "build", "{shared}/p", "--out", "{box}/corpus", "--words", "12", "--features", "mpeg7",
         "--jobs", "2", "--resume"), _corpus_result,
    ),
    "save": Command(("-m", "tests.campaigns.kills", "save", "{box}"), _model_result, ("model", "other")),
    "decide": Command(("-m", "tests.campaigns.kills", "decide", "{box}"), _decisions_result),
    "tune": Command(
        ("-m", "pictopic", "tune", "{shared}/corpus", "--out", "{box}/tuned", "--minutes", "0.05", "--jobs", "1"),
        _tune_result,
    ),
}  # fmt: skip


class Kills(Campaign):
    """A kill each."""

    name = "kills"

    def prepare(self) -> None:
        """Sources, models, and what undisturbed runs make of them."""
        shared = self.shared
        write_patterns(shared / "p", range(96))
        write_patterns(shared / "q", range(100, 140))
        (shared / "best.json").write_text(json.dumps({"n_components": 16, "max_iter": 30}))
        corpus = builders.build_corpus(shared / "p", shared / "corpus")
        builders.fit_model(corpus, 0).save(shared / "model")
        builders.fit_model(corpus, 1).save(shared / "other")
        self.expected = {name: self._undisturbed(name) for name in COMMANDS}

    def _undisturbed(self, name: str) -> dict[str, Any]:
        folder = Path(tempfile.mkdtemp(dir=self.shared.parent))
        process, box = self._started(name, folder)
        begun = _wait_for_work(process, folder)
        start = time.monotonic()
        if process.wait(SECONDS):
            raise RuntimeError(f"{name} fails undisturbed: {(folder / 'log').read_text()}")
        result = in_child(COMMANDS[name].result, self.shared, box)
        if result.kind != "answer":
            raise RuntimeError(f"{name}: what an undisturbed run has made cannot be read: {result}")
        return {
            "result": result.answer, "beside": _beside(box), "begun": begun, "seconds": time.monotonic() - start,
        }  # fmt: skip

    def plan(self) -> list[dict[str, Any]]:
        """The commands in turn."""
        return [{"command": list(COMMANDS)[k % len(COMMANDS)]} for k in range(self.sizes.kills)]

    def run(self, trial: dict[str, Any], rng: random.Random, folder: Path) -> dict[str, Any]:
        """One kill."""
        name = trial["command"]
        expected = self.expected[name]
        process, box = self._started(name, folder)
        if rng.random() < 0.1:  # while it is starting
            time.sleep(rng.uniform(0, expected["begun"]))
        else:
            _wait_for_work(process, folder)
            time.sleep(rng.uniform(0, 1.05 * expected["seconds"]))
        too_late = process.poll() is not None
        process.send_signal(signal.SIGKILL)
        process.wait()
        _expect_none_left(folder.name)
        said = (folder / "log").read_text() if name == "decide" else ""
        if said:  # each line was written after the decision was said to be on the disk
            there = set(_decisions_result(self.shared, box))
            expect(set(said.split()) <= there, f"decisions are lost: {sorted(set(said.split()) - there)}")
        was_done = in_child(COMMANDS[name].result, self.shared, box).answer == expected["result"]
        again = self._process(name, folder, "again.log")
        expect(again.wait(SECONDS) == 0, f"{name}, the second time: {(folder / 'again.log').read_text()[-2000:]}")
        result = in_child(COMMANDS[name].result, self.shared, box)
        expect(result.kind == "answer", f"{name}: what the second run has made cannot be read: {result}")
        differing = _differences(result.answer, expected["result"])
        if was_done and name == "update":  # the second one was a second one: it has learnt more, of the same
            differing = [key for key in differing if key in ("file_names", "tags", "counts")]
        expect(not differing, f"{name}: another result than undisturbed in {differing}")
        left = [path.relative_to(folder).as_posix() for path in (folder / "tmp").rglob("*") if path.is_file()]
        expect(not left, f"{name}: left in the temporary folder: {left}")
        surplus = sorted(set(_beside(box)) - set(expected["beside"]))
        expect(not surplus, f"{name}: left beside the result: {surplus}")
        _expect_none_left(folder.name)
        return {"too_late": too_late, "was_done": was_done}

    def _started(self, name: str, folder: Path) -> tuple[subprocess.Popen[bytes], Path]:
        """A new process, in a session of its own."""
        command, box = COMMANDS[name], folder / "box"
        box.mkdir()
        (folder / "tmp").mkdir()
        for place in command.start:
            shutil.copytree(self.shared / place, box / place)
        return self._process(name, folder, "log"), box

    def _process(self, name: str, folder: Path, log: str) -> subprocess.Popen[bytes]:
        own = {"TMPDIR": str(folder / "tmp"), _MARK: folder.name}
        with (folder / log).open("wb") as output:
            return subprocess.Popen(
                [sys.executable, *self._arguments(COMMANDS[name], folder / "box")], stdout=output, stderr=output,
                stdin=subprocess.DEVNULL, start_new_session=True, env=os.environ | _THREADS | own,
            )  # fmt: skip

    def _arguments(self, command: Command, box: Path) -> list[str]:
        return [text.format(shared=self.shared, box=box) for text in command.arguments]


def _wait_for_work(process: subprocess.Popen[bytes], folder: Path) -> float:
    """Until something in the folder changes; the seconds that took."""
    start, before = time.monotonic(), _signature(folder)
    while process.poll() is None and _signature(folder) == before and time.monotonic() - start < SECONDS:
        time.sleep(0.005)
    return time.monotonic() - start


def _signature(folder: Path) -> list[tuple[str, int]]:
    return [
        (entry.path, entry.stat(follow_symlinks=False).st_mtime_ns)
        for place in (folder / "box", folder / "tmp")
        for entry in (*os.scandir(place), *os.scandir(folder))
        if entry.name != "log"
    ]


def _beside(box: Path) -> list[str]:
    return sorted(path.name for path in box.iterdir())


def _differences(one: Any, other: Any) -> list[str]:
    if not isinstance(one, dict) or not isinstance(other, dict):
        return [] if one == other else ["everything"]
    return [key for key in one.keys() | other.keys() if one.get(key) != other.get(key)]


def _expect_none_left(mark: str) -> None:
    """After five seconds, more on a busy machine, no process is left of those that a command has started."""
    deadline = time.monotonic() + 5 * max(1, os.getloadavg()[0] / (os.cpu_count() or 1))
    while left := _marked(mark):
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    for process in left:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    expect(not left, f"processes were left: {list(left.values())}")


def _marked(mark: str) -> dict[int, str]:
    wanted, processes = f"{_MARK}={mark}".encode(), {}
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                with open(f"/proc/{entry.name}/environ", "rb") as file:
                    if wanted not in file.read().split(b"\0"):
                        continue
                with open(f"/proc/{entry.name}/cmdline", "rb") as file:
                    processes[int(entry.name)] = file.read().replace(b"\0", b" ").decode(errors="replace")[:200]
            except OSError:
                continue
    return processes


# ---- commands that pictopic does not have ----------------------------------------------------------------------------


def _main(what: str, box: str) -> None:
    if what == "decide":
        decisions = Decisions(Path(box, "decisions.jsonl"))
        for k in range(_N_DECISIONS):
            decisions.add(f"{k}.png", "sea", "accepted")
            print(f"{k}.png", flush=True)
    else:
        model = builders.load_model(Path(box, "other"))
        for _ in range(10):
            model.save(Path(box, "model"))


CAMPAIGN = Kills

if __name__ == "__main__":
    _main(*sys.argv[1:])
