"""Where rows come from: a registry of formats, each of which recognises its sources by looking at them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal, Protocol

from pictopic.corpus.sources import counts_files, metadata, mirflickr, picture_folder
from pictopic.corpus.sources.listing import Columns, Counts, Source
from pictopic.words.tags import TagRules

__all__ = ["FORMATS", "Counts", "Source", "read_source"]


class Format(Protocol):
    """A module that reads one kind of source."""

    def matches(self, path: Path, columns: Columns) -> bool:
        """Whether a path, which exists, is a source of this kind."""

    def read(self, path: Path, columns: Columns) -> Source:
        """The rows of a path that matches."""


FORMATS: tuple[Format, ...] = (mirflickr, counts_files, metadata, picture_folder)  # the first that matches reads


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

    A source is one of these; the first that matches is read (`FORMATS`):

    - MIR Flickr in the arrays of SupDocNADE's authors;
    - a CSV file of counts (one column per word, perhaps ``file_name`` and ``label``), or LDA-C (``.ldac``, ``.dat``);
    - a file ``metadata.csv``, ``.jsonl`` or ``.parquet``, or any other such file with tags or names of pictures;
    - a folder with a metadata file, or sub-folders ``train``, ``test`` and so on with one each;
    - a folder of pictures, whose classes are the names of their folders.

    A folder without metadata and pictures, but with a single file of one of these kinds, stands for that file.

    A picture has at most 1,000 tags and 1,000 labels of at most 200 characters each; one warning says how many
    pictures have more.  Whatever in a folder cannot be read is in `Source.skipped`, with the reason.

    Parameters
    ----------
    path : path
        A folder or a file.
    label_column : str or None, default="label"
        Column of the classes; if there is no ``label`` but ``labels``, a picture can have several, separated as tags
        are.  An empty cell is an unlabelled picture, ``[]`` one that has none of the labels.  None: no labels.
    tags_column : str or None, default="tags"
        Column of the tags.  If there is none, the keywords in the pictures are read (XMP, IPTC, ``.xmp`` files).
        None: no tags.
    split_column : str or None, default=None
        Column of the split (train, test, ...); for MIR Flickr its number.  None: the names of sub-folders with
        metadata, or no splits.
    pictures : {"auto", "none"}, default="auto"
        Whether to look for the files.  If none of them is there, the rows have only tags.
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
    >>> from pictopic.corpus.sources import read_source
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
    columns = Columns(label_column, tags_column, split_column, tag_rules, look_for_pictures=pictures == "auto")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist")
    path = _only_file(path) or path
    for source_format in FORMATS:
        if source_format.matches(path, columns):
            return source_format.read(path, columns)
    extensions = ", ".join((*metadata.METADATA_EXTENSIONS, *counts_files.LDAC_EXTENSIONS))
    raise ValueError(f"{path}: a source is a folder or a file with one of the extensions {extensions}")


def _only_file(path: Path) -> Path | None:
    """The only CSV or LDA-C file of a folder that has neither metadata nor pictures."""
    if path.is_file() or mirflickr.is_mirflickr(path) or metadata.find_metadata(path):
        return None
    extensions = (".csv", *counts_files.LDAC_EXTENSIONS)
    files = [file for file in path.iterdir() if file.suffix.lower() in extensions]
    is_only = len(files) == 1 and files[0].is_file() and not picture_folder.has_pictures(path)
    return files[0] if is_only else None
