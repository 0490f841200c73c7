"""What the readers of several data sets need: a metadata file instead, files with one tag per line, short warnings."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from pictopic.corpus.sources.listing import SPLITS, Columns, Source
from pictopic.corpus.sources.metadata import find_metadata, open_table, read_metadata
from pictopic.words.pictures import PICTURE_EXTENSIONS
from pictopic.words.tags import normalise_tag

_SHOWN = 3


def read_image_folder(folder: Path, label_columns: Sequence[str] = ("label", "labels")) -> Source | None:
    """The rows of a data set that has a metadata file; None if there is none.

    The first of the `label_columns` that is there has the labels, a column ``split`` the split.
    """
    # Other folders with metadata are other data sets.
    files = [path for path in find_metadata(folder) if path.parent == folder or path.parent.name in SPLITS]
    if not files:
        return None
    names = {name for path in files for name in open_table(path).columns}
    columns = Columns(
        label_column=next((name for name in label_columns if name in names), None),
        tags_column="tags" if "tags" in names else None,  # keywords that are in the pictures do not belong to the set
        split_column="split" if "split" in names else None,
    )
    return read_metadata(folder, files, columns)


def entries(folder: Path) -> list[os.DirEntry[str]]:
    """What is in a folder, hidden files left out, in the order of the names; nothing if there is no such folder."""
    try:
        with os.scandir(folder) as inside:
            return sorted((entry for entry in inside if not entry.name.startswith(".")), key=lambda entry: entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return []


def is_picture(name: str) -> bool:
    """Whether a name has the extension of a picture.

    Examples
    --------
    >>> from pictopic.paper.datasets.files import is_picture
    >>> is_picture("a/b.JPG"), is_picture("Thumbs.db")
    (True, False)
    """
    return os.path.splitext(name)[1].lower() in PICTURE_EXTENSIONS


def unique_tags(words: Iterable[str]) -> list[str]:
    """Words as tags: normalised, each once, in their order.

    Examples
    --------
    >>> from pictopic.paper.datasets.files import unique_tags
    >>> unique_tags(["Sky", " sky ", "", "Tall  Building"])
    ['sky', 'tall building']
    """
    return list(dict.fromkeys(tag for tag in map(normalise_tag, words) if tag))


def read_tag_lines(path: Path) -> list[str]:
    """The tags in a file with one tag per line; what is not UTF-8 is read as Latin-1, as old files have it."""
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    return unique_tags(text.split("\n"))


def warn_of(what: str, which: Sequence[str]) -> None:
    """Warn that something concerns some files: the first ones, and how many more; nothing if there are none."""
    if which:
        more = f" and {len(which) - _SHOWN} more" if len(which) > _SHOWN else ""
        warnings.warn(f"{what}: {', '.join(which[:_SHOWN])}{more}", stacklevel=3)
