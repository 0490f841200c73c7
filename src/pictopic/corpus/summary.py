"""What is in a corpus, in a few lines."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from pictopic.corpus.store import SHARDS

if TYPE_CHECKING:
    from pictopic.corpus.corpus import Corpus

_SHOWN = 12  # classes, tags and reasons that are shown to people


def summary(corpus: Corpus) -> dict[str, Any]:
    """Everything that `describe` tells, for programs."""
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
        "labels": dict(Counter(label for own in labels for label in own or ()).most_common()),
        "multi_label": corpus.multi_label,
        "unlabelled": sum(own is None for own in labels),
        "splits": dict(Counter(split for split in corpus.splits if split is not None).most_common()),
        "options": None if options is None else options.to_dict(),
        "bytes": sum(path.stat().st_size for path in (corpus.folder / SHARDS).rglob("*") if path.is_file()),
    }


def describe(corpus: Corpus) -> list[str]:
    """The same for people."""
    found = summary(corpus)
    words = f"{found['n_annotation_words']:,} tags"
    if found["n_visual_words"]:
        grid = f" x {found['n_regions']} regions" if found["n_regions"] > 1 else ""
        words = f"{found['n_visual_words']:,} visual words{grid}, {words}"
    if found["n_global_features"]:
        words += f", {found['n_global_features']:,} global features"
    lines = [
        f"{corpus.folder}: {found['rows']:,} rows, {found['bytes'] / 1e6:,.1f} MB",
        f"words    {words}; {found['words_per_row']:.0f} words and {found['tags_per_row']:.1f} tags a row",
    ]
    if found["labels"]:
        several = " (several a row)" if found["multi_label"] else ""
        unlabelled = f"; {found['unlabelled']:,} rows without" if found["unlabelled"] else ""
        lines.append(f"labels   {_some(found['labels'])}{several}{unlabelled}")
    if found["tags"]:
        lines.append(f"tags     {_some(found['tags'])}")
    if found["splits"]:
        lines.append(f"splits   {_some(found['splits'])}")
    if found["skipped"]:
        total = sum(found["skipped"].values())
        lines.append(f"skipped  {total:,} ({_some(found['skipped'])}); see skipped.csv")
    return lines


def _some(counts: dict[str, int]) -> str:
    shown = ", ".join(f"{name} {count:,}" for name, count in list(counts.items())[:_SHOWN])
    return shown + (f", ... ({len(counts):,} in all)" if len(counts) > _SHOWN else "")
