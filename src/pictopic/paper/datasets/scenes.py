"""LabelMe and UIUC-Sports: photographs of eight kinds of scenes or sports, and the names of what is in them.

The class of a picture is the folder it lies in, or the start of its name.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pictopic.corpus.sources.listing import Listing, PictureFolder, Source, printable
from pictopic.corpus.sources.metadata import CsvTable, TextLines
from pictopic.paper.datasets.annotations import AnnotationFiles
from pictopic.paper.datasets.files import entries, is_picture, read_image_folder, unique_tags, warn_of
from pictopic.paper.datasets.layouts import LAYOUTS, Layout

SCENES = ("coast", "forest", "highway", "insidecity", "mountain", "opencountry", "street", "tallbuilding")
SPORTS = ("badminton", "bocce", "croquet", "polo", "rockclimbing", "rowing", "sailing", "snowboarding")

_SCENES_FOLDER = "spatial_envelope_256x256_static_8outdoorcategories"
_SCENES_PLACES = (_SCENES_FOLDER, f"Images/{_SCENES_FOLDER}", f"images/{_SCENES_FOLDER}", "Images", "images", "")
_SPORTS_PLACES = ("event_dataset/event_img", "event_img", "event_dataset", "")
_INFO, _ANNOTATIONS = "uiuc-sports-info.txt", "uiuc-sports-annotations.txt"
_SPLITS = "splits.csv"


def read_labelme(folder: str | os.PathLike[str]) -> Source:
    """List LabelMe's scenes with their classes and, where there are annotations, their tags.

    Pictures lie in one folder and are called like their class (``coast_art1130.jpg``), or in a folder for each class.
    Tags are the names of the objects in LabelMe's XML files.  A warning names damaged files; their pictures have no
    tags.  A folder with a metadata file is read as `read_source` does it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from pictopic.paper.datasets.scenes import SCENES, read_labelme
    >>> folder = Path(tempfile.mkdtemp())
    >>> pictures = folder / "spatial_envelope_256x256_static_8outdoorcategories"
    >>> pictures.mkdir()
    >>> for scene in SCENES:
    ...     Image.new("RGB", (8, 8)).save(pictures / f"{scene}_1.jpg")
    >>> xml = "<annotation><object><name>Sea water</name><deleted>0</deleted></object></annotation>"
    >>> _ = (pictures / "coast_1.xml").write_text(xml)
    >>> source = read_labelme(folder)
    >>> len(source), source.rows["tags"][0].as_py(), source.rows["labels"][0].as_py()
    (8, ['sea water'], ['coast'])
    """
    layout = LAYOUTS["labelme"]
    folder = layout.inside(Path(folder))
    source = read_image_folder(folder)
    if source is not None:
        return source
    pictures = _find_classes(folder, _SCENES_PLACES, SCENES, prefixes=True)
    if pictures is None:
        raise layout.missing(folder / _SCENES_FOLDER, f"the pictures ({_SCENES_FOLDER}.zip)")
    return _read_classes(folder, pictures, SCENES, layout, _Tags(folder, None))


def read_uiuc_sports(folder: str | os.PathLike[str]) -> Source:
    r"""List the pictures of UIUC-Sports with their classes and, where there are annotations, their tags.

    The class is the name of the folder in lower case: copies differ in it (``rowing``, ``Rowing``).  Tags come from the
    two files of Wang, Blei and Fei-Fei, which name the pictures and list their tags line by line, or from LabelMe's XML
    files.  A folder with a metadata file is read as `read_source` does it.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from pictopic.paper.datasets.scenes import SPORTS, read_uiuc_sports
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
    layout = LAYOUTS["uiuc-sports"]
    folder = layout.inside(Path(folder))
    source = read_image_folder(folder)
    if source is not None:
        return source
    pictures = _find_classes(folder, _SPORTS_PLACES, SPORTS)
    if pictures is None:
        raise layout.missing(folder / "event_img" / SPORTS[0], "the pictures (event_dataset.rar)")
    return _read_classes(folder, pictures, SPORTS, layout, _Tags(folder, _read_lists(folder)))


def read_splits(folder: str | os.PathLike[str], source: Source) -> list[np.ndarray] | None:
    r"""Which rows train in each split that comes with a data set, in ``splits.csv``.

    Parameters
    ----------
    folder : path
        As for the reader of the data set.
    source : Source
        What the reader returned.

    Returns
    -------
    list of bool arrays, or None
        For each split, whether a row of the source is in the training part; None if there is no such file.

    Raises
    ------
    ValueError
        If a picture of the source has no row in the file, or a cell is neither train nor test.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.paper.datasets.scenes import read_splits
    >>> from pictopic.corpus.sources.listing import Listing
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "splits.csv").write_text("file_name,split1,split2\na.jpg,train,test\nb.jpg,test,train\n")
    >>> listing = Listing()
    >>> _ = listing.add("b.jpg"), listing.add("a.jpg")
    >>> [train.tolist() for train in read_splits(folder, listing.source(folder, multi_label=False, pictures=True))]
    [[False, True], [True, False]]
    """
    paths = (Path(place) / _SPLITS for place in (folder, source.folder))
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        return None
    table = CsvTable(path)
    splits = [name for name in table.columns if name.startswith("split")]
    if "file_name" not in table.columns or not splits:
        raise ValueError(f"{path}: needs the columns file_name and split1, has {', '.join(table.columns)}")
    parts = _read_parts(table, splits)
    names = source.rows["file_name"].to_pylist()
    for number, name in enumerate(names, 1):
        if name not in parts:
            raise ValueError(f"{path} has no row for {name}, row {number} of the pictures")
    return list(np.array([parts[name] for name in names], dtype=bool).T)


def _read_parts(table: CsvTable, splits: list[str]) -> dict[str, list[bool]]:
    """For each picture, whether it trains in each split."""
    parts: dict[str, list[bool]] = {}
    for number, (name, *cells) in table.rows(["file_name", *splits]):
        name, cells = os.path.normpath(name.strip()).replace(os.sep, "/"), [cell.strip() for cell in cells]
        wrong = next((cell for cell in cells if cell not in ("train", "test")), None)
        if wrong is not None:
            raise ValueError(f"{table.path}, row {number}: neither train nor test: {wrong!r}")
        if name in parts:
            raise ValueError(f"{table.path}, row {number}: {name} is there twice")
        parts[name] = [cell == "train" for cell in cells]
    return parts


# ---- classes ---------------------------------------------------------------------------------------------------------


class _ClassPictures(NamedTuple):
    """The pictures of each class, and where more of them would be."""

    names: dict[str, list[str]]  # relative to the folder of the data set
    pattern: str  # with {} for the class


def _find_classes(
    folder: Path, places: Sequence[str], classes: Sequence[str], *, prefixes: bool = False
) -> _ClassPictures | None:
    """Pictures in folders named after classes, in any case; taken from the first of several sub-folders with any.

    With `prefixes`, pictures may also lie in the sub-folder itself, with names that start with their class:
    ``coast_1.jpg``.
    """
    for place in places:
        start = f"{place}/" if place else ""
        pictures = _ClassPictures(_in_folders(folder, start, classes), start + "{}")
        if prefixes and not pictures.names:
            pictures = _ClassPictures(_by_prefix(folder, start, classes), start + "{}_*.jpg")
        if pictures.names:
            return pictures
    return None


def _in_folders(folder: Path, start: str, classes: Sequence[str]) -> dict[str, list[str]]:
    by_class: dict[str, list[str]] = {}
    for sub in entries(folder / start):
        if sub.name.lower() in classes and sub.is_dir():
            inside = entries(Path(sub.path))
            names = [f"{start}{sub.name}/{entry.name}" for entry in inside if is_picture(entry.name)]
            if names:
                by_class.setdefault(sub.name.lower(), []).extend(names)
    return by_class


def _by_prefix(folder: Path, start: str, classes: Sequence[str]) -> dict[str, list[str]]:
    by_class: dict[str, list[str]] = {}
    for entry in entries(folder / start):
        label, underscore, _ = entry.name.lower().partition("_")
        if underscore and label in classes and is_picture(entry.name):
            by_class.setdefault(label, []).append(start + entry.name)
    return by_class


def _read_classes(
    folder: Path, pictures: _ClassPictures, classes: Sequence[str], layout: Layout, tags: _Tags
) -> Source:
    """List the pictures, class by class; every class must have some."""
    listing, place = Listing(), PictureFolder(folder)
    for label in classes:
        if label not in pictures.names:
            raise layout.missing(folder / pictures.pattern.format(label), f"the pictures of the class {label}")
        for name in pictures.names[label]:
            if printable(name) != name:
                listing.skip(name, "its name is not UTF-8")
                continue
            file = place.find(name)
            if isinstance(file, str):
                listing.skip(name, file)
            else:
                listing.add(file[0], tags.of(file[0], label), [label], None, file[1])
    source = listing.source(folder, multi_label=False, pictures=True)
    tags.warn()
    return source


# ---- tags ------------------------------------------------------------------------------------------------------------


class _Tags:
    """The tags of pictures: from the two lists of UIUC-Sports if they are there, else from XML files."""

    def __init__(self, folder: Path, listed: dict[str, list[str]] | None):
        self._listed = listed
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
    """The tags of the pictures ``class/file name``; None if there are no lists."""
    homes = [folder, *(folder / place for place in _SPORTS_PLACES)]
    home = next((home for home in homes if (home / _INFO).is_file() or (home / _ANNOTATIONS).is_file()), None)
    if home is None:
        return None
    for name in (_INFO, _ANNOTATIONS):
        if not (home / name).is_file():
            raise LAYOUTS["uiuc-sports"].missing(home / name, "the other half of the annotations")
    tags: dict[str, list[str]] = {}
    lines = zip_longest(TextLines(home / _INFO), TextLines(home / _ANNOTATIONS))
    for number, (picture, words) in enumerate(lines, 1):
        if picture is None or words is None:
            short = _INFO if picture is None else _ANNOTATIONS
            raise ValueError(f"{home / short} ends before row {number}, which the other half of the annotations has")
        parts = picture.lower().split()
        if len(parts) != 2:
            raise ValueError(f"{home / _INFO}, row {number}: not a class and a file name: {picture.strip()[:60]}")
        tags["/".join(parts)] = unique_tags(words.split(","))
    return tags
