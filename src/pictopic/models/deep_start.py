"""What a deep model's training starts from: fresh parameters, or those of a pretrained model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from pictopic.models.documents import Documents, Statistics
from pictopic.models.network import initial_parameters, parameter_shapes
from pictopic.models.parameters import word_frequencies
from pictopic.models.tree import WordTree

# From how many words on normalize="auto" normalises.  That takes one number from Q, how long a document is: with few
# words, too much is lost.
_MANY_WORDS = 100


class DeepStartMixin:
    """Annotation weight, normalisation and first parameters, from statistics of the documents and the option `init`."""

    if TYPE_CHECKING:
        output: str
        normalize: str
        annotation_weight: float | str
        n_annotation_words: int
        bias_init: str
        init: Any
        n_global_features_: int
        parameters_: dict[str, np.ndarray]
        _solver_state: dict[str, Any] | None

        def _sizes(self) -> tuple[int, ...]: ...
        def _set_theta(self, parameters: dict[str, np.ndarray]) -> None: ...

    def _initialise(self, rng: np.random.RandomState, documents: Documents, statistics: Statistics) -> None:
        """Set everything that training starts from: fresh, or a pretrained model's."""
        n_words = documents.counts.shape[1]
        if self.n_annotation_words > n_words:
            raise ValueError(f"n_annotation_words={self.n_annotation_words}, but X has {n_words} columns only")
        if not statistics.word_counts.any():
            raise ValueError("X has no words: every row is empty")
        init = self._pretrained()
        self._solver_state = None
        self.mean_length_ = statistics.mean_length
        self.tree_ = WordTree(n_words, rng) if self.output == "tree" else None
        self.annotation_weight_ = self._rho(statistics.word_counts)
        self.normalize_ = self.normalize
        if self.normalize == "auto":
            self.normalize_ = "std" if n_words >= _MANY_WORDS else "none"
        self.feature_mean_, self.feature_scale_ = statistics.feature_mean, statistics.feature_scale
        if init is not None:
            self._take_over(init)
        self.input_scale_ = self._input_scale(statistics, len(documents)) if self.normalize_ == "none" else 1.0
        parameters = self._fresh_parameters(rng, documents, statistics)
        if init is not None:
            taken = {name: array.copy() for name, array in init.parameters_.items() if name not in ("U", "d")}
            ours = {name: parameters[name].shape for name in parameters if name not in ("U", "d")}
            theirs = {name: array.shape for name, array in taken.items()}
            if ours != theirs:
                raise ValueError(f"init has parameters of other shapes: {theirs} instead of {ours}")
            parameters |= taken
        self._set_theta(parameters)

    def _fresh_parameters(self, rng, documents: Documents, statistics: Statistics) -> dict[str, np.ndarray]:
        n_words, n_classes = documents.counts.shape[1], documents.labels.indicator.shape[1]
        n_outputs = n_words if self.tree_ is None else self.tree_.n_nodes
        shapes = parameter_shapes(n_words, self._sizes(), n_outputs, n_classes, self.n_global_features_)
        parameters = initial_parameters(rng, shapes)
        parameters["W.0"] *= np.float32(self.input_scale_)
        if self.bias_init == "base_rates":
            counts = statistics.word_counts
            rates = np.log(word_frequencies(counts)) if self.tree_ is None else self.tree_.base_rates(counts)
            parameters["b"] = rates.astype(np.float32)
        return parameters

    def _pretrained(self) -> DeepStartMixin | None:
        """The model to start from: the option `init`, read from disk if it is a folder."""
        init = self.init
        if init is None:
            return None
        if not isinstance(init, BaseEstimator):
            from pictopic.models.persistence import load

            init = load(init)
        if not isinstance(init, DeepStartMixin):
            raise ValueError(f"init must be a fitted DeepDocNADE or SupDeepDocNADE, got {type(init).__name__}")
        check_is_fitted(init)
        if self.output != init.output:
            raise ValueError(f"init was trained with output={init.output!r}, this model has output={self.output!r}")
        return init

    def _take_over(self, init: DeepStartMixin) -> None:
        """Read counts and features as a pretrained model does; documents without features lack one modality."""
        self.tree_ = init.tree_
        if not self.n_global_features_:
            self.n_global_features_ = init.n_global_features_
        self.feature_mean_, self.feature_scale_ = init.feature_mean_, init.feature_scale_
        if self.normalize == "auto":
            self.normalize_ = init.normalize_
        if self.annotation_weight == "balanced":
            self.annotation_weight_ = init.annotation_weight_

    def _rho(self, word_counts: np.ndarray) -> float:
        """The annotation weight: as given, or mean visual / mean annotation words, and 1 where either is absent."""
        if self.annotation_weight != "balanced":
            return float(self.annotation_weight)
        cut = len(word_counts) - self.n_annotation_words
        visual, annotation = int(word_counts[:cut].sum()), int(word_counts[cut:].sum())
        return visual / annotation if visual and annotation else 1.0

    def _input_scale(self, statistics: Statistics, n_documents: int) -> float:
        """How much larger a row of unit variance is than one of plain (weighted) counts, on average."""
        weights = np.ones(len(statistics.squares))
        weights[len(weights) - self.n_annotation_words :] = self.annotation_weight_
        norm = np.sqrt((weights**2 * statistics.squares).sum() / n_documents)
        return float(np.sqrt(len(weights)) / norm)

    def _weighted_words(self, word_counts: np.ndarray) -> float:
        cut = len(word_counts) - self.n_annotation_words
        return float(word_counts[:cut].sum() + self.annotation_weight_ * word_counts[cut:].sum())

    def _check_same_shape(self, documents: Documents) -> None:
        now = (documents.counts.shape[1], *self._sizes(), documents.labels.indicator.shape[1], self.n_global_features_)
        p = self.parameters_
        sizes = [len(p[f"c.{k}"]) for k in range(sum(name.startswith("c.") for name in p))]
        before = (p["W.0"].shape[1], *sizes, len(p["d"]), p["P"].shape[1])
        if now != before:
            raise ValueError(
                "warm_start: the model has (words, hidden units.., classes, global features) = "
                f"{before}, but now there are {now}; fit a new model"
            )
