"""The paper's figures with pictures of scenes: right and wrong predictions, and what goes with each class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PIL import Image

from pictopic.corpus.corpus import Corpus
from pictopic.paper.experiments.pictures import Association, Prediction, draw_associations, draw_predictions
from pictopic.paper.experiments.results import Figure
from pictopic.tasks.exports import cut_patch

_A_ROW = 4  # pictures that are rightly, and that are wrongly classified
_PATCHES = 16


def draw_examples(values: dict[str, Any], corpus: Corpus, folder: Path) -> list[Figure]:
    """Draw what SupDocNADE says about the test pictures of a split.

    Parameters
    ----------
    values : dict
        Of `pictopic.paper.experiments.scenes_methods.supdocnade`, with examples.
    corpus : Corpus
        Of the split.
    folder : Path
        For the figures.

    Returns
    -------
    list of Figure
    """
    paths = dict(zip(corpus.file_names, corpus.paths, strict=True))
    right: list[Prediction] = []
    wrong: list[Prediction] = []
    for own in _spread(values["predictions"]):
        item = Prediction(paths[own["file_name"]], own["predicted"], own["true"], own["tags"], own["true_tags"])
        (right if own["predicted"] == own["true"] else wrong).append(item)
    classes = [
        Association(name, [_patches(corpus, word, paths) for word in own["visual_words"]], own["tags"])
        for name, own in values["associations"].items()
    ]
    return [draw_predictions(right[:_A_ROW], wrong[:_A_ROW], folder), draw_associations(classes, folder)]


def _spread(predictions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One picture of each class after the other, so that the first few show several classes."""
    turns: dict[str, int] = {}
    keyed = []
    for own in predictions:
        key = f"{own['true']} {own['predicted'] == own['true']}"
        turns[key] = turns.get(key, -1) + 1
        keyed.append((turns[key], own))
    return [own for _, own in sorted(keyed, key=lambda pair: pair[0])]


def _patches(corpus: Corpus, word: int, paths: dict[str, Path]) -> list[Image.Image | None]:
    if corpus.codebook is None or corpus.options is None:
        return []
    found = corpus.codebook.examples[word][:_PATCHES]
    side = corpus.options.max_side
    return [cut_patch(own, paths[own.file_name], side) if own.file_name in paths else None for own in found]
