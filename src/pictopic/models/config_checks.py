"""Checks of a saved model's ``config.json``: every value, before anything uses it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from pictopic.checks import (
    is_finite_tree,
    mapping,
    number,
    one_of,
    section,
    shown,
    text,
    values,
    whole,
    yes_or_no,
)

MODELS = {
    "DocNADE": "pictopic.models.docnade", "SupDocNADE": "pictopic.models.docnade",
    "DeepDocNADE": "pictopic.models.deep", "SupDeepDocNADE": "pictopic.models.deep",
}  # fmt: skip
_MAX_WORDS = 2**31 - 1  # columns are numbered with 32 bits
_MAX_JOBS = 1024  # threads
_MAX_NAMES = 1 << 30  # bytes of all names together
_CURVES = ("nll", "class_loss", "validation_score")  # of a history; others may follow
_DTYPE = re.compile(r"[<>|=]?(?:b1|[iu][1248]|f[248]|U(\d{1,5}))")


def _score(value: Any, name: str) -> float:
    """A number that was written down: it may be infinite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or (isinstance(value, int) and abs(value) > 2**53):
        raise ValueError(f"{name!r} must be a number, got {shown(value)}")
    return float(value)


def _history(value: Any, name: str) -> dict[str, list[float]]:
    curves = mapping(value, name)
    for curve in _CURVES:
        section(curves, curve)
    return {text(curve, name): [_score(item, curve) for item in values(own, curve)] for curve, own in curves.items()}


_ALL: dict[str, Callable[[Any, str], Any]] = {
    "n_features_in_": lambda value, name: whole(value, name, 1, _MAX_WORDS),
    "mean_length_": lambda value, name: number(value, name, 1e-12, 1e18),
    "n_iter_": whole,
    "best_validation_score_": lambda value, name: None if value is None else _score(value, name),
    "history_": _history,
    "data_fingerprint_": text,
}
_DEEP: dict[str, Callable[[Any, str], Any]] = {
    "annotation_weight_": lambda value, name: number(value, name, 1e-12, 1e12),
    "n_global_features_": lambda value, name: whole(value, name, 0, _MAX_WORDS),
    "normalize_": lambda value, name: one_of(value, name, ("std", "sqrt", "none")),
    "input_scale_": lambda value, name: number(value, name, 0, 1e12),
}
LEARNT = (*_ALL, *_DEEP, "multi_label_")


def check_learnt(model: str, learnt: dict[str, Any]) -> dict[str, Any]:
    """What a model of this name has learnt besides arrays, each value checked; others are left out."""
    kinds = _ALL | (_DEEP if "Deep" in model else {}) | ({"multi_label_": yes_or_no} if "Sup" in model else {})
    return {name: check(section(learnt, name), name) for name, check in kinds.items()}


def check_seconds(timings: dict[str, Any], n: int) -> list[float]:
    """Seconds after each of n passes."""
    seconds = [number(value, "seconds", 0) for value in values(section(timings, "seconds"), "seconds")]
    if len(seconds) != n:
        raise ValueError(f"'seconds' must hold {n} numbers, got {len(seconds)}")
    return seconds


def check_options(options: dict[str, Any], n_words: int) -> dict[str, Any]:
    """Options as a model takes them; what they may be beside these bounds, the model says itself."""
    if not is_finite_tree(options):
        raise ValueError("there is a number that is not finite or too large")
    # JSON has lists only; an option that has several values is a tuple.
    taken = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    whole(taken.get("n_annotation_words", 0), "n_annotation_words", 0, n_words)
    if taken.get("n_jobs") is not None:
        whole(taken["n_jobs"], "n_jobs", -_MAX_JOBS, _MAX_JOBS)
    if taken.get("device", "cpu") != "cpu":
        taken["device"] = _usable(text(taken["device"], "device"))
    return taken


def _usable(device: str) -> str:
    """The device, or the CPU on a machine that has no such device."""
    import torch

    if not re.fullmatch(r"[a-z]{2,12}(:\d{1,3})?", device):
        raise ValueError(f"'device' must be one of torch's, got {shown(device)}")
    try:
        torch.empty(1, device=device)
    except Exception:  # torch raises an AssertionError, RuntimeError or NotImplementedError
        warnings.warn(f"there is no device {device!r} here: the model runs on the CPU", stacklevel=5)
        return "cpu"
    return device


def names_array(names: Any, name: str, n: int | None = None) -> np.ndarray | None:
    """Class labels or column names, with their type: `n` of them, all different; None stays None."""
    if names is None:
        return None
    dtype, items = text(section(mapping(names, name), "dtype"), name), values(section(names, "values"), name)
    match = _DTYPE.fullmatch(dtype)
    if dtype != "object" and (match is None or int(match[1] or 1) * 4 * len(items) > _MAX_NAMES):
        raise ValueError(f"{name!r} has names of type {shown(dtype)}, which is not known")
    if not all(isinstance(item, bool | int | float | str) for item in items) or not is_finite_tree(items):
        raise ValueError(f"{name!r} must hold texts or numbers")
    if len(set(items)) < len(items) or (n is not None and len(items) != n) or not items:
        raise ValueError(f"{name!r} must hold {'some' if n is None else n} different names, got {len(items)}")
    try:
        with np.errstate(all="ignore"):
            array = np.array(items, dtype=dtype)
        if array.tolist() != items:  # cut off or rounded, two names can become the same
            raise ValueError
    except (OverflowError, TypeError, ValueError):
        raise ValueError(f"{name!r} has names that are not of type {dtype}") from None
    return array
