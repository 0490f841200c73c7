"""Models on disk: ``config.json``, ``model-HASH.safetensors`` and a model card, ``README.md``.

Reading one runs nothing that is in it: JSON and plain arrays, checked before they are used.  A process that is killed
while it writes one does no harm: the arrays go to a new file, named by their hash, and the model changes when
``config.json``, which names that file, is replaced.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import platform
import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as tensor_bytes

import pictopic
from pictopic.files import write_bytes, write_text
from pictopic.models.tree import WordTree
from pictopic.storage import is_remote, local, readable, written

FORMAT_VERSION = 1
_OF_THE_MACHINE = ("init", "checkpoint", "log_dir")  # options that mean nothing elsewhere
_CONFIG, _CARD = "config.json", "README.md"
_TENSORS = re.compile(r"model-[0-9a-f]{16}\.safetensors")
_MODELS = {
    "DocNADE": "pictopic.models.docnade", "SupDocNADE": "pictopic.models.docnade",
    "DeepDocNADE": "pictopic.models.deep", "SupDeepDocNADE": "pictopic.models.deep",
}  # fmt: skip
_VALUES = (
    "n_features_in_", "mean_length_", "n_iter_", "best_validation_score_", "history_", "data_fingerprint_",
    "multi_label_", "annotation_weight_", "n_global_features_", "normalize_", "input_scale_",
)  # fmt: skip


def save(model: Any, folder: str | os.PathLike[str]) -> None:
    """Write a fitted model to a folder or URL, in place of the model that may be there."""
    written(folder, _CONFIG, partial(_save, model))


def check_free(place: str | os.PathLike[str]) -> None:
    """A ValueError, if there is something else than a model."""
    if is_remote(place):
        return  # looked at when it is written
    folder = local(place)
    if folder.exists() and not (folder / _CONFIG).is_file() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} exists and is not a model; choose another folder")


def _save(model: Any, folder: Path) -> None:
    check_free(folder)
    arrays = {name: np.ascontiguousarray(array) for name, array in model._get_arrays().items()}
    if model.tree_ is not None:
        arrays["word_of_leaf"] = model.tree_.word_of_leaf
    tensors = tensor_bytes(arrays)
    digest = hashlib.sha256(tensors).hexdigest()
    name = f"model-{digest[:16]}.safetensors"
    config = {
        "format_version": FORMAT_VERSION,
        "model": type(model).__name__,
        "options": {
            name: None if name in _OF_THE_MACHINE else plain(value)
            for name, value in model.get_params(deep=False).items()
        },
        "learnt": {name: plain(getattr(model, name)) for name in _VALUES if hasattr(model, name)},
        "feature_names": _names(getattr(model, "feature_names_in_", None)),
        "classes": _names(getattr(model, "classes_", None)),
        "tensors": name,
        "tensors_sha256": digest,
        "versions": _versions(),
    }
    write_bytes(folder / name, tensors)
    write_text(folder / _CONFIG, json.dumps(config, indent=1) + "\n")
    write_text(folder / _CARD, _card(model, config))
    for path in folder.iterdir():
        if _TENSORS.fullmatch(path.name) and path.name != name:
            path.unlink()


def load(folder: str | os.PathLike[str]) -> Any:
    """Read a model that `save` wrote.

    Parameters
    ----------
    folder : path or URL

    Returns
    -------
    estimator
        Fitted, with the options it had.

    Raises
    ------
    ValueError
        If the folder is no model, or damaged, or changed by hand, or from a newer pictopic.

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
        return _load(path)


def _load(folder: Path) -> Any:
    config = _read_config(folder)
    tensors = _read_tensors(folder, config)
    options = config["options"]
    name = config["model"]
    if name not in _MODELS:
        raise ValueError(f"{folder / _CONFIG} names an unknown model, {name!r}")
    kind = getattr(importlib.import_module(_MODELS[name]), name)
    try:
        # JSON has lists only; an option that has several values is a tuple.
        model = kind(**{key: tuple(value) if isinstance(value, list) else value for key, value in options.items()})
        model._validate_params()
    except (TypeError, ValueError) as error:
        raise ValueError(f"{folder / _CONFIG} has options that {name} does not take: {error}") from None
    _check_shapes(folder, model, tensors, config)
    leaves = tensors.pop("word_of_leaf", None)
    model.tree_ = None if leaves is None else WordTree.from_leaves(leaves)
    model._set_arrays(tensors)
    for key, value in config["learnt"].items():
        if key in _VALUES:
            setattr(model, key, value)
    if config["feature_names"] is not None:
        model.feature_names_in_ = _array(config["feature_names"])
    if config["classes"] is not None:
        model.classes_ = _array(config["classes"])
    return model


def _read_config(folder: Path) -> dict[str, Any]:
    path = folder / _CONFIG
    if not path.is_file():
        raise ValueError(f"{folder} is not a model: there is no {_CONFIG} in it")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from None
    version = config.get("format_version") if isinstance(config, dict) else None
    if not isinstance(version, int):
        raise ValueError(f"{path} is not a model's: it has no format_version")
    if version > FORMAT_VERSION:
        raise ValueError(
            f"{folder} has format {version}, this pictopic {pictopic.__version__} reads up to {FORMAT_VERSION}; "
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
        raise ValueError(f"{folder / _CONFIG} is damaged: {config['tensors']!r} is no name of a model's arrays")
    path = folder / config["tensors"]
    if not path.is_file():
        raise ValueError(f"{folder} is damaged: there is no {path.name} in it")
    content = path.read_bytes()
    if hashlib.sha256(content).hexdigest() != config["tensors_sha256"]:
        raise ValueError(f"{path} is damaged or was changed: it is not the file that was saved with {_CONFIG}")
    try:
        return parse_tensors(content)
    except SafetensorError as error:
        raise ValueError(f"{path} is damaged: {error}") from None


def _check_shapes(folder: Path, model: Any, tensors: dict[str, np.ndarray], config: dict[str, Any]) -> None:
    try:
        n_words = config["learnt"]["n_features_in_"]
        n_classes = len(config["classes"]["values"]) if config["classes"] is not None else 0
        n_outputs = n_words - 1 if model.output == "tree" else n_words
        expected = model._array_shapes(n_words, n_outputs, n_classes, config["learnt"])
        if model.output == "tree":
            expected["word_of_leaf"] = (n_words,)
    except (KeyError, TypeError) as error:
        raise ValueError(f"{folder / _CONFIG} is damaged: {error!r}") from None
    found = {name: array.shape for name, array in tensors.items()}
    if found != expected:
        raise ValueError(f"{folder} is damaged: it should hold arrays {expected}, but has {found}")
    for name, array in tensors.items():
        if name != "word_of_leaf" and array.dtype != np.float32:
            raise ValueError(f"{folder} is damaged: {name} should be float32, but is {array.dtype}")


def plain(value: Any) -> Any:
    """A value as JSON knows it; a random generator cannot be kept and becomes null."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    return value if isinstance(value, int | float | str | bool | None) else None


def _names(values: np.ndarray | None) -> dict[str, Any] | None:
    """Class labels or column names with their type."""
    if values is None:
        return None
    return {"dtype": "object" if values.dtype == object else values.dtype.str, "values": values.tolist()}


def _array(names: dict[str, Any]) -> np.ndarray:
    if names["dtype"] != "object" and np.dtype(names["dtype"]).kind not in "biufU":
        raise ValueError(f"labels of type {names['dtype']!r} are not known")
    return np.array(names["values"], dtype=names["dtype"])


def _versions() -> dict[str, str]:
    from importlib.metadata import version

    packages = ("numpy", "scipy", "scikit-learn", "numba", "torch", "safetensors")
    return {"pictopic": pictopic.__version__, "python": platform.python_version()} | {
        name: version(name) for name in packages
    }


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
