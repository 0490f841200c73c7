"""Changing a corpus on disk: adding pictures, removing them, giving them other tags."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence, Set
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from pictopic.corpus import build as building
from pictopic.corpus import changes
from pictopic.corpus.pieces import in_processes
from pictopic.corpus.source import Source, read_source
from pictopic.corpus.stages import Progress, silent
from pictopic.words.tags import split_tags

if TYPE_CHECKING:
    from pictopic.corpus.corpus import Corpus


class ChangingMixin:
    """What changes a corpus, or writes it for other programs."""

    folder: Path
    _rows: np.ndarray | None
    _url: str | None

    def append(
        self,
        source: str | os.PathLike[str] | Source,
        *,
        new_tags: bool = False,
        features_file: str | os.PathLike[str] | None = None,
        n_jobs: int | None = -1,
        resume: bool = False,
        strict: bool = False,
        progress: Progress = silent,
        **columns: Any,
    ) -> Corpus:
        """Add pictures, with the same codebook and options.

        Parameters
        ----------
        source : path or Source
            Pictures of a name that is there already are skipped.
        new_tags : bool, default=False
            Whether tags that are no words yet become words: columns at the end.  A model that was learnt before takes
            the columns that it knows.
        features_file : path, optional
            For a corpus with features of your own.
        n_jobs, resume, strict, progress
            As for `build`.
        **columns
            `label_column`, `tags_column`, `split_column`, `pictures`, `tag_rules`, as for `build`.

        Returns
        -------
        Corpus
            With the new rows at the end.
        """
        self._check_whole()
        if not isinstance(source, Source):
            source = read_source(source, **columns)
        building.append(
            cast("Corpus", self), source, new_tags=new_tags, features_file=features_file,
            workers=partial(in_processes, n_jobs=n_jobs), resume=resume, strict=strict, progress=progress,
        )  # fmt: skip
        return self._again()

    def remove(self, file_names: Sequence[str]) -> Corpus:
        """Remove pictures from the collection (not their files).

        Parameters
        ----------
        file_names : sequence of str
            A name that is not there is an error.

        Returns
        -------
        Corpus
            Without them.
        """
        names = {file_names} if isinstance(file_names, str) else set(file_names)
        self._check_whole(names)
        changes.remove(self._again(), names)
        return self._again()

    def retag(self, tags: Mapping[str, Sequence[str]]) -> Corpus:
        """Give pictures other tags; the words of the vocabulary stay as they are.

        Parameters
        ----------
        tags : dict of str to sequence of str
            All tags of each picture to change, by its file name.  A name that is not there is an error.

        Returns
        -------
        Corpus
            With the same rows; tags that are no words are kept, but not counted.
        """
        self._check_whole(set(tags))
        changes.retag(self._again(), {name: split_tags(list(own)) for name, own in tags.items()})
        return self._again()

    def _again(self) -> Corpus:
        """The whole, as it is on disk now."""
        from pictopic.corpus.corpus import Corpus

        return Corpus.open(self.folder)

    def _check_whole(self, names: Set[str] = frozenset()) -> None:
        if self._rows is not None:
            raise ValueError("this is a part of a corpus; open the whole with Corpus.open to change it")
        if self._url is not None:
            raise ValueError(f"this is a copy of {self._url}: download that to a folder of yours to change it")
        unknown = sorted(names - set(self._again().file_names)) if names else []
        if unknown:
            raise ValueError(f"{unknown[0]!r} is not in the collection")

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one Parquet file, for other programs.

        The columns are those of `table`, ``word_ids`` and ``word_counts`` (lists) and, if there are any,
        ``global_features`` (lists).
        """
        changes.export(cast("Corpus", self), Path(path))
