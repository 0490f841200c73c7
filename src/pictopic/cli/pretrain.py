"""The command that learns from pictures without classes: pretrain."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Annotated, Any

import typer

from pictopic.cli.application import app
from pictopic.cli.output import (
    CLUSTER,
    JSON,
    WORKERS,
    answer,
    cluster_options,
    misuse,
    print_warnings,
    progress_bars,
    training_report,
)


@app.command()
def pretrain(
    corpus: Annotated[str, typer.Argument(help="Folder or URL of a corpus, made by pictopic build.")],
    out: Annotated[str, typer.Option("--out", help="Folder or URL of the pretrained model.")],
    minutes: Annotated[float | None, typer.Option(help="How long to learn, at most.")] = None,
    epochs: Annotated[int | None, typer.Option(min=1, help="Passes over the collection, at most.")] = None,
    layers: Annotated[str, typer.Option(help="Hidden units of each layer; the paper's: 2048,2048,2048.")] = "512,512",
    batch: Annotated[int | None, typer.Option(min=1, help="Pictures a step.  [128]")] = None,
    checkpoint: Annotated[
        str | None, typer.Option(help="Folder or URL where the run is written down.  [OUT.checkpoints]")
    ] = None,
    checkpoint_minutes: Annotated[float, typer.Option(help="Minutes between two checkpoints.")] = 10.0,
    device: Annotated[str, typer.Option(help="cpu, or cuda for a graphics card.")] = "cpu",
    jobs: Annotated[int, typer.Option(help="Threads; -1: one for each core.")] = -1,
    cluster: CLUSTER = None,
    workers: WORKERS = None,
    seed: Annotated[int, typer.Option(help="Another number gives another model.")] = 0,
    as_json: JSON = False,
) -> None:
    """Learn from a collection without looking at classes, as a start for pictopic fit.

    For collections of which few pictures, or none, have a class: what pictures and tags have to do with each other is
    learnt from all of them.  The collection may be larger than memory.  Say how long with --minutes or --epochs.  A run
    that was stopped goes on when the same command is given again; with more minutes or epochs, one that was finished.

    With --cluster a Ray cluster's machines learn one model together; they must see CORPUS and the checkpoints under the
    same path.  If one is lost, the others go on from the last checkpoint.

    Example: pictopic pretrain photos.corpus --out photos.start --minutes 30

    Then: pictopic fit photos.corpus --init photos.start --out photos.model
    """
    from pictopic.files import check_place
    from pictopic.processes import lock_beside
    from pictopic.storage import is_remote, local

    print_warnings()
    with misuse():
        if minutes is None and epochs is None:
            raise ValueError("say how long to learn: --minutes 30, or --epochs 10")
        if minutes is not None and minutes <= 0:
            raise ValueError(f"the minutes must be more than 0, got {minutes}")
        if not is_remote(out):
            check_place(local(out), "a model", "config.json", replaced=True)
    from pictopic import Checkpoint, Corpus
    from pictopic.cli.jobs import stoppable
    from pictopic.models.run import Run
    from pictopic.tasks.pretraining import pretrain as learn
    from pictopic.tasks.pretraining import save_pretrained

    with misuse():
        sizes = _sizes(layers)
        opened = Corpus.open(corpus)
        machines = cluster_options(cluster, workers)
    fit: Callable[..., Any] | None = None
    if machines is not None:
        from pictopic.cluster.training import fit_rows_on_cluster

        fit = partial(fit_rows_on_cluster, **machines)
    # Two runs that write the same checkpoints would resume each other's.
    lock = nullcontext() if is_remote(out) else lock_beside(local(out))
    with stoppable(), lock, progress_bars("pictures") as progress:
        model = learn(
            opened, sizes=sizes, epochs=epochs, minutes=minutes, random_state=seed, n_jobs=jobs, device=device,
            verbose=0 if cluster is None else 1,  # processes elsewhere cannot report to this one
            batch_size="auto" if batch is None else batch, fit=fit,
            run=Run(
                Checkpoint(checkpoint or f"{out}.checkpoints", minutes=checkpoint_minutes), raise_on_interrupt=True,
                report=training_report(progress), stage="training",
            ),
        )  # fmt: skip
        save_pretrained(model, opened, out)
    score = model.best_validation_score_
    lines = [f"learnt from {len(opened):,} rows in {model.n_iter_:,} whole passes"]
    if score is not None:
        lines.append(f"log-likelihood per word of held-out rows: {score:.4f}")
    lines.append(f"Written: {out}.  Then: pictopic fit {corpus} --init {out} --out MODEL")
    content = {"model": str(out), "rows": len(opened), "passes": model.n_iter_, "held_out_log_likelihood": score}
    answer(content, lines, as_json)


def _sizes(layers: str) -> tuple[int, ...]:
    try:
        sizes = tuple(int(size) for size in layers.split(","))
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise ValueError(f"--layers must be numbers of hidden units, as 512,512, got {layers!r}")
    return sizes
