"""MIR Flickr as its authors distribute it: pictures, a file of tags for each, a file of pictures for each label."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pictopic.corpus.sources.listing import Listing, PictureFolder, Source
from pictopic.corpus.sources.metadata import TextLines
from pictopic.corpus.sources.mirflickr import is_mirflickr, read_mirflickr
from pictopic.paper.datasets.files import entries, read_image_folder, read_tag_lines, warn_of
from pictopic.paper.datasets.layouts import LAYOUTS

LAYOUT = LAYOUTS["mirflickr"]
N_LABELLED = 25_000

# What may be seen in a picture (24), and what is so important in it that people would look for it (14).
POTENTIAL = (
    "animals", "baby", "bird", "car", "clouds", "dog", "female", "flower", "food", "indoor", "lake", "male", "night",
    "people", "plant_life", "portrait", "river", "sea", "sky", "structures", "sunset", "transport", "tree", "water",
)  # fmt: skip
RELEVANT = (
    "baby_r1", "bird_r1", "car_r1", "clouds_r1", "dog_r1", "female_r1", "flower_r1", "male_r1", "night_r1", "people_r1",
    "portrait_r1", "river_r1", "sea_r1", "tree_r1",
)  # fmt: skip

_PICTURES, _MILLION = "mirflickr", "mirflickr1m"
_LABELS = ("mirflickr25k_annotations_v080", "annotations_v080", "annotations")


def read_mirflickr25k(
    folder: str | os.PathLike[str],
    *,
    tags: Literal["clean", "raw"] = "clean",
    unlabelled: bool = True,
    split: str | None = None,
) -> Source:
    r"""List the pictures of MIR Flickr with their tags and labels: the 25,000 labelled ones, then all others.

    A labelled picture can have several of the 38 labels, or none.  Pictures of MIRFLICKR-1M have no labels; its first
    25,000 are the labelled ones again and are left out.  The arrays of SupDocNADE's authors and a folder with a
    metadata file are read as `read_source` does it.

    Parameters
    ----------
    folder : path
    tags : {"clean", "raw"}, default="clean"
        Flickr's spelling of the tags (lower case, no spaces), or that of the photographers.
    unlabelled : bool, default=True
        Whether to read the pictures without labels, if they are there.
    split : str or None, default=None
        For the arrays of SupDocNADE's authors: which of their splits.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from pictopic.paper.datasets.mirflickr25k import POTENTIAL, RELEVANT, read_mirflickr25k
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "mirflickr" / "meta" / "tags").mkdir(parents=True)
    >>> Image.new("RGB", (8, 8)).save(folder / "mirflickr" / "im1.jpg")
    >>> _ = (folder / "mirflickr" / "meta" / "tags" / "tags1.txt").write_text("seaside\nsummer\n")
    >>> (folder / "mirflickr25k_annotations_v080").mkdir()
    >>> for label in POTENTIAL + RELEVANT:
    ...     numbers = "1\n" if label.startswith("sea") else ""
    ...     _ = (folder / "mirflickr25k_annotations_v080" / f"{label}.txt").write_text(numbers)
    >>> read_mirflickr25k(folder).rows.to_pylist()
    [{'file_name': 'mirflickr/im1.jpg', 'tags': ['seaside', 'summer'], 'labels': ['sea', 'sea_r1'], 'split': None}]
    """
    if tags not in ("clean", "raw"):
        raise ValueError(f"tags must be 'clean' or 'raw', got {tags!r}")
    folder = LAYOUT.inside(Path(folder))
    if is_mirflickr(folder):
        return read_mirflickr(folder, split=split)
    if split is not None:
        raise ValueError(f"{folder} is not the arrays of SupDocNADE's authors, so that there is no split {split!r}")
    source = read_image_folder(folder, ("labels", "label"))
    return source if source is not None else _read_files(folder, "tags" if tags == "clean" else "tags_raw", unlabelled)


def _read_files(folder: Path, tags: str, unlabelled: bool) -> Source:
    labelled = _numbered(folder / _PICTURES, r"im([0-9]{1,5})\.jpg")
    if not labelled:
        raise LAYOUT.missing(folder / _PICTURES / "im1.jpg", "MIR Flickr's pictures (mirflickr25k.zip)")
    if not (folder / _PICTURES / "meta" / tags).is_dir():
        raise LAYOUT.missing(folder / _PICTURES / "meta" / tags, "MIR Flickr's tags (mirflickr25k.zip)")
    labels = _read_labels(folder)
    pictures = _Pictures(folder)
    for number, name in labelled:
        pictures.add(f"{_PICTURES}/{name}", f"{_PICTURES}/meta/{tags}/tags{number}.txt", labels.get(number, []))
    if unlabelled:
        for name, tag_file in _million(folder, tags):
            pictures.add(name, tag_file, None)
    return pictures.source()


class _Pictures:
    """The rows, with the tags from their files."""

    def __init__(self, folder: Path):
        self._folder, self._place = folder, PictureFolder(folder)
        self._listing = Listing()
        self._without_tags: list[str] = []

    def add(self, name: str, tag_file: str, labels: list[str] | None) -> None:
        file = self._place.find(name)
        if isinstance(file, str):
            self._listing.skip(name, file)
            return
        tags_at = self._place.find(tag_file)
        if isinstance(tags_at, str):
            self._without_tags.append(f"{tag_file} ({tags_at})")
        tags = [] if isinstance(tags_at, str) else read_tag_lines(self._folder / tags_at[0])
        self._listing.add(file[0], tags, labels, None, file[1])

    def source(self) -> Source:
        warn_of("files of tags that cannot be read, so that their pictures have no tags", self._without_tags)
        return self._listing.source(self._folder, multi_label=True, pictures=True)


def _numbered(folder: Path, pattern: str) -> list[tuple[int, str]]:
    """The files and folders whose whole name fits the pattern, by the number in it."""
    fits = ((re.fullmatch(pattern, entry.name), entry.name) for entry in entries(folder))
    return sorted((int(fit[1]), name) for fit, name in fits if fit)


def _million(folder: Path, tags: str) -> Iterator[tuple[str, str]]:
    """The names of the pictures without labels, and of their files of tags."""
    home = folder / _MILLION
    groups = _numbered(home / "images", r"([0-9]{1,6})")
    if groups and not (home / tags).is_dir():
        archive = " (tags.zip)" if tags == "tags" else ""
        raise LAYOUT.missing(home / tags, f"the tags of the pictures without labels{archive}")
    for _, group in groups:
        for number, name in _numbered(home / "images" / group, r"([0-9]{1,9})\.jpg"):
            if number >= N_LABELLED:
                yield f"{_MILLION}/images/{group}/{name}", f"{_MILLION}/{tags}/{group}/{number}.txt"


def _read_labels(folder: Path) -> dict[int, list[str]]:
    """The labels of the pictures with these numbers; a picture without any is not in it."""
    home = next((folder / name for name in _LABELS if (folder / name).is_dir()), None)
    if home is None:
        raise LAYOUT.missing(folder / _LABELS[0], f"MIR Flickr's labels ({_LABELS[0]}.zip)")
    labels: dict[int, list[str]] = defaultdict(list)
    for label in sorted(POTENTIAL + RELEVANT):
        path = home / f"{label}.txt"
        if not path.is_file():
            raise LAYOUT.missing(path, f"the pictures with the label {label} ({_LABELS[0]}.zip)")
        for row, line in enumerate(TextLines(path), 1):
            text = line.strip()
            if not text:
                continue
            if not re.fullmatch("[0-9]{1,5}", text) or not 1 <= int(text) <= N_LABELLED:
                raise ValueError(f"{path}, row {row}: not the number of a picture: {text[:40]!r}")
            if label not in labels[int(text)]:
                labels[int(text)].append(label)
    return labels
