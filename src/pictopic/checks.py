"""Checks of values from files, before anything uses them: JSON values and safetensors arrays.

A file may be damaged, edited by hand or malicious.  Each check returns the value or raises a ValueError of one line
that names it.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from pictopic.files import check_regular

MAX_COUNT = 2**40  # rows, words, bytes: no collection has more
MAX_NUMBER = 1e30  # learnt numbers are far smaller; its square still fits into a float64
_MAX_TEXT = 10_000  # characters of a name
_MAX_ITEMS = 10_000_000  # of a list
_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4"}  # safetensors types in use


# ---- JSON values -----------------------------------------------------------------------------------------------------


def shown(value: Any) -> str:
    """Return a value as a short text of one line, for error messages.

    Examples
    --------
    >>> from pictopic.checks import shown
    >>> shown([1] * 1000)
    '[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,...'
    """
    text = repr(value)
    return text if len(text) <= 63 else text[:60] + "..."


def section(content: dict[str, Any], name: str) -> Any:
    """Return a value by its name."""
    if name not in content:
        raise ValueError(f"{name!r} is missing")
    return content[name]


def whole(value: Any, name: str, least: int = 0, most: int = MAX_COUNT) -> int:
    """Check that a value is a whole number (not True or False) within bounds.

    Examples
    --------
    >>> from pictopic.checks import whole
    >>> whole(3, "n_rows")
    3
    >>> whole(-3, "n_rows")
    Traceback (most recent call last):
        ...
    ValueError: 'n_rows' must be a whole number from 0 to 1099511627776, got -3
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ValueError(f"{name!r} must be a whole number from {least} to {most}, got {shown(value)}")
    return value


def number(value: Any, name: str, least: float = -MAX_NUMBER, most: float = MAX_NUMBER) -> float:
    """Check that a value is a finite number within bounds."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ValueError(f"{name!r} must be a number from {least:g} to {most:g}, got {shown(value)}")
    return float(value)


def numbers(value: Any, name: str, least: float = -MAX_NUMBER, most: float = MAX_NUMBER) -> list[float]:
    """Check that a value is a list of finite numbers within bounds."""
    return [number(item, name, least, most) for item in values(value, name)]


def text(value: Any, name: str) -> str:
    """Check that a value is a text that is not too long."""
    if not isinstance(value, str) or len(value) > _MAX_TEXT:
        raise ValueError(f"{name!r} must be a text, got {shown(value)}")
    return value


def texts(value: Any, name: str) -> list[str]:
    """Check that a value is a list of distinct texts."""
    items = [text(item, name) for item in values(value, name)]
    if len(set(items)) < len(items):
        raise ValueError(f"{name!r} has the same text twice")
    return items


def one_of(value: Any, name: str, known: tuple[str, ...]) -> str:
    """Check that a value is one of several texts."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name!r} must be one of {', '.join(map(repr, known))}, got {shown(value)}")
    return value


def yes_or_no(value: Any, name: str) -> bool:
    """Check that a value is True or False."""
    if not isinstance(value, bool):
        raise ValueError(f"{name!r} must be true or false, got {shown(value)}")
    return value


def mapping(value: Any, name: str) -> dict[str, Any]:
    """Check that a value is a JSON object."""
    if not isinstance(value, dict):
        raise ValueError(f"{name!r} must be a JSON object, got {shown(value)}")
    return value


def values(value: Any, name: str) -> list[Any]:
    """Check that a value is a list that is not too long."""
    if not isinstance(value, list) or len(value) > _MAX_ITEMS:
        raise ValueError(f"{name!r} must be a list, got {shown(value)}")
    return value


def is_finite_tree(value: Any) -> bool:
    """Return whether JSON contains no infinite number, no NaN and no whole number of more than 64 bits.

    Examples
    --------
    >>> from pictopic.checks import is_finite_tree
    >>> is_finite_tree({"a": [1.0, None]}), is_finite_tree([float("nan")]), is_finite_tree([10**400])
    (True, False, False)
    """
    pending = [value]  # no recursion: the JSON parser accepts deeper nesting than Python's stack allows
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending += item.values()
        elif isinstance(item, list):
            pending += item
        elif isinstance(item, int | float) and not _is_storable(item):
            return False
    return True


def _is_storable(value: int | float) -> bool:
    return math.isfinite(value) if isinstance(value, float) else -(2**63) <= value < 2**63


# ---- safetensors arrays ----------------------------------------------------------------------------------------------


def read_arrays(path: Path, max_bytes: int = 1 << 32) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Read arrays and metadata of a safetensors file; a damaged or too large file raises a ValueError."""
    try:
        check_regular(path)
        if path.stat().st_size > max_bytes:
            raise ValueError(f"it has more than {max_bytes} bytes")
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    return parse_arrays(content, path)


def parse_arrays(content: bytes, path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Parse arrays and metadata from the bytes of a safetensors file; `path` is for error messages."""
    from safetensors import SafetensorError, deserialize

    try:
        parts = deserialize(content)
        wrong = [part["dtype"] for _, part in parts if part["dtype"] not in _DTYPES]
        if wrong:
            raise ValueError(f"arrays of {wrong[0]} are not known")
        arrays = {
            name: np.frombuffer(part["data"], dtype=_DTYPES[part["dtype"]]).reshape(part["shape"])
            for name, part in parts
        }
        # The library has checked the header, but returns metadata only of files, which may change meanwhile.
        header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        return arrays, dict(header.get("__metadata__") or {})
    except (SafetensorError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged: {str(error).splitlines()[0]}") from None


def array(
    arrays: dict[str, np.ndarray],
    name: str,
    dtype: str,
    shape: tuple[int | None, ...],
    least: float = -MAX_NUMBER,
    most: float = MAX_NUMBER,
) -> np.ndarray:
    """Return an array by its name, after checking its type, shape (None: any length) and bounds.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.checks import array
    >>> array({"mean": np.array([1.0, np.nan])}, "mean", "<f8", (2,))
    Traceback (most recent call last):
        ...
    ValueError: 'mean' has values outside -1e+30 to 1e+30
    """
    if name not in arrays:
        raise ValueError(f"there is no array {name!r}")
    data = arrays[name]
    fits = len(data.shape) == len(shape) and all(n in (None, m) for n, m in zip(shape, data.shape, strict=True))
    if not fits or data.dtype != np.dtype(dtype):
        expected = " x ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"{name!r} must be of shape {expected} and {dtype}, got {data.shape} and {data.dtype.str}")
    if data.size and not (least <= data.min() and data.max() <= most):  # also true for NaN
        raise ValueError(f"{name!r} has values outside {least:g} to {most:g}")
    return data
