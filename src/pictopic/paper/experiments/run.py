"""How an experiment runs: in parts that are saved, within a budget of time."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from pictopic.corpus.corpus import Corpus
from pictopic.files import write_text
from pictopic.paper.experiments.results import plain, slug
from pictopic.processes import end_workers, worker_options
from pictopic.words.codebook import Codebook

T = TypeVar("T")
_PACKAGES = ("pictopic", "numpy", "scipy", "scikit-learn", "torch", "numba")
_CLEAR_REFS = Path("/proc/self/clear_refs")


class Budget:
    """Time given to an experiment, and what of it can be done in that time.

    With ``minutes=None`` it may take as long as it takes, which is about `full_minutes`.

    Examples
    --------
    >>> from pictopic.paper.experiments.run import Budget
    >>> budget = Budget(30, full_minutes=120)
    >>> budget.steps("passes", 200), budget.grid("topics", [25, 50, 100, 200])
    (100, [25, 200])
    >>> Budget(None, full_minutes=120).grid("topics", [25, 50, 100, 200])
    [25, 50, 100, 200]
    >>> budget.notes[0]
    'passes: 100 instead of 200'
    """

    def __init__(self, minutes: float | None, full_minutes: float):
        if minutes is not None and minutes <= 0:
            raise ValueError(f"the budget must be above 0 minutes, got {minutes}")
        self.minutes = minutes
        self.share = 1.0 if minutes is None else min(1.0, minutes / full_minutes)
        # Several things are scaled down, and their numbers multiply.
        self._each = self.share**0.5
        self.end = None if minutes is None else time.time() + 60 * minutes
        self._notes: dict[str, str] = {}

    @property
    def notes(self) -> list[str]:
        """What was scaled down."""
        return list(self._notes.values())

    def stop(self) -> None:
        """No more time: what is not done is left out."""
        self.end = 0.0

    @property
    def over(self) -> bool:
        """Whether the time is up."""
        return _is_over(self.end)

    def steps(self, name: str, n: int, least: int = 1) -> int:
        """A number of passes, splits or trials, scaled down."""
        scaled = min(n, max(least, round(self._each * n)))
        if scaled < n:
            self._notes[name] = f"{name}: {scaled} instead of {n}"
        return scaled

    def grid(self, name: str, values: Sequence[T]) -> list[T]:
        """Values to try, scaled down: evenly chosen, the last one always among them."""
        n = min(len(values), max(1, round(self._each * len(values))))
        chosen = np.linspace(len(values) - 1, 0, n).round().astype(int)[::-1] if n > 1 else [len(values) - 1]
        if n < len(values):
            tried = ", ".join(str(values[i]) for i in chosen)
            self._notes[name] = f"{name}: {tried} instead of {', '.join(map(str, values))}"
        return [values[i] for i in chosen]


@dataclass
class Cell:
    """A part of an experiment that is done: its figures and what they cost."""

    key: str
    values: dict[str, Any]
    seconds: float
    peak_memory_mb: float | None  # None: this system does not tell


def largest_peak(cells: Sequence[Cell]) -> float | None:
    """The most memory that any of the parts took, where it is known."""
    return max((cell.peak_memory_mb for cell in cells if cell.peak_memory_mb is not None), default=None)


class Task(NamedTuple):
    """A part of an experiment that can be done in another process."""

    key: str  # its name, unique in the experiment
    work: Callable[..., dict[str, Any]]  # a function of a module, called with options and context; returns plain JSON
    options: dict[str, Any]  # all that the figures depend on
    context: dict[str, Any]  # what they do not depend on: where files are on this machine


class ExperimentRun:
    """An experiment under way, in a folder of its own.

    Parts ("cells") are written as they are done; a run that was stopped reads them, unless their options have changed.

    Parameters
    ----------
    folder : Path
    budget : Budget
    random_state : int, default=0
    n_jobs : int, default=1
        Threads and processes.
    log : callable, optional
        Called with a line on what is being done.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.paper.experiments.run import Budget, ExperimentRun
    >>> run = ExperimentRun(Path(tempfile.mkdtemp()), Budget(None, 1))
    >>> run.cell("DocNADE, split 1", lambda: {"accuracy": 0.5}, topics=200).values
    {'accuracy': 0.5}
    >>> run.cell("DocNADE, split 1", lambda: 1 / 0, topics=200).values  # known already
    {'accuracy': 0.5}
    """

    def __init__(
        self, folder: Path, budget: Budget, *, random_state: int = 0, n_jobs: int = 1,
        log: Callable[[str], None] | None = None,
    ):  # fmt: skip
        self.folder, self.budget, self.random_state, self.n_jobs = folder, budget, random_state, n_jobs
        self.log = log or (lambda line: None)
        self.left_out: list[str] = []
        self.options: dict[str, dict[str, Any]] = {}
        self.done: dict[str, Cell] = {}

    def cell(self, key: str, work: Callable[[], dict[str, Any]], **options: Any) -> Cell | None:
        """The figures of one part: read if it is done, otherwise computed; None if there is no time left.

        Parameters
        ----------
        key : str
            Its name, unique in the experiment.
        work : callable
            Returns a dict that can be written as JSON.
        **options
            All that the figures depend on.  Other options make another part.
        """
        path = self._path(key, options)
        cell = _read_cell(path)
        if cell is None and not self.budget.over:
            self.log(key)
            cell = _compute(path, key, work, options)
        return self._note(key, options, cell)

    def cells(self, tasks: Sequence[Task]) -> list[Cell | None]:
        """The figures of several parts, the most important first, computed in `n_jobs` processes with one thread each.

        None stands for those for which there is no time left.
        """
        paths = [self._path(task.key, task.options) for task in tasks]
        missing = [i for i, path in enumerate(paths) if _read_cell(path) is None]
        if self.n_jobs == 1:
            for i in missing:
                _do(paths[i], tasks[i], self.budget.end, self.log)
        elif missing:
            jobs = (delayed(_do)(paths[i], tasks[i], self.budget.end) for i in missing)
            try:
                with parallel_config("loky", n_jobs=self.n_jobs, **worker_options()):
                    for key in Parallel(return_as="generator_unordered")(jobs):
                        if key:
                            self.log(f"{key}: done")
            except BaseException:
                end_workers()
                raise
        return [self._note(task.key, task.options, _read_cell(path)) for task, path in zip(tasks, paths, strict=True)]

    def _path(self, key: str, options: dict[str, Any]) -> Path:
        return self.folder / "cells" / f"{slug(key)}-{_digest([key, options])}.json"

    def _note(self, key: str, options: dict[str, Any], cell: Cell | None) -> Cell | None:
        if cell is None:
            self.left_out += [] if key in self.left_out else [key]
        else:
            self.options[key] = options
            self.done[key] = cell
        return cell

    def corpus(self, name: str, source: Any, codebook: Codebook | None = None, **options: Any) -> Corpus:
        """The corpus of a split: opened if it is built, otherwise built, or its build resumed.

        `codebook` is what the same options of `Corpus.build` would learn, if it is known already.
        """
        folder = self._corpus_folder(name, source, options)
        if self.is_built(name, source, **options):
            try:
                return Corpus.open(folder, pictures=source.folder)
            except ValueError:  # unfinished
                pass
        self.log(f"words of {name}")
        return Corpus.build(source, folder, codebook=codebook, resume=folder.exists(), n_jobs=self.n_jobs, **options)

    def is_built(self, name: str, source: Any, **options: Any) -> bool:
        """Whether `corpus` would only have to open it."""
        return (self._corpus_folder(name, source, options) / "corpus.json").is_file()

    def _corpus_folder(self, name: str, source: Any, options: dict[str, Any]) -> Path:
        return self.folder / "corpora" / f"{slug(name)}-{_digest([source.fingerprint, options])}"

    @property
    def notes(self) -> list[str]:
        """What was scaled down or left out."""
        notes = []
        if self.budget.share < 1:
            notes.append("; ".join([f"Scaled down to {self.budget.minutes:g} minutes", *self.budget.notes]) + ".")
        if self.left_out:
            notes.append(f"No time was left for: {'; '.join(_together(self.left_out))}.")
        return notes

    @property
    def seconds(self) -> float:
        """Wall time of all parts."""
        return sum(cell.seconds for cell in self.done.values())


def _together(keys: Sequence[str]) -> list[str]:
    """Names of parts, those of several splits in one."""
    splits_of: dict[str, list[str]] = {}
    for key in keys:
        name, _, split = key.partition(", split ")
        splits_of.setdefault(name, []).append(split)
    return [f"{name} (split {', '.join(splits)})" if splits[0] else name for name, splits in splits_of.items()]


def versions() -> dict[str, str]:
    """Of Python and the packages that figures depend on."""
    return {"python": ".".join(map(str, sys.version_info[:3]))} | {name: version(name) for name in _PACKAGES}


def _is_over(end: float | None) -> bool:
    return end is not None and time.time() > end


def _do(path: Path, task: Task, end: float | None, log: Callable[[str], None] | None = None) -> str:
    """Compute a part, perhaps in another process; returns its name, or nothing if there is no time."""
    if _is_over(end):
        return ""
    if log:
        log(task.key)
    with threadpool_limits(1):
        _compute(path, task.key, lambda: task.work(**task.options, **task.context), task.options)
    return task.key


def _compute(path: Path, key: str, work: Callable[[], dict[str, Any]], options: dict[str, Any]) -> Cell:
    _forget_peak()
    begin = time.perf_counter()
    values = work()
    cell = Cell(key, values, time.perf_counter() - begin, _peak_memory_mb())
    content = {"options": options, "versions": versions()} | cell.__dict__
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False, default=plain) + "\n")
    return _read_cell(path) or cell  # as it will be read next time


def _forget_peak() -> None:
    try:
        _CLEAR_REFS.write_text("5")  # Linux: the peak starts again at what is in use
    except OSError:
        return


def _peak_memory_mb() -> float | None:
    status = Path("/proc/self/status")
    if status.is_file() and (peak := re.search(r"VmHWM:\s+(\d+) kB", status.read_text())):
        return int(peak[1]) / (1 << 10)
    try:
        import resource
    except ImportError:  # Windows
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def _read_cell(path: Path) -> Cell | None:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return Cell(content["key"], content["values"], content["seconds"], content["peak_memory_mb"])
    except (FileNotFoundError, ValueError, KeyError, TypeError):  # missing, or damaged: computed again
        return None


def _digest(content: Any) -> str:
    text = json.dumps(content, sort_keys=True, default=plain)
    return hashlib.sha256(text.encode()).hexdigest()[:12]
