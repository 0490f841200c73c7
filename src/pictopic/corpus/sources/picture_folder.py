"""Folders of pictures without metadata: classes are the names of the folders, tags the keywords in the files.

Photo managers write keywords into pictures or beside them: XMP (dc:subject) and IPTC (2:25).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import escape

from PIL import Image, TiffImagePlugin
from PIL.IptcImagePlugin import getiptcinfo

from pictopic.corpus.sources.listing import SPLITS, Columns, Listing, PictureFolder, Source, printable, reason_of
from pictopic.files import write_text
from pictopic.words.pictures import PICTURE_EXTENSIONS, PictureError, picture_header
from pictopic.words.tags import MAX_TAG_LENGTH, MAX_TAGS, cell_text

_SUBJECT = "http://purl.org/dc/elements/1.1/ subject"
_ITEM = "http://www.w3.org/1999/02/22-rdf-syntax-ns# li"
_TOOLKIT = b'x:xmptk="pictopic"'
_MAX_SIDECAR = 4 << 20  # bytes that are read; a usual one has some thousand
_MAX_KEYWORDS = MAX_TAGS + 1  # one more than is used, so that a picture with too many is known
_MAX_LENGTH = 5 * MAX_TAG_LENGTH  # characters of a keyword that are read
_XMP_TAG = 700
_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def matches(path: Path, columns: Columns) -> bool:
    """Whether a path is a folder."""
    return not path.is_file()


def read(path: Path, columns: Columns) -> Source:
    """Rows of the pictures in a folder and its sub-folders, in alphabetical order.

    The class of a picture is the name of the folder it is in.  Folders of the first level that are all called train,
    test, validation or the like are splits.  Pictures beside the class folders are unlabelled, and with fewer than two
    classes, all are.
    """
    if not columns.look_for_pictures:
        raise ValueError(f"{path} has no metadata file; without pictures one with tags is needed")
    for name in columns.required():
        raise ValueError(f"{path} has no metadata file that could have a column {name!r}")
    listing, place = Listing(), PictureFolder(path)
    names, listing.skipped = picture_names(path)
    has_splits = {name.split("/")[0] for name in names if "/" in name} <= SPLITS
    classes = {_class_and_split(name, has_splits)[0] for name in names} - {None}
    for name in names:
        file = place.find(name)
        if isinstance(file, str):
            listing.skip(name, file)
            continue
        label, split = _class_and_split(name, has_splits)
        labels = [label] if label is not None and len(classes) > 1 and columns.label_column is not None else None
        tags = columns.tags(keywords(path / name)) if columns.tags_column is not None else []
        listing.add(name, tags, labels, split, file[1])
    return listing.source(path, multi_label=False, pictures=True)


def has_pictures(folder: Path) -> bool:
    """Whether there is a picture in a folder or below it."""
    return next(_scan(folder, []), None) is not None


def _class_and_split(name: str, has_splits: bool) -> tuple[str | None, str | None]:
    """Class and split of a picture, from the folders it is in."""
    folders = name.split("/")[:-1]
    split = folders.pop(0) if has_splits and folders else None
    return (folders[-1] if folders else None), split


def picture_names(folder: Path) -> tuple[list[str], list[tuple[str, str]]]:
    """List the pictures in a folder and its sub-folders by their extensions, and what cannot be read.

    Hidden files and folders are left out; links to folders are not followed.

    Returns
    -------
    names : list of str
        Relative to the folder, with /, in alphabetical order.
    skipped : list of (name, reason)
        Folders that cannot be read, links to folders or to themselves, names that are not UTF-8.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.corpus.sources.picture_folder import picture_names
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
    """Names of pictures in no particular order; a folder may change meanwhile, and be gone when its turn comes."""
    pending = [""]  # folders that are still to be listed, each with / at its end
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


# ---- keywords --------------------------------------------------------------------------------------------------------


def keywords(path: str | os.PathLike[str]) -> list[str]:
    """The keywords of a picture as written, without duplicates.

    They come from XMP and IPTC data in the file, then from a sidecar beside it: ``photo.xmp`` or ``photo.jpg.xmp``.  A
    file that cannot be read has none.  At most 1,001 are read from each place, one more than a picture can have tags.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> from pictopic.corpus.sources.picture_folder import keywords
    >>> path = tempfile.mkdtemp() + "/photo.jpg"
    >>> xmp = b'''<x:xmpmeta xmlns:x="adobe:ns:meta/">
    ... <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description>
    ... <dc:subject xmlns:dc="http://purl.org/dc/elements/1.1/"><rdf:Bag><rdf:li>Sea</rdf:li></rdf:Bag></dc:subject>
    ... </rdf:Description></rdf:RDF></x:xmpmeta>'''
    >>> Image.new("RGB", (8, 8)).save(path, xmp=xmp)
    >>> keywords(path)
    ['Sea']
    """
    words: list[str] = []
    try:
        with picture_header(path) as image:
            words += xmp_keywords(_packet(image))
            words += _iptc_keywords(image)
    except PictureError:
        pass  # the build finds out whether the picture can be used
    words += _sidecar_keywords(Path(path))
    return list(dict.fromkeys(words))


def xmp_keywords(packet: bytes | str) -> list[str]:
    """The entries of dc:subject in an XMP packet; of malformed XML, those before the first error.

    Document type declarations are refused: an XMP packet needs none, and their entities can fill any memory.
    """
    if isinstance(packet, str):
        packet = packet.encode("utf-8", "replace")
    reader = _SubjectReader()
    try:
        reader.parser.Parse(packet.strip(b"\0 \t\r\n"), True)
    except (_Enough, expat.ExpatError, ValueError, LookupError):  # ValueError: a multi-byte encoding that expat lacks
        pass
    except _Refused:
        return []
    return list(reader.entries)


class _Refused(Exception):  # noqa: N818
    """There is a document type declaration."""


class _Enough(Exception):  # noqa: N818
    """There are more keywords than a picture can have."""


class _SubjectReader:
    def __init__(self) -> None:
        self.entries: dict[str, None] = {}
        self._in_subject = False
        self._text: list[str] | None = None  # of the entry that is being read
        self._length = 0
        self.parser = expat.ParserCreate(namespace_separator=" ")
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.EntityDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._read

    @staticmethod
    def _refuse(*declaration: object) -> None:
        raise _Refused

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if name == _SUBJECT:
            self._in_subject = True
        elif name == _ITEM and self._in_subject:
            self._text, self._length = [], 0

    def _end(self, name: str) -> None:
        if name == _SUBJECT:
            self._in_subject = False
        elif name == _ITEM and self._text is not None:
            if text := cell_text("".join(self._text)):
                self.entries[text] = None
            self._text = None
            if len(self.entries) == _MAX_KEYWORDS:
                raise _Enough

    def _read(self, text: str) -> None:
        if self._text is not None and self._length < _MAX_LENGTH:
            self._text.append(text[:_MAX_LENGTH])
            self._length += len(text)


def _packet(image: Image.Image) -> bytes | str:
    packet = image.info.get("xmp") or image.info.get("XML:com.adobe.xmp") or b""
    if not packet and isinstance(image, TiffImagePlugin.TiffImageFile):
        packet = image.tag_v2.get(_XMP_TAG, b"")
    return packet if isinstance(packet, bytes | str) else b""


def _iptc_keywords(image: Image.Image) -> list[str]:
    entries = (getiptcinfo(image) or {}).get((2, 25), [])  # type: ignore[arg-type]
    entries = entries if isinstance(entries, list) else [entries]
    texts = (text for entry in entries if entry and (text := cell_text(_decoded(entry))))
    return list(islice(dict.fromkeys(texts), _MAX_KEYWORDS))


def _decoded(entry: bytes) -> str:
    """IPTC text is UTF-8 today; older files use the encoding of their system, most often this one."""
    try:
        return entry.decode("utf-8")
    except UnicodeDecodeError:
        return entry.decode("cp1252", "replace")


def _sidecar_keywords(path: Path) -> list[str]:
    names = [name + extension for name in (path.stem, path.name) for extension in (".xmp", ".XMP")]
    try:
        for sidecar in map(path.with_name, names):
            # A link could lead to any file.
            if sidecar.is_file() and not sidecar.is_symlink():
                with sidecar.open("rb") as file:
                    return xmp_keywords(file.read(_MAX_SIDECAR))
    except (OSError, ValueError):  # no permission, or no name for a file
        pass
    return []


def write_sidecar(picture: Path, words: list[str]) -> Path:
    """Write keywords to ``photo.xmp`` beside ``photo.jpg``, as photo managers read them; the picture is not touched.

    Existing keywords stay.  A file that another program wrote may hold more than keywords: it is an error.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.corpus.sources.picture_folder import keywords, write_sidecar
    >>> photo = Path(tempfile.mkdtemp()) / "photo.jpg"
    >>> write_sidecar(photo, ["sea", "R&B"]).name, keywords(photo)
    ('photo.xmp', ['sea', 'R&B'])
    """
    path = picture.with_suffix(".xmp")
    check_own_sidecar(path)
    write_text(path, sidecar_text([*_sidecar_keywords(picture), *words]))
    return path


def check_own_sidecar(path: Path) -> None:
    """Refuse a file that another program wrote: it may hold more than keywords."""
    if path.is_symlink() or (path.exists() and not _is_ours(path)):
        raise ValueError(f"{path} was written by another program: it is left alone")


def _is_ours(path: Path) -> bool:
    if not path.is_file():  # opening a pipe would block for ever
        return False
    with path.open("rb") as file:
        return _TOOLKIT in file.read(_MAX_SIDECAR)


def sidecar_text(words: Iterable[str]) -> str:
    """Keywords as an XMP packet, without duplicates or characters that XML cannot hold.

    Examples
    --------
    >>> from pictopic.corpus.sources.picture_folder import sidecar_text, xmp_keywords
    >>> xmp_keywords(sidecar_text(["sea", "R&B", "sea"]))
    ['sea', 'R&B']
    """
    items = dict.fromkeys(_NO_XML.sub("", word) for word in words)
    entries = "".join(f"<rdf:li>{escape(word)}</rdf:li>" for word in items)
    return (
        f'<x:xmpmeta xmlns:x="adobe:ns:meta/" {_TOOLKIT.decode()}>'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'
        '<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:subject><rdf:Bag>{entries}</rdf:Bag></dc:subject></rdf:Description></rdf:RDF></x:xmpmeta>\n"
    )
