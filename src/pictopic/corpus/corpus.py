"""A collection of pictures as counts, tags, labels and global features, on disk."""

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

from pictopic.corpus import build as building
from pictopic.corpus.edit import EditMixin
from pictopic.corpus.export import export
from pictopic.corpus.features_file import read_features
from pictopic.corpus.pieces import Workers, in_processes
from pictopic.corpus.readers import CountsInParts, DenseRows, RowReader, RowsInParts
from pictopic.corpus.source import Source, read_source
from pictopic.corpus.splits import labels_as_y, rows_by_value, split_rows
from pictopic.corpus.stages import Progress, Settings, silent
from pictopic.corpus.store import (
    CODEBOOK,
    MANIFEST,
    SKIPPED,
    VOCABULARY,
    Manifest,
    Shard,
    damaged,
    fetch,
    publish,
)
from pictopic.files import is_relative
from pictopic.storage import Store, cache_folder, is_remote, local, sha256
from pictopic.words.codebook import Codebook
from pictopic.words.extract import Extractor, WordOptions
from pictopic.words.tags import TagRules
from pictopic.words.vocabulary import Vocabulary


class Corpus(EditMixin):
    """A collection on disk, or some of its rows.

    Made by `Corpus.build`, opened by `Corpus.open`.  Indexing with a slice, an array of row numbers or a mask gives a
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
            What is at a URL is copied to this machine's cache folder (PICTOPIC_CACHE), once.
        pictures : path, optional
            Where the pictures are now, if they are no longer where they were.

        Returns
        -------
        Corpus
        """
        url = os.fspath(folder) if is_remote(folder) else None
        folder = local(folder) if url is None else fetch(url)
        manifest = Manifest.read(folder)
        for _ in range(_TRIES):
            try:
                shards = [
                    Shard(manifest.shard_folder(folder, s), s["n_rows"], manifest.n_words, manifest.n_features)
                    for s in manifest.shards
                ]
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
            manifest = newer  # somebody has changed the corpus while we read it
        return corpus

    def verified(self) -> Corpus:
        """The same corpus, after every byte of its shards was checked; long training is worth the time.

        A damaged file of a corpus that came from a URL is fetched again; any other is an error that names it.
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

        The result does not depend on the number of processes.  A run that was stopped goes on with ``resume=True``.

        Parameters
        ----------
        source : path or Source
            See `pictopic.corpus.source.read_source`.
        folder : path or URL
            Of the corpus: made, or empty, or with an unfinished build.  For a URL it is built in this machine's cache
            folder (PICTOPIC_CACHE) and then uploaded.
        codebook_rows : optional
            Whose pictures the visual words are learnt from, so that nothing is learnt from test pictures: the name of
            a split, file names, or numbers (or a mask) of rows as listed in the source.  Default: all.
        label_column, tags_column, split_column : str or None
            Columns of the metadata.
        preset : {"scenes", "flickr"}, default="scenes"
            See `pictopic.words.extract.WordOptions`.
        codebook : Codebook, optional
            One that is there already, instead of learning one.
        like : Corpus, optional
            Another one whose visual words, tags and options (instead of `preset` and `words`) are used, so that a model
            of the one is a model of the other.
        pictures : {"auto", "none"}, default="auto"
            "none": use the tags only.
        tag_rules : TagRules, optional
            Tags to leave out or rename.
        min_tag_count : int, default=1
            In how many pictures a tag must occur to become a word.
        max_tags : int or None, default=None
            Only the most frequent tags become words.
        features_file : path, optional
            Global features of your own; see `pictopic.corpus.features_file.read_features`.
        random_state : int, default=0
        n_jobs : int or None, default=-1
            Processes; -1: one for each core.
        workers : Workers, optional
            Who does the work, instead of processes of this machine; see `pictopic.cluster`.
        resume : bool, default=False
            Go on with an unfinished build.
        strict : bool, default=False
            A picture that cannot be read is an error, instead of a line in ``skipped.csv``.
        progress : callable, optional
            Called with a stage's name, how much of it is done and of how much.
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
        settings = Settings(options, min_tag_count, max_tags, random_state)
        is_left = url is not None and (folder / MANIFEST).is_file()  # not uploaded to the end, or deleted there
        if is_left and not (resume and building.is_same(Manifest.read(folder), source, settings)):
            shutil.rmtree(folder)
        own_features = None
        if features_file is not None:
            own_features = read_features(features_file, source.rows["file_name"].to_pylist())
        building.build(
            source, folder, settings, codebook=codebook, codebook_rows=codebook_rows, own_features=own_features,
            vocabulary=None if like is None else like.vocabulary,
            workers=workers or partial(in_processes, n_jobs=n_jobs), resume=resume, strict=strict, progress=progress,
        )  # fmt: skip
        if url is not None:
            publish(folder, url)
        return cls.open(url or folder)

    @property
    def location(self) -> str:
        """Where it is, for other processes: a URL or an absolute path."""
        return self._url or str(self.folder.absolute())

    # ---- rows --------------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return sum(shard["n_rows"] for shard in self._manifest.shards) if self._rows is None else len(self._rows)

    def __getitem__(self, rows: slice | np.ndarray | Sequence[int]) -> Corpus:
        if isinstance(rows, (int, np.integer)):
            rows = [int(rows)]
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
            if rows.size == 0:
                rows = rows.astype(np.int64)
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
        stored = Vocabulary.load(self.folder / VOCABULARY)
        # Words are only ever added, at the end: those beyond the manifest are of a change that was cut off.
        n_annotations = self._manifest.n_words - stored.n_pairs
        if not 0 <= n_annotations <= stored.n_annotation_words:
            raise ValueError(f"{self.folder / VOCABULARY} is damaged: it should have {self._manifest.n_words} words")
        vocabulary = Vocabulary(stored.n_visual_words, stored.n_regions, stored.annotations[:n_annotations])
        if vocabulary.sha256 != self._manifest.vocabulary_sha256:
            raise ValueError(f"{self.folder / VOCABULARY} is damaged: it is not what was written")
        return vocabulary

    @property
    def options(self) -> WordOptions | None:
        """How pictures became words; None if there were no pictures."""
        words = self._manifest.words
        return None if words is None else WordOptions.from_dict(words)

    @cached_property
    def codebook(self) -> Codebook | None:
        """The visual words; None if there were no pictures."""
        path, expected = self.folder / CODEBOOK, self._manifest.codebook_sha256
        if expected is None:
            return None
        if not path.is_file():
            raise ValueError(f"{path} is missing: take it from a copy, or build the corpus again")
        if path.stat().st_size > _MAX_CODEBOOK or sha256(path) != expected:
            raise ValueError(f"{path} is damaged: it is not what was written")
        return Codebook.load(path)

    @property
    def extractor(self) -> Extractor:
        """What counts the words of other pictures in the same way."""
        if self.options is None:
            raise ValueError(f"{self.folder} was not made from pictures: it cannot count a picture's words")
        return Extractor(self.options, self.codebook)

    @cached_property
    def counts(self) -> RowReader:
        """The counts, read from disk row by row: what deep models take when X does not fit into memory."""
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
        """Global features, read from disk as they are needed; NaN where a picture has none.  None: there are none."""
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
        """Where the pictures are: as when the corpus was built, as seen from where it is now, unless said otherwise.

        A name that leads out of the folder of the pictures, as only a corpus that was tampered with has it, becomes one
        that does not exist.
        """
        shards, here = self._manifest.shards, os.path.realpath(self.folder)
        if self._pictures is not None:
            roots = [self._pictures] * len(shards)
        else:
            roots = [Path(os.path.normpath(os.path.join(here, shard["pictures"] or "."))) for shard in shards]
        shard_of_row = np.repeat(np.arange(len(shards)), [shard["n_rows"] for shard in shards])
        shard_of_row = shard_of_row if self._rows is None else shard_of_row[self._rows]
        return [_path(roots[k], name) for k, name in zip(shard_of_row, self.file_names, strict=True)]

    @cached_property
    def tags(self) -> list[list[str]]:
        """Tags of each picture, also those that are no words of the vocabulary."""
        return [tags or [] for tags in self._column("tags")]

    @cached_property
    def splits(self) -> list[str | None]:
        """Which part of the source's own split each picture is in."""
        return self._column("split")

    @cached_property
    def label_lists(self) -> list[list[str] | None]:
        """Labels of each picture; None: not known."""
        return self._column("labels")

    @cached_property
    def classes(self) -> list[str]:
        """All labels of the whole collection, in the order of the alphabet."""
        names = pa.concat_tables([shard.table(["labels"]) for shard in self._shards])["labels"]
        return sorted({label for labels in names.to_pylist() for label in labels or ()})

    @property
    def multi_label(self) -> bool:
        """Whether a picture can have several labels."""
        return self._manifest.multi_label

    @cached_property
    def labels(self) -> np.ndarray | None:
        """Labels as estimators take them for y.

        One label a picture: an array of names, None where it is not known.  Several: a matrix of 0 and 1 with a column
        for each of `classes`, rows of NaN where they are not known.  None: there are no labels.
        """
        if not self.classes:
            return None
        return labels_as_y(self.label_lists, self.classes, self.multi_label)

    @property
    def skipped(self) -> list[tuple[str, str]]:
        """(file_name, reason) of what could not be used."""
        return building.read_skipped(self.folder / SKIPPED)

    def export(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one Parquet file, for other programs.

        The columns are those of `table`, ``word_ids`` and ``word_counts`` (lists) and, if there are any,
        ``global_features`` (lists).
        """
        export(self, Path(path))

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
        """Split the collection, by chance or by a column.

        Parameters
        ----------
        test_size : float, optional
            Share of the test part, between 0 and 1.
        by : {"split", "label"}, optional
            Instead of by chance: a part for each value of the source's split, or for each class.
        stratify : bool, default=True
            The same share of every class (of single labels).
        keep_duplicates_together : bool, default=True
            Pictures that look almost the same go into the same part.
        random_state : int, default=0

        Returns
        -------
        dict of str to Corpus
            "train" and "test", or the column's values, in the order of the alphabet; rows without one are in none.
        """
        if (test_size is None) == (by is None):
            raise ValueError("split needs either test_size or by")
        if by is not None:
            return self._split_by(by)
        assert test_size is not None  # noqa: S101
        hashes = self._column("picture_hash") if keep_duplicates_together else [None] * len(self)
        labels = [labels[0] if labels else None for labels in self.label_lists]
        use_labels = stratify and not self.multi_label
        test = split_rows(test_size, labels if use_labels else None, hashes, random_state)
        return {"train": self[~test], "test": self[test]}

    def _split_by(self, by: str) -> dict[str, Corpus]:
        if by not in ("split", "label"):
            raise ValueError(f"by must be 'split' or 'label', got {by!r}")
        if by == "label" and self.multi_label:
            raise ValueError("pictures with several labels cannot be split by label")
        values = self.splits if by == "split" else [own[0] if own else None for own in self.label_lists]
        parts = rows_by_value(values)
        if not parts:
            raise ValueError(f"no picture of this collection has a {by}" + _SPLIT_HINT * (by == "split"))
        return {value: self[rows] for value, rows in parts.items()}


def _path(root: Path, name: str) -> Path:
    return root / (name if is_relative(name) else _NOT_INSIDE)


_TRIES = 20  # to open a corpus that others are changing
_MAX_CODEBOOK = 1 << 30  # bytes: more is damage, and hashing it would take minutes
_NOT_INSIDE = ".outside-the-folder"
_SPLIT_HINT = "; name its column with split_column when you build"
