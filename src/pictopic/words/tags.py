"""Tags as people write them become words: one spelling each, no duplicates, some left out, some renamed."""

from __future__ import annotations

import ast
import csv
import json
import math
import os
import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

SEPARATORS = ";|,"
MAX_TAGS = 1_000  # per picture, and as many labels: one file must not fill the vocabulary
MAX_TAG_LENGTH = 200  # characters

_MAX_RAW = 5 * MAX_TAG_LENGTH  # characters that are normalised: composing them can make one of several
_MAX_LITERAL = 1 << 17  # characters; Python's parser takes gigabytes for some texts of megabytes

_JOINERS = "\u200c\u200d"  # invisible, but some scripts and emoji need them


def normalise_tag(text: str) -> str:
    """The one spelling of a tag: Unicode NFKC, lower case, single spaces, no control characters, 200 characters.

    Examples
    --------
    >>> from pictopic.words.tags import normalise_tag
    >>> normalise_tag("  New   York "), normalise_tag("5 m² CAFÉ")
    ('new york', '5 m2 café')
    """
    return _normalised(text)[:MAX_TAG_LENGTH].rstrip()


def _normalised(text: str) -> str:
    return _cached(text if len(text) <= _MAX_RAW else text.strip()[:_MAX_RAW])


@lru_cache(maxsize=1 << 16)
def _cached(text: str) -> str:
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).lower())
    text = " ".join(text.split())  # before control characters go: a tab is one of them
    if not text.isprintable():
        text = " ".join("".join(letter for letter in text if _is_visible(letter)).split())
    return unicodedata.normalize("NFKC", text)


def _is_visible(letter: str) -> bool:
    """Whether a character is no control character (Cc), invisible format (Cf) or half of a character (Cs)."""
    return letter in _JOINERS or unicodedata.category(letter) not in ("Cc", "Cf", "Cs")


def cell_text(cell: Any) -> str | None:
    """What a cell of a table says, without white space at its ends; None if it is empty, NaN or missing.

    Examples
    --------
    >>> from pictopic.words.tags import cell_text
    >>> cell_text(" Sea "), cell_text(3.0), cell_text(float("nan")), cell_text("")
    ('Sea', '3', None, None)
    """
    text = cell if isinstance(cell, str) else _other_text(cell)
    text = text.strip()
    if not text.isascii():
        text = text.encode("utf-8", "replace").decode("utf-8")  # JSON can hold halves of characters, files cannot
    return text or None


def _other_text(cell: Any) -> str:
    if cell is None or (isinstance(cell, float | np.floating) and math.isnan(cell)):
        return ""
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, float | np.floating) and float(cell).is_integer():
        return str(int(cell))
    try:
        return str(cell)
    except RecursionError:  # lists in lists in lists
        return ""


def split_cell(cell: Any, separators: str = SEPARATORS) -> list[str]:
    """The entries of a cell, as they are written, but without white space at their ends.

    A list (also as text: ``["a", "b, c"]``) has its entries.  In other text the first of the `separators` that occurs
    in it separates, and the others belong to the entries: ``a, b; c`` has two.

    Examples
    --------
    >>> from pictopic.words.tags import split_cell
    >>> split_cell("sea, sand"), split_cell("Paris, France; night"), split_cell('["a", "b, c"]'), split_cell(None)
    (['sea', 'sand'], ['Paris, France', 'night'], ['a', 'b, c'], [])
    """
    entries = cell_list(cell)
    if entries is None:
        text = cell_text(cell)
        if text is None:
            return []
        separator = next((mark for mark in separators if mark in text), None)
        entries = text.split(separator) if separator else [text]
    return [text for text in map(cell_text, entries) if text is not None]


def cell_list(cell: Any) -> list | None:
    """The entries of a cell that holds a list, or the text of one in JSON or Python; None for any other cell.

    Examples
    --------
    >>> from pictopic.words.tags import cell_list
    >>> cell_list('["a", "b"]'), cell_list("a;b"), cell_list("[]")
    (['a', 'b'], None, [])
    """
    if isinstance(cell, list | tuple | np.ndarray):
        return list(np.ravel(cell)) if isinstance(cell, np.ndarray) else list(cell)
    if not isinstance(cell, str):
        return None
    text = cell.strip()
    if not (text.startswith("[") and text.endswith("]")):
        return None
    entries = _parsed(json.loads, text)
    # pandas writes lists as Python does, with single quotes
    if entries is None and "\\" not in text and len(text) <= _MAX_LITERAL:
        entries = _parsed(ast.literal_eval, text)
    return entries if isinstance(entries, list) else None


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def all_tags(cell: Any, separators: str = SEPARATORS) -> list[str]:
    """The normalised tags of a cell, each once, in their order, whatever their number and length; see `split_tags`."""
    return _unique(map(_normalised, split_cell(cell, separators)))


def split_tags(cell: Any, separators: str = SEPARATORS) -> list[str]:
    """The normalised tags of a cell, each once, in their order; see `split_cell` and `normalise_tag`.

    Parameters
    ----------
    cell : str, list, tuple, array or None
    separators : str, default=";|,"
        The first one that occurs in the text decides.

    Returns
    -------
    list of str
        The first 1,000, cut to 200 characters each; see `within_limits`.

    Examples
    --------
    >>> from pictopic.words.tags import split_tags
    >>> split_tags("Sea;Night sky; sea;"), split_tags(["Sea", "b, c"]), split_tags(float("nan"))
    (['sea', 'night sky'], ['sea', 'b, c'], [])
    """
    return within_limits(all_tags(cell, separators))


def within_limits(words: Iterable[str]) -> list[str]:
    """The first `MAX_TAGS` different words, cut to `MAX_TAG_LENGTH` characters.

    Examples
    --------
    >>> from pictopic.words.tags import within_limits
    >>> [len(word) for word in within_limits(["sea", "x" * 300])]
    [3, 200]
    """
    return _unique(word[:MAX_TAG_LENGTH].rstrip() for word in words)[:MAX_TAGS]


def _unique(tags: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(tag for tag in tags if tag))


@dataclass(frozen=True)
class TagRules:
    """Which tags are left out, and which are renamed or merged.

    Parameters
    ----------
    stop : frozenset of str
        Tags to leave out, under their old or their new name.
    rename : dict of str to str
        New names.  It is looked into once: with a to b and b to c, a becomes b.

    Examples
    --------
    >>> from pictopic.words.tags import TagRules
    >>> rules = TagRules(stop=frozenset({"nikon"}), rename={"nyc": "new york", "ny": "new york"})
    >>> rules.apply(["nyc", "night", "ny", "nikon"])
    ['new york', 'night']
    """

    stop: frozenset[str] = frozenset()
    rename: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(cls, stop: str | os.PathLike[str] | None = None, rename: str | os.PathLike[str] | None = None) -> TagRules:
        """Read the rules from files.

        Parameters
        ----------
        stop : path of a text file, optional
            One tag per line.
        rename : path of a CSV file, optional
            With the columns ``from`` and ``to``.

        Returns
        -------
        TagRules
            With normalised tags.
        """
        words = (normalise_tag(line) for line in _lines(Path(stop))) if stop else ()
        return cls(frozenset(word for word in words if word), _read_renames(Path(rename)) if rename else {})

    def apply(self, tags: Iterable[str]) -> list[str]:
        """The tags that are left, under their new names, each once, in their order."""
        renamed = (self.rename.get(tag, tag) for tag in tags if tag not in self.stop)
        return _unique(tag for tag in renamed if tag not in self.stop)


def _read_renames(path: Path) -> dict[str, str]:
    renames: dict[str, str] = {}
    reader = csv.DictReader(_lines(path), skipinitialspace=True)
    try:
        if not {"from", "to"} <= set(reader.fieldnames or ()):
            names = " ".join(", ".join(reader.fieldnames or ()).split())[:200]
            raise ValueError(f"{path}, row 1: needs the columns from and to, has {names}")
        for row in reader:
            where = f"{path}, row {reader.line_num}"
            old, new = (normalise_tag(row[column] or "") for column in ("from", "to"))
            if not old or not new:
                raise ValueError(f"{where}: needs an old and a new name (a tag to leave out goes into the stop list)")
            if renames.setdefault(old, new) != new:
                raise ValueError(f"{where}: {old!r} was renamed to {renames[old]!r} before")
    except csv.Error as error:
        raise ValueError(f"{path}, row {reader.line_num}: {error}") from None
    return renames


def _lines(path: Path) -> Iterable[str]:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                yield line.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError:
                raise ValueError(f"{path}, row {number}: not UTF-8; save it as UTF-8") from None
