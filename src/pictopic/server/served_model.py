"""The model that is served, and how a newer one takes its place."""

from __future__ import annotations

import hashlib
import logging
import os
import threading
from collections import Counter
from functools import partial
from pathlib import Path, PurePath
from typing import Any

from pictopic.files import is_inside
from pictopic.picture_model import PictureModel
from pictopic.picture_model.files import CONFIG
from pictopic.server.cache import ComputedOnce, LRUCache, reading
from pictopic.server.problems import ProblemError
from pictopic.server.settings import Settings
from pictopic.tasks.reading import Described

_log = logging.getLogger("pictopic.server")
UNREADABLE = "the picture's file cannot be read"
_Identity = tuple[int, int, int, int]
_DESCRIBED = 32  # pictures that were asked about, cached for the next question
_DESCRIBED_BYTES = 64_000_000
_WORD_PICTURES = 1024
_WORD_PICTURES_BYTES = 32_000_000


class ServedModel:
    """A loaded model, with what a server needs to know about its collection.

    `pictures` is where its pictures are, if they have moved.
    """

    def __init__(self, folder: Path, pictures: Path | None):
        # One thread a request, and no processes: requests are what runs in parallel.
        self.model = PictureModel.load(folder, pictures=pictures, n_jobs=1, verbose=0)
        self.model.estimator_.set_params(n_jobs=1)
        corpus = self.model.corpus_
        # A corpus reads these lazily: read them now, since another model may lie in the folder later.
        self.names, self.tags, self.labels, self._paths = (
            corpus.file_names, corpus.tags, corpus.label_lists, corpus.paths
        )  # fmt: skip
        self.classes, self.vocabulary, self.codebook = corpus.classes, corpus.vocabulary, corpus.codebook
        self.ids = [picture_id(name) for name in self.names]
        self.row_of = {id: row for row, id in enumerate(self.ids)}
        self.row_of_name = {name: row for row, name in enumerate(self.names)}
        self.tag_counts = Counter(tag for row_tags in self.tags for tag in row_tags)
        self.class_counts = Counter(label for row_labels in self.labels for label in row_labels or ())
        self.multi_label, self.options = corpus.multi_label, corpus.options
        self.extractor = None if self.options is None else corpus.extractor  # None: it was not made of pictures
        model = self.model
        self.computed = ComputedOnce({
            "topics": self._topics, "map": model.map, "quality": model.quality, "suggestions": model.suggestions,
            "odd": partial(model.odd, None),
        })  # fmt: skip
        self.described = LRUCache[Described](_DESCRIBED, _DESCRIBED_BYTES, _size)
        self.word_pictures = LRUCache[bytes](_WORD_PICTURES, _WORD_PICTURES_BYTES, len)

    def path_of(self, row: int) -> Path:
        """Path of a picture; 404 if its name leads out of the pictures' folder, by itself or through a link.

        Names come from a file that somebody else may have written.
        """
        path, name = self._paths[row], self.names[row]
        n_parts = len(PurePath(name).parts)
        if not 0 < n_parts <= len(path.parents) or not is_inside(path.parents[n_parts - 1], name):
            raise ProblemError(404, UNREADABLE)
        return path

    def row(self, id: str) -> int:
        """The row of a picture; 404 if there is none."""
        if id not in self.row_of:
            raise ProblemError(404, "there is no picture of this id")
        return self.row_of[id]

    def fields(self, row: int) -> dict[str, Any]:
        """The fields of `schemas.Picture`."""
        return {"id": self.ids[row], "file_name": self.names[row], "tags": self.tags[row], "labels": self.labels[row]}

    def rows_with(self, label: str | None = None, tag: str | None = None) -> list[int]:
        """Rows of the pictures that have this label and this tag."""
        rows = range(len(self.names))
        return [
            row for row in rows
            if (label is None or label in (self.labels[row] or ())) and (tag is None or tag in self.tags[row])
        ]  # fmt: skip

    def _topics(self) -> dict[str, Any]:
        """Topics of classes and hidden units, and how good they are."""
        model = self.model
        return {
            "classes": model.topics() if model.has_classes else [],
            "units": model.get_topic_info(),
            "quality": model.topic_quality(),
        }


def _size(described: Described) -> int:
    """Memory of a described picture in bytes; a path takes hardly any."""
    width, height = getattr(described.pictures[0], "size", (0, 0))
    return int(width * height * 3 + described.visual.data.nbytes * 2 + described.features.nbytes)


def picture_id(file_name: str) -> str:
    """Id of a picture in addresses; every model that has the picture gives it the same one.

    Examples
    --------
    >>> from pictopic.server.served_model import picture_id
    >>> picture_id("holiday/17.jpg")
    'd09b13ca5cdc7344'
    """
    return hashlib.blake2b(file_name.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class ModelStore:
    """The model in a folder: loaded at once, and again whenever another one is put there.

    A request takes `current` once and keeps it until it is answered, so that it never sees two models.  Large files are
    checked while the model answers already; if one is damaged, it stops answering until it is replaced.
    """

    def __init__(self, folder: Path, settings: Settings):
        # As an absolute path: pictures are named relative to the folder, and somebody may change the directory.
        self.folder, self.settings = folder.absolute(), settings
        self._identity = self._look()
        self._served = self._load()
        self.n_loaded = 1
        self._damage: str | None = None
        self._failed: _Identity | None = None
        self._stop = threading.Event()
        self._watcher: threading.Thread | None = None

    @property
    def current(self) -> ServedModel:
        """The model that requests are answered with; 503 if one of its files is damaged."""
        if self._damage is not None:
            raise ProblemError(503, f"the model is damaged: {self._damage}", "damaged-model")
        return self._served

    @property
    def n_pictures(self) -> int:
        """Number of pictures in the collection, damaged or not."""
        return len(self._served.names)

    def start(self) -> None:
        """Start checking the model's files and watching for a newer model."""
        self._stop.clear()
        self._check_files()
        self._watcher = threading.Thread(target=self._watch, name="pictopic-model", daemon=True)
        self._watcher.start()

    def stop(self) -> None:
        """Stop watching for a newer model."""
        self._stop.set()

    def _watch(self) -> None:
        while not self._stop.wait(self.settings.check_every):
            try:
                self.check()
            except Exception:  # whatever it is: the model that is there goes on answering
                _log.exception("looking for a newer model failed")

    def check(self) -> bool:
        """Load the model in the folder if it is a different one; returns whether it was."""
        identity = self._look()
        if identity is None or identity in (self._identity, self._failed):
            return False
        try:
            served = self._load()
        except Exception as error:
            if self._look() == identity:  # otherwise it was replaced while it was read: try again
                self._failed = identity
                _log.error("the new model cannot be loaded, the old one goes on: %s", error)
            return False
        if self._look() != identity:
            return False
        self._served, self._identity, self._failed, self._damage = served, identity, None, None
        self.n_loaded += 1
        _log.info("a newer model with %d pictures answers from now on", len(served.names))
        self._check_files()
        return True

    def _check_files(self) -> None:
        """Check the model's files in a thread of its own: large ones take long."""
        served, identity = self._served, self._identity

        def run() -> None:
            try:
                served.model.check_files()
            except (ValueError, OSError) as error:
                # If another model was put in its place meanwhile, that one's files were looked at.
                if self._served is served and self._look() == identity:
                    self._damage = self._without_place(str(error))
                    _log.error("the model is damaged, and answers no more until there is another one: %s", error)

        threading.Thread(target=run, name="pictopic-check", daemon=True).start()

    def _without_place(self, text: str) -> str:
        """An error's text without the model's path."""
        for place in (str(self.folder), str(self.folder.resolve())):
            text = text.replace(place + os.sep, "").replace(place, self.folder.name)
        return text

    def _load(self) -> ServedModel:
        with reading:
            return ServedModel(self.folder, self.settings.pictures)

    def _look(self) -> _Identity | None:
        """Identity of the model in the folder; None while there is none, as for a moment when it is replaced."""
        try:
            config = (self.folder / CONFIG).stat()
        except OSError:
            return None
        return config.st_dev, config.st_ino, config.st_mtime_ns, config.st_size
