"""Commands that learn from a collection: fit, tune."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pictopic.cli.application import app
from pictopic.cli.output import (
    CLUSTER,
    JSON,
    LABEL_COLUMN,
    TAGS_COLUMN,
    WORKERS,
    MisuseError,
    answer,
    cluster_options,
    cluster_workers,
    misuse,
    print_warnings,
    progress_bars,
    training_report,
)

if TYPE_CHECKING:
    from pictopic import Corpus


@app.command()
def fit(
    source: Annotated[str, typer.Argument(help="Folder of pictures, metadata file, or a corpus (or its URL).")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the model.")],
    model: Annotated[str, typer.Option(help="auto, shallow or deep.")] = "auto",
    preset: Annotated[str, typer.Option(help="scenes or flickr.")] = "scenes",
    words: Annotated[int | None, typer.Option(help="Number of visual words.")] = None,
    regions: Annotated[str | None, typer.Option(help="Grid over a picture, as 2x2.")] = None,
    features: Annotated[str, typer.Option(help="Global features; none for none.")] = "gist,mpeg7",
    max_side: Annotated[int, typer.Option(help="Scale larger pictures down to this many pixels.")] = 480,
    label_column: LABEL_COLUMN = "label",
    tags_column: TAGS_COLUMN = "tags",
    split_column: Annotated[str | None, typer.Option(help="Column that says train, test, ...")] = None,
    tuned: Annotated[Path | None, typer.Option(help="Options that pictopic tune found: TUNED/best.json.")] = None,
    init: Annotated[str | None, typer.Option(help="A model of pictopic pretrain to start from.")] = None,
    jobs: Annotated[int, typer.Option(help="Processes and threads; -1: one for each core.")] = -1,
    cluster: CLUSTER = None,
    workers: WORKERS = None,
    checkpoint_minutes: Annotated[float, typer.Option(min=0, help="Minutes between two checkpoints.")] = 2.0,
    finish: Annotated[bool, typer.Option("--finish", help="Save the best model of a fit that was stopped.")] = False,
    restart: Annotated[bool, typer.Option("--restart", help="Forget what a fit that was stopped has done.")] = False,
    seed: Annotated[int, typer.Option(help="Another number gives another model.")] = 0,
    as_json: JSON = False,
) -> None:
    """Learn from a folder of pictures with tags or classes.

    Reports accuracy on held-out pictures next to simple baselines.

    It can be stopped at any time (Ctrl-C): the same command goes on, to the same model, and with --finish it saves the
    best model so far.  Until the model is saved, everything is in OUT.building.

    With --cluster a Ray cluster's machines count the words and learn one network together (a deep one); they must see
    the pictures, and the checkpoints in OUT.building, under the same path.

    Example: pictopic fit photos --out photos.model
    """
    from pictopic.files import check_place
    from pictopic.picture_model.files import CONFIG

    print_warnings()
    with misuse():
        check_place(out, "a picture model", CONFIG, replaced=True)
        if not _is_url(source) and not Path(source).exists():
            raise ValueError(f"{source} does not exist")
    from pictopic import Checkpoint, Corpus, PictureModel
    from pictopic.cli.jobs import building_folder, stoppable, work_folder
    from pictopic.corpus.store import MANIFEST
    from pictopic.models.run import Run
    from pictopic.picture_model import CHECKPOINTS
    from pictopic.tasks.pretraining import load_pretrained
    from pictopic.tasks.tuning import read_options

    kinds = () if features == "none" else tuple(kind.strip() for kind in features.split(",") if kind.strip())
    columns = {"label_column": label_column, "tags_column": tags_column, "split_column": split_column}
    options: dict[str, Any] = {
        "model": model, "preset": preset, "n_words": words, "regions": regions, "features": kinds,
        "max_side": max_side, "random_state": seed,
    }  # fmt: skip
    with misuse():
        options["options"] = None if tuned is None else read_options(tuned)
        learner = PictureModel(**options, n_jobs=jobs, verbose=0)
        machines = cluster_options(cluster, workers)
    train: Callable[..., Any] | None = None
    if machines is not None:
        from pictopic.cluster.training import fit_on_cluster

        train = partial(fit_on_cluster, **machines)
    absolute_source = source if _is_url(source) else os.path.realpath(source)
    job = {"command": "fit", "source": absolute_source, "init": init, **columns, **options}

    def has_checkpoint() -> bool:
        return any((building_folder(out) / CHECKPOINTS).glob("*/checkpoint-*"))

    with stoppable(finish=has_checkpoint):
        if finish and (restart or not has_checkpoint()):
            raise MisuseError(f"there is nothing to finish: {building_folder(out)} has no checkpoint yet")
        with work_folder(out, job, restart) as work:
            with misuse():
                is_corpus = _is_url(source) or (Path(source) / MANIFEST).is_file()
                data = Corpus.open(source) if is_corpus else _unfinished_source(source, work / "corpus", columns)
                if init is not None and is_corpus:
                    load_pretrained(init, data)
            with cluster_workers(cluster) as workers_on_cluster, progress_bars("pictures") as progress:
                run = Run(
                    Checkpoint(work / CHECKPOINTS, minutes=checkpoint_minutes), raise_on_interrupt=True, finish=finish,
                    report=training_report(progress),
                )  # fmt: skip
                building: dict[str, Any] = {} if isinstance(data, Corpus) else columns | {"workers": workers_on_cluster}
                learner.fit(data, folder=work, progress=progress, init=init, train=train, run=run, **building)
            learner.save(out)
            lines = [*learner.summary(), f"Written: {out}.  Try: pictopic serve {out}"]
            content = {"model": str(out), "rows": len(learner.corpus_), "figures": learner.figures_}
    answer(content, lines, as_json)


def _unfinished_source(source: str, folder: Path, columns: dict[str, Any]) -> Any:
    """Return the source or, if it has changed since, the corpus that a stopped fit has made of it.

    One picture more or fewer must not lose hours of training.
    """
    from pictopic import Corpus
    from pictopic.corpus.sources import read_source
    from pictopic.corpus.store import MANIFEST, Manifest

    if not (folder / MANIFEST).is_file():
        return source
    listed = read_source(source, **columns)
    if Manifest.read(folder).source == listed.fingerprint:
        return listed
    warnings.warn(
        f"{source} has changed since the fit was begun: it goes on with the pictures that were there then; add others "
        "with pictopic update, or start over with --restart",
        stacklevel=2,
    )
    return Corpus.open(folder)


def _is_url(source: str) -> bool:
    from pictopic.storage import is_remote

    return is_remote(source)


@app.command()
def tune(
    source: Annotated[Path, typer.Argument(help="Folder of pictures, metadata file, or a corpus.")],
    out: Annotated[Path, typer.Option("--out", help="Folder of the trials.")],
    minutes: Annotated[float, typer.Option(help="How long to try.")] = 10.0,
    label_column: LABEL_COLUMN = "label",
    tags_column: TAGS_COLUMN = "tags",
    jobs: Annotated[int, typer.Option(help="Processes and threads; -1: one for each core.")] = -1,
    seed: Annotated[int, typer.Option(help="Another number gives other trials.")] = 0,
    as_json: JSON = False,
) -> None:
    """Try options of the model for some minutes, on a part of the pictures that is held out.

    Each trial is written down when it ends: run it again to go on.

    Example: pictopic tune photos --out tuned --minutes 30

    Then: pictopic fit photos --out photos.model --tuned tuned/best.json
    """
    from pictopic.cli.jobs import stoppable
    from pictopic.files import check_place
    from pictopic.processes import lock_beside

    print_warnings()
    with misuse():
        if not source.exists():
            raise ValueError(f"{source} does not exist")
        if minutes <= 0:
            raise ValueError(f"the minutes must be more than 0, got {minutes}")
        check_place(out, "a folder of trials", "trials.jsonl")
    from pictopic.models.run import Run
    from pictopic.tasks import tuning

    columns = {"label_column": label_column, "tags_column": tags_column}

    def print_trial(trial: tuning.Trial) -> None:
        print(tuning.table([trial])[1], file=sys.stderr, flush=True)

    with stoppable(), lock_beside(out), progress_bars("pictures") as progress:
        tuning.begin(out)
        corpus = _corpus_for_trials(source, out / "corpus", jobs, columns, progress)
        run = Run(raise_on_interrupt=True, report=training_report(progress))
        trials = tuning.tune(corpus, out, minutes, random_state=seed, n_jobs=jobs, tell=print_trial, run=run)
    lines = [*tuning.table(trials), f"Best options: {out / tuning.BEST}"]
    answer({"trials": [trial._asdict() | {"score": trial.score} for trial in trials]}, lines, as_json)


def _corpus_for_trials(source: Path, folder: Path, jobs: int, columns: dict[str, Any], progress: Any) -> Corpus:
    """Return the source if it is a corpus, else the corpus that an earlier run or this one makes of it."""
    from pictopic import Corpus, PictureModel
    from pictopic.corpus.store import MANIFEST

    with misuse():
        if (source / MANIFEST).is_file():
            return Corpus.open(source)
    return PictureModel(n_jobs=jobs).build_corpus(source, folder, progress=progress, resume=True, **columns)
