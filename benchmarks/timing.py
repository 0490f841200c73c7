"""Timing on a noisy machine: CPU time, interleaved, medians, ratios."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

import numpy as np


def interleaved(runs: dict[str, Callable[[], object]], repeats: int = 7) -> dict[str, float]:
    """Median CPU seconds of each run; they take turns, so that what disturbs one disturbs all."""
    for run in runs.values():
        run()
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            begin = time.process_time()
            run()
            seconds[name].append(time.process_time() - begin)
    return {name: statistics.median(times) for name, times in seconds.items()}


def report(figure: str, **values: object) -> None:
    """Print one figure as a JSON line."""
    rounded = {
        key: float(f"{value:.4g}") if isinstance(value, float | np.floating) else value for key, value in values.items()
    }
    print(json.dumps({"figure": figure, **rounded}), flush=True)


def sgemm_flops(size: int = 1024) -> Callable[[], float]:
    """A run of a float32 matrix product on one thread, for a rate to compare with; returns its FLOPs."""
    a = np.random.default_rng(0).random((size, size), dtype=np.float32)
    out = np.empty_like(a)

    def run() -> float:
        np.matmul(a, a, out=out)
        return 2.0 * size**3

    return run
