"""Likelihood, perplexity and next-word probabilities under a fitted model."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from pictopic.corpus.rows import Rows
from pictopic.models.inputs import check_columns, check_sequences, document_lengths
from pictopic.models.parameters import Theta, word_weights

if TYPE_CHECKING:  # the tree's models never load torch
    from torch import Tensor

    from pictopic.models.deep_training import InputOptions
    from pictopic.models.network import Network
    from pictopic.models.tree import WordTree


def perplexity_of(losses: np.ndarray, lengths: np.ndarray, per: str) -> float:
    """Return the perplexity of documents from -log p(v) and their lengths; see `LikelihoodMixin.perplexity`."""
    if per not in ("document", "word"):
        raise ValueError(f'per must be "document" or "word", got {per!r}')
    has_words = lengths > 0
    if not has_words.any():
        raise ValueError("X has no words: every row is empty")
    if not has_words.all():
        n_empty = int((~has_words).sum())
        warnings.warn(f"perplexity leaves out {n_empty} of {len(lengths)} documents: they are empty", stacklevel=3)
    if per == "word":
        return float(np.exp(losses.sum() / lengths.sum()))
    return float(np.exp(np.mean(losses[has_words] / lengths[has_words])))


class LikelihoodMixin:
    """Probabilities of words under a shallow model, which scores all words of a document in one pass."""

    if TYPE_CHECKING:
        activation: str
        device: str
        n_features_in_: int
        random_state: int | np.random.RandomState | None
        tree_: WordTree | None

        def _theta(self) -> Theta: ...
        def _n_jobs(self) -> int: ...
        def _check_X(self, X: Any, global_features: Any = None, *, reset: bool) -> Rows: ...
        def _represent(self, parameters: Any, documents: Rows) -> np.ndarray: ...

    def log_likelihood(
        self, X: Any, n_orderings: int = 1, random_state: int | np.random.RandomState | None = None
    ) -> np.ndarray:
        """Return log p(v) of each document, exact for random orders of its words.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.
        n_orderings : int, default=1
            Number of random orders, over which log p(v) is averaged.
        random_state : int, RandomState instance or None, default=None
            Draws the orders.  None: the model's own `random_state`.

        Returns
        -------
        ndarray of shape (n_documents,), float64
            0 for a document without words.
        """
        check_is_fitted(self)
        counts = self._check_X(X, reset=False).read()
        seeds = self._ordering_seeds(n_orderings, random_state)
        return -np.mean([self._losses(self._theta(), counts, seed) for seed in seeds], axis=0)

    def _ordering_seeds(self, n_orderings: int, random_state: Any) -> list[int]:
        """Return one seed per order of the words."""
        if n_orderings < 1:
            raise ValueError(f"n_orderings must be at least 1, got {n_orderings}")
        rng = check_random_state(self.random_state if random_state is None else random_state)
        return rng.randint(2**31, size=n_orderings).tolist()

    def _losses(self, theta: Theta, X: sparse.csr_array, seed: int) -> np.ndarray:
        """Return -log p of each document, in one random order."""
        if self.tree_ is not None:
            from pictopic.models.tree_output import count_losses

            return count_losses(theta, self.tree_, X, self.activation, self._n_jobs(), seed)
        from pictopic.models.softmax_output import count_losses as softmax_losses

        return softmax_losses(theta, X, self.activation, self._n_jobs(), self.device, seed)

    def sequence_log_likelihood(self, sequences: Iterable[Any]) -> np.ndarray:
        """Return log p of sequences of words, exactly in the given order.

        Parameters
        ----------
        sequences : list of array-like of int
            Word ids, which are column numbers of X.

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
        """Return the perplexity: the number of equally likely words with the same entropy.  Smaller is better.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.  Empty documents are left out, with a warning.
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
        documents = self._check_X(X, reset=False)
        losses = -self.log_likelihood(documents, n_orderings, random_state)
        return perplexity_of(losses, document_lengths(documents.read()), per)

    def next_word_proba(self, X: Any, columns: Any = None) -> np.ndarray:
        """Return the probability of each word to be the next, given a document's words.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.
        columns : array-like of int, optional
            Words to score; with the tree, only their paths are computed.  All by default: each row then sums to one.
            To predict tags, pass the annotation words:
            ``columns=range(n_words - n_annotation_words, n_words)``.

        Returns
        -------
        ndarray of shape (n_documents, n_columns), float32
        """
        check_is_fitted(self)
        hidden = self._represent(self._theta(), self._check_X(X, reset=False))
        return self.next_word_proba_from(hidden, columns)

    def next_word_proba_from(self, hidden: np.ndarray, columns: Any = None) -> np.ndarray:
        """Return the same as `next_word_proba`, given the documents' representations.

        Parameters
        ----------
        hidden : array of shape (n_documents, n_components)
            As `transform` returned them.
        columns : array-like of int, optional

        Returns
        -------
        ndarray of shape (n_documents, n_columns), float32
        """
        return self._next_word_proba(hidden, check_columns(columns, self.n_features_in_))

    def _next_word_proba(self, hidden: np.ndarray, columns: np.ndarray | None) -> np.ndarray:
        if self.tree_ is not None:
            from pictopic.models import tree_output

            return tree_output.next_word_proba(self._theta(), self.tree_, hidden, columns)
        from pictopic.models import softmax_output

        return softmax_output.next_word_proba(self._theta(), hidden, columns, self._n_jobs(), self.device)


class DeepLikelihoodMixin(LikelihoodMixin):
    """Probabilities of words under a deep model, which takes one pass through the network per word.

    The annotation weight applies to the context, never to the predicted words.
    """

    if TYPE_CHECKING:
        parameters_: dict[str, np.ndarray]

        def _inputs(self) -> InputOptions: ...
        def _network(self, parameters: dict[str, np.ndarray]) -> Network: ...
        def _each_chunk(self, n_documents: int, compute: Callable[[slice, int], None]) -> None: ...

    def log_likelihood(
        self,
        X: Any,
        n_orderings: int = 1,
        random_state: int | np.random.RandomState | None = None,
        *,
        n_positions: int | None = None,
        global_features: Any = None,
    ) -> np.ndarray:
        """Return log p(v) of each document, exact for random orders of its words.

        Parameters
        ----------
        X, n_orderings, random_state
            See `DocNADE.log_likelihood`.
        n_positions : int, optional
            Score documents of more words than this on as many random contexts of all sizes, instead of on every
            position.  The estimate is unbiased.
        global_features : array-like of shape (n_documents, n_features), optional

        Returns
        -------
        ndarray of shape (n_documents,), float64
            0 for a document without words.
        """
        check_is_fitted(self)
        documents = self._check_X(X, global_features, reset=False)
        return self._mean_log_p(documents, None, n_orderings, n_positions, random_state)

    def score_modality(
        self,
        X_context: Any,
        X_target: Any,
        n_orderings: int = 1,
        random_state: int | np.random.RandomState | None = None,
        *,
        n_positions: int | None = None,
        global_features: Any = None,
    ) -> np.ndarray:
        """Return log p(target words | context words) of each pair of rows, to rank by in cross-modal retrieval.

        To rank pictures for some tags, pass the pictures' visual words as contexts and the tags as the target; to rank
        tags for a picture, see `next_word_proba`.  The target words come in a random order, each after the context and
        the target words before it.

        Parameters
        ----------
        X_context : {array-like, sparse matrix} of shape (n_documents, n_words)
            Counts of the context words.
        X_target : {array-like, sparse matrix} of shape (n_documents, n_words)
            Counts of the words to predict.  If either has a single row, it is paired with every row of the other.
        n_orderings, random_state, n_positions
            See `log_likelihood`.
        global_features : array-like of shape (n_documents, n_features), optional
            Features of the pictures of the contexts.

        Returns
        -------
        ndarray of shape (n_documents,), float64

        Examples
        --------
        >>> import numpy as np
        >>> from pictopic import DeepDocNADE
        >>> X = np.array([[2, 1, 0, 0, 1, 0], [1, 2, 0, 0, 1, 0], [0, 0, 1, 3, 0, 1], [0, 0, 2, 1, 0, 1]] * 10)
        >>> model = DeepDocNADE(n_components=8, n_annotation_words=2, random_state=0, max_iter=100).fit(X)
        >>> pictures = X[:4] * [1, 1, 1, 1, 0, 0]  # without their tags
        >>> log_p = model.score_modality(pictures, [[0, 0, 0, 0, 1, 0]])  # which go with the first tag?
        >>> bool(log_p[:2].min() > log_p[2:].max())
        True
        """
        check_is_fitted(self)
        documents = self._check_X(X_context, global_features, reset=False)
        targets = self._check_X(X_target, reset=False)
        n = max(len(documents), len(targets))
        if not (len(documents) in (1, n) and len(targets) in (1, n)):
            raise ValueError(f"X_context has {len(documents)} rows, but X_target has {len(targets)}")
        rows = np.arange(n)
        return self._mean_log_p(
            targets[rows % len(targets)], documents[rows % len(documents)], n_orderings, n_positions, random_state
        )

    def _mean_log_p(self, targets, contexts, n_orderings, n_positions, random_state) -> np.ndarray:
        """Average log p(targets | contexts) over orders; without contexts, the targets' global features are used."""
        if n_positions is not None and n_positions < 1:
            raise ValueError(f"n_positions must be at least 1, got {n_positions}")
        seeds = self._ordering_seeds(n_orderings, random_state)
        out = np.zeros(len(targets))
        network = self._network(self.parameters_)
        for chunk in targets.chunks():
            X = targets.read(chunk)
            X_context = None if contexts is None else contexts.read(chunk)
            f = self._inputs().standardize((targets if contexts is None else contexts).read_features(chunk), X.shape[0])
            for seed in seeds:
                out[chunk] += self._log_p(network, X, X_context, f, seed + chunk.start, n_positions)
        return out / n_orderings

    def _log_p(self, network: Network, X, X_context, f: np.ndarray, seed: int, n_positions: int | None) -> np.ndarray:
        """Return log p of the words of X given a context, in one random order (or from random contexts)."""
        from pictopic.models.softmax_output import random_words

        lengths = document_lengths(X)
        sampled = np.zeros(len(lengths), bool) if n_positions is None else lengths > n_positions
        out = np.zeros(len(lengths))
        exact = np.flatnonzero(~sampled)
        if exact.size:
            words, n_words = random_words(X[exact], np.random.default_rng(seed))
            context = None if X_context is None else X_context[exact]
            out[exact] = self._log_p_in_order(network, words, n_words, context, f[exact])
        rows = np.repeat(np.flatnonzero(sampled), n_positions or 0)
        for start in range(0, len(rows), Rows.CHUNK):
            part = rows[start : start + Rows.CHUNK]
            context = None if X_context is None else X_context[part]
            np.add.at(out, part, self._log_p_sampled(network, X[part], context, f[part], seed + start) / n_positions)
        return out

    def _log_p_in_order(self, network: Network, words, lengths, X_context, f: np.ndarray) -> np.ndarray:
        """Return log p of documents whose words are in the given order."""
        import torch

        from pictopic.kernels.splits import counts_before
        from pictopic.models.softmax_output import torch_threads

        offsets = np.concatenate([[0], np.cumsum(lengths)])
        document = np.repeat(np.arange(len(lengths)), lengths)
        weights = self._word_weights()
        running = np.zeros(self.n_features_in_, np.float32)
        out = np.zeros(len(lengths))
        with torch.inference_mode(), torch_threads(self._n_jobs()):
            for first in range(0, len(words), Rows.CHUNK):
                last = min(first + Rows.CHUNK, len(words))
                context = np.empty((last - first, len(weights)), np.float32)
                counts_before(words, offsets, first, last, running, context)
                rows = document[first:last]
                if X_context is not None:
                    context += X_context[rows].toarray()
                log_p = self._log_p_rows(network, context * weights, f[rows])
                word_log_p = log_p.gather(1, torch.from_numpy(words[first:last, None]).to(log_p.device))
                np.add.at(out, rows, word_log_p[:, 0].double().cpu().numpy())
        return out

    def _log_p_sampled(self, network: Network, X, X_context, f: np.ndarray, seed: int) -> np.ndarray:
        """Estimate log p of each row from a random context: D / (D - k) * log p of the other D - k words."""
        import torch

        from pictopic.kernels.splits import split_orderings
        from pictopic.models.softmax_output import torch_threads

        drawn = np.empty_like(X.data)
        split_orderings(X.indptr, X.data, seed, drawn)
        context = sparse.csr_array((drawn, X.indices, X.indptr), shape=X.shape).toarray()
        targets = X.toarray() - context
        counts = (context if X_context is None else context + X_context.toarray()).astype(np.float32)
        with torch.inference_mode(), torch_threads(self._n_jobs()):
            log_p = self._log_p_rows(network, counts * self._word_weights(), f)
            sums = (log_p.double() * torch.from_numpy(targets).to(log_p.device)).sum(1).cpu().numpy()
        return sums * (targets + context).sum(axis=1) / targets.sum(axis=1)

    def _word_weights(self) -> np.ndarray:
        """Return the weight of each word in a context: 1, and rho for annotation words."""
        inputs = self._inputs()
        weights = word_weights(self.n_features_in_, inputs.n_annotation_words, inputs.annotation_weight)
        return weights.astype(np.float32)

    def _log_p_rows(self, network: Network, counts: np.ndarray, f: np.ndarray) -> Tensor:
        """Return log p of all words given weighted counts (R, Q) and standardised features (R, F)."""
        import torch

        from pictopic.models.network import normalize_counts

        x = normalize_counts(torch.from_numpy(counts).to(self.device), self._inputs().normalize)
        return network.log_p_words(network.hidden(x, torch.from_numpy(f).to(self.device)))

    def sequence_log_likelihood(self, sequences: Iterable[Any], *, global_features: Any = None) -> np.ndarray:
        """Return log p of sequences, each with its row of global features; see `DocNADE.sequence_log_likelihood`."""
        check_is_fitted(self)
        words, lengths = check_sequences(sequences, self.n_features_in_)
        if not len(lengths):
            return np.zeros(0)
        no_words = sparse.csr_array((len(lengths), self.n_features_in_), dtype=np.int32)
        documents = self._check_X(no_words, global_features, reset=False)
        f = self._inputs().standardize(documents.read_features(), len(lengths))
        return self._log_p_in_order(self._network(self.parameters_), words, lengths, None, f)

    def perplexity(
        self,
        X: Any,
        per: str = "document",
        n_orderings: int = 1,
        random_state: int | np.random.RandomState | None = None,
        *,
        n_positions: int | None = None,
        global_features: Any = None,
    ) -> float:
        """Return the perplexity: the number of equally likely words with the same entropy.  Smaller is better.

        Parameters
        ----------
        X, per, n_orderings, random_state, n_positions, global_features
            See `DocNADE.perplexity` and `log_likelihood`.

        Returns
        -------
        float
        """
        check_is_fitted(self)
        documents = self._check_X(X, global_features, reset=False)
        lengths = [document_lengths(documents.read(chunk)) for chunk in documents.chunks()]
        losses = -self._mean_log_p(documents, None, n_orderings, n_positions, random_state)
        return perplexity_of(losses, np.concatenate(lengths), per)

    def next_word_proba(self, X: Any, columns: Any = None, *, global_features: Any = None) -> np.ndarray:
        """Return the probability of each word to be the next, given a document's words and global features.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.  Leave the annotation columns at 0 to predict tags from pictures, the others for the reverse.
        columns : array-like of int, optional
            Words to score; see `DocNADE.next_word_proba`.
        global_features : array-like of shape (n_documents, n_features), optional

        Returns
        -------
        ndarray of shape (n_documents, n_columns), float32
        """
        check_is_fitted(self)
        hidden = self._represent(self.parameters_, self._check_X(X, global_features, reset=False))
        return self.next_word_proba_from(hidden, columns)

    def _next_word_proba(self, hidden: np.ndarray, columns: np.ndarray | None) -> np.ndarray:
        import torch

        out = np.empty((len(hidden), self.n_features_in_ if columns is None else len(columns)), np.float32)
        network = self._network(self.parameters_)

        def compute(rows: slice, n_padded: int) -> None:
            h = np.zeros((n_padded, hidden.shape[1]), np.float32)
            h[: rows.stop - rows.start] = hidden[rows]
            p = network.log_p_words(torch.from_numpy(h).to(self.device)).exp().cpu().numpy()[: rows.stop - rows.start]
            out[rows] = p if columns is None else p[:, columns]

        self._each_chunk(len(hidden), compute)
        return out
