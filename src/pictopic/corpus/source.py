"""Where rows come from: recognised by looking at what is there."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pictopic.corpus.counts_files import find_counts, is_ldac, looks_like_counts, read_csv_counts, read_ldac
from pictopic.corpus.image_folder import Columns, find_metadata, has_pictures, read_metadata, read_pictures
from pictopic.corpus.listing import Counts, PictureFolder, Source
from pictopic.corpus.metadata import METADATA_EXTENSIONS, CsvTable
from pictopic.corpus.mirflickr import is_mirflickr, read_mirflickr
from pictopic.words.tags import TagRules

__all__ = ["Counts", "Source", "read_source"]


def read_source(
    path: str | os.PathLike[str],
    *,
    label_column: str | None = "label",
    tags_column: str | None = "tags",
    split_column: str | None = None,
    pictures: Literal["auto", "none"] = "auto",
    tag_rules: TagRules | None = None,
) -> Source:
    """List the pictures of a source, with their tags and labels.

    A source is one of these; the first that fits is taken:

    - a CSV file of counts (a column a word, perhaps ``file_name`` and ``label``), or LDA-C lines (``.ldac``, ``.dat``);
    - a file ``metadata.csv``, ``.jsonl`` or ``.parquet``, or any other such file with tags or names of pictures;
    - MIR Flickr in the arrays of SupDocNADE's authors;
    - a folder with a metadata file, or sub-folders ``train``, ``test`` and so on with one each;
    - a folder of pictures, whose classes are the names of their folders.

    A picture has at most 1,000 tags and 1,000 labels of at most 200 characters each; one warning tells how many
    pictures have more.  Whatever cannot be read in a folder is in `Source.skipped`, with the reason.

    Parameters
    ----------
    path : path
        A folder or a file.
    label_column : str or None, default="label"
        Column of the classes; if there is no ``label``, but ``labels``, a picture can have several, separated as tags
        are.  An empty cell is an unlabelled picture, ``[]`` one that has none of the labels.  None: no labels.
    tags_column : str or None, default="tags"
        Column of the tags.  If there is none, the keywords in the pictures are read (XMP, IPTC, ``.xmp`` files).
        None: no tags.
    split_column : str or None, default=None
        Column of the split (train, test, ...); for MIR Flickr its number.  None: the names of sub-folders with
        metadata, or no splits.
    pictures : {"auto", "none"}, default="auto"
        Whether to look for the files.  If not a single one is there, the rows have only tags.
    tag_rules : TagRules or None, default=None
        Tags to leave out and to rename.

    Returns
    -------
    Source

    Raises
    ------
    ValueError
        If the source cannot be read, with file and row.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> from pictopic.corpus.source import read_source
    >>> folder = Path(tempfile.mkdtemp())
    >>> Image.new("RGB", (8, 8)).save(folder / "a.jpg")
    >>> lines = ["file_name,tags,label", "a.jpg,Sea;Sky,coast", "../b.jpg,sun,coast"]
    >>> _ = (folder / "metadata.csv").write_text(chr(10).join(lines))
    >>> source = read_source(folder)
    >>> source.rows.to_pylist()
    [{'file_name': 'a.jpg', 'tags': ['sea', 'sky'], 'labels': ['coast'], 'split': None}]
    >>> source.skipped
    [('../b.jpg', 'outside the folder')]
    """
    if pictures not in ("auto", "none"):
        raise ValueError(f"pictures must be 'auto' or 'none', got {pictures!r}")
    path = Path(path)
    columns = Columns(label_column, tags_column, split_column, tag_rules)
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    if path.is_file():
        return _read_file(path, columns, pictures == "auto")
    if is_mirflickr(path):
        return read_mirflickr(path, split=split_column)
    metadata = find_metadata(path)
    if metadata:
        return read_metadata(path, metadata, columns, look_for_pictures=pictures == "auto")
    counts = find_counts(path)
    if counts is not None and not has_pictures(path):
        return _read_file(counts, columns, pictures == "auto")
    if pictures == "none":
        raise ValueError(f"{path} has no metadata file; without pictures one with tags is needed")
    return read_pictures(path, columns)


def _read_file(path: Path, columns: Columns, look_for_pictures: bool) -> Source:
    if is_ldac(path):
        return read_ldac(path)
    if path.suffix.lower() not in METADATA_EXTENSIONS:
        known = ", ".join((*METADATA_EXTENSIONS, ".ldac", ".dat"))
        raise ValueError(f"{path}: a source is a folder or a file with one of the extensions {known}")
    if path.suffix.lower() == ".csv" and path.stem != "metadata" and _is_counts(CsvTable(path), columns):
        return read_csv_counts(path, columns)
    return read_metadata(path.parent, [path], columns, look_for_pictures=look_for_pictures)


def _is_counts(table: CsvTable, columns: Columns) -> bool:
    """Numbers beside the names of pictures that are there, as their width and height, are no counts of words."""
    if not looks_like_counts(table, columns):
        return False
    if "file_name" not in table.columns:
        return True
    files = PictureFolder(table.path.parent)
    return not any(not isinstance(files.find(name), str) for _, (name,) in table.rows(["file_name"]))
