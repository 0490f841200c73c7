"""Random search for options within a time budget; each trial is saved, so that a search can be resumed."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from pictopic.corpus.corpus import Corpus
from pictopic.files import write_text
from pictopic.models.checkpoint import Checkpoint
from pictopic.models.run import Run
from pictopic.tasks.fit import fit_everything, usable_rows

TRIALS, BEST = "trials.jsonl", "best.json"
_CHECKPOINTS = "checkpoints"
_OF_TRIAL = re.compile(r"\d+-\d+")  # folder of a trial's checkpoints: seed, number
_LIKELIHOOD = "log_likelihood_per_word"
_SIZES: tuple[Any, ...] = (256, 512, 1024, (512, 512), (1024, 1024), (512, 512, 512))


class Trial(NamedTuple):
    """Options of a model, and its figures on held-out pictures."""

    options: dict[str, Any]
    figures: dict[str, float]
    seconds: float

    @property
    def score(self) -> float:
        """Mean of class score and F-measure of tags; without either, the log-likelihood per word."""
        known = [self.figures[name] for name in ("classes", "tags") if name in self.figures]
        return float(np.mean(known)) if known else self.figures.get(_LIKELIHOOD, float("-inf"))


def draw_options(number: int, random_state: int = 0) -> dict[str, Any]:
    """Draw the options of a trial; the first uses the defaults.

    Examples
    --------
    >>> from pictopic.tasks.tuning import draw_options
    >>> draw_options(0), sorted(draw_options(1))
    ({}, ['annotation_weight', 'dropout', 'generative_weight', 'learning_rate', 'n_components'])
    """
    if number == 0:
        return {}
    rng = np.random.default_rng([random_state, number])
    weight = float(np.round(10 ** rng.uniform(0, 2.5), 1))
    return {
        "n_components": _SIZES[rng.integers(len(_SIZES))],
        "learning_rate": float(f"{10 ** rng.uniform(-4, -3):.2g}"),
        "generative_weight": float(f"{10 ** rng.uniform(-1, 1):.2g}"),
        "annotation_weight": "balanced" if rng.random() < 0.5 else weight,
        "dropout": float(rng.choice([0.2, 0.35, 0.5])),
    }


def begin(folder: Path) -> None:
    """Create the folder and the file of trials, by which a later run recognises the folder."""
    if not (folder / TRIALS).is_file():
        write_text(folder / TRIALS, "")


def tune(
    corpus: Corpus,
    folder: Path,
    minutes: float,
    *,
    random_state: int = 0,
    n_jobs: int | None = -1,
    tell: Callable[[Trial], None] = lambda trial: None,
    run: Run | None = None,
) -> list[Trial]:
    """Try options of the deep model until the time is up.

    Parameters
    ----------
    corpus : Corpus
    folder : Path
        Folder of ``trials.jsonl``, to which each trial is added, and ``best.json``.  Trials in the file are not
        repeated; an interrupted one continues from its checkpoint in ``checkpoints``.
    minutes : float
        No trial starts that would end later if it took as long as the slowest so far; at least one is run.
    random_state : int, default=0
    n_jobs : int or None, default=-1
    tell : callable, optional
        Called with each trial.
    run : Run, optional
        Effect of Ctrl-C, and progress reports; default: Ctrl-C writes a checkpoint and raises an exception.

    Returns
    -------
    list of Trial
        All trials, best first.
    """
    begin(folder)
    run = replace(run or Run(raise_on_interrupt=True), checkpoint=Checkpoint(folder / _CHECKPOINTS, minutes=2))
    trials = list(read_trials(folder / TRIALS))
    supervised = usable_rows(corpus).labels is not None
    start_of_all = time.monotonic()
    slowest = 0.0
    while not slowest or time.monotonic() - start_of_all + slowest <= 60 * minutes:
        options = draw_options(len(trials), random_state)
        if not supervised:
            options.pop("generative_weight", None)
        start = time.monotonic()
        fitted = fit_everything(
            corpus, kind="deep", random_state=random_state, n_jobs=n_jobs, verbose=0, options=options, trial=True,
            run=_for_trial(run, folder, f"{random_state}-{len(trials)}"),
        )  # fmt: skip
        trials.append(Trial(options, fitted.figures, time.monotonic() - start))
        slowest = max(slowest, trials[-1].seconds)
        _write(folder, trials)
        _remove_checkpoints(folder)
        tell(trials[-1])
    return sorted(trials, key=lambda trial: -trial.score)


def _for_trial(run: Run, folder: Path, name: str) -> Run:
    """Return the run of one trial, after removing the checkpoints of others."""
    _remove_checkpoints(folder, but=name)
    return replace(run, checkpoint=run.checkpoint and run.checkpoint.below(name))


def _remove_checkpoints(folder: Path, but: str | None = None) -> None:
    """Remove the checkpoints of trials, and no other files."""
    for path in (folder / _CHECKPOINTS).glob("*"):
        if path.name != but and _OF_TRIAL.fullmatch(path.name):
            shutil.rmtree(path, ignore_errors=True)
    with suppress(OSError):  # it does not exist, or is not empty
        (folder / _CHECKPOINTS).rmdir()


def _write(folder: Path, trials: list[Trial]) -> None:
    lines = [json.dumps(trial._asdict()) for trial in trials]
    write_text(folder / TRIALS, "\n".join(lines) + "\n")
    best = max(trials, key=lambda trial: trial.score)
    write_text(folder / BEST, json.dumps(best.options) + "\n")


def read_trials(path: Path) -> Iterator[Trial]:
    """Read the trials in a file."""
    if not path.is_file():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            yield Trial(**json.loads(line))
        except (TypeError, ValueError) as error:
            raise ValueError(f"{path}, row {number}: {error}") from None


def read_options(path: Path) -> dict[str, Any]:
    """Read options of an estimator from a JSON file such as ``best.json``."""
    try:
        options = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(options, dict):
            raise ValueError("it holds no options")
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    return {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}


def table(trials: list[Trial]) -> list[str]:
    """Return trials as lines of text, best first."""
    lines = ["classes     tags  nats/word  seconds  options"]
    for trial in sorted(trials, key=lambda trial: -trial.score):
        shown = [trial.figures.get(name) for name in ("classes", "tags")]
        figures = "  ".join("      -" if value is None else f"{value:7.1%}" for value in shown)
        likelihood = trial.figures.get(_LIKELIHOOD)
        figures += "          -" if likelihood is None else f"  {likelihood:9.3f}"
        options = ", ".join(f"{key}={value}" for key, value in trial.options.items()) or "defaults"
        lines.append(f"{figures}  {trial.seconds:7.0f}  {options}")
    return lines
