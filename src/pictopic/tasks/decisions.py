"""Decisions of people about which tags belong to a picture, in an append-only file; XMP files with the result."""

from __future__ import annotations

import io
import json
import os
import re
import threading
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from io import FileIO
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pictopic.corpus.sources.picture_folder import check_own_sidecar, sidecar_text
from pictopic.files import check_regular, has_too_long_name, sync_folder, write_text
from pictopic.words.tags import normalise_tag

try:
    import fcntl
except ImportError:  # Windows: processes there must not write at the same time
    fcntl = None  # type: ignore[assignment]

ACCEPTED, REJECTED, UNDECIDED = "accepted", "rejected", "undecided"
_CHOICES = (ACCEPTED, REJECTED, UNDECIDED)
_SUFFIX = ".decisions.jsonl"
_TEXT = re.compile(rb'(?:[^"\\]|\\.)*+\\?')  # of a JSON string, up to its end or to where the line is cut off


class Decision(NamedTuple):
    """A decision whether a tag belongs to a picture, with its time."""

    file_name: str
    tag: str
    decision: str  # "accepted" or "rejected"; in the file also "undecided", which takes an earlier one back
    time: str  # ISO 8601, UTC


class Decisions:
    """Decisions about tags, in a file of JSON lines; the last decision about a picture and a tag counts.

    Lines are only ever appended, each in one write that is safe on disk before `add` returns.  Several threads and
    processes can append to the same file and see each other's decisions.  A last line that a crash has cut off is
    ignored; any other line that is not a decision is an error, and is never removed.

    Parameters
    ----------
    path : path
        File of the decisions; the first decision creates it.

    Examples
    --------
    >>> import tempfile
    >>> from pictopic.tasks.decisions import Decisions
    >>> decisions = Decisions(tempfile.mkdtemp() + "/photos.model.decisions.jsonl")
    >>> decisions.add("17.jpg", "Sea", "accepted")
    >>> decisions.add("17.jpg", "boat", "rejected")
    >>> decisions.add("3.jpg", "boat", "accepted")
    >>> decisions.add("3.jpg", "boat", "undecided")
    >>> len(decisions), decisions.counts()
    (2, {'accepted': 1, 'rejected': 1})
    >>> decisions.decided("sea"), decisions.tags_after("17.jpg", ["boat", "sky"])
    ({'17.jpg'}, ['sky', 'sea'])
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)
        self._lock = threading.Lock()
        self._forget()

    @classmethod
    def beside(cls, model_folder: str | os.PathLike[str]) -> Decisions:
        """Return the decisions about a model's collection: beside its folder, which training replaces."""
        folder = Path(os.path.abspath(model_folder))
        return cls(folder.with_name(folder.name + _SUFFIX))

    # ---- deciding ----------------------------------------------------------------------------------------------------

    def add(self, file_name: str, tag: str, decision: str) -> None:
        """Append a decision to the file.

        Parameters
        ----------
        file_name : str
            File name of the picture in the collection.
        tag : str
        decision : {"accepted", "rejected", "undecided"}
            "undecided" takes an earlier one back; a collection that has already adopted it stays as it is.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        tag = normalise_tag(tag)
        if not tag:
            raise ValueError("a tag must have at least one letter")
        if decision not in _CHOICES:
            raise ValueError(f"a decision is one of {', '.join(_CHOICES)}, got {decision!r}")
        check_regular(self.path)
        with self._lock, open(self.path, "a+b", buffering=0) as file, _locked(file):
            self._read(file)
            if self._choice(file_name, tag) != decision:
                time = datetime.now(UTC).isoformat(timespec="seconds")
                self._append(file, Decision(file_name, tag, decision, time))

    def _append(self, file: FileIO, decision: Decision) -> None:
        end = file.seek(0, os.SEEK_END)
        if end > self._offset:  # the last line was cut off
            file.truncate(self._offset)
            end = self._offset
        # A complete last line without a newline, as editors leave it, gets its newline now.
        start = b"" if self._is_ended else b"\n"
        line = start + json.dumps(decision._asdict(), ensure_ascii=False).encode() + b"\n"
        try:
            if file.write(line) != len(line):
                raise OSError(f"{self.path}: the disk is full")
            os.fsync(file.fileno())
        except OSError:
            file.truncate(end)
            raise
        if end == 0:  # the file may be new: sync its folder entry, too
            sync_folder(self.path.parent)
        self._read(file)

    # ---- queries -----------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.newest())

    def counts(self) -> dict[str, int]:
        """Return how many tags were accepted and how many rejected."""
        totals = Counter(decision.decision for decision in self.newest())
        return {choice: totals[choice] for choice in (ACCEPTED, REJECTED)}

    def newest(self, offset: int = 0, limit: int | None = None) -> list[Decision]:
        """Return the decisions that count, newest first.

        Parameters
        ----------
        offset : int, default=0
            Number of decisions to skip.
        limit : int, optional
            Maximum number of decisions.

        Returns
        -------
        list of Decision
        """
        with self._current():
            decisions = list(self._known.values())[::-1]
        return decisions[offset:] if limit is None else decisions[offset : offset + limit]

    def decided(self, tag: str) -> set[str]:
        """Return the names of the pictures with a decision about a tag."""
        tag = normalise_tag(tag)
        with self._current():
            return {name for name, decided_tag in self._known if decided_tag == tag}

    def changed(self) -> list[str]:
        """Return the names of the pictures with decisions, in alphabetical order."""
        return sorted({decision.file_name for decision in self.newest()})

    def tags_after(self, file_name: str, tags: Sequence[str]) -> list[str]:
        """Return a picture's tags with accepted ones added and rejected ones removed."""
        with self._current():
            decided = dict(self._of_picture.get(file_name, {}))
        remaining = [tag for tag in tags if decided.get(tag) != REJECTED]
        return list(dict.fromkeys([*remaining, *(tag for tag, choice in decided.items() if choice == ACCEPTED)]))

    # ---- reading -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Hold the lock, after reading what other processes have appended."""
        check_regular(self.path)
        with self._lock:
            try:
                with open(self.path, "rb", buffering=0) as file:
                    self._read(file)
            except FileNotFoundError:
                self._forget()
            yield

    def _forget(self) -> None:
        self._known: dict[tuple[str, str], Decision] = {}  # by picture and tag, newest last
        self._of_picture: dict[str, dict[str, str]] = {}
        self._file: tuple[int, int] | None = None
        self._offset, self._n_lines, self._is_ended = 0, 0, True  # how far the file has been read

    def _read(self, file: FileIO) -> None:
        """Read the lines that are new in the file."""
        status = os.fstat(file.fileno())
        if self._file != (status.st_dev, status.st_ino) or status.st_size < self._offset:
            self._forget()
            self._file = (status.st_dev, status.st_ino)
        if status.st_size == self._offset:
            return
        file.seek(self._offset)
        *lines, last = file.read().split(b"\n")
        for line in lines:
            if line.strip():
                self._take(self._parsed(line))
            self._offset += len(line) + 1
            self._n_lines += 1
            self._is_ended = True
        if not last.strip() or _is_cut_off(last):
            return  # it is being written, or a crash has cut it off
        self._take(self._parsed(last))
        self._offset += len(last)
        self._is_ended = False

    def _parsed(self, line: bytes) -> Decision:
        try:
            content = json.loads(line)
            decision = Decision(*(content[name] for name in Decision._fields))
            if not all(isinstance(value, str) for value in decision) or decision.decision not in _CHOICES:
                raise ValueError
            decision = decision._replace(tag=normalise_tag(decision.tag))
            if not decision.tag:
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            where = f"{self.path}, line {self._n_lines + 1}"
            raise ValueError(f"{where}: not a decision with file_name, tag, decision and time") from None
        return decision

    def _take(self, new: Decision) -> None:
        self._known.pop((new.file_name, new.tag), None)
        self._of_picture.setdefault(new.file_name, {}).pop(new.tag, None)
        if new.decision != UNDECIDED:
            self._known[new.file_name, new.tag] = new
            self._of_picture[new.file_name][new.tag] = new.decision

    def _choice(self, file_name: str, tag: str) -> str:
        return self._of_picture.get(file_name, {}).get(tag, UNDECIDED)


def _is_cut_off(line: bytes) -> bool:
    """Return whether a line is an incomplete beginning of one that `Decisions` writes."""
    for k, name in enumerate(Decision._fields):
        before = (b'", ' if k else b"{") + f'"{name}": "'.encode()
        if len(line) < len(before):
            return before.startswith(line)
        if not line.startswith(before):
            return False
        line = _TEXT.sub(b"", line[len(before) :], count=1)
    return b'"}'.startswith(line) and line != b'"}'


@contextmanager
def _locked(file: FileIO) -> Iterator[None]:
    """Keep other processes from appending until the file is closed."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX)
    yield


_OUTSIDE = ("", ".", "..")  # parts of a path that lead elsewhere; "" begins an absolute path


def decisions_about(decisions: Decisions, names: Iterable[str]) -> list[Decision]:
    """Return decisions about pictures that still are in a collection, newest first."""
    known = set(names)
    return [decision for decision in decisions.newest() if decision.file_name in known]


def decided_tags(decisions: Decisions, names: Iterable[str], tags: Iterable[Sequence[str]]) -> dict[str, list[str]]:
    """Return all tags, after the decisions, of each picture with decisions.

    Parameters
    ----------
    decisions : Decisions
    names, tags
        Names and tags of the collection's pictures; decisions about other pictures are ignored.

    Returns
    -------
    dict of str to list of str
        Ordered by name.

    Examples
    --------
    >>> import tempfile
    >>> from pictopic.tasks.decisions import decided_tags
    >>> from pictopic.tasks.decisions import Decisions
    >>> decisions = Decisions(tempfile.mkdtemp() + "/decisions.jsonl")
    >>> decisions.add("b.jpg", "sea", "accepted")
    >>> decided_tags(decisions, ["a.jpg", "b.jpg"], [["sky"], ["boat"]])
    {'b.jpg': ['boat', 'sea']}
    """
    known = dict(zip(names, tags, strict=True))
    return {name: decisions.tags_after(name, known[name]) for name in decisions.changed() if name in known}


class Sidecar(NamedTuple):
    """An XMP file with the keywords of a picture."""

    picture: str
    name: str  # relative path with /, in a folder arranged like the pictures'
    text: str


def sidecars(tags: Mapping[str, Sequence[str]], names: Iterable[str]) -> list[Sidecar]:
    """Make XMP files for pictures: ``photo.xmp``, or ``photo.jpg.xmp`` if there is also a ``photo.png``.

    Parameters
    ----------
    tags : dict of str to list of str
        Tags of the pictures; names that lead out of the folder are left out.
    names : iterable of str
        Names of all pictures of the collection.

    Returns
    -------
    list of Sidecar

    Examples
    --------
    >>> from pictopic.tasks.decisions import sidecars
    >>> tags = {"trip/a.jpg": ["sea"], "trip/b.jpg": ["sky"], "../c.jpg": ["sea"]}
    >>> [sidecar.name for sidecar in sidecars(tags, ["trip/a.jpg", "trip/b.jpg", "trip/b.png", "../c.jpg"])]
    ['trip/a.xmp', 'trip/b.jpg.xmp']
    """
    # Some file systems ignore case.
    owners = Counter(key.casefold() for name in names for key in {name, _without_extension(name)})
    xmp_files = []
    for picture, picture_tags in tags.items():
        if _is_inside(picture):
            short = _without_extension(picture)
            place = short if owners[short.casefold()] <= 1 else picture
            xmp_files.append(Sidecar(picture, f"{place}.xmp", sidecar_text(picture_tags)))
    return xmp_files


def _without_extension(name: str) -> str:
    return name.removesuffix(PurePosixPath(name).suffix)


def _is_inside(name: str) -> bool:
    """Return whether a name stays in its folder, on Windows too."""
    parts = re.split(r"[/\\]", name)
    return not any(part in _OUTSIDE for part in parts) and not re.match("[A-Za-z]:", name) and "\0" not in name


def zip_sidecars(xmp_files: Iterable[Sidecar]) -> bytes:
    """Return sidecars as a ZIP archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for sidecar in xmp_files:
            archive.writestr(sidecar.name, sidecar.text)
    return buffer.getvalue()


def write_sidecars(folder: Path, xmp_files: Sequence[Sidecar]) -> list[str]:
    """Write sidecars to their own folder, with sub-folders like the pictures'; never next to the pictures.

    Parameters
    ----------
    folder : Path
        Created if missing.  Sidecars of an earlier export are replaced.
    xmp_files : sequence of Sidecar

    Returns
    -------
    list of str
        Names of sidecars that were not written because they are too long for the file system.

    Raises
    ------
    ValueError
        Before anything is written, if the folder holds the pictures or another program's sidecar, or if a link leads
        out of it.
    """
    writable = [sidecar for sidecar in xmp_files if not has_too_long_name(folder / sidecar.name)]
    for sidecar in writable:
        path = folder / sidecar.name
        if os.path.exists(folder / sidecar.picture):
            raise ValueError(f"{folder} holds the pictures themselves ({sidecar.picture}): choose another folder")
        if not path.parent.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{path.parent} leads out of {folder}: choose another folder")
        check_own_sidecar(path)
    for sidecar in writable:
        write_text(folder / sidecar.name, sidecar.text)
    written = {sidecar.name for sidecar in writable}
    return [sidecar.name for sidecar in xmp_files if sidecar.name not in written]
