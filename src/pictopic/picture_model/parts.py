"""Checks of a loaded model: its options, its figures, and whether its parts go together."""

from __future__ import annotations

from typing import Any

from pictopic.checks import is_finite_tree, mapping, number, one_of, section, shown, text, texts, whole
from pictopic.corpus.corpus import Corpus
from pictopic.models.deep_model import DeepModel
from pictopic.tasks.fit import Fitted
from pictopic.tasks.search import Index
from pictopic.words.extract import PRESETS
from pictopic.words.global_features import n_features
from pictopic.words.regions import Regions

_MAX_COUNT = 10_000_000


def check_options(value: Any) -> dict[str, Any]:
    """Check options of a PictureModel from its file; a ValueError says which one is wrong."""
    content = mapping(value, "options")
    features = tuple(texts(section(content, "features"), "features"))
    n_features(features)  # raises if a kind is unknown
    regions, network_options = section(content, "regions"), section(content, "options")
    if regions is not None:
        Regions.parse(text(regions, "regions"))
    if network_options is not None and not is_finite_tree(mapping(network_options, "options")):
        raise ValueError("'options' has a number that is not finite")

    def optional(name: str) -> int | None:
        count = section(content, name)
        return None if count is None else whole(count, name, 1, _MAX_COUNT)

    return {
        "preset": one_of(section(content, "preset"), "preset", tuple(PRESETS)),
        "n_words": optional("n_words"),
        "regions": regions,
        "features": features,
        "max_side": optional("max_side"),
        "model": one_of(section(content, "model"), "model", ("auto", "shallow", "deep")),
        "options": network_options,
        "random_state": whole(section(content, "random_state"), "random_state", 0, 2**32 - 1),
    }


def check_figures(value: Any) -> dict[str, float]:
    """Check figures of held-out pictures from a file; those of classes and tags need their baseline."""
    figures = {text(name, "figures"): number(figure, name) for name, figure in mapping(value, "figures").items()}
    for name in ("classes", "tags"):
        if name in figures and f"{name}_baseline" not in figures:
            raise ValueError(f"'figures' has {name!r} without {name + '_baseline'!r}")
    return figures


def check_together(corpus: Corpus, fitted: Fitted, index: Index) -> None:
    """Compare the sizes of a model's parts; a ValueError names two that do not go together."""
    estimator, vocabulary = fitted.estimator, corpus.vocabulary
    n_units = estimator._n_features_out
    _check_words(corpus)
    _compare("words of the network", estimator.n_features_in_, "of the collection", len(vocabulary))
    _compare("tags of the network", estimator.n_annotation_words, "of the collection", vocabulary.n_annotation_words)
    if isinstance(estimator, DeepModel):  # shallow models take no global features
        n_global = corpus._manifest.n_features
        _compare("global features of the network", estimator.n_global_features_, "of the collection", n_global)
    _compare("vectors of the index", len(index), "pictures of the collection", len(corpus))
    _compare("numbers per vector of the index", index.vectors.shape[1], "units of the network", n_units)
    if fitted.thresholds is not None:
        _compare("thresholds", len(fitted.thresholds.offsets), "tags", vocabulary.n_annotation_words)
    if fitted.head is None:
        return
    _compare("numbers that the classifier takes", fitted.head.n_features, "units of the network", n_units)
    if not hasattr(estimator, "classes_"):
        raise ValueError("there is a classifier, but the network has no classes")
    known = corpus.classes if corpus.multi_label else [str(name) for name in estimator.classes_]
    _compare("kind of labels of the classifier", fitted.head.multi_label, "of the collection", corpus.multi_label)
    unknown = sorted(set(fitted.head.classes) - set(known))
    if unknown:
        raise ValueError(f"the classifier knows the class {shown(unknown[0])}, but the network does not")
    if corpus.multi_label:
        _compare("classes of the network", len(estimator.classes_), "of the collection", len(known))


def _check_words(corpus: Corpus) -> None:
    vocabulary, codebook, options = corpus.vocabulary, corpus.codebook, corpus.options
    if (codebook is None) != (options is None):
        raise ValueError("the collection has a codebook without options of words, or options without a codebook")
    if codebook is not None and options is not None:
        _compare("visual words of the codebook", len(codebook), "of the vocabulary", vocabulary.n_visual_words)
        _compare(
            "regions of the options", len(Regions.parse(options.regions)), "of the vocabulary", vocabulary.n_regions
        )
        _compare("numbers per visual word", codebook.centres.shape[1], "numbers per patch", 128)


def _compare(one: str, n_one: int, other: str, n_other: int) -> None:
    if n_one != n_other:
        raise ValueError(f"its parts do not go together: {one}: {n_one}, {other}: {n_other}")
