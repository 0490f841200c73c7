"""What a cluster gains and costs, and one pass over a collection of a million pictures.

``python -m benchmarks.scale``: all figures at full size; ``--only build --pictures 200`` one of them, smaller.  Two Ray
workers of this machine stand for two machines, one thread each; the cluster's own start is not counted.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from benchmarks.deep import N_FEATURES, N_TAGS, N_VISUAL, pictures
from benchmarks.timing import report
from pictopic import Corpus, DeepDocNADE, Rows
from pictopic.cluster.connection import load_ray
from pictopic.cluster.training import fit_on_cluster, run_together
from pictopic.cluster.workers import RayWorkers
from pictopic.corpus import store
from pictopic.demo.scenes import write_scenes
from pictopic.models.inputs import no_labels, summarize
from pictopic.models.run import Run
from pictopic.models.training import current
from pictopic.words.vocabulary import Vocabulary

_BLOCK = 2000  # made-up documents that are in memory at a time


@contextmanager
def _cluster(n_processors: int) -> Iterator[Any]:
    """A Ray cluster of this machine with so many workers, which have loaded everything."""
    root = str(Path(__file__).parent.parent)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))
    ray = load_ray()
    ray.init("local", num_cpus=n_processors, include_dashboard=False, logging_level="error", log_to_driver=False)
    try:
        yield ray
    finally:
        ray.shutdown()


def _seconds(run: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    run()
    return time.perf_counter() - begin


# ---- building --------------------------------------------------------------------------------------------------------


def build(n_pictures: int) -> None:
    """A build with two workers against one, and one worker against the local build."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_scenes(folder / "photos", n_pictures, seed=0)
        write_scenes(folder / "few", 40, seed=1)
        options: dict[str, Any] = {"features": ("gist", "mpeg7"), "n_words": 240}
        seconds = {}
        Corpus.build(folder / "few", folder / "warm", n_jobs=1, **options)
        seconds["local"] = _seconds(lambda: Corpus.build(folder / "photos", folder / "local", n_jobs=1, **options))
        for n in (1, 2):
            with _cluster(n) as ray:
                workers = RayWorkers(ray)
                Corpus.build(folder / "few", folder / f"warm{n}", workers=workers, **options)
                seconds[str(n)] = _seconds(
                    lambda n=n, workers=workers: Corpus.build(  # type: ignore[misc]
                        folder / "photos", folder / str(n), workers=workers, **options
                    )
                )
        equal = _contents(folder / "local") == _contents(folder / "1") == _contents(folder / "2")
    report(
        f"build of {n_pictures} pictures, two workers against one", ratio=seconds["1"] / seconds["2"], target=1.7,
        pictures_a_second=n_pictures / seconds["2"], same_bytes=equal,
    )  # fmt: skip
    report(
        f"build of {n_pictures} pictures, cluster of one worker against local", ratio=seconds["1"] / seconds["local"],
        target=1.1, seconds=seconds["local"],
    )  # fmt: skip


def _contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# ---- training --------------------------------------------------------------------------------------------------------


def _model(sizes: tuple[int, ...], batch: int, **options: Any) -> DeepDocNADE:
    return DeepDocNADE(
        n_components=sizes, n_annotation_words=N_TAGS, normalize="std", batch_size=batch, validation_fraction=None,
        **({"random_state": 0} | options),
    )  # fmt: skip


def _steps(threads: int, sizes: tuple[int, ...], batch: int, n_steps: int) -> list[float]:
    """Seconds of each step of training, wherever this runs."""
    X = pictures(batch, 0)
    features = np.random.default_rng(1).normal(size=(batch, N_FEATURES)).astype(np.float32)
    documents = Rows(X, features, no_labels(X.shape[0]))
    model = _model(sizes, batch, n_jobs=threads)
    model.n_features_in_, model.n_global_features_ = X.shape[1], N_FEATURES
    model._initialise(np.random.RandomState(0), documents, summarize(documents))
    trainer = model._trainer(documents)
    everything, seconds = np.arange(batch), []
    for step in range(n_steps + 2):
        current().agree(lambda: None)  # all begin together
        seconds.append(_seconds(lambda step=step: trainer.learn(*trainer.load(everything, step))))  # type: ignore[misc]
    return seconds[2:]


def training(n_steps: int, batch: int, sizes: tuple[int, ...]) -> None:
    """A step of training with two workers against one."""
    with _cluster(2):
        found = {n: run_together(_steps, sizes, batch, n_steps, workers=n, threads=1) for n in (1, 2)}
    one, two = (float(np.median(found[n])) for n in (1, 2))
    report(
        f"training {' x '.join(map(str, sizes))}, batch {batch}, two workers against one", ratio=one / two, target=1.5,
        documents_a_second=batch / two, seconds_a_step_of_one=one, seconds_a_step_of_two=two,
    )  # fmt: skip


def same_loss(n_documents: int, epochs: int, n_seeds: int) -> None:
    """The last loss of one process and of two workers with the same global batch, over seeds."""
    X = pictures(n_documents, 5, n_words=600)
    alone, both = [], []
    with _cluster(2):
        for seed in range(n_seeds):
            options = {"max_iter": epochs, "random_state": seed, "n_jobs": 1}
            alone.append(_model((128, 64), 64, **options).fit(X).history_["nll"][-1])
            model = _model((128, 64), 64, **options)
            fitted = fit_on_cluster(model, Rows(X), None, Run(), address="auto", workers=2, threads=1)
            both.append(fitted.history_["nll"][-1])
    report(
        f"last loss a word of {epochs} passes, two workers minus one process",
        difference=float(np.mean(np.subtract(both, alone))),
        largest_difference=float(np.abs(np.subtract(both, alone)).max()),
        deviation_over_seeds=float(np.std(alone)), loss=float(np.mean(alone)), seeds=n_seeds,
    )  # fmt: skip


def _nothing(threads: int) -> None:
    """A job without work: what a cluster's start takes."""


def overhead(minutes: float) -> None:
    """A training job on a cluster of one worker against the same job here, the start of an empty job not counted."""
    n = 4096
    X = pictures(n, 6, n_words=600)
    features = np.random.default_rng(1).normal(size=(n, N_FEATURES)).astype(np.float32)

    def model(epochs: int) -> DeepDocNADE:
        return _model((1024, 1024), 128, max_iter=epochs, n_jobs=1)

    a_pass = _seconds(lambda: model(1).fit(X, global_features=features))
    epochs = max(1, round(60 * minutes / a_pass))
    here = _seconds(lambda: model(epochs).fit(X, global_features=features))
    with _cluster(1):
        empty = _seconds(lambda: run_together(_nothing, workers=1, threads=1))
        there = _seconds(
            lambda: fit_on_cluster(model(epochs), Rows(X, features), None, Run(), address="auto", workers=1, threads=1)
        )
    report(
        "training, cluster of one worker against local", ratio=(there - empty) / here, target=1.1, seconds=here,
        seconds_on_the_cluster=there, seconds_of_an_empty_job=empty,
    )  # fmt: skip


# ---- a million pictures ----------------------------------------------------------------------------------------------


def _blocks(n: int) -> Iterator[store.Block]:
    rng = np.random.default_rng(0)
    for start in range(0, n, _BLOCK):
        size = min(_BLOCK, n - start)
        names = [f"{start + k}.jpg" for k in range(size)]
        columns = [pa.array(names), *(pa.nulls(size, field.type) for field in list(store.SCHEMA)[1:])]
        features = rng.standard_normal((size, N_FEATURES), np.float32)
        yield store.Block(
            sparse.csr_array(pictures(size, start, n_words=600)), features, pa.table(columns, schema=store.SCHEMA)
        )


def made_corpus(folder: Path, n: int) -> None:
    """Write a made-up corpus of n pictures: 2000 visual words, 2000 tags, 1857 global features."""
    vocabulary = Vocabulary(N_VISUAL, 1, tuple(f"tag{k}" for k in range(N_TAGS)))
    manifest = store.Manifest(len(vocabulary), N_FEATURES, False, None, "made up")
    manifest.shards = [shard | {"pictures": None} for shard in store.write_shards(folder, manifest, _blocks(n))]
    vocabulary.save(folder / store.VOCABULARY)
    manifest.write(folder)


def _resident() -> float:
    """Megabytes of memory that this process has now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _one_pass(folder: str, sizes: tuple[int, ...], out: str) -> None:
    """One pass over a corpus, in a process of its own: seconds of each stage, and memory as it goes on."""
    opened: list[Corpus] = []
    opening = _seconds(lambda: opened.append(Corpus.open(folder)))
    corpus = opened[0]
    checking = _seconds(corpus.verified)
    describing = _seconds(lambda: summarize(Rows.of(corpus).with_labels(no_labels(len(corpus)))))
    memory: list[tuple[float, float]] = []
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.2):
            memory.append((time.perf_counter(), _resident()))

    watcher = threading.Thread(target=watch)
    watcher.start()
    model = _model(sizes, 128, max_iter=1, n_jobs=1)
    model.fit(corpus.counts, global_features=corpus.global_features)
    end = time.perf_counter()
    done.set()
    watcher.join()
    training = model.history_["seconds"][0]
    parts = np.array_split([used for when, used in memory if when > end - training], 4)
    peaks = [float(part.max()) for part in parts if len(part)]
    content = {"opening": opening, "checking": checking, "describing": describing, "training": training, "peaks": peaks}
    Path(out).write_text(json.dumps(content))


def million(n: int, sizes: tuple[int, ...], where: str | None) -> None:
    """One pass of a small network over n documents on disk: documents a second, memory, time of each stage."""
    with tempfile.TemporaryDirectory(dir=where) as name:
        folder = Path(name) / "corpus"
        making = _seconds(lambda: made_corpus(folder, n))
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        process = multiprocessing.get_context("spawn").Process(
            target=_one_pass, args=(str(folder), sizes, str(Path(name) / "out.json"))
        )
        process.start()
        process.join()
        found = json.loads((Path(name) / "out.json").read_text())
    peaks = found["peaks"]
    report(
        f"one pass over {n} documents, {' x '.join(map(str, sizes))} units",
        documents_a_second=n / found["training"],
        peak_mb_of_each_quarter=[round(peak) for peak in peaks], growth=peaks[-1] / peaks[0],
        gb_on_disk=size / 1e9, seconds_making=making, seconds_opening=found["opening"],
        seconds_checking=found["checking"], seconds_describing=found["describing"], seconds_training=found["training"],
    )  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Print all figures, or one."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--only", choices=["build", "training", "same_loss", "overhead", "million"])
    parser.add_argument("--pictures", type=int, default=2000, help="of the build")
    parser.add_argument("--steps", type=int, default=20, help="of training that are measured")
    parser.add_argument("--batch", type=int, default=1024)
    parser.add_argument("--layers", default="1024,1024")
    parser.add_argument("--epochs", type=int, default=10, help="for the loss")
    parser.add_argument("--seeds", type=int, default=5, help="for the loss")
    parser.add_argument("--loss-documents", type=int, default=2000)
    parser.add_argument("--minutes", type=float, default=5.0, help="of the job whose overhead is measured")
    parser.add_argument("--documents", type=int, default=1_000_000, help="of the large corpus, 10 GB a million")
    parser.add_argument("--small-layers", default="256")
    parser.add_argument("--folder", help="for the large corpus; default: the temporary folder")
    given = parser.parse_args(arguments)
    layers, small = (tuple(map(int, text.split(","))) for text in (given.layers, given.small_layers))
    measures: dict[str, Callable[[], None]] = {
        "build": lambda: build(given.pictures),
        "training": lambda: training(given.steps, given.batch, layers),
        "same_loss": lambda: same_loss(given.loss_documents, given.epochs, given.seeds),
        "overhead": lambda: overhead(given.minutes),
        "million": lambda: million(given.documents, small, given.folder),
    }
    for name, measure in measures.items():
        if given.only in (None, name):
            measure()


if __name__ == "__main__":
    main()
