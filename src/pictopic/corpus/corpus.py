"""The corpus that users hold: counts, tags, labels and global features of pictures, on disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from pictopic.corpus.build import BuildOptions, Progress, build, is_same, silent
from pictopic.corpus.chunks import Workers, in_processes
from pictopic.corpus.edit import EditMixin
from pictopic.corpus.features_file import read_features
from pictopic.corpus.readers import CountsInParts, DenseRows, RowReader, RowsInParts
from pictopic.corpus.sources import Source, read_source
from pictopic.corpus.splits import labels_as_y, rows_of_parts
from pictopic.corpus.store import (
    MANIFEST,
    SKIPPED,
    Block,
    Manifest,
    Shard,
    damaged,
    export,
    fetch,
    publish,
    read_skipped,
)
from pictopic.files import is_relative
from pictopic.storage import Store, cache_folder, is_remote, local
from pictopic.words.codebook import Codebook
from pictopic.words.extract import Extractor, WordOptions
from pictopic.words.tags import TagRules
from pictopic.words.vocabulary import Vocabulary

_TRIES = 20  # to open a corpus that others are changing
_ROWS_AT_A_TIME = 1024  # of an export
_NOT_INSIDE = ".outside-the-folder"


class Corpus(EditMixin):
    """A collection of pictures on disk, or some of its rows.

    `Corpus.build` makes one, `Corpus.open` opens it.  Indexing with a slice, an array of row numbers or a mask gives a
    Corpus of these rows; nothing is copied.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic import Corpus
    >>> folder = Path(tempfile.mkdtemp())
    >>> lines = ["tags,label", "sea;sky,coast", "tree;sky,forest", "Sea;boat,coast"]
    >>> _ = (folder / "metadata.csv").write_text(chr(10).join(lines))
    >>> corpus = Corpus.build(folder, folder / "corpus", pictures="none")
    >>> corpus
    Corpus(3 rows, 4 words)
    >>> corpus.vocabulary.annotations
    ('sea', 'sky', 'boat', 'tree')
    >>> corpus.X.toarray().tolist(), corpus.labels.tolist()
    ([[1, 1, 0, 0], [0, 1, 0, 1], [1, 0, 1, 0]], ['coast', 'forest', 'coast'])
    >>> corpus[[2, 0]].tags
    [['sea', 'boat'], ['sea', 'sky']]
    """

    def __init__(
        self,
        folder: Path,
        manifest: Manifest,
        shards: Sequence[Shard],
        rows: np.ndarray | None = None,
        pictures: Path | None = None,
        url: str | None = None,
    ):
        self.folder = folder
        self._url = url  # that the folder is a copy of
        self._pictures = pictures
        self._manifest = manifest
        self._shards = shards
        self._rows = rows  # None: all

    @classmethod
    def open(cls, folder: str | os.PathLike[str], pictures: str | os.PathLike[str] | None = None) -> Corpus:
        """Open a corpus that `build` made.

        Parameters
        ----------
        folder : path or URL
            A corpus at a URL is copied once to this machine's cache folder (PICTOPIC_CACHE).
        pictures : path, optional
            Where the pictures are now, if they have moved.
        """
        url = os.fspath(folder) if is_remote(folder) else None
        folder = local(folder) if url is None else fetch(url)
        manifest = Manifest.read(folder)
        for _ in range(_TRIES):
            try:
                shards = [manifest.open_shard(folder, entry) for entry in manifest.shards]
                corpus = cls(folder, manifest, shards, pictures=None if pictures is None else Path(pictures), url=url)
                _ = corpus.vocabulary
            except ValueError:
                newer = Manifest.read(folder)
                if newer == manifest:
                    raise
            else:
                newer = Manifest.read(folder)
                if newer == manifest:
                    break
            manifest = newer  # the corpus was changed while we read it
        return corpus

    def verified(self) -> Corpus:
        """Check every byte of the shards, as is worth the time before long training, and return the same corpus.

        A damaged file of a corpus from a URL is fetched again; any other is an error that names it.
        """
        wrong = damaged(self.folder, self._manifest.shards)
        if not wrong:
            return self
        if self._url is not None:
            wrong = damaged(fetch(self._url, again=wrong), self._manifest.shards)
        if wrong:
            where = self._url or self.folder
            raise ValueError(f"{where}/{wrong[0]} is damaged: it is not what was written; build the corpus again")
        again = Corpus.open(self.location, self._pictures)
        return again if self._rows is None else again[self._rows]

    @classmethod
    def build(
        cls,
        source: str | os.PathLike[str] | Source,
        folder: str | os.PathLike[str],
        *,
        codebook_rows: str | Sequence[int] | Sequence[str] | np.ndarray | None = None,
        label_column: str | None = "label",
        tags_column: str | None = "tags",
        split_column: str | None = None,
        preset: str = "scenes",
        codebook: Codebook | None = None,
        like: Corpus | None = None,
        pictures: str = "auto",
        tag_rules: TagRules | None = None,
        min_tag_count: int = 1,
        max_tags: int | None = None,
        features_file: str | os.PathLike[str] | None = None,
        random_state: int = 0,
        n_jobs: int | None = -1,
        workers: Workers | None = None,
        resume: bool = False,
        strict: bool = False,
        progress: Progress = silent,
        **words: Any,
    ) -> Corpus:
        """Turn a folder of pictures, or another source, into a corpus.

        The result does not depend on the number of processes.  A run that was stopped continues with ``resume=True``.

        Parameters
        ----------
        source : path or Source
            See `pictopic.corpus.sources.read_source`.
        folder : path or URL
            Of the corpus: new, or empty, or with an unfinished build.  For a URL it is built in this machine's cache
            folder (PICTOPIC_CACHE) and then uploaded.
        codebook_rows : optional
            Rows to learn the visual words from, so that nothing is learnt from test pictures: the name of a split, file
            names, or numbers (or a mask) of rows as listed in the source.  Default: all.
        label_column, tags_column, split_column : str or None
            Columns of the metadata.
        preset : {"scenes", "flickr"}, default="scenes"
            See `pictopic.words.extract.WordOptions`.
        codebook : Codebook, optional
            Use this one instead of learning one.
        like : Corpus, optional
            Use the visual words, tags and options of this corpus (instead of `preset` and `words`), so that models of
            the one are models of the other.
        pictures : {"auto", "none"}, default="auto"
            "none": use the tags only.
        tag_rules : TagRules, optional
            Tags to leave out or rename.
        min_tag_count : int, default=1
            Number of pictures in which a tag must occur to become a word.
        max_tags : int or None, default=None
            Only the most frequent tags become words.
        features_file : path, optional
            Global features of your own; see `pictopic.corpus.features_file.read_features`.
        random_state : int, default=0
        n_jobs : int or None, default=-1
            Processes; -1: one for each core.
        workers : Workers, optional
            Use these instead of processes of this machine; see `pictopic.cluster`.
        resume : bool, default=False
            Continue an unfinished build.
        strict : bool, default=False
            A picture that cannot be read is an error, instead of a line in ``skipped.csv``.
        progress : callable, optional
            Called with the name of the stage, how much of it is done and of how much.
        **words
            Changes to the preset: `n_words`, `regions`, `step`, `bin_sizes`, `max_side`, `smooth`, `min_contrast`,
            `features`.

        Returns
        -------
        Corpus
        """
        if not isinstance(source, Source):
            source = read_source(
                source, label_column=label_column, tags_column=tags_column, split_column=split_column,
                pictures=pictures, tag_rules=tag_rules,  # type: ignore[arg-type]
            )  # fmt: skip
        url = os.fspath(folder) if is_remote(folder) else None
        folder = local(folder) if url is None else cache_folder(url)
        if url is not None and MANIFEST in Store(url).names():
            raise ValueError(f"{url} holds a corpus already: choose another folder, or delete it first")
        options = WordOptions.preset(preset, **words)
        if like is not None:
            options, codebook = like.options or options, like.codebook
        if codebook is not None:
            options = replace(options, n_words=len(codebook))
        settings = BuildOptions(options, min_tag_count, max_tags, random_state)
        is_left = url is not None and (folder / MANIFEST).is_file()  # not uploaded to the end, or deleted there
        if is_left and not (resume and is_same(Manifest.read(folder), source, settings)):
            shutil.rmtree(folder)
        extra_features = None
        if features_file is not None:
            extra_features = read_features(features_file, source.rows["file_name"].to_pylist())
        build(
            source, folder, settings, codebook=codebook, codebook_rows=codebook_rows, extra_features=extra_features,
            vocabulary=None if like is None else like.vocabulary,
            workers=workers or partial(in_processes, n_jobs=n_jobs), resume=resume, strict=strict, progress=progress,
        )  # fmt: skip
        if url is not None:
            publish(folder, url)
        return cls.open(url or folder)

    @property
    def location(self) -> str:
        """URL or absolute path, for other processes."""
        return self._url or str(self.folder.absolute())

    # ---- rows --------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return sum(shard["n_rows"] for shard in self._manifest.shards) if self._rows is None else len(self._rows)

    def __getitem__(self, rows: slice | np.ndarray | Sequence[int]) -> Corpus:
        if not isinstance(rows, slice):
            rows = np.atleast_1d(rows) if np.size(rows) else np.zeros(0, np.int64)
        return Corpus(self.folder, self._manifest, self._shards, self.row_numbers[rows], self._pictures, self._url)

    @property
    def row_numbers(self) -> np.ndarray:
        """Numbers of these rows in the whole corpus."""
        return np.arange(len(self)) if self._rows is None else self._rows

    def __repr__(self) -> str:
        features = f", {self._manifest.n_features} global features" if self._manifest.n_features else ""
        return f"Corpus({len(self)} rows, {self._manifest.n_words} words{features})"

    # ---- contents ----------------------------------------------------------------------------------------------------

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Which column of the counts stands for which word."""
        return self._manifest.read_vocabulary(self.folder)

    @property
    def options(self) -> WordOptions | None:
        """How pictures became words; None if there were no pictures."""
        words = self._manifest.words
        return None if words is None else WordOptions.from_dict(words)

    @cached_property
    def codebook(self) -> Codebook | None:
        """The visual words; None if there were no pictures."""
        return self._manifest.read_codebook(self.folder)

    @property
    def extractor(self) -> Extractor:
        """Counts the words of other pictures in the same way."""
        if self.options is None:
            raise ValueError(f"{self.folder} was not made from pictures: it cannot count a picture's words")
        return Extractor(self.options, self.codebook)

    @cached_property
    def counts(self) -> RowReader:
        """The counts, read from disk row by row: for deep models when X does not fit into memory."""
        return CountsInParts([shard.counts for shard in self._shards], self._manifest.n_words, self._rows)

    @cached_property
    def X(self) -> sparse.csr_array:
        """The counts as one CSR array; mapped from disk if possible, otherwise in memory."""
        if self._rows is None and len(self._shards) == 1:
            whole = self._shards[0].counts.whole()
            whole.resize(len(self), self._manifest.n_words)
            return whole
        return self.counts[np.arange(len(self))]

    @cached_property
    def global_features(self) -> np.ndarray | DenseRows | None:
        """Global features, read from disk as needed, NaN where a picture has none; None if there are none at all."""
        parts = [shard.features for shard in self._shards if shard.features is not None]
        if not parts:
            return None
        return parts[0].array if self._rows is None and len(parts) == 1 else RowsInParts(parts, self._rows)

    def table(self, columns: list[str] | None = None) -> pa.Table:
        """File names, tags, labels, split and sizes as an Arrow table."""
        whole = pa.concat_tables([shard.table(columns) for shard in self._shards])
        return whole if self._rows is None else whole.take(self._rows)

    def _column(self, name: str) -> list[Any]:
        return self.table([name])[name].to_pylist()

    @cached_property
    def file_names(self) -> list[str]:
        """Names of the pictures, relative to their folder."""
        return self._column("file_name")

    @cached_property
    def paths(self) -> list[Path]:
        """Paths of the pictures, in the folder given to `open` or else where they were, relative to the corpus.

        A name that leads out of the folder, as only a corpus that was tampered with has, becomes one that does not
        exist.
        """
        shards, here = self._manifest.shards, os.path.realpath(self.folder)
        if self._pictures is not None:
            roots = [self._pictures] * len(shards)
        else:
            roots = [Path(os.path.normpath(os.path.join(here, shard["pictures"] or "."))) for shard in shards]
        shard_of_row = np.repeat(np.arange(len(shards)), [shard["n_rows"] for shard in shards])[self.row_numbers]
        names = (name if is_relative(name) else _NOT_INSIDE for name in self.file_names)
        return [roots[k] / name for k, name in zip(shard_of_row, names, strict=True)]

    @cached_property
    def tags(self) -> list[list[str]]:
        """Tags of each picture, including those outside the vocabulary."""
        return [tags or [] for tags in self._column("tags")]

    @cached_property
    def splits(self) -> list[str | None]:
        """Part of the source's own split that each picture is in."""
        return self._column("split")

    @cached_property
    def label_lists(self) -> list[list[str] | None]:
        """Labels of each picture, None where they are unknown."""
        return self._column("labels")

    @cached_property
    def classes(self) -> list[str]:
        """All labels of the whole collection, in alphabetical order."""
        names = pa.concat_tables([shard.table(["labels"]) for shard in self._shards])["labels"]
        return sorted({label for labels in names.to_pylist() for label in labels or ()})

    @property
    def multi_label(self) -> bool:
        """Whether a picture can have several labels."""
        return self._manifest.multi_label

    @cached_property
    def labels(self) -> np.ndarray | None:
        """Labels as estimators take them for y.

        With one label per picture, an array of names, None where it is unknown.  With several, a matrix of 0 and 1 with
        one column for each of `classes`, and rows of NaN where they are unknown.  None if there are no labels.
        """
        if not self.classes:
            return None
        return labels_as_y(self.label_lists, self.classes, self.multi_label)

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """(file_name, reason) of pictures that could not be used."""
        return read_skipped(self.folder / SKIPPED)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one Parquet file, for other programs.

        The columns are those of `table`, ``word_ids`` and ``word_counts`` (lists) and, if there are any,
        ``global_features`` (lists).
        """
        starts = range(0, max(1, len(self)), _ROWS_AT_A_TIME)
        parts = (self[start : start + _ROWS_AT_A_TIME] for start in starts)
        export(Path(path), (Block(part.X, part.global_features, part.table()) for part in parts))  # type: ignore[arg-type]

    # ---- splitting ---------------------------------------------------------------------------------------------------

    def split(
        self,
        test_size: float | None = None,
        *,
        by: str | None = None,
        stratify: bool = True,
        keep_duplicates_together: bool = True,
        random_state: int = 0,
    ) -> dict[str, Corpus]:
        """Split the collection at random or by a column.

        Parameters
        ----------
        test_size : float, optional
            Share of the test part, between 0 and 1.
        by : {"split", "label"}, optional
            Instead of at random: one part for each value of the source's split, or for each class.
        stratify : bool, default=True
            The same share of every class, if pictures have single labels.
        keep_duplicates_together : bool, default=True
            Pictures that look almost the same go into the same part.
        random_state : int, default=0

        Returns
        -------
        dict of str to Corpus
            "train" and "test", or the column's values in alphabetical order; rows without one are in no part.
        """
        parts = rows_of_parts(self, test_size, by, stratify, keep_duplicates_together, random_state)
        return {name: self[rows] for name, rows in parts.items()}
