"""How fast the deep models train and represent, against the matrix products that they cannot do without.

``python -m benchmarks.deep``: Q 4000 (2000 visual words, 2000 tags), 3 x 2048 hidden units, 1857 global features, one
thread.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch
from scipy import sparse
from threadpoolctl import threadpool_limits
from torch import Tensor
from torch.nn import functional

from benchmarks.timing import interleaved, report
from pictopic import CountsOnDisk, Rows, SupDeepDocNADE
from pictopic.models.deep_training import DeepTrainer, Minibatch
from pictopic.models.inputs import Labels, summarize

N_VISUAL, N_TAGS, N_FEATURES, N_CLASSES = 2000, 2000, 1857, 38
SIZES = (2048, 2048, 2048)


def pictures(n: int, seed: int, n_words: int = 69_000) -> sparse.csr_array:
    """Counts of made-up pictures: `n_words` bursty visual words and about five tags each."""
    rng = np.random.default_rng(seed)
    shares = rng.gamma(0.3, size=(n, N_VISUAL)) + 1e-9
    visual = rng.poisson(n_words * shares / shares.sum(axis=1, keepdims=True)).astype(np.int32)
    tags = sparse.random_array((n, N_TAGS), density=5 / N_TAGS, rng=rng, format="csr")
    tags.data[:] = 1
    return sparse.csr_array(sparse.hstack([sparse.csr_array(visual), tags.astype(np.int32)], format="csr"))


def labelled(n: int, seed: int) -> Labels:
    """Made-up classes, several a picture."""
    return Labels((np.random.default_rng(seed).random((n, N_CLASSES)) < 0.1).astype(np.uint8), np.ones(n, bool))


def make_model(sizes: tuple[int, ...] = SIZES, **options: object) -> SupDeepDocNADE:
    """The paper's model."""
    return SupDeepDocNADE(n_components=sizes, n_annotation_words=N_TAGS, normalize="std", random_state=0, **options)


def make_trainer(n: int) -> DeepTrainer:
    """A trainer on n made-up pictures."""
    features = np.random.default_rng(1).normal(size=(n, N_FEATURES)).astype(np.float32)
    documents = Rows(pictures(n, 0), features, labelled(n, 2))
    model = make_model(batch_size=n)
    model.n_features_in_, model.n_global_features_, model.multi_label_ = N_VISUAL + N_TAGS, N_FEATURES, True
    model._initialise(np.random.RandomState(0), documents, summarize(documents))
    return model._trainer(documents)


def step_products(B: int) -> Callable[[], None]:
    """The matrix products of a training step alone: B contexts and B whole documents, forward and backward."""
    Q, H, F = N_VISUAL + N_TAGS, SIZES[0], N_FEATURES
    x, f, delta = torch.rand(2 * B, Q), torch.rand(B, F), torch.rand(B, Q)
    h, top = torch.rand(2 * B, H), torch.rand(B, H)
    W = [torch.rand(H, Q), torch.rand(H, H), torch.rand(H, H)]
    P, V = torch.rand(H, F), torch.rand(Q, H)
    out2, out1, out_words = torch.empty(2 * B, H), torch.empty(B, H), torch.empty(B, Q)
    gradients = [torch.empty_like(w) for w in (*W, P, V)]

    def run() -> None:
        torch.mm(x, W[0].T, out=out2)
        torch.mm(f, P.T, out=out1)
        for w in W[1:]:
            torch.mm(h, w.T, out=out2)
        torch.mm(top, V.T, out=out_words)
        torch.mm(delta, V, out=out1)
        torch.mm(delta.T, top, out=gradients[4])
        for w, gradient in zip(W[1:], gradients[1:3], strict=True):
            torch.mm(h, w, out=out2)
            torch.mm(h.T, h, out=gradient)
        torch.mm(h.T, x, out=gradients[0])
        torch.mm(top.T, f, out=gradients[3])

    return run


def naive_losses(trainer: DeepTrainer, minibatch: Minibatch, seed: int) -> Tensor:
    """The same loss by two plain passes through the network, one for the words and one for the classes."""
    n, network = len(minibatch.scale), trainer.network
    masks = trainer.masks(n, seed)

    def hidden(x: Tensor) -> Tensor:
        h = functional.linear(x, network.W[0], network.c[0]) + functional.linear(minibatch.features, network.P)
        h = torch.relu(h) * masks[0]
        for W, c, mask in zip(network.W[1:], network.c[1:], masks[1:], strict=True):
            h = torch.relu(functional.linear(h, W, c)) * mask
        return h

    log_p = functional.linear(hidden(minibatch.x[:n]), network.V, network.b).log_softmax(1)
    nll = -(minibatch.scale * (log_p * minibatch.targets).sum(1)).sum()
    scores = functional.linear(hidden(minibatch.x[n:]), network.U, network.d)
    loss = functional.binary_cross_entropy_with_logits(scores, minibatch.labels, reduction="sum")
    return loss + trainer.options.generative * nll


def training_step() -> None:
    """Forward and backward, and the whole step, against the matrix products alone and against two naive passes."""
    for B in (128, 512):
        trainer = make_trainer(B)
        everything = np.arange(B)
        trainer.solver.n_done = 10_000  # as it is most of the time
        minibatch, seed = trainer.load(everything, 1)

        def backward(trainer: DeepTrainer = trainer, minibatch: Minibatch = minibatch, seed: int = seed) -> None:
            trainer.network.zero_grad(set_to_none=True)
            nll, class_loss = trainer.losses(minibatch, seed)
            (class_loss + trainer.options.generative * nll).backward()

        def naive(trainer: DeepTrainer = trainer, minibatch: Minibatch = minibatch, seed: int = seed) -> None:
            trainer.network.zero_grad(set_to_none=True)
            naive_losses(trainer, minibatch, seed).backward()

        times = interleaved(
            {
                "products": step_products(B),
                "forward_backward": backward,
                "naive": naive,
                # Four steps, because the averages are moved in every fourth only.
                "step": lambda trainer=trainer, everything=everything: [
                    trainer.learn(*trainer.load(everything, 1)) for _ in range(4)
                ],
                "load": lambda trainer=trainer, everything=everything: trainer.load(everything, 1),
                "solver": lambda trainer=trainer: [trainer.solver.step() for _ in range(4)],
            },
            repeats=9,
        )
        report(
            f"deep training, batch {B}",
            products_ms=1e3 * times["products"],
            forward_backward_share=times["products"] / times["forward_backward"],
            step_share=4 * times["products"] / times["step"],
            times_naive=times["naive"] / times["forward_backward"],
            step_ms=1e3 * times["step"] / 4,
            reading_and_splitting_ms=1e3 * times["load"],
            solver_and_averages_ms=1e3 * times["solver"] / 4,
        )


def representation(n: int = 100_000) -> None:
    """`transform` of n documents against its matrix products."""
    part = 5 * Rows.CHUNK
    X = pictures(part, 3)
    features = np.random.default_rng(1).normal(size=(part, N_FEATURES)).astype(np.float32)
    documents = Rows(X, features, labelled(part, 2))
    model = make_model()
    model.n_features_in_, model.n_global_features_, model.multi_label_ = X.shape[1], N_FEATURES, True
    model._initialise(np.random.RandomState(0), documents, summarize(documents))
    x, f, h = torch.rand(Rows.CHUNK, X.shape[1]), torch.rand(Rows.CHUNK, N_FEATURES), torch.rand(Rows.CHUNK, SIZES[0])
    W = [torch.rand(SIZES[0], X.shape[1]), torch.rand(SIZES[1], SIZES[0]), torch.rand(SIZES[2], SIZES[1])]
    P, out = torch.rand(SIZES[0], N_FEATURES), torch.empty(Rows.CHUNK, SIZES[0])

    def products() -> None:
        for _ in range(part // Rows.CHUNK):
            torch.mm(x, W[0].T, out=out)
            torch.mm(f, P.T, out=out)
            for w in W[1:]:
                torch.mm(h, w.T, out=out)

    repeats = n // part + 1
    times = interleaved(
        {"products": products, "transform": lambda: model.transform(X, global_features=features)}, repeats=repeats
    )
    report(
        f"deep transform of {repeats * part} documents",
        share=times["products"] / times["transform"],
        ms_a_document=1e3 * times["transform"] / part,
    )


def _blocks(n: int, size: int = 2000) -> Iterator[sparse.csr_array]:
    for seed, _ in enumerate(range(0, n, size)):
        yield pictures(size, seed, n_words=600)


def _write_corpus(folder: Path, n: int) -> None:
    CountsOnDisk.write(folder / "counts", _blocks(n), N_VISUAL + N_TAGS)
    features = np.lib.format.open_memmap(folder / "features.npy", "w+", np.float32, (n, N_FEATURES))
    rng = np.random.default_rng(0)
    for start in range(0, n, 2000):
        features[start : start + 2000] = rng.standard_normal((min(2000, n - start), N_FEATURES), np.float32)
    features.flush()


def _train_once(folder: str, in_memory: bool, out: str) -> None:
    """One pass over the corpus on disk, in a process of its own: seconds, and peak memory above that before."""
    torch.set_num_threads(1)
    counts: CountsOnDisk | sparse.csr_array = CountsOnDisk(Path(folder) / "counts")
    features = np.load(Path(folder) / "features.npy", mmap_mode="r")
    if in_memory:
        counts = counts[np.arange(counts.shape[0])]
        features = np.array(features)
    y = labelled(counts.shape[0], 2).indicator
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model = make_model((1024, 1024), max_iter=1, batch_size=128, validation_fraction=None)
    model.fit(counts, y, global_features=features)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    size = sum(array.nbytes for array in model.parameters_.values())
    result = {"seconds": model.history_["seconds"][0], "above_mb": (peak - before) / 1024, "model_mb": size / 2**20}
    Path(out).write_text(json.dumps(result))


def out_of_core(n: int = 200_000) -> None:
    """One pass over a corpus on disk and over the same corpus in memory, each in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        _write_corpus(Path(folder), n)
        report("made a corpus on disk", documents=n, seconds=time.perf_counter() - begin)
        results = {}
        context = multiprocessing.get_context("spawn")
        for name, in_memory in (("disk", False), ("memory", True)):
            out = str(Path(folder) / f"{name}.json")
            process = context.Process(target=_train_once, args=(folder, in_memory, out))
            process.start()
            process.join()
            results[name] = json.loads(Path(out).read_text())
    disk, memory = results["disk"], results["memory"]
    report(
        f"one pass over {n} documents, 2 x 1024 units, batch 128",
        disk_documents_a_second=n / disk["seconds"],
        speed_of_disk_against_memory=memory["seconds"] / disk["seconds"],
        peak_mb_of_training_from_disk=disk["above_mb"],
        model_mb=disk["model_mb"],
    )


def main(only: str | None = None) -> None:
    """Print all figures, or some."""
    torch.set_num_threads(1)
    with threadpool_limits(1):
        for measure in (training_step, representation, out_of_core):
            if only in (None, measure.__name__):
                measure()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.deep", description=__doc__)
    parser.add_argument("--only", choices=["training_step", "representation", "out_of_core"])
    main(parser.parse_args().only)
