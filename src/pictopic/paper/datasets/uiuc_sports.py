"""UIUC-Sports: photographs of eight kinds of sport, and the names of what is in them."""

from __future__ import annotations

import os
from itertools import zip_longest
from pathlib import Path

from pictopic.corpus.sources.listing import Source
from pictopic.corpus.sources.metadata import TextLines
from pictopic.paper.datasets.annotations import AnnotationFiles
from pictopic.paper.datasets.classes import find_classes, read_classes
from pictopic.paper.datasets.files import read_image_folder, unique_tags, warn_of
from pictopic.paper.datasets.layouts import LAYOUTS

LAYOUT = LAYOUTS["uiuc-sports"]
SPORTS = ("badminton", "bocce", "croquet", "polo", "rockclimbing", "rowing", "sailing", "snowboarding")

_PLACES = ("event_dataset/event_img", "event_img", "event_dataset", "")
_INFO, _ANNOTATIONS = "uiuc-sports-info.txt", "uiuc-sports-annotations.txt"


def read_uiuc_sports(folder: str | os.PathLike[str]) -> Source:
    r"""List the pictures of UIUC-Sports with their classes and, where there are annotations, their tags.

    The class is the name of the folder in lower case: copies differ in it (``rowing``, ``Rowing``).  Tags come from the
    two files of Wang, Blei and Fei-Fei, which name the pictures and list their tags line by line, or from LabelMe's XML
    files.  A folder with a metadata file is read as `read_source` does it.

    Parameters
    ----------
    folder : path
        As ``LAYOUT`` says.

    Returns
    -------
    Source

    Raises
    ------
    ValueError
        If something is missing, with its name.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from pictopic.paper.datasets.uiuc_sports import SPORTS, read_uiuc_sports
    >>> folder = Path(tempfile.mkdtemp())
    >>> for sport in SPORTS:
    ...     (folder / "event_img" / sport).mkdir(parents=True)
    ...     Image.new("RGB", (8, 8)).save(folder / "event_img" / sport / "image_0001.jpg")
    >>> _ = (folder / "uiuc-sports-info.txt").write_text("".join(f"{sport} image_0001.jpg\n" for sport in SPORTS))
    >>> _ = (folder / "uiuc-sports-annotations.txt").write_text("athlete, net, athlete, \n" + 7 * "sky, \n")
    >>> source = read_uiuc_sports(folder)
    >>> len(source), source.rows["tags"][0].as_py(), source.rows["labels"][0].as_py()
    (8, ['athlete', 'net'], ['badminton'])
    """
    folder = LAYOUT.inside(Path(folder))
    source = read_image_folder(folder)
    if source is not None:
        return source
    found = find_classes(folder, _PLACES, SPORTS)
    if found is None:
        raise LAYOUT.missing(folder / "event_img" / SPORTS[0], "the pictures (event_dataset.rar)")
    tags = _Tags(folder)
    source = read_classes(folder, found, SPORTS, LAYOUT, tags.of)
    tags.warn()
    return source


class _Tags:
    """The tags of pictures, from the two lists if they are there, else from XML files."""

    def __init__(self, folder: Path):
        self._listed = _read_lists(folder)
        self._files = AnnotationFiles(folder)
        self._not_listed: list[str] = []

    def of(self, name: str, label: str) -> list[str]:
        if self._listed is None:
            return self._files.tags(name)
        key = f"{label}/{name.rpartition('/')[2].lower()}"
        if key not in self._listed:
            self._not_listed.append(name)
        return self._listed.get(key, [])

    def warn(self) -> None:
        warn_of("annotations that cannot be read, so that their pictures have no tags", self._files.problems)
        warn_of(f"pictures that {_INFO} does not name, so that they have no tags", self._not_listed)


def _read_lists(folder: Path) -> dict[str, list[str]] | None:
    """The tags of the pictures ``class/file name``; None, if there are no lists."""
    homes = [folder, *(folder / place for place in _PLACES)]
    home = next((home for home in homes if (home / _INFO).is_file() or (home / _ANNOTATIONS).is_file()), None)
    if home is None:
        return None
    for name in (_INFO, _ANNOTATIONS):
        if not (home / name).is_file():
            raise LAYOUT.missing(home / name, "the other half of the annotations")
    found: dict[str, list[str]] = {}
    lines = zip_longest(TextLines(home / _INFO), TextLines(home / _ANNOTATIONS))
    for number, (picture, words) in enumerate(lines, 1):
        if picture is None or words is None:
            short = _INFO if picture is None else _ANNOTATIONS
            raise ValueError(f"{home / short} ends before row {number}, which the other half of the annotations has")
        parts = picture.lower().split()
        if len(parts) != 2:
            raise ValueError(f"{home / _INFO}, row {number}: not a class and a file name: {picture.strip()[:60]}")
        found["/".join(parts)] = unique_tags(words.split(","))
    return found
