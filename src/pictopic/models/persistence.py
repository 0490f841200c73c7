"""Models on disk: ``config.json``, ``model-HASH.safetensors``, a model card, ``README.md``, and ``timings.json``.

Loading executes nothing: a model is JSON and plain arrays, checked before they are used.  A process that is killed
while it saves does no harm: the arrays go to a new file, named by their hash, and the model changes when
``config.json``, which names that file, is replaced.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import os
import platform
import re
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as tensor_bytes

from pictopic import __version__
from pictopic.checks import (
    is_finite_tree,
    mapping,
    number,
    one_of,
    parse_arrays,
    section,
    shown,
    text,
    values,
    whole,
    yes_or_no,
)
from pictopic.files import check_regular, read_json, read_unchanged, write_bytes, write_text
from pictopic.models.tree import WordTree
from pictopic.processes import lock_beside
from pictopic.storage import is_remote, local, readable, written

MODELS = {
    "DocNADE": "pictopic.models.docnade", "SupDocNADE": "pictopic.models.docnade",
    "DeepDocNADE": "pictopic.models.deep", "SupDeepDocNADE": "pictopic.models.deep",
}  # fmt: skip
FORMAT_VERSION = 1
_OF_THE_MACHINE = ("init",)  # options that mean nothing on another machine: not saved
_CONFIG, _CARD = "config.json", "README.md"
TIMINGS = "timings.json"  # training times: the only file that differs between equal runs, and the only optional one
_TENSORS = re.compile(r"model-[0-9a-f]{16}\.safetensors")
_HALF = re.compile(r"\.[a-z0-9_]{8}\.tmp")  # left by a killed save
_MAX_BYTES = 1 << 36  # of all arrays
_MAX_WORDS = 2**31 - 1  # columns are numbered with 32 bits
_MAX_JOBS = 1024  # threads
_MAX_NAMES = 1 << 30  # bytes of all names together
_CURVES = ("nll", "class_loss", "validation_score")  # of every history; there may be others
_DTYPE = re.compile(r"[<>|=]?(?:b1|[iu][1248]|f[248]|U(\d{1,5}))")


def save(model: Any, folder: str | os.PathLike[str]) -> None:
    """Write a fitted model to a folder or URL, replacing a model there."""
    if is_remote(folder):
        written(folder, _CONFIG, partial(save_files, model))
        return
    with lock_beside(local(folder)):
        save_files(model, local(folder))


def check_free(place: str | os.PathLike[str]) -> None:
    """Raise a ValueError if the place holds something other than a model."""
    if is_remote(place):
        return  # checked when it is written
    folder = local(place)
    if folder.exists() and not (folder / _CONFIG).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists and is not a model; choose another folder")


def save_files(model: Any, folder: Path) -> None:
    """Write a fitted model's files to a folder, which the caller has locked."""
    check_free(folder)
    arrays = {name: np.ascontiguousarray(array) for name, array in model._get_arrays().items()}
    if model.tree_ is not None:
        arrays["word_of_leaf"] = model.tree_.word_of_leaf
    tensors = tensor_bytes(arrays)
    digest = hashlib.sha256(tensors).hexdigest()
    name = f"model-{digest[:16]}.safetensors"
    config: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "model": next(kind.__name__ for kind in type(model).__mro__ if kind.__name__ in MODELS),
        "options": {
            name: None if name in _OF_THE_MACHINE else plain(value)
            for name, value in model.get_params(deep=False).items()
        },
        "learnt": {name: plain(getattr(model, name)) for name in LEARNT if hasattr(model, name)},
        "feature_names": _names(getattr(model, "feature_names_in_", None)),
        "classes": _names(getattr(model, "classes_", None)),
        "tensors": name,
        "tensors_sha256": digest,
        "versions": _versions(),
    }
    # The arrays are on disk before the file that names them, and the old ones are removed after it.
    write_bytes(folder / name, tensors)
    seconds = config["learnt"]["history_"].pop("seconds", [])
    write_text(folder / TIMINGS, json.dumps({"tensors": name, "seconds": seconds}) + "\n")
    write_text(folder / _CONFIG, json.dumps(config, indent=1) + "\n")
    write_text(folder / _CARD, _card(model, config))
    for path in folder.iterdir():
        if (_TENSORS.fullmatch(path.name) and path.name != name) or _HALF.fullmatch(path.name):
            path.unlink(missing_ok=True)


def load(folder: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    folder : path or URL

    Returns
    -------
    estimator
        The fitted estimator, with its options.

    Raises
    ------
    ValueError
        If the folder is not a model, or is damaged, changed by hand, or from a newer pictopic.

    Examples
    --------
    >>> import tempfile, pictopic
    >>> model = pictopic.DocNADE(n_components=2, max_iter=1).fit([[1, 2], [2, 0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(folder + "/model")
    ...     pictopic.load(folder + "/model")
    DocNADE(max_iter=1, n_components=2)
    """
    with readable(folder) as path:
        return read_unchanged(lambda: _load(path), lambda: _identity(path), str(path))


def _identity(folder: Path) -> bytes | None:
    """Return what changes when another model is saved to a folder."""
    check_regular(folder / _CONFIG)
    try:
        return (folder / _CONFIG).read_bytes()
    except OSError:
        return None


def _load(folder: Path) -> Any:
    config = _read_config(folder)
    path = folder / _CONFIG
    name = config["model"]
    if name not in MODELS:
        raise ValueError(f"{path} names an unknown model, {shown(name)}")
    try:
        learnt = check_learnt(name, config["learnt"])
        classes = names_array(config["classes"], "classes")
        feature_names = names_array(config["feature_names"], "feature_names", learnt["n_features_in_"])
        if ("Sup" in name) != (classes is not None):
            raise ValueError(f"'classes' does not go with a {name}")
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    model = _unfitted(path, name, config["options"], learnt["n_features_in_"])
    tensors = _read_tensors(folder, config)
    _check_arrays(folder, model, tensors, learnt, 0 if classes is None else len(classes))
    leaves = tensors.pop("word_of_leaf", None)
    model.tree_ = None if leaves is None else WordTree.from_leaves(leaves)
    model._set_arrays(tensors)
    n_passes = len(learnt["history_"]["nll"])
    learnt["history_"]["seconds"] = _read_seconds(folder, config["tensors"], n_passes)
    for key, value in learnt.items():
        setattr(model, key, value)
    if feature_names is not None:
        model.feature_names_in_ = feature_names
    if classes is not None:
        model.classes_ = classes
    return model


def _read_seconds(folder: Path, tensors: str, n_passes: int) -> list[float]:
    """Read the seconds after each pass; NaN if they are missing or of another model."""
    try:
        timings = read_json(folder / TIMINGS)
        if timings.get("tensors") == tensors:
            return check_seconds(timings, n_passes)
    except ValueError:
        pass
    return [math.nan] * n_passes


def _unfitted(path: Path, name: str, options: dict[str, Any], n_words: int) -> Any:
    """Return an unfitted model with these options, which were read from `path`."""
    kind = getattr(importlib.import_module(MODELS[name]), name)
    try:
        model = kind(**check_options(options, n_words))
        model._validate_params()
        if hasattr(model, "_sizes"):
            model._sizes()
    except (TypeError, ValueError) as error:
        first = str(error).splitlines()[0][:500]  # the message repeats the value, however long
        raise ValueError(f"{path} has options that {name} does not take: {first}") from None
    return model


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / _CONFIG
    if not path.is_file():
        raise ValueError(f"{folder} is not a model: there is no {_CONFIG} in it")
    config = read_json(path)
    version = config.get("format_version")
    if not isinstance(version, int) or isinstance(version, bool):
        raise ValueError(f"{path} is not a model's: it has no format_version")
    if version > FORMAT_VERSION:
        raise ValueError(
            f"{folder} has format {shown(version)}, this pictopic {__version__} reads up to {FORMAT_VERSION}; "
            "update pictopic"
        )
    expected = {
        "model": str, "options": dict, "learnt": dict, "feature_names": dict | None, "classes": dict | None,
        "tensors": str, "tensors_sha256": str,
    }  # fmt: skip
    for key, kind in expected.items():
        if key not in config or not isinstance(config[key], kind):
            raise ValueError(f"{path} is damaged: {key!r} is missing or wrong")
    return config


def _read_tensors(folder: Path, config: dict[str, Any]) -> dict[str, np.ndarray]:
    if not _TENSORS.fullmatch(config["tensors"]):
        raise ValueError(
            f"{folder / _CONFIG} is damaged: {shown(config['tensors'])} is not the name of a model's arrays"
        )
    path = folder / config["tensors"]
    if not path.is_file():
        raise ValueError(f"{folder} is damaged: there is no {path.name} in it")
    if path.stat().st_size > _MAX_BYTES:
        raise ValueError(f"{path} is damaged: it has more than {_MAX_BYTES} bytes")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != config["tensors_sha256"]:
        raise ValueError(f"{path} is damaged or was changed: it is not the file that was saved with {_CONFIG}")
    return parse_arrays(content, path)[0]


def _check_arrays(
    folder: Path, model: Any, tensors: dict[str, np.ndarray], learnt: dict[str, Any], n_classes: int
) -> None:
    """Check the shapes of the arrays against the configuration, and their values."""
    n_words = learnt["n_features_in_"]
    n_outputs = n_words - 1 if model.output == "tree" else n_words
    expected = model._array_shapes(n_words, n_outputs, n_classes, learnt)
    if model.output == "tree":
        expected["word_of_leaf"] = (n_words,)
    shapes = {name: array.shape for name, array in tensors.items()}
    if shapes != expected:
        raise ValueError(f"{folder} is damaged: it should hold arrays {shown(expected)}, but has {shown(shapes)}")
    for name, array in tensors.items():
        dtype = "<i8" if name == "word_of_leaf" else "<f4"
        if array.dtype != np.dtype(dtype):
            raise ValueError(f"{folder} is damaged: {name} should be {np.dtype(dtype)}, but is {array.dtype}")
        if not np.isfinite(array).all() or (name == "feature_scale" and not (array > 0).all()):
            raise ValueError(f"{folder} is damaged: {name} has values that are infinite, or cannot be divided by")
    if model.output == "tree" and not np.array_equal(np.sort(tensors["word_of_leaf"]), np.arange(n_words)):
        raise ValueError(f"{folder} is damaged: word_of_leaf must hold each word exactly once")


def plain(value: Any) -> Any:
    """Convert a value for JSON; a random generator cannot be saved and becomes null."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, int | float | str | bool | None) else None


def _names(values: np.ndarray | None) -> dict[str, Any] | None:
    """Return class labels or column names with their type, for JSON."""
    if values is None:
        return None
    return {"dtype": "object" if values.dtype == object else values.dtype.str, "values": values.tolist()}


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    packages = ("numpy", "scipy", "scikit-learn", "numba", "torch", "safetensors")
    return {"pictopic": __version__, "python": platform.python_version()} | {name: version(name) for name in packages}


def _sizes(n_components: int | list[int]) -> str:
    return str(n_components) if isinstance(n_components, int) else " x ".join(map(str, n_components))


def _card(model: Any, config: dict[str, Any]) -> str:
    learnt = config["learnt"]
    score = learnt["best_validation_score_"]
    classes = f", {len(config['classes']['values'])} classes" if config["classes"] else ""
    lines = [
        f"# {config['model']}",
        "",
        f"A pictopic model of {learnt['n_features_in_']} words{classes}, with "
        f"{_sizes(config['options']['n_components'])} hidden units and {config['options']['output']} output.",
        "",
        "```python",
        "import pictopic",
        "",
        'model = pictopic.load("this folder")',
        "```",
        "",
        f"- passes over the data: {learnt['n_iter_']}",
        f"- best validation score: {'none was held out' if score is None else f'{score:.4f}'}",
        f"- fitted on data with SHA-256 {learnt['data_fingerprint_']}",
        f"- made with {', '.join(f'{name} {version}' for name, version in config['versions'].items())}",
    ]
    return "\n".join(lines) + "\n"


# ---- checks of config.json: every value, before anything uses it -----------------------------------------------------


def _score(value: Any, name: str) -> float:
    """Check a score, which may be infinite."""
    if isinstance(value, bool) or not isinstance(value, int | float) or (isinstance(value, int) and abs(value) > 2**53):
        raise ValueError(f"{name!r} must be a number, got {shown(value)}")
    return float(value)


def _history(value: Any, name: str) -> dict[str, list[float]]:
    curves = mapping(value, name)
    for curve in _CURVES:
        section(curves, curve)
    return {
        text(curve, name): [_score(item, curve) for item in values(points, curve)] for curve, points in curves.items()
    }


_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "n_features_in_": lambda value, name: whole(value, name, 1, _MAX_WORDS),
    "mean_length_": lambda value, name: number(value, name, 1e-12, 1e18),
    "annotation_weight_": lambda value, name: number(value, name, 1e-12, 1e12),
    "n_iter_": whole,
    "best_validation_score_": lambda value, name: None if value is None else _score(value, name),
    "history_": _history,
    "data_fingerprint_": text,
}
_DEEP_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "n_global_features_": lambda value, name: whole(value, name, 0, _MAX_WORDS),
    "normalize_": lambda value, name: one_of(value, name, ("std", "sqrt", "none")),
    "input_scale_": lambda value, name: number(value, name, 0, 1e12),
}
LEARNT = (*_CHECKS, *_DEEP_CHECKS, "multi_label_")


def check_learnt(model: str, learnt: dict[str, Any]) -> dict[str, Any]:
    """Check the learnt values, besides arrays, of a model of this name; other values are left out."""
    checks = (
        _CHECKS | (_DEEP_CHECKS if "Deep" in model else {}) | ({"multi_label_": yes_or_no} if "Sup" in model else {})
    )
    return {name: check(section(learnt, name), name) for name, check in checks.items()}


def check_seconds(timings: dict[str, Any], n: int) -> list[float]:
    """Check the seconds after each of n passes."""
    seconds = [number(value, "seconds", 0) for value in values(section(timings, "seconds"), "seconds")]
    if len(seconds) != n:
        raise ValueError(f"'seconds' must hold {n} numbers, got {len(seconds)}")
    return seconds


def check_options(options: dict[str, Any], n_words: int) -> dict[str, Any]:
    """Convert and bound the options of a model; the model itself checks the rest."""
    if not is_finite_tree(options):
        raise ValueError("there is a number that is not finite or too large")
    # JSON has only lists; options with several values are tuples.
    checked = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    whole(checked.get("n_annotation_words", 0), "n_annotation_words", 0, n_words)
    if checked.get("n_jobs") is not None:
        whole(checked["n_jobs"], "n_jobs", -_MAX_JOBS, _MAX_JOBS)
    if checked.get("device", "cpu") != "cpu":
        checked["device"] = _available_device(text(checked["device"], "device"))
    return checked


def _available_device(device: str) -> str:
    """Return the device, or the CPU on a machine without it."""
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
    """Check `n` distinct class labels or column names, and return them with their type; None stays None."""
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
        if array.tolist() != items:  # truncated or rounded names may coincide
            raise ValueError
    except (OverflowError, TypeError, ValueError):
        raise ValueError(f"{name!r} has names that are not of type {dtype}") from None
    return array
