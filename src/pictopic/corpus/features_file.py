"""Global features that were computed elsewhere, joined to pictures by file name."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pictopic.corpus.readers import map_npy
from pictopic.corpus.sources.metadata import TextLines, list_columns

_TEXT = (pa.string(), pa.large_string(), pa.string_view())
_BATCH = 1 << 14  # rows
_CELLS = 1 << 22  # in the rows that are read at once, if there are many columns
_MAX_FEATURES = 1 << 16  # per picture: all are in memory


def read_features(path: str | os.PathLike[str], file_names: Sequence[str]) -> np.ndarray:
    """Read features and bring them into the order of pictures.

    Parameters
    ----------
    path : path
        A ``.parquet`` file with the column ``file_name`` and one column per feature or one column of lists; or a
        ``.npy`` array with one row per picture: in the order of `file_names`, or of the file names in a text file
        beside it (``features.txt`` for ``features.npy``, one name per line).
    file_names : sequence of str
        The pictures.

    Returns
    -------
    array of shape (n_pictures, n_features), float32
        Rows of pictures without features are NaN.

    Raises
    ------
    ValueError
        If the file cannot be read, or has features of none of the pictures.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from pathlib import Path
    >>> from pictopic.corpus.features_file import read_features
    >>> folder = Path(tempfile.mkdtemp())
    >>> np.save(folder / "features.npy", [[1.0, 2.0], [3.0, 4.0]])
    >>> _ = (folder / "features.txt").write_text(chr(10).join(["b.jpg", "c.jpg"]))
    >>> read_features(folder / "features.npy", ["a.jpg", "b.jpg"]).tolist()
    [[nan, nan], [1.0, 2.0]]
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist")
    if path.suffix.lower() == ".parquet":
        return _joined(_parquet_blocks(path), file_names, path)
    if path.suffix.lower() == ".npy":
        return _read_array(path, file_names)
    raise ValueError(f"{path}: features are in a .parquet or a .npy file")


def _joined(blocks: Iterable[tuple[Sequence[str | None], np.ndarray]], names: Sequence[str], path: Path) -> np.ndarray:
    places: dict[str | None, int] = {name: i for i, name in enumerate(names)}
    joined: np.ndarray | None = None
    has_features = np.zeros(len(names), bool)
    for block_names, block in blocks:
        if joined is None:
            joined = np.full((len(names), block.shape[1]), np.nan, np.float32)
        for row, name in zip(block, block_names, strict=True):
            place = places.get(name)
            if place is None:
                continue
            if has_features[place]:
                raise ValueError(f"{path} has {name!r} twice")
            has_features[place] = True
            joined[place] = row
    if joined is None or not has_features.any():
        raise ValueError(f"{path} has features of none of the {len(names)} pictures, such as {list(names[:1])}")
    return joined


def _read_array(path: Path, file_names: Sequence[str]) -> np.ndarray:
    array = map_npy(path)
    if array.ndim != 2 or array.dtype.kind not in "biuf":
        raise ValueError(f"{path} must hold an array of numbers with two dimensions")
    _check_features(array.shape[1], path)
    name_file = path.with_suffix(".txt")
    if not name_file.is_file():
        if len(array) != len(file_names):
            raise ValueError(
                f"{path} has {len(array)} rows for {len(file_names)} pictures; "
                f"put their names into {name_file.name} beside it, a name a line"
            )
        return _float32(array, path, 0)
    names = [line.rstrip("\r\n") for line in TextLines(name_file)]
    if len(names) != len(array):
        raise ValueError(f"{name_file} has {len(names)} names, but {path.name} has {len(array)} rows")
    blocks = ((names[i : i + _BATCH], _float32(array[i : i + _BATCH], path, i)) for i in range(0, len(array), _BATCH))
    return _joined(blocks, file_names, path)


def _parquet_blocks(path: Path) -> Iterator[tuple[list[str | None], np.ndarray]]:
    try:
        with pq.ParquetFile(path) as file:
            columns = _feature_columns(file.schema_arrow, path)
            n_rows, n_features = 0, None
            _check_features(len(columns), path)
            # The length of lists is known only when they are in memory.
            is_list = _is_list(file.schema_arrow.field(columns[0]).type)
            n_at_once = _CELLS // (_MAX_FEATURES if is_list else len(columns))
            for batch in file.iter_batches(batch_size=min(_BATCH, n_at_once), columns=["file_name", *columns]):
                block = _float32(_block(batch, columns, path, n_rows, n_features), path, n_rows)
                n_rows, n_features = n_rows + batch.num_rows, block.shape[1]
                yield batch.column("file_name").to_pylist(), block
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise ValueError(f"{path} cannot be read as Parquet: {' '.join(str(error).split())}") from None


def _feature_columns(schema: pa.Schema, path: Path) -> list[str]:
    if "file_name" not in schema.names:
        raise ValueError(f"{path} has no column 'file_name'; its columns are {list_columns(schema.names)}")
    twice = next((name for name in schema.names if schema.names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"{path}: there are two columns {twice!r}")
    kind = schema.field("file_name").type
    if (kind.value_type if pa.types.is_dictionary(kind) else kind) not in _TEXT:
        raise ValueError(f"{path}: the column 'file_name' must be text, not {kind}")
    others = [field for field in schema if field.name != "file_name"]
    numbers = [field.name for field in others if _is_number(field.type)]
    lists = [field.name for field in others if _is_list(field.type) and _is_number(field.type.value_type)]
    if len(lists) == 1 and not numbers:
        return lists
    if lists or not numbers:
        raise ValueError(f"{path} needs columns of numbers or one column of lists, not {list_columns(schema.names)}")
    return numbers


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind)


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _block(batch: pa.RecordBatch, columns: list[str], path: Path, start: int, n_features: int | None) -> np.ndarray:
    """The features of a batch, NaN where there are none."""
    if not _is_list(batch.column(columns[0]).type):
        cells = [batch.column(name).cast(pa.float64(), safe=False) for name in columns]
        return np.stack([cell.to_numpy(zero_copy_only=False) for cell in cells], axis=1)
    lists = batch.column(columns[0])
    # Before they become Python objects: a file of kilobytes can have millions in each row.
    _check_features(pc.max(pc.list_value_length(lists)).as_py() or 0, path)
    rows = lists.to_pylist()
    if n_features is None:
        n_features = next((len(row) for row in rows if row is not None), 0)
    block = np.full((len(rows), n_features), np.nan)
    for k, row in enumerate(rows):
        if row is not None:
            if len(row) != n_features:
                raise ValueError(f"{path}, row {start + k + 1}: {len(row)} features instead of {n_features}")
            block[k] = [np.nan if value is None else value for value in row]
    return block


def _check_features(n_features: int, path: Path) -> None:
    if n_features > _MAX_FEATURES:
        raise ValueError(f"{path} has {n_features:,} features per picture, more than {_MAX_FEATURES:,}")


def _float32(block: np.ndarray, path: Path, start: int) -> np.ndarray:
    with np.errstate(over="ignore"):  # reported below
        numbers = np.array(block, np.float32)
    infinite = np.isinf(numbers).any(axis=1)
    if infinite.any():
        raise ValueError(f"{path}, row {start + int(infinite.argmax()) + 1}: a feature is too large or infinite")
    return numbers
