"""Corel 5k: photographs in fifty thematic groups, with one to five words each."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from pictopic.corpus.sources.listing import Listing, PictureFolder, Source
from pictopic.corpus.sources.metadata import TextLines
from pictopic.paper.datasets.files import read_image_folder, unique_tags
from pictopic.paper.datasets.layouts import LAYOUTS

LAYOUT = LAYOUTS["corel5k"]

_PARTS = ("train", "test")
_WORDS = ("corel5k_dictionary.txt", "corel5k_words.txt")
_EXTENSIONS = (".jpeg", ".jpg")
_HEADERS = ("<u2", "<i4")


def read_corel5k(folder: str | os.PathLike[str]) -> Source:
    r"""List the pictures of Corel 5k with their tags, their groups as classes, and the usual split.

    The lists, words and annotations are those of Guillaumin and others: annotations in INRIA's vector files
    (``.hvecs``) or as a matrix of Matlab (``.mat``).  A folder with a metadata file is read as `read_source` does it;
    its classes are in the column ``group``.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from PIL import Image
    >>> from pictopic.paper.datasets.corel5k import read_corel5k
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "images" / "1000").mkdir(parents=True)
    >>> _ = (folder / "corel5k_dictionary.txt").write_text("city\nsea\nsun\n")
    >>> for part, number in (("train", 1000), ("test", 1001)):
    ...     Image.new("RGB", (8, 8)).save(folder / "images" / "1000" / f"{number}.jpeg")
    ...     _ = (folder / f"corel5k_{part}_list.txt").write_text(f"1000/{number}\n")
    ...     np.array([3, 1, 0, 1], "<u2").tofile(folder / f"corel5k_{part}_annot.hvecs")
    >>> read_corel5k(folder).rows.to_pylist()[1]
    {'file_name': 'images/1000/1001.jpeg', 'tags': ['city', 'sun'], 'labels': ['1000'], 'split': 'test'}
    """
    folder = LAYOUT.inside(Path(folder))
    source = read_image_folder(folder, ("group", "label", "labels"))
    if source is not None:
        return source
    words = _read_words(folder)
    listing, place, names = Listing(), PictureFolder(folder), {part: _read_list(folder, part) for part in _PARTS}
    for part in _PARTS:
        annotations = _read_annotations(folder, part, (len(names[part]), len(words)))
        for name, row in zip(names[part], annotations, strict=True):
            file = _find(place, name)
            if isinstance(file, str):
                listing.skip(name, file)
            else:
                tags = unique_tags(words[k] for k in np.flatnonzero(row))
                listing.add(file[0], tags, name.split("/")[-2:-1] or None, part, file[1])
    if len(listing.skipped) == sum(map(len, names.values())):
        raise LAYOUT.missing(folder / "images" / f"{names['train'][0]}{_EXTENSIONS[0]}", "Corel's photographs")
    return listing.source(folder, multi_label=False, pictures=True)


def _find(place: PictureFolder, name: str) -> tuple[str, int] | str:
    """A picture of a list, which has it without extension; or why it cannot be used."""
    reason = "missing"
    for candidate in (f"{start}{name}{extension}" for start in ("images/", "") for extension in _EXTENSIONS):
        file = place.find(candidate)
        if not isinstance(file, str):
            return file
        reason = file if reason == "missing" else reason
    return reason


def _read_words(folder: Path) -> list[str]:
    path = next((folder / name for name in _WORDS if (folder / name).is_file()), None)
    if path is None:
        raise LAYOUT.missing(folder / _WORDS[0], "the words of the annotations")
    return [word for line in TextLines(path) if (word := line.strip())]


def _read_list(folder: Path, part: str) -> list[str]:
    path = folder / f"corel5k_{part}_list.txt"
    if not path.is_file():
        raise LAYOUT.missing(path, f"the names of the {part} pictures")
    names = [name for line in TextLines(path) if (name := line.strip())]
    if not names:
        raise ValueError(f"{path} is empty")
    return names


def _read_annotations(folder: Path, part: str, shape: tuple[int, int]) -> np.ndarray:
    """One row per picture, with a number above 0 for each of its words."""
    vectors = folder / f"corel5k_{part}_annot.hvecs"
    path = vectors if vectors.is_file() else vectors.with_suffix(".mat")
    if not path.is_file():
        raise LAYOUT.missing(vectors, f"the annotations of the {part} pictures")
    annotations = read_hvecs(path) if path == vectors else _read_matrix(path)
    if annotations.shape != shape:
        raise ValueError(
            f"{path} has {annotations.shape[0]} rows of {annotations.shape[1]} words, "
            f"but there are {shape[0]} pictures and {shape[1]} words"
        )
    return annotations


def read_hvecs(path: Path) -> np.ndarray:
    """Vectors of 16-bit numbers in a file of INRIA: for each its length, then its values; (n_vectors, length).

    Guillaumin's files have the length in 16 bits, as the values; other tools write it in 32.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from pictopic.paper.datasets.corel5k import read_hvecs
    >>> path = Path(tempfile.mkdtemp(), "a.hvecs")
    >>> np.array([[3, 0, 1, 0], [3, 1, 1, 0]], "<u2").tofile(path)
    >>> read_hvecs(path).tolist()
    [[0, 1, 0], [1, 1, 0]]
    """
    content = path.read_bytes()
    for header in map(np.dtype, _HEADERS):
        if len(content) < header.itemsize:
            continue
        length = int(np.frombuffer(content, header, 1)[0])
        if length > 0 and len(content) % (header.itemsize + 2 * length) == 0:
            rows = np.frombuffer(content, np.dtype([("length", header), ("values", "<u2", (length,))]))
            if (rows["length"] == length).all():
                return rows["values"]
    raise ValueError(f"{path} is damaged: not vectors of the same length")


def _read_matrix(path: Path) -> np.ndarray:
    from scipy.io import loadmat  # seldom needed
    from scipy.io.matlab import MatReadError

    try:
        content = loadmat(path)
    except (MatReadError, ValueError, TypeError, NotImplementedError, OSError) as error:
        raise ValueError(f"{path} cannot be read as a matrix of Matlab: {error}") from None
    values = [value for name, value in content.items() if not name.startswith("__")]
    matrix: Any = values[0] if len(values) == 1 else None
    if not hasattr(matrix, "dtype") or matrix.dtype.kind not in "biuf" or matrix.ndim != 2:
        raise ValueError(f"{path} must hold one matrix of numbers, and nothing else")
    return matrix.toarray() if hasattr(matrix, "toarray") else matrix
