"""LabelMe's annotations: one XML file per picture with the names of the objects that people outlined in it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from xml.parsers import expat

from pictopic.corpus.sources.listing import PictureFolder
from pictopic.paper.datasets.files import unique_tags

_MAX_BYTES = 4 << 20  # a usual file has some ten thousand
_FOLDERS = {"Images": "Annotations", "images": "annotations"}


class AnnotationError(ValueError):
    """Why an annotation file cannot be used, in one line."""


def object_names(content: bytes) -> list[str]:
    """The names of the objects in LabelMe's XML, those that are not deleted, as tags.

    Document type declarations are refused: LabelMe writes none, and their entities can fill any memory.

    Examples
    --------
    >>> from pictopic.paper.datasets.annotations import object_names
    >>> sky, sea = ("<object><name>%s</name><deleted>%d</deleted></object>" % pair for pair in [("Sky", 0), ("sea", 1)])
    >>> object_names(f"<annotation>{sky}{sea}{sky}</annotation>".encode())
    ['sky']
    """
    reader = _ObjectReader()
    try:
        reader.parser.Parse(content.strip(b"\0 \t\r\n"), True)
    except AnnotationError:
        raise
    except (expat.ExpatError, LookupError, ValueError) as error:  # the last two: of an encoding unknown to Python
        raise AnnotationError(f"not XML: {error}") from None
    return unique_tags(reader.names)


class _ObjectReader:
    def __init__(self) -> None:
        self.names: list[str] = []
        self._path: list[str] = []  # of the element that is being read
        self._object: dict[str, str] = {}
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartDoctypeDeclHandler = self._refuse
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._read

    @staticmethod
    def _refuse(*declaration: object) -> None:
        raise AnnotationError("it has a document type declaration (DOCTYPE), which is refused")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._path.append(name)
        if self._path[1:] == ["object"]:
            self._object = {"name": "", "deleted": ""}

    def _end(self, name: str) -> None:
        if self._path[1:] == ["object"] and self._object["deleted"].strip() != "1":
            self.names.append(self._object["name"])
        self._path.pop()

    def _read(self, text: str) -> None:
        # Polygons and parts of objects have elements of the same names further inside.
        if len(self._path) == 3 and self._path[1] == "object" and self._path[2] in self._object:
            self._object[self._path[2]] += text


class AnnotationFiles:
    """Finds and reads the annotations of pictures; `problems` lists the files that cannot be read, with the reasons.

    ``a/b.jpg`` has its annotations in ``a/b.xml`` or ``Annotations/a/b.xml``, and ``Images/a/b.jpg`` in
    ``Annotations/a/b.xml`` too.
    """

    def __init__(self, folder: Path):
        self._folder, self._place = folder, PictureFolder(folder)
        self.problems: list[str] = []

    def tags(self, name: str) -> list[str]:
        """The tags of a picture; empty if it has no annotations or they are damaged."""
        for candidate in _candidates(PurePosixPath(name)):
            file = self._place.find(candidate)
            if file == "missing":
                continue
            try:
                if isinstance(file, str):
                    raise AnnotationError(file)
                return self._read(*file)
            except (AnnotationError, OSError) as error:
                self.problems.append(f"{candidate} ({error})")
                return []
        return []

    def _read(self, name: str, size: int) -> list[str]:
        if size > _MAX_BYTES:
            raise AnnotationError(f"larger than {_MAX_BYTES >> 20} MB")
        return object_names((self._folder / name).read_bytes())


def _candidates(picture: PurePosixPath) -> list[str]:
    beside = picture.with_suffix(".xml")
    paths = [beside, "Annotations" / beside]
    for i, part in enumerate(beside.parts[:-1]):
        if part in _FOLDERS:
            paths.append(PurePosixPath(*beside.parts[:i], _FOLDERS[part], *beside.parts[i + 1 :]))
    return [str(path) for path in paths]
