"""Memory of learning from a corpus with large features: ``python -m benchmarks.memory``.

Each measurement has a process of its own: how far the peak of its resident memory lies above what it was before `fit`,
in all and without pages of files.  The estimator reads the corpus row by row; `PictureModel` should not need much more.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

from benchmarks.made_corpora import make_corpus
from benchmarks.timing import report
from pictopic import Corpus, PictureModel, SupDeepDocNADE

N_ROWS, N_WORDS, N_FEATURES, LENGTH = 16_000, 1000, 1857, 60  # 119 MB of features
NETWORK = {"n_components": (512, 512), "max_iter": 2}


def make(folder: Path) -> Path:
    """A corpus of made-up counts, two classes and features."""
    rng = np.random.default_rng(0)
    X = make_corpus(N_ROWS, N_WORDS, LENGTH).toarray()
    labels = np.where(X[:, : N_WORDS // 2].sum(axis=1) > LENGTH / 2, "left", "right")
    names = [f"row{k}" for k in range(N_ROWS)]
    lines = [",".join(["file_name", "label", *(f"w{k}" for k in range(N_WORDS))])]
    lines += [",".join([name, label, *map(str, row)]) for name, label, row in zip(names, labels, X, strict=True)]
    (folder / "counts.csv").write_text("\n".join(lines) + "\n")
    np.save(folder / "features.npy", rng.standard_normal((N_ROWS, N_FEATURES), dtype=np.float32))
    Corpus.build(folder / "counts.csv", folder / "corpus", features_file=folder / "features.npy", n_jobs=1)
    return folder / "corpus"


def _resident() -> tuple[float, float]:
    """Megabytes of memory that this process has now: in all, and without pages of files."""
    status = Path("/proc/self/status").read_text()
    total, anonymous = (int(status.split(f"{name}:")[1].split()[0]) / 1024 for name in ("VmRSS", "RssAnon"))
    return total, anonymous


def measure(what: str, folder: Path) -> dict[str, float]:
    """Learn in this process; megabytes by which its memory grows, at its peak."""
    corpus = Corpus.open(folder)
    # What is loaded and compiled late, is now.
    SupDeepDocNADE(**NETWORK).fit(np.eye(8, dtype=int), np.arange(8) % 2, global_features=np.ones((8, 3)))
    samples, is_done = [_resident()], threading.Event()

    def watch() -> None:
        while not is_done.wait(0.01):
            samples.append(_resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    begin = time.process_time()
    if what == "estimator":
        SupDeepDocNADE(random_state=0, **NETWORK).fit(corpus, corpus.labels, global_features=corpus.global_features)
    else:
        PictureModel(model="deep", options=NETWORK, n_jobs=1, verbose=0).fit(corpus)
    seconds = time.process_time() - begin
    is_done.set()
    watcher.join()
    total, anonymous = np.max(samples, axis=0) - samples[0]
    return {"growth_mb": total, "without_files_mb": anonymous, "seconds": seconds}


def main() -> None:
    """Measure the estimator and PictureModel."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=main.__doc__)
    parser.add_argument("--measure", nargs=2, metavar=("WHAT", "CORPUS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure[0], Path(arguments.measure[1]))))
        return
    with tempfile.TemporaryDirectory() as folder:
        corpus = make(Path(folder))
        for what in ("estimator", "PictureModel"):
            command = [sys.executable, "-m", "benchmarks.memory", "--measure", what, str(corpus)]
            values = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            report(f"memory of a fit with 119 MB of features, {what}", **values)


if __name__ == "__main__":
    main()
