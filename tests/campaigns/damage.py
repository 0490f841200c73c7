"""Ways to damage a model's folder: by accident, by hand, or to do harm (with all hashes made right again)."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from safetensors.numpy import load as parse_tensors
from safetensors.numpy import save as tensor_bytes

from pictopic.picture_model.files import CONFIG, checksum

HOSTILE_NAMES = ("/etc/passwd", "../../../secret.png", "../../..", "..", "", "a\0b", "a\nb", "x" * 5000, "~/a", "C:\\a")
HOSTILE_VALUES: tuple[Any, ...] = (
    None, True, -1, 0, 1, 7, 2**31 - 1, 2**31, 2**63, -(2**63), 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"),
    *HOSTILE_NAMES, "exact", [], [[]], {}, {"a": 1}, [0] * 100_000, ["x"] * 3, [-1, 2**40], {"../..": "../.."},
)  # fmt: skip
_HUGE = 1 << 36  # bytes of a file that is nearly all hole


def damage(folder: Path, other: Path, outside: Path, rng: random.Random) -> dict[str, Any]:
    """Damage a model in one way.

    Parameters
    ----------
    folder : Path
        Of the model.
    other : Path
        A model of the same shape.
    outside : Path
        A folder that nothing in the model has a right to.
    rng : Random

    Returns
    -------
    dict
        What was done; ``hostile``: whether the hashes are right, so that only the values themselves tell.
    """
    digests = _digests(folder)
    kind = rng.choice(sorted(_KINDS))
    what = _KINDS[kind](folder, other, outside, rng)
    hostile = kind in _BY_HAND or rng.random() < 0.5
    if hostile:
        make_hashes_right(folder, digests)
    return {"kind": kind, "what": what, "hostile": hostile}


# ---- by accident -----------------------------------------------------------------------------------------------------


def _some_file(folder: Path, rng: random.Random, *endings: str) -> Path:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.name.endswith(endings or "")]
    return rng.choice(files)


def _flip(folder: Path, other: Path, outside: Path, rng: random.Random) -> str:
    path = _some_file(folder, rng)
    content = bytearray(path.read_bytes() or b"\0")
    for _ in range(rng.choice((1, 1, 2, 20))):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return _put(path, bytes(content))


def _cut(folder: Path, other: Path, outside: Path, rng: random.Random) -> str:
    path = _some_file(folder, rng)
    content = path.read_bytes()
    return _put(path, content[: rng.choice((0, 1, len(content) // 2, max(0, len(content) - 1)))])


def _lengthen(folder: Path, other: Path, outside: Path, rng: random.Random) -> str:
    path = _some_file(folder, rng)
    if rng.random() < 0.3:
        content = path.read_bytes()
        path.unlink()
        path.write_bytes(content)
        os.truncate(path, _HUGE)
        return f"{path.name}: {_HUGE} bytes"
    return _put(path, path.read_bytes() + rng.randbytes(rng.choice((1, 8, 4096))))


def _delete(folder: Path, other: Path, outside: Path, rng: random.Random) -> str:
    path = rng.choice(sorted(folder.rglob("*")))
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return path.name


def _swap(folder: Path, other: Path, outside: Path, rng: random.Random) -> str:
    """A part of another model of the same shape, under the name that this model gives it."""
    part = rng.choice(("index", "network", "corpus", "corpus/shards", "file", "file", "file"))
    if part != "file":
        shutil.rmtree(folder / part)
        shutil.copytree(other / part, folder / part)
        return part
    theirs = {path.name.split("-")[0]: path for path in sorted(other.rglob("*")) if path.is_file()}
    path = _some_file(folder, rng)
    return _put(path, theirs[path.name.split("-")[0]].read_bytes())


# ---- to do harm ------------------------------------------------------------------------------------------------------


def _link(folder: Path, other: Path, outside: Path, rng: random.Random) -> str:
    path = rng.choice(sorted(folder.rglob("*")))
    is_folder = path.is_dir()
    shutil.rmtree(path) if is_folder else path.unlink()
    if not is_folder and rng.random() < 0.2:
        os.mkfifo(path)
        return f"{path.name} is a FIFO"
    target = rng.choice((outside if is_folder else outside / "secret.txt", "/dev/zero", path.name, "nowhere"))
    path.symlink_to(target)
    return f"{path.name} -> {target}"


def _value(folder: Path, other: Path, outside: Path, rng: random.Random) -> str:
    """Another value somewhere in JSON."""
    path = _some_file(folder, rng, ".json")
    content = json.loads(path.read_text())
    places = list(_places(content))
    holder, key, where = rng.choice(places)
    value = rng.choice(HOSTILE_VALUES)
    if rng.random() < 0.1:
        del holder[key]
        value = "nothing"
    elif isinstance(holder, dict) and rng.random() < 0.1:
        holder[rng.choice(HOSTILE_NAMES)] = holder.pop(key)
    else:
        holder[key] = value
    _put(path, _json(content))
    return f"{path.name}: {where} = {str(value)[:80]}"


def _places(content: Any, where: str = "") -> Any:
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, value in list(items):
        yield content, key, f"{where}/{key}"
        yield from _places(value, f"{where}/{key}")


def _text(folder: Path, other: Path, outside: Path, rng: random.Random) -> str:
    """JSON as no program writes it."""
    path = _some_file(folder, rng, ".json")
    content = rng.choice(("[" * 100_000, '{"a":' * 100_000, "null", "[]", "3", '"a"', "{}", "", "\ufeff{}", "{" * 3,
                          '{"format_version": ' + "9" * 5000 + "}", '{"format_version": 1}'))  # fmt: skip
    return f"{_put(path, content.encode())} {content[:20]}"


def _array(folder: Path, other: Path, outside: Path, rng: random.Random) -> str:
    """An array with values, a type or a shape that nobody expects."""
    path = _some_file(folder, rng, ".npy", ".safetensors")
    if path.suffix == ".npy":
        array, what = _hostile(np.load(path), rng)
        buffer = io.BytesIO()
        np.save(buffer, array)
        _put(path, buffer.getvalue())
    else:
        content = path.read_bytes()
        tensors = parse_tensors(content)
        header = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])
        name = rng.choice(sorted(tensors))
        tensors[name], what = _hostile(tensors[name], rng)
        _put(path, tensor_bytes(tensors, header.get("__metadata__")))
        what = f"{name} {what}"
    return f"{path.name}: {what}"


def _hostile(array: np.ndarray, rng: random.Random) -> tuple[np.ndarray, str]:
    array = np.array(array)
    what = rng.choice(("value", "value", "value", "all", "reversed", "dtype", "shape", "empty", "longer"))
    if what in ("value", "all") and array.size:
        info = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
        values = (-1, 0, array.size, 2**20, info.max, info.min) if info else (np.nan, np.inf, -np.inf, 1e38, -1.0, 0.0)
        value = rng.choice(values)
        place = slice(None) if what == "all" else rng.randrange(array.size)
        with np.errstate(over="ignore"):
            array.reshape(-1)[place] = np.array(value).astype(array.dtype)
        return array, f"{what} {value}"
    if what == "reversed":
        return np.ascontiguousarray(array[::-1]), what
    if what == "dtype":
        kind = rng.choice(("<f8", "<i8", "<i4", "<f4", "|u1", "<f2"))
        with np.errstate(all="ignore"):
            return array.astype(kind), kind
    if what == "shape":
        return np.ascontiguousarray(array.T if array.ndim > 1 else array[:, None]), what
    if what == "empty":
        return array[:0], what
    return np.concatenate([array, array]) if array.ndim else array, "longer"


def _header(folder: Path, other: Path, outside: Path, rng: random.Random) -> str:
    """A header that promises more than there is."""
    path = _some_file(folder, rng, ".npy", ".safetensors", ".parquet")
    content = path.read_bytes()
    if path.suffix == ".npy":
        shape = rng.choice(("(1099511627776,)", "(-1,)", "(2, 99999999999)", "()", "(__import__('os').abort(),)"))
        text = f"{{'descr': '{rng.choice(('<f4', '|O', '<i8', '<U9'))}', 'fortran_order': False, 'shape': {shape}, }}"
        header = text.encode().ljust(len(content[10:128]), b" ") + b"\n"
        content = b"\x93NUMPY\x01\0" + struct.pack("<H", len(header)) + header + content[128:]
    elif path.suffix == ".safetensors":
        text = rng.choice((
            '{"a":{"dtype":"F32","shape":[1099511627776],"data_offsets":[0,4398046511104]}}',
            '{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}', "[" * 50_000, "{}", '{"a":1}',
        ))  # fmt: skip
        size = rng.choice((len(text), 2**62, 2**31, 0))
        content = struct.pack("<Q", size) + text.encode() + content[8:]
    else:
        content = content[:-8] + struct.pack("<I", rng.choice((0, 2**31, 2**32 - 1, len(content)))) + b"PAR1"
    return _put(path, content)


def _rows(folder: Path, other: Path, outside: Path, rng: random.Random) -> str:
    """A table of pictures that lie elsewhere, or that no memory holds."""
    path = _some_file(folder, rng, "rows.parquet")
    table = pq.read_table(path)
    what = rng.choice(("name", "null", "tags", "types", "columns", "many", "again"))
    if what == "name":
        names = table["file_name"].to_pylist()
        what = rng.choice((*HOSTILE_NAMES[:7], str(outside / "secret.png")))
        names[rng.randrange(len(names))] = what
        table = table.set_column(0, "file_name", pa.array(names))
    elif what == "null":
        table = table.set_column(0, "file_name", pa.nulls(len(table), pa.string()))
    elif what == "tags":
        tags = [[*HOSTILE_NAMES, "x" * 100_000, *map(str, range(5_000)), None]] * len(table)
        table = table.set_column(1, "tags", pa.array(tags, pa.list_(pa.string())))
    elif what == "types":
        table = table.set_column(0, "file_name", pa.array(np.arange(len(table))))
    elif what == "columns":
        table = table.drop_columns([rng.choice(table.column_names)])
    elif what == "again":
        names = table["file_name"].to_pylist()
        table = table.set_column(0, "file_name", pa.array([names[0]] * len(names)))
    else:  # a small file for tens of millions of rows
        table = pa.table({name: pa.repeat(table[name][0], 30_000_000) for name in table.column_names[:1]})
    path.unlink()
    pq.write_table(table, path)
    return what


def _word(folder: Path, other: Path, outside: Path, rng: random.Random) -> str:
    """A searcher's own format, with other numbers inside."""
    files = sorted((folder / "index").glob("faiss-*"))
    if not files:
        return _flip(folder, other, outside, rng)
    content = bytearray(files[0].read_bytes())
    place = rng.randrange(16, max(17, len(content) // 8 * 8 - 8))
    value = rng.choice((2**63 - 1, 2**31, 2**40, 0, 1, 2**62))
    content[place : place + 8] = struct.pack("<Q", value)
    return f"{_put(files[0], bytes(content))} {value} at {place}"


_KINDS: dict[str, Callable[[Path, Path, Path, random.Random], str]] = {
    "flip": _flip, "cut": _cut, "lengthen": _lengthen, "delete": _delete, "swap": _swap, "link": _link,
    "value": _value, "text": _text, "array": _array, "header": _header, "rows": _rows, "word": _word,
}  # fmt: skip
_BY_HAND = ("link", "value", "text", "array", "header", "rows", "word")  # no disk does that: the hashes are right, too


def _put(path: Path, content: bytes) -> str:
    """A new file: the old one may be linked from elsewhere."""
    path.unlink()
    path.write_bytes(content)
    return path.name


def _json(content: Any) -> bytes:
    return json.dumps(content).encode("utf-8", "surrogatepass")


# ---- hashes ----------------------------------------------------------------------------------------------------------


def _digests(folder: Path) -> dict[Path, str]:
    return {
        path: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and path.stat().st_size < _HUGE
    }


def make_hashes_right(folder: Path, before: dict[Path, str]) -> None:
    """Put the new hash of every file wherever its old one is, in files as in names."""
    for _ in range(4):  # files with hashes have hashes, too
        changed = False
        for path, digest in _digests(folder).items():
            old = before.get(path)
            if old is None or old == digest or path.is_symlink():
                continue
            changed = True
            before[path] = digest
            for holder in folder.rglob("*.json"):
                content = b"" if holder.is_symlink() or not holder.is_file() else holder.read_bytes()
                if old[:16].encode() in content:
                    content = content.replace(old.encode(), digest.encode())
                    _put(holder, content.replace(old[:16].encode(), digest[:16].encode()))
            if old[:16] in path.name:
                moved = path.with_name(path.name.replace(old[:16], digest[:16]))
                path.rename(moved)
                before[moved] = digest
        if not changed:
            break
    _make_table_right(folder)


def _make_table_right(folder: Path) -> None:
    """Hashes and sizes in the model's configuration, and its own; of what can be read at all."""
    path = folder / CONFIG
    if path.is_symlink() or not path.is_file() or path.stat().st_size >= _HUGE:
        return
    try:
        content = json.loads(path.read_bytes())
        for name, entry in content["files"].items():
            file = folder / name
            if file.is_file() and file.stat().st_size < _HUGE:
                entry |= {"sha256": hashlib.sha256(file.read_bytes()).hexdigest(), "bytes": file.stat().st_size}
        content["checksum"] = checksum(content)
    except (AttributeError, KeyError, OSError, RecursionError, TypeError, ValueError):
        return
    _put(path, _json(content))
