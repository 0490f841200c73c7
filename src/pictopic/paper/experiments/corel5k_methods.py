"""What is learnt from Corel 5k: every method of the table, as a part of the experiment.

Each function takes its options (which the figures depend on) and where the corpus is, and returns figures.  Test
pictures come without tags.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.preprocessing import normalize

from pictopic.models.docnade import DocNADE, SupDocNADE
from pictopic.paper.baselines import MostFrequent, NeighborAnnotator, SpatialPyramidAnnotator, hsv_histograms
from pictopic.paper.baselines.base import root_shares
from pictopic.paper.experiments.split import CorpusSplit
from pictopic.picture_model import PictureModel
from pictopic.tasks.metrics import f_measure_at_k, per_word_scores

TOP = 5  # tags a picture
NEIGHBOURS = 10


def figures(own: CorpusSplit, scores: np.ndarray) -> dict[str, Any]:
    """How good the five tags with the best scores are."""
    names = own.train.vocabulary.annotations
    ranked = [[names[i] for i in row] for row in np.argsort(-scores, axis=1, kind="stable")[:, :TOP]]
    return tag_figures(own.test.tags, ranked)


def tag_figures(true: list[list[str]], ranked: list[list[str]]) -> dict[str, Any]:
    """F-measure a picture; precision and recall a word, and how many words are found at all."""
    words = per_word_scores(true, ranked)
    return {
        "f_measure": f_measure_at_k(true, ranked, TOP), "precision": words.precision, "recall": words.recall,
        "n_plus": float(words.n_plus),
    }  # fmt: skip


def most_frequent(place: dict[str, Any], **options: Any) -> dict[str, Any]:
    """The five most frequent tags."""
    own = CorpusSplit(**place)
    return figures(own, MostFrequent().fit(own.X, own.Y).decision_function(own.X_test))


def spatial_pyramid(place: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Tags of the neighbours by SPM's similarity."""
    own = CorpusSplit(**place)
    model = SpatialPyramidAnnotator(n_regions=own.train.vocabulary.n_regions, n_annotation_words=own.n_tags)
    return figures(own, model.fit(own.X).decision_function(own.X_test)) | {"neighbours": int(model.n_neighbors_)}


def neighbors(place: dict[str, Any], *, colours: bool, **options: Any) -> dict[str, Any]:
    """Tags of the neighbours by visual words, and by colours too."""
    own = CorpusSplit(**place)
    n_pairs = own.train.vocabulary.n_pairs
    rows = [X[:, :n_pairs].toarray() for X in (own.X, own.X_test)]
    if colours:
        # Equal shares of both: the squares are what `NeighborAnnotator` takes the roots of.
        kinds = [hsv_histograms(corpus.paths) for corpus in (own.train, own.test)]
        rows = [np.hstack([root_shares(a) ** 2, root_shares(b) ** 2]) for a, b in zip(rows, kinds, strict=True)]
    model = NeighborAnnotator().fit(rows[0], own.Y)
    return figures(own, model.decision_function(rows[1])) | {"neighbours": int(model.n_neighbors_)}


def shallow(place: dict[str, Any], *, supervised: bool, **options: Any) -> dict[str, Any]:
    """DocNADE or SupDocNADE with the package's defaults; tags by p(next word)."""
    own = CorpusSplit(**place)
    settings: dict[str, Any] = {"n_annotation_words": own.n_tags, "random_state": options["seed"], "n_jobs": 1}
    if supervised:
        model: Any = SupDocNADE(**settings).fit(own.X, own.y)
    else:
        model = DocNADE(**settings).fit(own.X)
    columns = np.arange(own.train.vocabulary.n_pairs, own.X.shape[1])
    return figures(own, model.next_word_proba(own.X_test, columns=columns))


def picture_model(place: dict[str, Any], *, annotation_weight: float | str, **options: Any) -> dict[str, Any]:
    """`PictureModel`, with a weight of the tags (rho); similar pictures by picture and tags, too."""
    own = CorpusSplit(**place)
    changes = {"annotation_weight": annotation_weight, "max_iter": options["passes"]}
    if "units" in options:
        changes["n_components"] = options["units"]
    model = PictureModel(options=changes, random_state=options["seed"], n_jobs=1, verbose=0).fit(own.train)
    found = model.evaluate(own.test)
    wanted = ("f_measure", "precision", "recall", "n_plus", "accuracy")
    values: dict[str, Any] = {key: found[key] for key in wanted if key in found}
    if options.get("illustrate"):
        values["similar"] = precision_of_search(model, own)
        values["examples"] = _examples(model, own)
    return values


def precision_of_search(model: PictureModel, own: CorpusSplit) -> float:
    """Share of the ten most similar training pictures that are of the query's group; it is a picture and its tags."""
    group = dict(zip(own.train.file_names, own.train.label_lists, strict=True))
    shares = []
    for path, tags, wanted in zip(own.test.paths, own.test.tags, own.test.label_lists, strict=True):
        known = [tag for tag in tags if tag in own.train.vocabulary]
        found = model.search(path, tags=known or None, k=NEIGHBOURS)
        shares.append(np.mean([group[str(name)] == wanted for name, _ in found]))
    return float(np.mean(shares))


def by_histogram(place: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Similar pictures by the angle between histograms."""
    own = CorpusSplit(**place)
    A, B = (normalize(X[:, : own.train.vocabulary.n_pairs].astype(float)) for X in (own.X, own.X_test))
    return {"similar": _precision(own, (B @ A.T).toarray())}


def by_tags(place: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Similar pictures by the share of tags in common."""
    own = CorpusSplit(**place)
    A, B = own.Y.astype(float), own.Y_test.astype(float)
    common = B @ A.T
    return {"similar": _precision(own, common / np.maximum(B.sum(axis=1)[:, None] + A.sum(axis=1) - common, 1))}


def _precision(own: CorpusSplit, similarity: np.ndarray) -> float:
    best = np.argsort(-similarity, axis=1, kind="stable")[:, :NEIGHBOURS]
    return float((own.y[best] == own.y_test[:, None]).mean())


def _examples(model: PictureModel, own: CorpusSplit, n: int = 6) -> list[dict[str, Any]]:
    """Generated tags and similar pictures of some test pictures, spread over the collection."""
    rows = np.linspace(0, len(own.test) - 1, n).astype(int)
    tags = dict(zip(own.train.file_names, own.train.tags, strict=True))
    found = []
    for row in rows:
        path, name = own.test.paths[row], own.test.file_names[row]
        near = [str(other) for other, _ in model.search(path, tags=own.test.tags[row], k=4)]
        found.append(
            {"file_name": name, "tags": own.test.tags[row], "generated": [tag for tag, _ in model.annotate(path, 8)],
             "similar": [{"file_name": other, "tags": tags[other]} for other in near]}
        )  # fmt: skip
    return found
