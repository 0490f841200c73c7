"""How fast the shallow models train, against torch autograd and against the machine's matrix product."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import torch

from benchmarks.made_corpora import make_corpus
from benchmarks.timing import interleaved, report, sgemm_flops
from benchmarks.torch_baseline import SoftmaxBaseline, TreeBaseline, words_of
from pictopic.models.inputs import no_labels
from pictopic.models.parameters import Options, Theta, initial_theta
from pictopic.models.softmax_output import SoftmaxTrainer
from pictopic.models.tree import WordTree
from pictopic.models.tree_output import TreeTrainer

# Burstiness 4 gives 322 different words a document; pictures of LabelMe, with a 240-word codebook, have about 320.
LABELME = {"n_documents": 800, "n_words": 1360, "length": 972, "burstiness": 4.0}
TEXT = {"n_documents": 800, "n_words": 2000, "length": 100}


def _options(X, **changes) -> Options:
    defaults = {
        "activation": "relu", "generative": float(X.shape[0] / X.sum()), "multi_label": False, "solver": "sgd",
        "batch_size": 1, "learning_rate": 0.01, "dropout": 0.0, "averaging": 0.0, "smoothing": 0.0,
        "n_jobs": 1, "device": "cpu",
    }  # fmt: skip
    return Options(**(defaults | changes))


def _theta(n_words: int, n_outputs: int, n_hidden: int = 200) -> Theta:
    return initial_theta(np.random.RandomState(0), n_words, n_hidden, n_outputs, 0)


def tree_training() -> None:
    """Tree output, one document a step (LabelMe size) and batches of 32 (text size)."""
    for name, size, batch, target in (("labelme", LABELME, 1, 35), ("text", TEXT, 32, 18)):
        X = make_corpus(**size)
        tree = WordTree(X.shape[1], 0)
        theta = _theta(X.shape[1], X.shape[1] - 1)
        options = _options(X) if batch == 1 else _options(X, batch_size=batch)
        ours = TreeTrainer(theta, tree, X, no_labels(X.shape[0]), options)
        baseline = TreeBaseline(theta, tree, 0.01)
        n_ours, n_baseline = (320, 32) if batch == 1 else (800, 160)
        documents = [words_of(X, d) for d in range(n_baseline)]

        def run_ours(ours=ours, n=n_ours, batch=batch):
            for start in range(0, n, 32):
                ours.learn(np.arange(start, min(start + 32, n)), seed=start)

        def run_baseline(baseline=baseline, documents=documents, batch=batch, options=options):
            for start in range(0, len(documents), batch):
                baseline.step(documents[start : start + batch], options.generative)

        product = sgemm_flops()
        times = interleaved({"ours": run_ours, "torch": run_baseline, "sgemm": product})
        ms, torch_ms = 1e3 * times["ours"] / n_ours, 1e3 * times["torch"] / n_baseline
        nodes, _ = tree.paths()
        depths = (nodes >= 0).sum(axis=1)
        useful = 6.0 * 200 * float((X[:n_ours] @ depths).sum()) / n_ours  # logits, gradients by h and by V
        rate, peak = useful / ms * 1e3, product() / times["sgemm"]
        report(
            f"tree training, {name} size, against torch autograd", ratio=torch_ms / ms, target=target, ms_a_document=ms,
            torch_ms=torch_ms, share_of_sgemm=rate / peak, gflops=rate / 1e9, sgemm_gflops=peak / 1e9,
        )  # fmt: skip


def softmax_training() -> None:
    """Softmax output against autograd on packed documents."""
    for name, size, documents in (("text", TEXT, 100), ("short text", {**TEXT, "length": 13}, 100)):
        X = make_corpus(**size)
        theta = _theta(X.shape[1], X.shape[1])
        options = _options(X, activation="tanh", solver="adam", batch_size=documents, learning_rate=0.001)
        ours = SoftmaxTrainer(theta, X, no_labels(X.shape[0]), options)
        baseline = SoftmaxBaseline(theta, 0.001)
        batch = [words_of(X, d) for d in range(documents)]
        rows = int(X[:documents].sum())
        product = torch.rand(rows, 200), torch.rand(200, X.shape[1])

        def products(product=product):
            h, V = product
            p = h @ V
            return p.T @ h, p @ V.T

        times = interleaved(
            {
                "ours": lambda ours=ours, n=documents: ours.learn(np.arange(n), seed=0),
                "torch": lambda baseline=baseline, batch=batch, options=options: baseline.step(
                    batch, options.generative
                ),
                "products": products,
            },
            repeats=15,
        )
        report(
            f"softmax training, {name}, against torch autograd", ratio=times["torch"] / times["ours"], target=2,
            ms_a_document=1e3 * times["ours"] / documents, three_products_share=times["products"] / times["ours"],
        )  # fmt: skip


def tree_against_softmax() -> None:
    """Milliseconds a document as the vocabulary grows, and as documents get denser."""
    for n_words in (500, 2000, 8000, 20_000, 50_000):
        for length in (20, 100, 1000):
            X = make_corpus(100, n_words, length, n_topics=5)
            labels = no_labels(X.shape[0])
            trainers = {
                "tree": TreeTrainer(
                    _theta(n_words, n_words - 1), WordTree(n_words, 0), X, labels,
                    _options(X, solver="adam", batch_size=100),
                ),
                "softmax": SoftmaxTrainer(
                    _theta(n_words, n_words), X, labels, _options(X, solver="adam", batch_size=100)
                ),
            }  # fmt: skip
            n = 100 if n_words * length <= 2_000_000 else 4  # a softmax step on the large ones takes many seconds
            runs = {
                "tree": lambda trainer=trainers["tree"]: trainer.learn(np.arange(100), 0),
                "softmax": lambda trainer=trainers["softmax"], n=n: trainer.learn(np.arange(n), 0),
            }
            times = interleaved(runs, repeats=3)
            tree_ms, softmax_ms = 10 * times["tree"], 1e3 * times["softmax"] / n
            report(
                "tree against softmax, training step", ratio=softmax_ms / tree_ms, words=n_words, length=length,
                tree_ms_a_document=tree_ms, softmax_ms_a_document=softmax_ms,
            )  # fmt: skip


def two_threads() -> None:
    """Wall-clock speed-up of two threads on minibatches, and whether results repeat to the bit."""
    X = make_corpus(**LABELME)
    tree = WordTree(X.shape[1], 0)

    def epoch(n_jobs: int) -> tuple[float, Theta]:
        options = _options(X, solver="adam", batch_size=100, n_jobs=n_jobs, averaging=0.998)
        trainer = TreeTrainer(_theta(X.shape[1], X.shape[1] - 1), tree, X, no_labels(X.shape[0]), options)
        begin = time.perf_counter()
        for start in range(0, X.shape[0], 100):
            trainer.learn(np.arange(start, start + 100), seed=start)
        return time.perf_counter() - begin, trainer.parameters()

    epoch(1), epoch(2)
    runs = [(epoch(1), epoch(2)) for _ in range(7)]
    speed_up = np.median([one[0] / two[0] for one, two in runs])
    first, second = runs[0][1][1], runs[1][1][1]
    equal = all(np.array_equal(a, b) for a, b in zip(vars(first).values(), vars(second).values(), strict=True))
    report("two threads against one, wall clock", ratio=speed_up, bit_equal_for_same_n_jobs=equal)


def second_process() -> None:
    """Seconds until the first step of training is done in a process that finds numba's cache filled."""
    code = (
        "import time; begin = time.perf_counter()\n"
        "import numpy as np, pictopic\n"
        "X = np.random.RandomState(0).poisson(0.7, (100, 1360))\n"
        "pictopic.DocNADE(max_iter=1).fit(X)\n"
        "print(time.perf_counter() - begin)"
    )
    seconds = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    ]
    report("start of training in a second process, seconds", seconds=seconds[-1], target=2, first_process=seconds[0])


def main() -> None:
    """All figures on training."""
    torch.set_num_threads(1)
    second_process()
    tree_training()
    softmax_training()
    two_threads()
    tree_against_softmax()


if __name__ == "__main__":
    main()
