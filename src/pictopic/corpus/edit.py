"""Changing a corpus on disk: append, remove and retag pictures.

Every change happens under the corpus' lock and begins by reading the manifest: two processes that change the same
corpus do so one after the other, and neither loses the other's change.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from scipy import sparse

from pictopic.corpus.build import Build, BuildOptions, Progress, finish, refuse_skipped, silent
from pictopic.corpus.chunks import in_processes
from pictopic.corpus.features_file import read_features
from pictopic.corpus.sources import Source, read_source
from pictopic.corpus.store import (
    CODEBOOK,
    SCHEMA,
    Block,
    Manifest,
    Shard,
    corpus_lock,
    damaged,
    sweep,
    write_shards,
)
from pictopic.words.extract import WordOptions
from pictopic.words.global_features import n_features
from pictopic.words.tags import split_tags
from pictopic.words.vocabulary import Vocabulary

if TYPE_CHECKING:
    from pictopic.corpus.corpus import Corpus

_ROWS_AT_A_TIME = 1024


class EditMixin:
    """The methods of a corpus that change it."""

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
            Pictures whose name is already there are skipped.
        new_tags : bool, default=False
            Whether unknown tags become words: columns at the end.  A model that was learnt before uses the columns that
            it knows.
        features_file : path, optional
            For a corpus with global features of your own.
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
        with corpus_lock(self.folder):
            corpus, manifest = self._as_on_disk(), Manifest.read(self.folder)
            if source.counts is not None or source.pictures != (manifest.words is not None):
                kind = "was made without pictures" if manifest.words is None else "was made from pictures"
                raise ValueError(f"{corpus.folder} {kind}; the new source is of another kind")
            known = set(corpus.file_names)
            repeated = [
                (name, "already in the corpus") for name in source.rows["file_name"].to_pylist() if name in known
            ]
            source = replace(source.without(known), skipped=[*source.skipped, *repeated])
            refuse_skipped(source.skipped, strict)
            words = corpus.options or WordOptions()
            settings = BuildOptions(words, seed=manifest.options["seed"])
            work = Build(source, corpus.folder, settings, partial(in_processes, n_jobs=n_jobs), progress)
            work.begin(resume, {"append": True})
            if source.pictures and corpus.codebook is not None:
                corpus.codebook.save(work.building / CODEBOOK)
                work.count()
            skipped = work.skipped()
            refuse_skipped(skipped, strict)
            vocabulary = work.vocabulary(corpus.vocabulary) if new_tags else corpus.vocabulary
            n_extra = manifest.n_features - (n_features(words.features) if source.pictures else 0)
            extra_features = _extra_features(features_file, work.names, n_extra)
            manifest.n_words = len(vocabulary)
            finish(work, manifest, vocabulary, extra_features, list(dict.fromkeys([*corpus.skipped, *skipped])))
            return self._as_on_disk()

    def remove(self, file_names: Sequence[str]) -> Corpus:
        """Remove pictures from the collection, but not their files.

        Parameters
        ----------
        file_names : sequence of str
            A name that is not there is an error.

        Returns
        -------
        Corpus
            Without these pictures.
        """
        names = {file_names} if isinstance(file_names, str) else set(file_names)
        self._check_whole()
        with corpus_lock(self.folder):
            corpus = self._as_on_disk()
            _check_names(corpus, names)
            n_words = len(corpus.vocabulary)

            def without_names(shard: Shard) -> Iterator[Block] | None:
                stays = np.array([name not in names for name in shard.table(["file_name"])["file_name"].to_pylist()])
                return None if stays.all() else _blocks(shard, np.flatnonzero(stays), n_words)

            _rewrite(corpus, without_names)
            return self._as_on_disk()

    def retag(self, tags: Mapping[str, Sequence[str]]) -> Corpus:
        """Replace the tags of pictures; the vocabulary stays as it is.

        Parameters
        ----------
        tags : dict of str to sequence of str
            All tags of each picture to change, by file name.  A name that is not there is an error.

        Returns
        -------
        Corpus
            With the same rows; tags outside the vocabulary are kept but not counted.
        """
        new_tags = {name: split_tags(list(row_tags)) for name, row_tags in tags.items()}
        self._check_whole()
        with corpus_lock(self.folder):
            corpus = self._as_on_disk()
            _check_names(corpus, new_tags.keys())
            vocabulary = corpus.vocabulary

            def with_new_tags(shard: Shard) -> Iterator[Block] | None:
                rows = shard.table(["file_name", "tags"]).to_pylist()
                if all(new_tags.get(row["file_name"], row["tags"] or []) == (row["tags"] or []) for row in rows):
                    return None
                blocks = _blocks(shard, np.arange(len(rows)), len(vocabulary))
                return (_retagged(block, new_tags, vocabulary) for block in blocks)

            _rewrite(corpus, with_new_tags)
            return self._as_on_disk()

    def _as_on_disk(self) -> Corpus:
        """The whole corpus as it is on disk now."""
        from pictopic.corpus.corpus import Corpus

        return Corpus.open(self.folder)

    def _check_whole(self) -> None:
        if self._rows is not None:
            raise ValueError("this is a part of a corpus; open the whole with Corpus.open to change it")
        if self._url is not None:
            raise ValueError(f"this is a copy of {self._url}: download that to a folder of yours to change it")


def _check_names(corpus: Corpus, names: Set[str]) -> None:
    unknown = sorted(names - set(corpus.file_names))
    if unknown:
        raise ValueError(f"{unknown[0]!r} is not in the collection")


def _extra_features(features_file: Any, names: list[str], n_extra: int) -> np.ndarray | None:
    """The user's own features of new rows, as many as the corpus has; missing without a file."""
    if features_file is None:
        return np.full((len(names), n_extra), np.nan, np.float32) if n_extra else None
    features = read_features(features_file, names)
    if features.shape[1] != n_extra:
        raise ValueError(f"{features_file} has {features.shape[1]} features, but the corpus has {n_extra}")
    return features


def _retagged(block: Block, tags: Mapping[str, list[str]], vocabulary: Vocabulary) -> Block:
    before = [row_tags or [] for row_tags in block.rows["tags"].to_pylist()]
    names = block.rows["file_name"].to_pylist()
    after = [tags.get(name, row_tags) for name, row_tags in zip(names, before, strict=True)]
    # Only what changes: counts that came with a source need not be those of its tags.
    visual, annotation = block.counts[:, : vocabulary.n_pairs], block.counts[:, vocabulary.n_pairs :]
    annotation = sparse.csr_array(annotation + vocabulary.count_tags(after) - vocabulary.count_tags(before))
    annotation.data = np.maximum(annotation.data, 0)
    annotation.eliminate_zeros()
    counts = sparse.csr_array(sparse.hstack([visual, annotation], format="csr", dtype=np.int32))
    place = block.rows.schema.get_field_index("tags")
    rows = block.rows.set_column(place, SCHEMA.field("tags"), pa.array(after, SCHEMA.field("tags").type))
    return Block(counts, block.features, rows)


def _rewrite(corpus: Corpus, change: Callable[[Shard], Iterator[Block] | None]) -> None:
    """Replace each shard by what `change` makes of it (None: it stays), then write the manifest."""
    manifest, shards = Manifest.read(corpus.folder), []
    for entry in manifest.shards:
        blocks = change(manifest.open_shard(corpus.folder, entry))
        if blocks is None:
            shards.append(entry)
        else:
            # What is written gets new hashes: damage would go unnoticed from then on.
            if wrong := damaged(corpus.folder, [entry]):
                raise ValueError(f"{corpus.folder / wrong[0]} is damaged: it is not what was written")
            written = write_shards(corpus.folder, manifest, blocks)
            shards += [new | {"pictures": entry["pictures"]} for new in written]
    if shards == manifest.shards:
        return
    manifest.shards = shards
    manifest.write(corpus.folder)
    sweep(corpus.folder, manifest)


def _blocks(shard: Shard, rows: np.ndarray, n_words: int) -> Iterator[Block]:
    table = shard.table()
    for start in range(0, len(rows), _ROWS_AT_A_TIME):
        block_rows = rows[start : start + _ROWS_AT_A_TIME]
        counts = shard.counts[block_rows]
        counts.resize(len(block_rows), n_words)
        yield Block(counts, None if shard.features is None else shard.features[block_rows], table.take(block_rows))
