"""What people decided about tags: which belong to a picture and which do not, kept in a file that only grows."""

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

from pictopic.corpus.keywords import check_own_sidecar, sidecar_text
from pictopic.files import check_regular, has_too_long_name, sync_folder, write_text
from pictopic.words.tags import normalise_tag

try:
    import fcntl
except ImportError:  # Windows: processes there must not write at the same time
    fcntl = None  # type: ignore[assignment]

ACCEPTED, REJECTED, UNDECIDED = "accepted", "rejected", "undecided"
_WORDS = (ACCEPTED, REJECTED, UNDECIDED)
_SUFFIX = ".decisions.jsonl"
_TEXT = re.compile(rb'(?:[^"\\]|\\.)*+\\?')  # of a string in JSON, up to its end or to where the line was cut off


class Decision(NamedTuple):
    """Whether a tag belongs to a picture, and since when this is known."""

    file_name: str
    tag: str
    decision: str  # "accepted", "rejected"; in the file also "undecided": an earlier one is taken back
    time: str  # ISO 8601, UTC


class Decisions:
    """Decisions about tags, in a file of JSON lines: of several about the same, the last one counts.

    Lines are only ever added, each at once and safe on disk before `add` returns.  Several threads and processes can
    add to the same file and see each other's decisions.  A last line that a crash has cut off is ignored; any other
    line that is no decision is an error, and is never removed.

    Parameters
    ----------
    path : path
        Of the file; made when something is decided.

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
        """Those about a model's collection: beside its folder, which is replaced when the model learns."""
        folder = Path(os.path.abspath(model_folder))
        return cls(folder.with_name(folder.name + _SUFFIX))

    # ---- deciding ----------------------------------------------------------------------------------------------------

    def add(self, file_name: str, tag: str, decision: str) -> None:
        """Write a decision down.

        Parameters
        ----------
        file_name : str
            Of the picture, as in the collection.
        tag : str
        decision : {"accepted", "rejected", "undecided"}
            "undecided" takes an earlier one back; a collection that has taken it up already stays as it is.

        Raises
        ------
        OSError
            If the file cannot be written.
        """
        tag = normalise_tag(tag)
        if not tag:
            raise ValueError("a tag must have at least one letter")
        if decision not in _WORDS:
            raise ValueError(f"a decision is one of {', '.join(_WORDS)}, got {decision!r}")
        check_regular(self.path)
        with self._lock, open(self.path, "a+b", buffering=0) as file, _locked(file):
            self._read(file)
            if self._word(file_name, tag) != decision:
                time = datetime.now(UTC).isoformat(timespec="seconds")
                self._append(file, Decision(file_name, tag, decision, time))

    def _append(self, file: FileIO, decision: Decision) -> None:
        end = file.seek(0, os.SEEK_END)
        if end > self._offset:  # a line that was cut off
            file.truncate(self._offset)
            end = self._offset
        # A whole last line whose end is missing, as editors leave it, gets its end now.
        start = b"" if self._is_ended else b"\n"
        line = start + json.dumps(decision._asdict(), ensure_ascii=False).encode() + b"\n"
        try:
            if file.write(line) != len(line):
                raise OSError(f"{self.path}: the disk is full")
            os.fsync(file.fileno())
        except OSError:
            file.truncate(end)
            raise
        if end == 0:  # the file may be new: its name must be on the disk, too
            sync_folder(self.path.parent)
        self._read(file)

    # ---- what was decided --------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.newest())

    def counts(self) -> dict[str, int]:
        """How many tags were accepted and how many rejected."""
        found = Counter(own.decision for own in self.newest())
        return {word: found[word] for word in (ACCEPTED, REJECTED)}

    def newest(self, offset: int = 0, limit: int | None = None) -> list[Decision]:
        """Decisions that count, the newest first.

        Parameters
        ----------
        offset : int, default=0
            How many to leave out.
        limit : int, optional
            How many at most.

        Returns
        -------
        list of Decision
        """
        with self._current():
            found = list(self._known.values())[::-1]
        return found[offset:] if limit is None else found[offset : offset + limit]

    def decided(self, tag: str) -> set[str]:
        """Names of the pictures for which it is decided whether they have a tag."""
        tag = normalise_tag(tag)
        with self._current():
            return {name for name, own in self._known if own == tag}

    def changed(self) -> list[str]:
        """Names of the pictures about which something is decided, in the order of the alphabet."""
        return sorted({own.file_name for own in self.newest()})

    def tags_after(self, file_name: str, tags: Sequence[str]) -> list[str]:
        """A picture's tags with those that were accepted, and without those that were rejected."""
        with self._current():
            own = dict(self._of_picture.get(file_name, {}))
        kept = [tag for tag in tags if own.get(tag) != REJECTED]
        return list(dict.fromkeys([*kept, *(tag for tag, word in own.items() if word == ACCEPTED)]))

    # ---- reading -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _current(self) -> Iterator[None]:
        """Know what others have added."""
        check_regular(self.path)
        with self._lock:
            try:
                with open(self.path, "rb", buffering=0) as file:
                    self._read(file)
            except FileNotFoundError:
                self._forget()
            yield

    def _forget(self) -> None:
        self._known: dict[tuple[str, str], Decision] = {}  # by picture and tag; the newest last
        self._of_picture: dict[str, dict[str, str]] = {}
        self._file: tuple[int, int] | None = None
        self._offset, self._n_lines, self._is_ended = 0, 0, True  # up to where the file is known

    def _read(self, file: FileIO) -> None:
        """Take what is new in the file."""
        about = os.fstat(file.fileno())
        if self._file != (about.st_dev, about.st_ino) or about.st_size < self._offset:
            self._forget()
            self._file = (about.st_dev, about.st_ino)
        if about.st_size == self._offset:
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
            return  # it is being written, or a crash has left half of it
        self._take(self._parsed(last))
        self._offset += len(last)
        self._is_ended = False

    def _parsed(self, line: bytes) -> Decision:
        try:
            content = json.loads(line)
            decision = Decision(*(content[name] for name in Decision._fields))
            if not all(isinstance(value, str) for value in decision) or decision.decision not in _WORDS:
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

    def _word(self, file_name: str, tag: str) -> str:
        return self._of_picture.get(file_name, {}).get(tag, UNDECIDED)


def _is_cut_off(line: bytes) -> bool:
    """Whether a line is the beginning, and not more, of one that `Decisions` writes."""
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
    """Keep other processes from adding; the lock ends with the file."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX)
    yield


_OUTSIDE = ("", ".", "..")  # parts of a path that lead elsewhere; "" is the first of an absolute one


def decisions_about(decisions: Decisions, names: Iterable[str]) -> list[Decision]:
    """Those about pictures of a collection, the newest first: pictures can have been removed."""
    known = set(names)
    return [own for own in decisions.newest() if own.file_name in known]


def decided_tags(decisions: Decisions, names: Iterable[str], tags: Iterable[Sequence[str]]) -> dict[str, list[str]]:
    """All tags, after the decisions, of each picture about which something is decided.

    Parameters
    ----------
    decisions : Decisions
    names, tags
        Of the pictures of the collection; decisions about others do not count.

    Returns
    -------
    dict of str to list of str
        In the order of the names.

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
    name: str  # relative to a folder like the pictures', with /
    text: str


def sidecars(tags: Mapping[str, Sequence[str]], names: Iterable[str]) -> list[Sidecar]:
    """XMP files for pictures: ``photo.xmp``, or ``photo.jpg.xmp`` if there is a ``photo.png`` too.

    Parameters
    ----------
    tags : dict of str to list of str
        Tags of the pictures; one whose name leads out of its folder is left out.
    names : iterable of str
        Of all pictures of the collection.

    Returns
    -------
    list of Sidecar

    Examples
    --------
    >>> from pictopic.tasks.decisions import sidecars
    >>> tags = {"trip/a.jpg": ["sea"], "trip/b.jpg": ["sky"], "../c.jpg": ["sea"]}
    >>> [own.name for own in sidecars(tags, ["trip/a.jpg", "trip/b.jpg", "trip/b.png", "../c.jpg"])]
    ['trip/a.xmp', 'trip/b.jpg.xmp']
    """
    # Some file systems take A and a for the same.
    owners = Counter(key.casefold() for name in names for key in {name, _without_extension(name)})
    found = []
    for picture, own in tags.items():
        if _is_inside(picture):
            short = _without_extension(picture)
            place = short if owners[short.casefold()] <= 1 else picture
            found.append(Sidecar(picture, f"{place}.xmp", sidecar_text(own)))
    return found


def _without_extension(name: str) -> str:
    return name.removesuffix(PurePosixPath(name).suffix)


def _is_inside(name: str) -> bool:
    """Whether a name stays in its folder, on Windows too."""
    parts = re.split(r"[/\\]", name)
    return not any(part in _OUTSIDE for part in parts) and not re.match("[A-Za-z]:", name) and "\0" not in name


def zip_sidecars(found: Iterable[Sidecar]) -> bytes:
    """Sidecars as a ZIP archive."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for own in found:
            archive.writestr(own.name, own.text)
    return buffer.getvalue()


def write_sidecars(folder: Path, found: Sequence[Sidecar]) -> list[str]:
    """Write sidecars to a folder of their own, in sub-folders like the pictures'; never beside the pictures.

    Parameters
    ----------
    folder : Path
        Made if it does not exist.  Sidecars of an earlier export are replaced.
    found : sequence of Sidecar

    Returns
    -------
    list of str
        Names of those that were not written, because they are too long for the file system.

    Raises
    ------
    ValueError
        Before anything is written: if the pictures are in this folder, if a file there is another program's, or if a
        link leads out of it.
    """
    writable = [own for own in found if not has_too_long_name(folder / own.name)]
    for own in writable:
        path = folder / own.name
        if os.path.exists(folder / own.picture):
            raise ValueError(f"{folder} holds the pictures themselves ({own.picture}): choose another folder")
        if not path.parent.resolve().is_relative_to(folder.resolve()):
            raise ValueError(f"{path.parent} leads out of {folder}: choose another folder")
        check_own_sidecar(path)
    for own in writable:
        write_text(folder / own.name, own.text)
    written = {own.name for own in writable}
    return [own.name for own in found if own.name not in written]
