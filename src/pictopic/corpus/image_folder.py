"""Pictures in a folder: listed by a metadata file as in Hugging Face's ImageFolder, or found by looking."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pictopic.corpus.keywords import keywords
from pictopic.corpus.listing import Listing, PictureFolder, Source, printable, reason_of
from pictopic.corpus.metadata import METADATA_EXTENSIONS, Table, list_columns, open_table
from pictopic.words.pictures import PICTURE_EXTENSIONS
from pictopic.words.tags import TagRules, all_tags, cell_list, cell_text, split_cell

# Hugging Face's names of train, validation and test.
SPLITS = frozenset({"train", "training", "validation", "valid", "val", "dev", "test", "testing", "eval", "evaluation"})


@dataclass(frozen=True)
class Columns:
    """Which columns of the metadata are read, and how; see `read_source` for what the options mean."""

    label_column: str | None = "label"
    tags_column: str | None = "tags"
    split_column: str | None = None
    tag_rules: TagRules | None = None

    def tags(self, cell: Any) -> list[str]:
        """The tags of a cell, after the rules; `Listing` cuts what is beyond the limits."""
        tags = all_tags(cell)
        return self.tag_rules.apply(tags) if self.tag_rules else tags


def labels_of(cell: Any, several: bool) -> list[str] | None:
    """The labels of a cell, as they are written; None if it is empty: unlabelled.

    Examples
    --------
    >>> from pictopic.corpus.image_folder import labels_of
    >>> labels_of("Sea; sky", several=True), labels_of("Sea; sky", several=False)
    (['Sea', 'sky'], ['Sea; sky'])
    >>> labels_of([], several=True), labels_of("", several=True)
    ([], None)
    """
    if cell_list(cell) is None:
        text = cell_text(cell)
        if text is None:
            return None
        if not several:
            return [text]
    return list(dict.fromkeys(split_cell(cell)))


def find_metadata(folder: Path) -> list[Path]:
    """The metadata file of a folder, or those of its sub-folders; an empty list, if there are none.

    Raises
    ------
    ValueError
        If there are two in the same folder, or one split has one and another has none.
    """
    top = _metadata_in(folder)
    if top:
        return [top]
    inside = sorted(sub for sub in folder.iterdir() if os.path.isdir(sub) and not sub.name.startswith("."))
    found = {sub: path for sub in inside if (path := _metadata_in(sub))}
    without = [sub.name for sub in inside if sub.name in SPLITS and sub not in found]
    if found and without:
        raise ValueError(f"{folder}: {next(iter(found.values()))} exists, but {without[0]} has no metadata file")
    return list(found.values())


def _metadata_in(folder: Path) -> Path | None:
    # Unlike Path.is_file, this one says no where there is no permission.
    paths = [folder / f"metadata{extension}" for extension in METADATA_EXTENSIONS]
    files = [path for path in paths if os.path.isfile(path)]
    if len(files) > 1:
        raise ValueError(f"{folder} has {' and '.join(path.name for path in files)}: give the path of one of them")
    return files[0] if files else None


def read_metadata(folder: Path, files: list[Path], columns: Columns, *, look_for_pictures: bool = True) -> Source:
    """Rows from metadata files; their file names are relative to the files' own folders.

    Parameters
    ----------
    folder : Path
        Pictures must be inside of it.
    files : list of Path
    columns : Columns
    look_for_pictures : bool, default=True
        Otherwise names are only names.

    Returns
    -------
    Source
    """
    tables = [_Metadata(folder, open_table(path), columns) for path in files]
    _check_columns(tables, columns)
    place = PictureFolder(folder)
    # One picture is enough to know that the others are missing; without any, the rows are all there is.
    pictures = look_for_pictures and any(
        not isinstance(place.find(name), str) for table in tables if table.named for name in table.names()
    )
    has_tags = any(table.tags for table in tables)
    if not pictures and not has_tags:
        where = f"none of the files is in {folder}" if look_for_pictures else "pictures are not to be read"
        raise ValueError(f"{files[0]}: {where}, and there are no tags; the columns are {_names(tables)}")
    look_into_files = pictures and not has_tags and columns.tags_column is not None
    listing = Listing()
    several = any(table.several for table in tables)
    for table in tables:
        for name, tags, labels, split in table.rows():
            size = None
            if pictures:
                found = place.find(name)
                if isinstance(found, str):
                    listing.skip(name, found)
                    continue
                name, size = found
                if look_into_files:
                    tags = columns.tags(keywords(folder / name))
            several = several or (labels is not None and len(labels) != 1)
            listing.add(name, tags, labels, split, size)
    return listing.source(folder, multi_label=several, pictures=pictures)


class _Metadata:
    """A metadata file and the columns of it that are read."""

    def __init__(self, folder: Path, table: Table, columns: Columns):
        self.table, self._options = table, columns
        self._prefix = table.path.parent.relative_to(folder).as_posix()
        self.named = "file_name" in table.columns
        self.tags = self._column(columns.tags_column)
        self.label = self._column(columns.label_column)
        if self.label is None and columns.label_column == "label":
            self.label = self._column("labels")
        self.split = self._column(columns.split_column)
        self.several = self.label == "labels"
        self._own_split = self._prefix if columns.split_column is None and self._prefix in SPLITS else None

    def _column(self, name: str | None) -> str | None:
        return name if name in self.table.columns else None

    def names(self) -> Iterator[str]:
        """The file names, relative to the whole folder."""
        for number, (name,) in self.table.rows(["file_name"]):
            yield self._name(name, number)

    def _name(self, cell: Any, number: int) -> str:
        name = cell_text(cell)
        if name is None:
            raise ValueError(f"{self.table.path}, row {number}: there is no file_name")
        # An absolute name stays one.
        return name if self._prefix == "." else os.path.join(self._prefix, name)

    def rows(self) -> Iterator[tuple[str, list[str], list[str] | None, str | None]]:
        """Name, tags, labels and split of each row."""
        wanted = ["file_name" if self.named else None, self.tags, self.label, self.split]
        for i, (number, (name, tags, label, split)) in enumerate(self.table.rows(wanted), 1):
            yield (
                self._name(name if self.named else i, number),
                self._options.tags(tags),
                labels_of(label, self.several),
                cell_text(split) or self._own_split,
            )


def _check_columns(tables: list[_Metadata], columns: Columns) -> None:
    """A column that was asked for must be in one of the tables; the usual ones need not be."""
    all_columns = {name for table in tables for name in table.table.columns}
    for name, usual in ((columns.label_column, "label"), (columns.tags_column, "tags"), (columns.split_column, None)):
        if name not in (None, usual) and name not in all_columns:
            raise ValueError(f"{tables[0].table.path} has no column {name!r}; its columns are {_names(tables)}")


def _names(tables: list[_Metadata]) -> str:
    return list_columns(dict.fromkeys(name for table in tables for name in table.table.columns))


def read_pictures(folder: Path, columns: Columns) -> Source:
    """Rows from the pictures in a folder and its sub-folders, in the order of their names.

    The class of a picture is the name of the folder it is in.  Folders of the first level that are all called train,
    test, validation or the like are splits.  Pictures beside the class folders are unlabelled, and if there are less
    than two classes, there are none.

    Parameters
    ----------
    folder : Path
    columns : Columns

    Returns
    -------
    Source
    """
    for name, usual in ((columns.label_column, "label"), (columns.tags_column, "tags"), (columns.split_column, None)):
        if name not in (None, usual):
            raise ValueError(f"{folder} has no metadata file that could have a column {name!r}")
    listing, place = Listing(), PictureFolder(folder)
    names, listing.skipped = picture_names(folder)
    has_splits = {name.split("/")[0] for name in names if "/" in name} <= SPLITS
    classes = {_place_of(name, has_splits)[0] for name in names} - {None}
    for name in names:
        found = place.find(name)
        if isinstance(found, str):
            listing.skip(name, found)
            continue
        label, split = _place_of(name, has_splits)
        labels = [label] if label is not None and len(classes) > 1 and columns.label_column is not None else None
        tags = columns.tags(keywords(folder / name)) if columns.tags_column is not None else []
        listing.add(name, tags, labels, split, found[1])
    return listing.source(folder, multi_label=False, pictures=True)


def has_pictures(folder: Path) -> bool:
    """Whether there is a picture in a folder or below it."""
    return next(_scan(folder, []), None) is not None


def _place_of(name: str, has_splits: bool) -> tuple[str | None, str | None]:
    """Class and split of a picture, from the folders it is in."""
    folders = name.split("/")[:-1]
    split = folders.pop(0) if has_splits and folders else None
    return (folders[-1] if folders else None), split


def picture_names(folder: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """The pictures in a folder and its sub-folders by their extensions, and what cannot be looked into.

    Hidden files and folders are left out; links to folders are not followed.

    Parameters
    ----------
    folder : Path

    Returns
    -------
    names : list of str
        Relative to the folder, with /, in the order of the alphabet.
    skipped : list of (name, reason)
        Folders that cannot be read, links to folders or to themselves, names that are not UTF-8.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.corpus.image_folder import picture_names
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "sea").mkdir()
    >>> (folder / "sea" / "a.jpg").touch()
    >>> (folder / "loop").symlink_to("loop")
    >>> picture_names(folder)
    (['sea/a.jpg'], [('loop', 'cannot be opened: Too many levels of symbolic links')])
    """
    skipped: list[tuple[str, str]] = []
    names = sorted(_scan(folder, skipped))
    return names, sorted(skipped)


def _scan(folder: Path, skipped: list[tuple[str, str]]) -> Iterator[str]:
    """Names of pictures as they are found; a folder may change meanwhile, and not be there when its turn comes."""
    pending = [""]  # folders, each with / at its end
    while pending:
        prefix = pending.pop()
        try:
            with os.scandir(os.path.join(folder, prefix)) as entries:
                inside = list(entries)
        except OSError as error:
            if not prefix:
                raise
            skipped.append((printable(prefix[:-1]), reason_of(error)))
            continue
        for entry in inside:
            name = prefix + entry.name
            if entry.name.startswith("."):
                continue
            try:
                is_folder, is_real_folder = entry.is_dir(), entry.is_dir(follow_symlinks=False)
            except OSError as error:
                skipped.append((printable(name), reason_of(error)))
                continue
            if is_real_folder:
                pending.append(name + "/")
            elif is_folder:
                skipped.append((printable(name), "a link to a folder: not followed"))
            elif os.path.splitext(entry.name)[1].lower() in PICTURE_EXTENSIONS:
                if printable(name) == name:
                    yield name
                else:
                    skipped.append((printable(name), "its name is not UTF-8"))
