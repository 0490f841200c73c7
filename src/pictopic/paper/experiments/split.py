"""One split of a collection, as the parts of an experiment open it in whatever process they run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, wraps
from typing import Any

import numpy as np
from scipy import sparse

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.rows import Rows

TOP = 5  # tags per picture


class CorpusSplit:
    """One split of a collection: what is learnt from, and the test pictures without their tags.

    Parameters
    ----------
    corpus, pictures : path
        Of the corpus and of its pictures.
    train : sequence of str
        Names of the training pictures.
    regions : {"2x2", "1x1"}, default="2x2"
        "1x1": where in the picture a word is does not matter.
    """

    def __init__(self, corpus: str, pictures: str, train: Sequence[str], regions: str = "2x2"):
        whole = Corpus.open(corpus, pictures=pictures)
        is_train = np.isin(whole.file_names, list(train))
        self.train, self.test = whole[is_train], whole[~is_train]
        self.n_tags = whole.vocabulary.n_annotation_words
        self.n_pairs, self.n_regions = whole.vocabulary.n_pairs, whole.vocabulary.n_regions
        self.one_region = regions == "1x1"

    @cached_property
    def X(self) -> sparse.csr_array:
        """Counts of the training pictures, tags included."""
        return self._counts(self.train)

    @cached_property
    def X_without_tags(self) -> sparse.csr_array:
        """Counts of the training pictures as those of the test pictures are: without tags."""
        return self._without_tags(self.X)

    @cached_property
    def X_test(self) -> sparse.csr_array:
        """Counts of the test pictures, without tags."""
        return self._without_tags(self._counts(self.test))

    def _without_tags(self, X: sparse.csr_array) -> sparse.csr_array:
        return Rows(X, n_annotation_words=self.n_tags).without_tags().read()

    def _counts(self, corpus: Corpus) -> sparse.csr_array:
        X = sparse.csr_array(corpus.X)
        if not self.one_region:
            return X
        n_words = self.n_pairs // self.n_regions
        summed = sum(X[:, k * n_words : (k + 1) * n_words] for k in range(self.n_regions))
        return sparse.csr_array(sparse.hstack([summed, X[:, self.n_pairs :]], format="csr"))

    @property
    def y(self) -> np.ndarray:
        """Classes of the training pictures."""
        return np.asarray(self.train.labels).astype(str)

    @property
    def y_test(self) -> np.ndarray:
        """Classes of the test pictures."""
        return np.asarray(self.test.labels).astype(str)

    @cached_property
    def Y(self) -> np.ndarray:
        """Tags of the training pictures, 0/1."""
        return self._has_tag(self.train)

    @cached_property
    def Y_test(self) -> np.ndarray:
        """Tags of the test pictures, 0/1."""
        return self._has_tag(self.test)

    def _has_tag(self, corpus: Corpus) -> np.ndarray:
        return (corpus.X[:, self.n_pairs :].toarray() > 0).astype(np.int64)

    def next_tags(self, model: Any, X: Any) -> Any:
        """p(next word) of the tags for rows without tags, (n, n_tags); None if the collection has no tags."""
        columns = np.arange(X.shape[1] - self.n_tags, X.shape[1])
        return model.next_word_proba(X, columns=columns) if self.n_tags else None


def on_split(work: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """Make a function of a `CorpusSplit` one of where the split lies, as tasks call it; see `CorpusSplit`."""

    @wraps(work)
    def opened(*, place: dict[str, Any], regions: str = "2x2", **options: Any) -> dict[str, Any]:
        return work(CorpusSplit(**place, regions=regions), **options)

    return opened


def best_tags(scores: np.ndarray) -> np.ndarray:
    """The columns of the five tags with the largest scores, best first; (n, 5)."""
    return np.argsort(-scores, axis=1, kind="stable")[:, :TOP]
