"""Running the trials of a campaign: numbered, seeded, written down one by one, and each one repeatable."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from tests.campaigns.children import end_with_parent

OK, FAILED = "ok", "failed"


class BrokenPromiseError(AssertionError):
    """What a trial found; its text goes to the campaign's file."""


def expect(condition: Any, text: str) -> None:
    """A promise that a trial checks."""
    if not condition:
        raise BrokenPromiseError(text)


@dataclass(frozen=True)
class Sizes:
    """How many trials the campaigns have."""

    points: int = 40  # crashes for each operation and kind of crash
    kills: int = 60
    damaged: int = 300
    files: int = 2_000
    rounds: int = 40
    soak: int = 90  # seconds


class Campaign:
    """What the campaigns have in common.

    `prepare` makes what all trials share, once; `plan` says what the trials are; `run` does one, in an empty folder of
    its own, and raises BrokenPromiseError, or returns what is worth writing down.
    """

    name: str
    at_once = True  # whether trials may run beside each other

    def __init__(self, shared: Path, sizes: Sizes, seed: int):
        self.shared, self.sizes, self.seed = shared, sizes, seed

    def prepare(self) -> None:
        """Make what all trials share."""

    def plan(self) -> list[dict[str, Any]]:
        """What each trial is about, as JSON; its place in the list is its number."""
        raise NotImplementedError

    def run(self, trial: dict[str, Any], rng: random.Random, folder: Path) -> dict[str, Any] | None:
        """Do one trial."""
        raise NotImplementedError

    # ---- one trial ---------------------------------------------------------------------------------------------------

    def attempt(self, number: int, trial: dict[str, Any], keep: Path | None = None) -> dict[str, Any]:
        """One trial's line: a trial that fails says why, and nothing it does stops the others."""
        rng = random.Random(f"{self.seed}:{self.name}:{number}")  # noqa: S311
        folder = Path(tempfile.mkdtemp(prefix=f"{self.name}-{number}-", dir=self.shared.parent))
        line = {"number": number, "seed": self.seed, "trial": trial}
        start = time.monotonic()
        try:
            line |= {"outcome": OK, "details": self.run(trial, rng, folder) or {}}
        except BrokenPromiseError as error:
            line |= {"outcome": FAILED, "details": {"reason": str(error)}}
        except Exception:  # a fault of the campaign, or of what it did not expect: never passed over
            line |= {"outcome": FAILED, "details": {"reason": traceback.format_exc()}}
        finally:
            if keep is None:
                shutil.rmtree(folder, ignore_errors=True)
            else:
                shutil.rmtree(keep, ignore_errors=True)
                shutil.move(folder, keep)
        return line | {"seconds": round(time.monotonic() - start, 2)}


class Record:
    """The lines of a campaign that are written down already, in FOLDER/NAME.jsonl."""

    def __init__(self, path: Path, seed: int):
        self.path, self.lines = path, {}
        if path.is_file():
            for text in path.read_text(encoding="utf-8").splitlines():
                try:
                    line = json.loads(text)
                except ValueError:
                    continue  # cut off by a kill: that trial is done again
                if line["seed"] == seed:
                    self.lines[line["number"]] = line

    def add(self, line: dict[str, Any]) -> None:
        """Write a line down."""
        self.lines[line["number"]] = line
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


def run_campaign(campaign: Campaign, out: Path, jobs: int, only: int | None = None) -> list[dict[str, Any]]:
    """Run the trials that are not written down yet; the lines of all.

    Parameters
    ----------
    campaign : Campaign
    out : Path
        Folder of the record.
    jobs : int
        Trials at once.
    only : int, optional
        Number of the one trial to run, even if it was run before; its folder is kept in OUT/NAME-NUMBER.
    """
    campaign.prepare()
    trials = campaign.plan()
    if only is not None:
        line = campaign.attempt(only, trials[only], keep=out / f"{campaign.name}-{only}")
        print(json.dumps(line, indent=1, ensure_ascii=False))
        return [line]
    record = Record(out / f"{campaign.name}.jsonl", campaign.seed)
    # A line of another plan (other sizes) is none of this one's.
    done = {k for k, line in record.lines.items() if k < len(trials) and line["trial"] == trials[k]}
    todo = [k for k in range(len(trials)) if k not in done]
    print(f"{campaign.name}: {len(trials)} trials, {len(done)} of them done already", flush=True)
    start = told = time.monotonic()
    for n, line in enumerate(_lines(campaign, trials, todo, jobs), 1):
        record.add(line)
        if line["outcome"] == FAILED:
            reason = line["details"]["reason"].strip()
            print(f"  {campaign.name}:{line['number']} {json.dumps(line['trial'])}: {reason}", flush=True)
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"  {campaign.name}: {n} of {len(todo)}, {told - start:.0f} s", flush=True)
    return [record.lines[k] for k in range(len(trials))]


def _lines(campaign: Campaign, trials: list, todo: list[int], jobs: int) -> Iterator[dict[str, Any]]:
    if not campaign.at_once or jobs == 1 or len(todo) < 2:
        yield from (campaign.attempt(k, trials[k]) for k in todo)
        return
    with ProcessPoolExecutor(jobs, get_context("fork"), end_with_parent) as pool:
        for future in as_completed([pool.submit(campaign.attempt, k, trials[k]) for k in todo]):
            yield future.result()


def table(results: dict[str, list[dict[str, Any]]]) -> list[str]:
    """The campaigns' figures, as lines of a Markdown table."""
    lines = ["| campaign | trials | failed | minutes of work |", "|---|---:|---:|---:|"]
    for name, trials in results.items():
        outcomes = Counter(line["outcome"] for line in trials)
        minutes = sum(line["seconds"] for line in trials) / 60
        lines.append(f"| {name} | {len(trials):,} | {outcomes[FAILED]:,} | {minutes:.1f} |")
    return lines


def tree(folder: Path, without: tuple[str, ...] = ()) -> dict[str, str]:
    """Everything below a folder, with what it is: its bytes' hash, a link's target.

    What begins like one of `without` is left out.
    """
    content: dict[str, str] = {}
    for root, folders, names in os.walk(folder):
        for name in (*folders, *names):
            path = Path(root, name)
            key = path.relative_to(folder).as_posix()
            if key.startswith(without):
                continue
            if path.is_symlink():
                content[key] = f"-> {os.readlink(path)}"
            elif path.is_dir():
                content[key] = "folder"
            elif path.is_file():
                content[key] = hashlib.sha256(path.read_bytes()).hexdigest()
            else:
                content[key] = "special"
    return content
