"""How fast the nearest vectors are found: exact search beside faiss' flat index, and what the quicker kinds miss.

``python -m benchmarks.search``: made-up vectors in clusters, mapped from disk; one thread; runs take turns; CPU time,
medians.  "One" is a query at a time, "batch" 32 at once.  Queries are made like the vectors, but are not among them.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import faiss
import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.timing import interleaved, report
from pictopic.tasks.search import Index

SIZES = ((25_000, 2048), (200_000, 512))
N_QUERIES, BATCH, ONE_BY_ONE = 96, 32, 8
N_CLUSTERS, N_HIDDEN = 500, 32  # clusters, and dimensions that the vectors really have


def made_vectors(n: int, d: int) -> np.ndarray:
    """Activations of a layer of tanh units, with some noise, of inputs in clusters."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((N_CLUSTERS, N_HIDDEN), dtype=np.float32)
    weights = 0.3 * rng.standard_normal((N_HIDDEN, d), dtype=np.float32)
    vectors = np.empty((n, d), np.float32)
    for start in range(0, n, 10_000):
        part = vectors[start : start + 10_000]
        hidden = 0.7 * rng.standard_normal((len(part), N_HIDDEN), dtype=np.float32)
        hidden += centres[rng.integers(N_CLUSTERS, size=len(part))]
        part[:] = np.tanh(hidden @ weights) + 0.1 * rng.standard_normal(part.shape, dtype=np.float32)
    return vectors


def runs_of(search: Callable[[np.ndarray], object], queries: np.ndarray) -> dict[str, Callable[[], object]]:
    """Some queries one after the other, and a batch."""
    return {
        "one": lambda: [search(queries[i : i + 1]) for i in range(ONE_BY_ONE)],
        "batch": lambda: search(queries[:BATCH]),
    }


def milliseconds(searches: dict[str, Callable[[np.ndarray], object]], queries: np.ndarray) -> dict[str, float]:
    """CPU time a query of each search, one by one and in a batch."""
    runs = {
        f"{name}_{way}_ms": run for name, search in searches.items() for way, run in runs_of(search, queries).items()
    }
    seconds = interleaved(runs, repeats=5)
    return {name: 1000 * value / (ONE_BY_ONE if name.endswith("one_ms") else BATCH) for name, value in seconds.items()}


def exact(vectors: np.ndarray, queries: np.ndarray, folder: Path) -> Index:
    """Exact search against faiss' flat index and the bare product."""
    Index.build(vectors, kind="exact").save(folder)
    begin = time.process_time()
    index = Index.load(folder)
    loading = time.process_time() - begin
    lengths = np.linalg.norm(queries, axis=1, keepdims=True)
    flat = faiss.IndexFlatIP(vectors.shape[1])
    flat.add(np.ascontiguousarray(index.vectors))
    figures = milliseconds(
        {
            "pictopic": index.search,
            "faiss": lambda part: flat.search(part, 10),
            "product": lambda part: index.vectors @ part.T,
        },
        queries / lengths,
    )
    report(
        f"exact search, {len(vectors)} x {vectors.shape[1]}",
        times_faiss_one=figures["faiss_one_ms"] / figures["pictopic_one_ms"],
        times_faiss_batch=figures["faiss_batch_ms"] / figures["pictopic_batch_ms"], **figures,
        loading_ms=1000 * loading,
    )  # fmt: skip
    return index


def quicker(kind: str, vectors: np.ndarray, queries: np.ndarray, index: Index, folder: Path) -> None:
    """A kind with candidates: recall as it was measured when it was built, and on queries from outside."""
    begin = time.process_time()
    Index.build(vectors, kind=kind, folder=folder)
    building = time.process_time() - begin
    quick = Index.load(folder)
    wanted, found = index.search(queries)[0], quick.search(queries)[0]
    recall = np.mean([len(set(a) & set(b)) / len(a) for a, b in zip(wanted, found, strict=True)])
    figures = milliseconds({"exact": index.search, kind: quick.search}, queries)
    report(
        f"{kind} search, {len(vectors)} x {vectors.shape[1]}", recall_when_built=quick.recall_, recall=recall,
        times_exact_one=figures["exact_one_ms"] / figures[f"{kind}_one_ms"],
        times_exact_batch=figures["exact_batch_ms"] / figures[f"{kind}_batch_ms"], **figures, building_s=building,
        clusters_mb=sum(path.stat().st_size for path in folder.glob("clusters-*")) / 1e6,
    )  # fmt: skip


def main(arguments: list[str] | None = None) -> None:
    """Print all figures."""
    argparse.ArgumentParser(prog="python -m benchmarks.search", description=__doc__).parse_args(arguments)
    faiss.omp_set_num_threads(1)
    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        for n, d in SIZES:
            # Of one mould: the last ones are the queries.
            vectors, queries = np.split(made_vectors(n + N_QUERIES, d), [n])
            index = exact(vectors, queries, Path(folder) / f"exact-{n}")
            for kind in ("8bit", "ivf"):
                quicker(kind, vectors, queries, index, Path(folder) / f"{kind}-{n}")
    report("peak memory of the search benchmark, MB", value=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


if __name__ == "__main__":
    main()
