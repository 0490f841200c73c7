"""Measurements: how fast, and how good.  `python -m benchmarks` runs them all, one JSON line a figure."""
