"""LabelMe as in the paper: eight kinds of outdoor scenes, and the names of what is in them."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from pictopic.corpus.sources.listing import Source
from pictopic.corpus.sources.metadata import CsvTable
from pictopic.paper.datasets.annotations import AnnotationFiles
from pictopic.paper.datasets.classes import find_classes, read_classes
from pictopic.paper.datasets.files import read_image_folder, warn_of
from pictopic.paper.datasets.layouts import LAYOUTS

LAYOUT = LAYOUTS["labelme"]
SCENES = ("coast", "forest", "highway", "insidecity", "mountain", "opencountry", "street", "tallbuilding")

_PICTURES = "spatial_envelope_256x256_static_8outdoorcategories"
_PLACES = (_PICTURES, f"Images/{_PICTURES}", f"images/{_PICTURES}", "Images", "images", "")
_SPLITS = "splits.csv"


def read_labelme(folder: str | os.PathLike[str]) -> Source:
    """List LabelMe's scenes with their classes and, where there are annotations, their tags.

    Pictures lie in one folder and are called like their class (``coast_art1130.jpg``), or in a folder for each class.
    Tags are the names of the objects in LabelMe's XML files.  A file that is damaged is named in a warning, and its
    picture has no tags.  A folder with a metadata file is read as `read_source` does it.

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
    >>> from pictopic.paper.datasets.labelme import SCENES, read_labelme
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
    folder = LAYOUT.inside(Path(folder))
    source = read_image_folder(folder)
    if source is not None:
        return source
    found = find_classes(folder, _PLACES, SCENES, prefixes=True)
    if found is None:
        raise LAYOUT.missing(folder / _PICTURES, f"the pictures ({_PICTURES}.zip)")
    files = AnnotationFiles(folder)
    source = read_classes(folder, found, SCENES, LAYOUT, lambda name, label: files.tags(name))
    warn_of("annotations that cannot be read, so that their pictures have no tags", files.problems)
    return source


def read_splits(folder: str | os.PathLike[str], source: Source) -> list[np.ndarray] | None:
    r"""Which rows train in each split that comes with a data set, in ``splits.csv``.

    Parameters
    ----------
    folder : path
        As for the reader of the data set.
    source : Source
        What it returned.

    Returns
    -------
    list of bool arrays, or None
        For each split, whether a row of the source is in the training part; None, if there is no such file.

    Raises
    ------
    ValueError
        If a picture of the source has no row in the file, or a cell is neither train nor test.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.paper.datasets.labelme import read_splits
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
    parts = _parts(table, splits)
    names = source.rows["file_name"].to_pylist()
    for number, name in enumerate(names, 1):
        if name not in parts:
            raise ValueError(f"{path} has no row for {name}, row {number} of the pictures")
    train = np.array([parts[name] for name in names], dtype=bool)
    return list(train.T)


def _parts(table: CsvTable, splits: list[str]) -> dict[str, list[bool]]:
    """For each picture, whether it trains in each split."""
    found: dict[str, list[bool]] = {}
    for number, (name, *cells) in table.rows(["file_name", *splits]):
        name, cells = os.path.normpath(name.strip()).replace(os.sep, "/"), [cell.strip() for cell in cells]
        wrong = next((cell for cell in cells if cell not in ("train", "test")), None)
        if wrong is not None:
            raise ValueError(f"{table.path}, row {number}: neither train nor test: {wrong!r}")
        if name in found:
            raise ValueError(f"{table.path}, row {number}: {name} is there twice")
        found[name] = [cell == "train" for cell in cells]
    return found
