"""Keywords that photo software wrote into pictures or beside them: XMP (dc:subject) and IPTC (2:25)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from xml.parsers import expat
from xml.sax.saxutils import escape

from PIL import Image, TiffImagePlugin
from PIL.IptcImagePlugin import getiptcinfo

from pictopic.files import write_text
from pictopic.words.pictures import PictureError, picture_header
from pictopic.words.tags import MAX_TAG_LENGTH, MAX_TAGS, cell_text

_SUBJECT = "http://purl.org/dc/elements/1.1/ subject"
_ITEM = "http://www.w3.org/1999/02/22-rdf-syntax-ns# li"
_TOOLKIT = b'x:xmptk="pictopic"'
_MAX_SIDECAR = 4 << 20  # bytes that are read; a usual one has some thousand
_MAX_KEYWORDS = MAX_TAGS + 1  # one more than is used, so that a picture with too many is known
_MAX_LENGTH = 5 * MAX_TAG_LENGTH  # characters of a keyword that are read
_XMP_TAG = 700
_NO_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def keywords(path: str | os.PathLike[str]) -> list[str]:
    """The keywords of a picture, as they are written, each once.

    They are taken from XMP and IPTC data in the file, then from a sidecar beside it: ``photo.xmp`` or
    ``photo.jpg.xmp``.  What cannot be read has none.  Of each of them at most 1,001 are read, one more than a picture's
    tags.

    Examples
    --------
    >>> import tempfile
    >>> from PIL import Image
    >>> from pictopic.corpus.keywords import keywords
    >>> path = tempfile.mkdtemp() + "/photo.jpg"
    >>> xmp = b'''<x:xmpmeta xmlns:x="adobe:ns:meta/">
    ... <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description>
    ... <dc:subject xmlns:dc="http://purl.org/dc/elements/1.1/"><rdf:Bag><rdf:li>Sea</rdf:li></rdf:Bag></dc:subject>
    ... </rdf:Description></rdf:RDF></x:xmpmeta>'''
    >>> Image.new("RGB", (8, 8)).save(path, xmp=xmp)
    >>> keywords(path)
    ['Sea']
    """
    found: list[str] = []
    try:
        with picture_header(path) as image:
            found += xmp_keywords(_packet(image))
            found += _iptc_keywords(image)
    except PictureError:
        pass  # whether the picture can be used is found out when it is read
    found += _sidecar_keywords(Path(path))
    return list(dict.fromkeys(found))


def xmp_keywords(packet: bytes | str) -> list[str]:
    """The entries of dc:subject in an XMP packet; those before the first mistake, if it is no proper XML.

    Document type declarations are refused: an XMP packet needs none, and their entities can fill any memory.
    """
    if isinstance(packet, str):
        packet = packet.encode("utf-8", "replace")
    reader = _SubjectReader()
    try:
        reader.parser.Parse(packet.strip(b"\0 \t\r\n"), True)
    except (expat.ExpatError, ValueError, LookupError):  # ValueError: an encoding of several bytes that expat lacks
        pass
    except _Enough:
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
    found = getiptcinfo(image) or {}  # type: ignore[arg-type]
    entries = found.get((2, 25), [])
    entries = entries if isinstance(entries, list) else [entries]
    texts = (text for entry in entries if entry and (text := cell_text(_decoded(entry))))
    return list(islice(dict.fromkeys(texts), _MAX_KEYWORDS))


def _decoded(entry: bytes) -> str:
    """IPTC text is UTF-8 today; older files have it in their system's characters, most often these."""
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

    Keywords that are there already stay.  A file that another program wrote, with whatever else is in it, is left
    alone, with an error.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.corpus.keywords import keywords, write_sidecar
    >>> photo = Path(tempfile.mkdtemp()) / "photo.jpg"
    >>> write_sidecar(photo, ["sea", "R&B"]).name, keywords(photo)
    ('photo.xmp', ['sea', 'R&B'])
    """
    path = picture.with_suffix(".xmp")
    check_own_sidecar(path)
    write_text(path, sidecar_text([*_sidecar_keywords(picture), *words]))
    return path


def check_own_sidecar(path: Path) -> None:
    """Refuse a file that another program wrote: there may be more in it than keywords."""
    if path.is_symlink() or (path.exists() and not _is_own(path)):
        raise ValueError(f"{path} was written by another program: it is left alone")


def _is_own(path: Path) -> bool:
    if not path.is_file():  # to open a pipe would wait for ever
        return False
    with path.open("rb") as file:
        return _TOOLKIT in file.read(_MAX_SIDECAR)


def sidecar_text(words: Iterable[str]) -> str:
    """Keywords as an XMP packet, each once; characters that XML cannot hold are left out.

    Examples
    --------
    >>> from pictopic.corpus.keywords import sidecar_text, xmp_keywords
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
