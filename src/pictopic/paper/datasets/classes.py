"""Pictures whose class is the folder they lie in, or the start of their name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from pictopic.corpus.sources.listing import Listing, PictureFolder, Source, printable
from pictopic.paper.datasets.files import entries, is_picture
from pictopic.paper.datasets.layouts import Layout


class ClassPictures(NamedTuple):
    """The pictures of each class, and where more of them would be."""

    names: dict[str, list[str]]  # relative to the folder of the data set
    pattern: str  # with {} for the class


def find_classes(
    folder: Path, places: Sequence[str], classes: Sequence[str], *, prefixes: bool = False
) -> ClassPictures | None:
    """Look in several places for pictures in folders that are called like classes; upper and lower case are the same.

    Parameters
    ----------
    folder : Path
    places : sequence of str
        Sub-folders to look in; the first one with such pictures is taken.
    classes : sequence of str
        In lower case.
    prefixes : bool, default=False
        Whether the pictures may also lie in the place itself, with names that start with their class: ``coast_1.jpg``.

    Returns
    -------
    ClassPictures or None
        None, if there is no such picture in any place.
    """
    for place in places:
        start = f"{place}/" if place else ""
        found = ClassPictures(_in_folders(folder, start, classes), start + "{}")
        if prefixes and not found.names:
            found = ClassPictures(_by_prefix(folder, start, classes), start + "{}_*.jpg")
        if found.names:
            return found
    return None


def _in_folders(folder: Path, start: str, classes: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for sub in entries(folder / start):
        if sub.name.lower() in classes and sub.is_dir():
            inside = entries(Path(sub.path))
            names = [f"{start}{sub.name}/{entry.name}" for entry in inside if is_picture(entry.name)]
            if names:
                found.setdefault(sub.name.lower(), []).extend(names)
    return found


def _by_prefix(folder: Path, start: str, classes: Sequence[str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for entry in entries(folder / start):
        label, underscore, _ = entry.name.lower().partition("_")
        if underscore and label in classes and is_picture(entry.name):
            found.setdefault(label, []).append(start + entry.name)
    return found


def read_classes(
    folder: Path, found: ClassPictures, classes: Iterable[str], layout: Layout, tags: Callable[[str, str], list[str]]
) -> Source:
    """List the pictures, class by class; every class must have some.

    Parameters
    ----------
    folder : Path
    found : ClassPictures
    classes : iterable of str
    layout : Layout
        For the error, if a class has no pictures.
    tags : function
        Returns the tags of a picture, given its name and its class.

    Returns
    -------
    Source
    """
    listing, place = Listing(), PictureFolder(folder)
    for label in classes:
        if label not in found.names:
            raise layout.missing(folder / found.pattern.format(label), f"the pictures of the class {label}")
        for name in found.names[label]:
            if printable(name) != name:
                listing.skip(name, "its name is not UTF-8")
                continue
            where = place.find(name)
            if isinstance(where, str):
                listing.skip(name, where)
            else:
                listing.add(where[0], tags(where[0], label), [label], None, where[1])
    return listing.source(folder, multi_label=False, pictures=True)
