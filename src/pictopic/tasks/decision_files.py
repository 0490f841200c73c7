"""Decisions about tags for other programs: CSV, and XMP files as photo managers read them."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pictopic.corpus.sources.picture_folder import check_own_sidecar, sidecar_text
from pictopic.files import has_too_long_name, write_text
from pictopic.tasks.decisions import Decision, Decisions

_OUTSIDE = ("", ".", "..")  # parts of a path that lead elsewhere; "" is the first of an absolute one


def decisions_about(decisions: Decisions, names: Iterable[str]) -> list[Decision]:
    """Those about pictures of a collection, the newest first: pictures can have been removed."""
    known = set(names)
    return [own for own in decisions.newest() if own.file_name in known]


def decided_tags(decisions: Decisions, names: Iterable[str], tags: Iterable[Sequence[str]]) -> dict[str, list[str]]:
    """All tags, after the decisions, of each picture about which something is decided.

    Parameters
    ----------
    decisions : Decisions
    names, tags
        Of the pictures of the collection; decisions about others do not count.

    Returns
    -------
    dict of str to list of str
        In the order of the names.

    Examples
    --------
    >>> import tempfile
    >>> from pictopic.tasks.decision_files import decided_tags
    >>> from pictopic.tasks.decisions import Decisions
    >>> decisions = Decisions(tempfile.mkdtemp() + "/decisions.jsonl")
    >>> decisions.add("b.jpg", "sea", "accepted")
    >>> decided_tags(decisions, ["a.jpg", "b.jpg"], [["sky"], ["boat"]])
    {'b.jpg': ['boat', 'sea']}
    """
    known = dict(zip(names, tags, strict=True))
    return {name: decisions.tags_after(name, known[name]) for name in decisions.changed() if name in known}


class Sidecar(NamedTuple):
    """An XMP file with the keywords of a picture."""

    picture: str
    name: str  # relative to a folder like the pictures', with /
    text: str


def sidecars(tags: Mapping[str, Sequence[str]], names: Iterable[str]) -> list[Sidecar]:
    """XMP files for pictures: ``photo.xmp``, or ``photo.jpg.xmp`` if there is a ``photo.png`` too.

    Parameters
    ----------
    tags : dict of str to list of str
        Tags of the pictures; one whose name leads out of its folder is left out.
    names : iterable of str
        Of all pictures of the collection.

    Returns
    -------
    list of Sidecar

    Examples
    --------
    >>> from pictopic.tasks.decision_files import sidecars
    >>> tags = {"trip/a.jpg": ["sea"], "trip/b.jpg": ["sky"], "../c.jpg": ["sea"]}
    >>> [own.name for own in sidecars(tags, ["trip/a.jpg", "trip/b.jpg", "trip/b.png", "../c.jpg"])]
    ['trip/a.xmp', 'trip/b.jpg.xmp']
    """
    # Some file systems take A and a for the same.
    owners = Counter(key.casefold() for name in names for key in {name, _without_extension(name)})
    found = []
    for picture, own in tags.items():
        if _is_inside(picture):
            short = _without_extension(picture)
            place = short if owners[short.casefold()] <= 1 else picture
            found.append(Sidecar(picture, f"{place}.xmp", sidecar_text(own)))
    return found


def _without_extension(name: str) -> str:
    return name.removesuffix(PurePosixPath(name).suffix)


def _is_inside(name: str) -> bool:
    """Whether a name stays in its folder, on Windows too."""
    parts = re.split(r"[/\\]", name)
    return not any(part in _OUTSIDE for part in parts) and not re.match("[A-Za-z]:", name) and "\0" not in name


def zip_sidecars(found: Iterable[Sidecar]) -> bytes:
    """Sidecars as a ZIP archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for own in found:
            archive.writestr(own.name, own.text)
    return buffer.getvalue()


def write_sidecars(folder: Path, found: Sequence[Sidecar]) -> list[str]:
    """Write sidecars to a folder of their own, in sub-folders like the pictures'; never beside the pictures.

    Parameters
    ----------
    folder : Path
        Made if it does not exist.  Sidecars of an earlier export are replaced.
    found : sequence of Sidecar

    Returns
    -------
    list of str
        Names of those that were not written, because they are too long for the file system.

    Raises
    ------
    ValueError
        Before anything is written: if the pictures are in this folder, if a file there is another program's, or if a
        link leads out of it.
    """
    writable = [own for own in found if not has_too_long_name(folder / own.name)]
    for own in writable:
        path = folder / own.name
        if os.path.exists(folder / own.picture):
            raise ValueError(f"{folder} holds the pictures themselves ({own.picture}): choose another folder")
        if not path.parent.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{path.parent} leads out of {folder}: choose another folder")
        check_own_sidecar(path)
    for own in writable:
        write_text(folder / own.name, own.text)
    written = {own.name for own in writable}
    return [own.name for own in found if own.name not in written]
