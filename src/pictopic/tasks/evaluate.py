"""How good a model is on other pictures than its collection's."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import sparse

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.rows import Rows
from pictopic.tasks.annotate import tag_proba
from pictopic.tasks.fitting import Fitted, known_rows
from pictopic.tasks.likelihood import compare_with_unigram
from pictopic.tasks.metrics import accuracy, f_measure_at_k, mean_average_precision, per_word_scores
from pictopic.tasks.retrieve import Index
from pictopic.tasks.splits import rows_to_learn_from
from pictopic.words.vocabulary import Vocabulary

_TOP = 5
_NEIGHBOURS = 10


def evaluate(fitted: Fitted, index: Index, collection: Corpus, other: Corpus) -> dict[str, float]:
    """Compare a model's answers with what is known about other pictures; see `PictureModel.evaluate`.

    Classes and tags are predicted from the pictures alone, without their tags.
    """
    if other.vocabulary.n_pairs != collection.vocabulary.n_pairs:
        raise ValueError("the corpus was built with other visual words than the model's")
    rows = _rows(other, collection)
    pictures = rows.without_tags()
    Z = fitted.estimator.transform(pictures)
    train_rows = Rows.of(collection)[rows_to_learn_from(collection)]
    figures = {
        **_classes(fitted, Z, other),
        **_tags(fitted, pictures, collection, other),
        **_similar(index, Z, collection, other),
        **compare_with_unigram(fitted.estimator, rows, train_rows),
    }
    if not figures:
        raise ValueError("there is nothing to compare with: the pictures have neither tags nor classes of the model")
    return figures


def _rows(other: Corpus, collection: Corpus) -> Rows:
    """Another corpus in the columns of the collection's vocabulary."""
    vocabulary, n_pairs = collection.vocabulary, collection.vocabulary.n_pairs
    if any(other.tags):
        # Not the columns of the other corpus: it left out tags that are rare there.
        tags = vocabulary.count_tags(other.tags)
    else:
        tags = other.X[:, n_pairs:] @ _same_words(other.vocabulary.annotations, vocabulary)
    X = sparse.hstack([other.X[:, :n_pairs], tags], format="csr", dtype=np.int32)
    return Rows(X, other.global_features, n_annotation_words=vocabulary.n_annotation_words)


def _same_words(names: Sequence[str], vocabulary: Vocabulary) -> sparse.csr_array:
    """Which of the names is which annotation word, as a 0/1 matrix."""
    columns = [vocabulary.index(name) - vocabulary.n_pairs if name in vocabulary else -1 for name in names]
    known = [row for row, column in enumerate(columns) if column >= 0]
    places = known, [columns[row] for row in known]
    return sparse.csr_array((np.ones(len(known), np.int32), places), (len(names), vocabulary.n_annotation_words))


def _classes(fitted: Fitted, Z: np.ndarray, other: Corpus) -> dict[str, float]:
    if fitted.head is None or other.labels is None:
        return {}
    known = known_rows(other.labels)
    if not known.any():
        return {}
    p = fitted.head.predict_proba(Z[known])
    if not other.multi_label:
        predicted = np.array(fitted.head.classes, dtype=object)[p.argmax(axis=1)]
        return {"accuracy": accuracy(other.labels[known].astype(str), predicted.astype(str))}
    shared = [name for name in other.classes if name in fitted.head.classes]
    own = [other.classes.index(name) for name in shared]
    theirs = [fitted.head.classes.index(name) for name in shared]
    return {"map": mean_average_precision(other.labels[known][:, own], p[:, theirs])}


def _tags(fitted: Fitted, rows: Rows, collection: Corpus, other: Corpus) -> dict[str, float]:
    names = collection.vocabulary.annotations
    if not rows.n_visual:  # tags would be told from themselves
        return {}
    true = [[tag for tag in tags if tag in collection.vocabulary] for tags in other.tags]
    tagged = [k for k, tags in enumerate(true) if tags]
    if not names or not tagged:
        return {}
    p = tag_proba(fitted.estimator, rows[tagged])
    ranked = [[names[i] for i in np.argsort(-own, kind="stable")[:_TOP]] for own in p]
    true = [true[k] for k in tagged]
    words = per_word_scores(true, ranked)
    return {
        "f_measure": f_measure_at_k(true, ranked, _TOP), "precision": words.precision, "recall": words.recall,
        "n_plus": float(words.n_plus),
    }  # fmt: skip


def _similar(index: Index, Z: np.ndarray, collection: Corpus, other: Corpus) -> dict[str, float]:
    if other.labels is None or collection.labels is None:
        return {}
    known = [k for k, own in enumerate(other.label_lists) if own]
    if not known:
        return {}
    nearest, _ = index.search(Z[known], _NEIGHBOURS)
    lists = [set(own or ()) for own in collection.label_lists]
    wanted = [set(other.label_lists[k] or ()) for k in known]
    hits = [
        sum(row >= 0 and bool(lists[row] & own) for row in found) for own, found in zip(wanted, nearest, strict=True)
    ]
    return {"precision_at_10": float(np.mean(hits)) / _NEIGHBOURS}
