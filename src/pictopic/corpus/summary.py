"""What building a corpus will cost, and what is in one, for people and for programs."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

from pictopic.corpus.build import CODEBOOK_PICTURES
from pictopic.corpus.chunks import make_chunk
from pictopic.corpus.sources import Source
from pictopic.corpus.store import SHARDS
from pictopic.words.codebook import Codebook, sample_size
from pictopic.words.extract import Extractor, WordOptions
from pictopic.words.global_features import n_features
from pictopic.words.pictures import PictureError

if TYPE_CHECKING:
    from pictopic.corpus.corpus import Corpus

_TRIED = 12  # pictures
_ROUNDS = 25 * 1.5  # of K-means, a comparison of all descriptors with all words each, and what comes with it
_LARGE = 1024  # pixels; larger pictures have more patches than they need
_SHOWN = 12  # classes, tags and reasons that are shown to people


@dataclass(frozen=True)
class Estimate:
    """What a build will cost."""

    pictures: int
    unreadable: int  # of those that were tried
    tried: int
    seconds: float
    bytes: int
    longest_side: float  # of the pictures, on average, as they are described
    jobs: int

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    def lines(self) -> list[str]:
        """For people."""
        if not self.pictures:
            return ["no pictures to read: seconds"]
        lines = [
            f"{self.pictures:,} pictures, about {_duration(self.seconds)} with {self.jobs} processes and "
            f"{self.bytes / 1e6:,.1f} MB on disk (from {self.tried} of them)"
        ]
        if self.unreadable:
            lines.append(f"{self.unreadable} of {self.tried} could not be read")
        if self.longest_side > _LARGE:
            times = (self.longest_side / 480) ** 2
            lines.append(
                f"the pictures are large ({self.longest_side:.0f} pixels): with --max-side 480 each has "
                f"{times:.0f} times fewer patches"
            )
        return lines


def estimate(source: Source, options: WordOptions, n_jobs: int | None = -1) -> Estimate:
    """Describe a few pictures of a source and extrapolate to all of them."""
    jobs = effective_n_jobs(n_jobs)
    n = len(source) if source.pictures else 0
    if not n:
        return Estimate(0, 0, 0, 0.0, 0, 0.0, jobs)
    names = source.rows["file_name"].to_pylist()
    chosen = np.random.default_rng(0).permutation(n)[:_TRIED]
    paths = [str(source.folder / names[k]) for k in chosen]
    with threadpool_limits(1):
        codebook, side = _random_codebook(paths, options)
        extractor = Extractor(options, codebook)
        make_chunk(paths[:1], extractor)  # compiles
        start = time.process_time()
        chunk = make_chunk(paths, extractor, with_hashes=True)
        seconds_per_picture = (time.process_time() - start) / len(paths)
        learning = _learning_time(codebook, options)
    entries = chunk.counts.nnz / max(1, len(chunk.readable))
    seconds = seconds_per_picture * (n + min(n, CODEBOOK_PICTURES)) / jobs + learning
    bytes_per_row = 8 * entries + 4 * n_features(options.features) + 100
    return Estimate(n, len(chunk.skipped), len(paths), seconds, int(bytes_per_row * n), side, jobs)


def _random_codebook(paths: list[str], options: WordOptions) -> tuple[Codebook, float]:
    """A codebook of the right size, and the mean longest side of the pictures."""
    extractor, sides = Extractor(options), [0.0]
    descriptors = np.random.default_rng(0).random((options.n_words, 128))
    for path in paths:
        try:
            sides.append(max(extractor.open(path).size))
        except PictureError:
            continue
    return Codebook(descriptors / np.linalg.norm(descriptors, axis=1, keepdims=True)), float(np.mean(sides[1:] or [0]))


def _learning_time(codebook: Codebook, options: WordOptions) -> float:
    descriptors = np.random.default_rng(0).random((2048, 128), dtype=np.float32)
    start = time.process_time()
    codebook.predict(descriptors)
    return _ROUNDS * (time.process_time() - start) * sample_size(options.n_words) / len(descriptors)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.1f} h"


def summary(corpus: Corpus) -> dict[str, Any]:
    """What is in a corpus, for programs."""
    vocabulary, options = corpus.vocabulary, corpus.options
    labels = corpus.label_lists
    lengths = np.asarray(corpus.X.sum(axis=1)).ravel()
    return {
        "rows": len(corpus),
        "skipped": dict(Counter(reason for _, reason in corpus.skipped).most_common()),
        "n_visual_words": vocabulary.n_visual_words,
        "n_regions": vocabulary.n_regions,
        "n_annotation_words": vocabulary.n_annotation_words,
        "n_global_features": 0 if corpus.global_features is None else corpus.global_features.shape[1],
        "words_per_row": float(lengths.mean()) if len(lengths) else 0.0,
        "tags_per_row": float(np.mean([len(tags) for tags in corpus.tags])) if len(corpus) else 0.0,
        "tags": dict(Counter(tag for tags in corpus.tags for tag in tags).most_common()),
        "labels": dict(Counter(label for row_labels in labels for label in row_labels or ()).most_common()),
        "multi_label": corpus.multi_label,
        "unlabelled": sum(row_labels is None for row_labels in labels),
        "splits": dict(Counter(split for split in corpus.splits if split is not None).most_common()),
        "options": None if options is None else options.to_dict(),
        "bytes": sum(path.stat().st_size for path in (corpus.folder / SHARDS).rglob("*") if path.is_file()),
    }


def describe(corpus: Corpus) -> list[str]:
    """What is in a corpus, as lines for people."""
    content = summary(corpus)
    words = f"{content['n_annotation_words']:,} tags"
    if content["n_visual_words"]:
        grid = f" x {content['n_regions']} regions" if content["n_regions"] > 1 else ""
        words = f"{content['n_visual_words']:,} visual words{grid}, {words}"
    if content["n_global_features"]:
        words += f", {content['n_global_features']:,} global features"
    lines = [
        f"{corpus.folder}: {content['rows']:,} rows, {content['bytes'] / 1e6:,.1f} MB",
        f"words    {words}; {content['words_per_row']:.0f} words and {content['tags_per_row']:.1f} tags a row",
    ]
    if content["labels"]:
        several = " (several a row)" if content["multi_label"] else ""
        unlabelled = f"; {content['unlabelled']:,} rows without" if content["unlabelled"] else ""
        lines.append(f"labels   {_most(content['labels'])}{several}{unlabelled}")
    if content["tags"]:
        lines.append(f"tags     {_most(content['tags'])}")
    if content["splits"]:
        lines.append(f"splits   {_most(content['splits'])}")
    if content["skipped"]:
        total = sum(content["skipped"].values())
        lines.append(f"skipped  {total:,} ({_most(content['skipped'])}); see skipped.csv")
    return lines


def _most(counts: dict[str, int]) -> str:
    shown = ", ".join(f"{name} {count:,}" for name, count in list(counts.items())[:_SHOWN])
    return shown + (f", ... ({len(counts):,} in all)" if len(counts) > _SHOWN else "")
