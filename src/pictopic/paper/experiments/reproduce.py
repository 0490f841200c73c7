"""Runs an experiment by its name and writes down what it found."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from joblib import cpu_count

from pictopic.paper.datasets.layouts import LAYOUTS
from pictopic.paper.experiments import corel5k, mirflickr, scenes, text
from pictopic.paper.experiments.document import write_markdown
from pictopic.paper.experiments.results import Results
from pictopic.paper.experiments.run import Budget, ExperimentRun


class Experiment(NamedTuple):
    """How an experiment is run, and about how many minutes all of it takes on one core."""

    run: Callable[[Path, ExperimentRun], Results]
    full_minutes: Callable[[Path], float]


EXPERIMENTS = {
    "labelme": Experiment(partial(scenes.run, dataset="labelme"), lambda data: scenes.FULL_MINUTES),
    "uiuc-sports": Experiment(partial(scenes.run, dataset="uiuc-sports"), lambda data: scenes.FULL_MINUTES),
    "mirflickr": Experiment(mirflickr.run, mirflickr.full_minutes),
    "corel5k": Experiment(corel5k.run, lambda data: corel5k.FULL_MINUTES),
    "text": Experiment(text.run, lambda data: text.FULL_MINUTES),
}


def reproduce(
    name: str,
    data: Path,
    out: Path,
    *,
    budget: float | None = None,
    n_jobs: int = 1,
    random_state: int = 0,
    log: Callable[[str], None] | None = None,
) -> Results:
    """Run an experiment and write ``results.json``, ``results.md`` and the figures.

    What is done is kept in `out`, where the next run with the same options resumes.  A run that is interrupted
    (Ctrl-C) writes the results it has.

    Parameters
    ----------
    name : {"labelme", "uiuc-sports", "mirflickr", "corel5k", "text"}
    data : Path
        Folder of the data set; see `pictopic.paper.datasets.LAYOUTS`.
    out : Path
    budget : float or None, default=None
        Minutes.  Grids, passes and splits are scaled down to it, and what does not fit is left out; the results say so.
    n_jobs : int, default=1
        Processes; -1: one for each core.
    random_state : int, default=0
    log : callable, optional
        Called with a line on what is being done.
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    if not data.is_dir():
        raise LAYOUTS[name].missing(data, "the folder of the data")
    experiment = EXPERIMENTS[name]
    n_jobs = cpu_count() if n_jobs == -1 else n_jobs
    # How long all of it takes is known only from a look at the data, which takes long itself.
    time = Budget(budget, 1.0 if budget is None else experiment.full_minutes(data) / n_jobs)
    started = ExperimentRun(out, time, random_state=random_state, n_jobs=n_jobs, log=log)
    try:
        results = experiment.run(data, started)
    except KeyboardInterrupt:
        if not started.done:
            raise
        time.stop()
        results = experiment.run(data, started)
    results.save(out)
    write_markdown(results, out)
    return results
