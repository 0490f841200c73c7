"""Likelihood, perplexity and next-word probabilities of the shallow models."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pictopic.models.counts import check_counts, document_lengths
from pictopic.models.parameters import Theta

if TYPE_CHECKING:
    from pictopic.models.tree import WordTree


def check_sequences(sequences: Iterable[Any], n_words: int) -> tuple[np.ndarray, np.ndarray]:
    """Sequences of word ids one after the other, and their lengths; or a ValueError that names the wrong one."""
    arrays = [np.asarray(sequence) for sequence in sequences]
    for row, array in enumerate(arrays):
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ValueError(f"sequence {row} must be a list of word ids (whole numbers)")
        if array.size and not (array.min() >= 0 and array.max() < n_words):
            raise ValueError(f"sequence {row} has a word id outside 0..{n_words - 1}")
    lengths = np.array([array.size for array in arrays], np.int64)
    return np.concatenate([np.zeros(0, np.int64), *arrays]).astype(np.int64), lengths


def check_columns(columns: Any, n_words: int) -> np.ndarray | None:
    """Column numbers as an array, or a ValueError; None stays None."""
    if columns is None:
        return None
    columns = np.asarray(columns)
    if columns.ndim != 1 or (columns.size and columns.dtype.kind not in "iu"):
        raise ValueError("columns must be a list of column numbers")
    columns = columns.astype(np.int64)
    if columns.size and not (columns.min() >= 0 and columns.max() < n_words):
        raise ValueError(f"columns must lie in 0..{n_words - 1}")
    return columns


def perplexity_of(losses: np.ndarray, lengths: np.ndarray, per: str) -> float:
    """Perplexity of documents from -log p(v) and their numbers of words; see `LikelihoodMixin.perplexity`."""
    if per not in ("document", "word"):
        raise ValueError(f'per must be "document" or "word", got {per!r}')
    some = lengths > 0
    if not some.any():
        raise ValueError("X has no words: every row is empty")
    if not some.all():
        empty = int((~some).sum())
        warnings.warn(f"perplexity leaves out {empty} of {len(lengths)} documents: they are empty", stacklevel=3)
    if per == "word":
        return float(np.exp(losses.sum() / lengths.sum()))
    return float(np.exp(np.mean(losses[some] / lengths[some])))


class LikelihoodMixin:
    """What a fitted model says of how probable words are."""

    if TYPE_CHECKING:
        activation: str
        device: str
        n_features_in_: int
        random_state: int | np.random.RandomState | None
        tree_: WordTree | None

        def _theta(self) -> Theta: ...
        def _n_jobs(self) -> int: ...
        def transform(self, X: Any) -> np.ndarray: ...  # noqa: D102

    def log_likelihood(
        self, X: Any, n_orderings: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> np.ndarray:
        """Log p(v) of each document, exact for the orders of the words that are drawn.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_words)
            Counts.
        n_orderings : int, default=1
            Number of random orders; the mean of their logarithms is returned.
        random_state : int, RandomState instance or None, default=None
            Draws the orders.  None: as the model's own `random_state`.

        Returns
        -------
        ndarray of shape (n_documents,), float64
            0 for a document without words.
        """
        check_is_fitted(self)
        if n_orderings < 1:
            raise ValueError(f"n_orderings must be at least 1, got {n_orderings}")
        X = check_counts(self, X, reset=False)
        rng = check_random_state(self.random_state if random_state is None else random_state)
        seeds = rng.randint(2**31, size=n_orderings)
        losses = np.mean([self._losses(self._theta(), X, int(seed)) for seed in seeds], axis=0)
        return -losses

    def _losses(self, theta: Theta, X: sparse.csr_array, seed: int) -> np.ndarray:
        """-log p of each document, in one random order."""
        if self.tree_ is not None:
            from pictopic.models.tree_output import count_losses

            return count_losses(theta, self.tree_, X, self.activation, self._n_jobs(), seed)
        from pictopic.models.softmax_output import count_losses as softmax_losses

        return softmax_losses(theta, X, self.activation, self._n_jobs(), self.device, seed)

    def sequence_log_likelihood(self, sequences: Iterable[Any]) -> np.ndarray:
        """Log p of sequences of words, exactly in the order given.

        Parameters
        ----------
        sequences : list of array-like of int
            Word ids, columns of X.

        Returns
        -------
        ndarray of shape (n_sequences,), float64
        """
        check_is_fitted(self)
        words, lengths = check_sequences(sequences, self.n_features_in_)
        theta, n_jobs = self._theta(), self._n_jobs()
        if self.tree_ is not None:
            from pictopic.models import tree_output

            return -tree_output.sequence_losses(theta, self.tree_, words, lengths, self.activation, n_jobs)
        from pictopic.models import softmax_output

        return -softmax_output.sequence_losses(theta, words, lengths, self.activation, n_jobs, self.device)

    def perplexity(
        self,
        X: Any,
        per: str = "document",
        n_orderings: int = 1,
        random_state: int | np.random.RandomState | None = None,
    ) -> float:
        """How many equally likely words the model hesitates between, on average; smaller is better.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_words)
            Counts.  Empty documents are left out, with a warning that counts them.
        per : {"document", "word"}, default="document"
            "document": exp of the mean over documents of -log p(v) / length, as in the literature on DocNADE;
            "word": exp of the total of -log p(v) over the total number of words.
        n_orderings, random_state
            See `log_likelihood`.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        counts = check_counts(self, X, reset=False)
        losses = -self.log_likelihood(counts, n_orderings, random_state)
        return perplexity_of(losses, document_lengths(counts), per)

    def next_word_proba(self, X: Any, columns: Any = None) -> np.ndarray:
        """Probability of being the next word, given a document's words.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_documents, n_words)
            Counts.
        columns : array-like of int, optional
            Words whose probabilities are wanted; with the tree, only their paths are computed.  All by default, and
            then each row sums to one.  To predict tags, ask for the annotation words:
            ``columns=range(n_words - n_annotation_words, n_words)``.

        Returns
        -------
        ndarray of shape (n_documents, n_columns), float32
        """
        hidden = self.transform(X)
        columns = check_columns(columns, self.n_features_in_)
        if self.tree_ is not None:
            from pictopic.models import tree_output

            return tree_output.next_word_proba(self._theta(), self.tree_, hidden, columns)
        from pictopic.models import softmax_output

        return softmax_output.next_word_proba(self._theta(), hidden, columns, self._n_jobs(), self.device)
