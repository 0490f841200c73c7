"""Base of the deep models: initial parameters, training and representation of a network with several layers."""

from __future__ import annotations

import os
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from pictopic.corpus.rows import Rows
from pictopic.models.deep_training import DeepTrainer, InputOptions, TrainingOptions, split_documents
from pictopic.models.estimator import TopicModel
from pictopic.models.inputs import PICTURES_FIRST, Statistics, in_parts, summarize
from pictopic.models.likelihood import DeepLikelihoodMixin
from pictopic.models.network import Network, initial_parameters, parameter_shapes
from pictopic.models.parameters import word_frequencies, word_weights
from pictopic.models.run import Run
from pictopic.models.softmax_output import torch_threads
from pictopic.models.training import current, train
from pictopic.models.tree import WordTree

_ROW_MULTIPLE = 16  # with a multiple of this many rows, matrix products give each row the same bits
_MAX_DECAY = 3.0  # in a small collection, an epoch has too few steps to make up for the decay
_VALIDATION_DRAWS = 2000  # random splits of held-out documents to score, at most ten per document
# Vocabulary size from which normalize="auto" normalises.  Normalising removes the length of a document: with few
# words, too much is lost.
_NORMALIZE_FROM = 100
# Networks of fitted models, with the options and arrays that they were built from.  Not an attribute: predictions must
# not change an estimator, and a copied or saved one does not need the network.
_networks: WeakKeyDictionary[DeepModel, tuple[Any, dict[str, np.ndarray], Any]] = WeakKeyDictionary()


class DeepModel(DeepLikelihoodMixin, TopicModel):
    """Training and representation of a deep model; see `DeepDocNADE` for the options."""

    _parameter_constraints: ClassVar[dict] = {
        **TopicModel._parameter_constraints,
        "n_components": [Interval(Integral, 1, None, closed="left"), tuple, list],
        "solver": [StrOptions({"adam", "adamw", "sgd"})],
        "split": [StrOptions({"ordering", "per_word", PICTURES_FIRST})],
        "normalize": [StrOptions({"auto", "std", "sqrt", "none"})],
        "weight_decay": [Interval(Real, 0, None, closed="left")],
        "init": [None, str, os.PathLike, BaseEstimator],
    }
    _LEARNING_RATES: ClassVar[dict[str, float]] = {"adam": 0.0003, "adamw": 0.0003, "sgd": 0.03}
    _LARGEST_BATCH = 128

    def __init__(
        self,
        *,
        n_components=512,
        output="softmax",
        activation="relu",
        solver="adamw",
        dropout=0.5,
        split="ordering",
        normalize="auto",
        weight_decay=0.05,
        init=None,
        **options,
    ):
        super().__init__(
            n_components=n_components, output=output, activation=activation, solver=solver, dropout=dropout, **options
        )
        self.split = split
        self.normalize = normalize
        self.weight_decay = weight_decay
        self.init = init

    def __sklearn_clone__(self) -> DeepModel:
        # `init` is passed on as it is: a clone of a pretrained model would be untrained.
        options = self.get_params(deep=False)
        copy = type(self)(**{name: value if name == "init" else clone(value, safe=False)
                             for name, value in options.items()})  # fmt: skip
        if hasattr(self, "_metadata_request"):
            copy._metadata_request = self._metadata_request
        return copy

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "parameters_")

    parameters_: dict[str, np.ndarray]

    # ---- training ----------------------------------------------------------------------------------------------

    def _sizes(self) -> tuple[int, ...]:
        """Return the number of hidden units of each layer."""
        sizes = (self.n_components,) if isinstance(self.n_components, Integral) else tuple(self.n_components)
        if not sizes or not all(isinstance(size, Integral) and int(size) > 0 for size in sizes):
            raise ValueError(f"n_components must be a whole number above 0, or several, got {self.n_components!r}")
        return tuple(int(size) for size in sizes)

    def _run_random_state(self, run: Run) -> int:
        # The same in all processes that train together.
        return current().agree(lambda: self._drawn_seed(run.checkpoint))

    @property
    def predicts_tags_only(self) -> bool:  # type: ignore[override]
        """Whether the model predicts tags from pictures and does not model the probability of visual words."""
        return self.split == PICTURES_FIRST

    def _check_X(self, X: Any, global_features: Any = None, *, reset: bool) -> Rows:
        rows = super()._check_X(X, global_features, reset=reset)
        if reset:
            self.n_global_features_ = rows.n_global_features
        elif rows.n_global_features not in (0, self.n_global_features_):
            raise ValueError(
                f"global_features has {rows.n_global_features} columns, but {type(self).__name__} was fitted with "
                f"{self.n_global_features_}"
            )
        return rows

    def _fit(self, documents: Rows, held_out: Rows | None, run: Run, random_state: int) -> None:
        seed, rng = random_state, np.random.RandomState(random_state)
        statistics = summarize(documents)
        if self.warm_start and hasattr(self, "parameters_"):
            self._check_same_shape(documents)
        else:
            self._initialise(rng, documents, statistics)
        trainer = self._trainer(documents)
        outcome = train(
            trainer,
            len(documents),
            n_words=self._weighted_words(statistics.word_counts),
            n_labelled=int(documents.labels.known.sum()),
            max_iter=self.max_iter,
            batch_size=self._batch_size(len(documents)),
            n_iter_no_change=self.n_iter_no_change,
            rng=rng,
            validate=None if held_out is None else self._validator(held_out, seed),
            run=run,
            identity=self._identity(
                seed, statistics.fingerprint, None if held_out is None else summarize(held_out).fingerprint
            ),
            row_numbers=documents.numbers,
            peers=current(),
            verbose=int(self.verbose),
            name=type(self).__name__,
        )
        self._keep(outcome, statistics.fingerprint)

    def _partial_fit(self, documents: Rows) -> None:
        """Train for one pass over the documents, continuing from the last call."""
        rng = self._solver_rng if self._solver_rng is not None else check_random_state(self.random_state)
        statistics = summarize(documents)
        if not hasattr(self, "parameters_"):
            self._initialise(rng, documents, statistics)
        trainer = self._trainer(documents)
        if self._solver_state is not None:
            trainer.resume(self._solver_state)
        outcome = train(
            trainer,
            len(documents),
            n_words=self._weighted_words(statistics.word_counts),
            n_labelled=int(documents.labels.known.sum()),
            max_iter=1,
            batch_size=self._batch_size(len(documents)),
            n_iter_no_change=1,
            rng=rng,
            name=type(self).__name__,
        )
        self._keep_pass(outcome, trainer, rng, statistics.fingerprint)

    def _start(self) -> dict[str, np.ndarray]:
        return self.parameters_

    def _trainer(self, documents: Rows) -> DeepTrainer:
        rate = self._learning_rate()
        steps_per_pass = -(-len(documents) // self._batch_size(len(documents)))
        options = TrainingOptions(
            split=self.split,
            generative=self._generative_weight() / self.mean_length_,
            multi_label=getattr(self, "multi_label_", False),
            dropout=self.dropout,
            word_dropout=getattr(self, "word_dropout", 0.0),
            solver=self.solver,
            learning_rate=rate,
            averaging=self.averaging or 0.0,
            weight_decay=min(self.weight_decay / (steps_per_pass * rate), _MAX_DECAY),  # a step shrinks by rate * this
            pretrained=self.init is not None and len(self.parameters_["d"]) > 0,
            input_scale=self.input_scale_,
            n_jobs=self._n_jobs(),
            device=self.device,
        )
        network = self._network(self.parameters_, copy=True)
        return DeepTrainer(network, documents, self._inputs(), options, current())

    def _validator(self, held_out: Rows, seed: int) -> Callable[[dict[str, np.ndarray]], float]:
        def validate(parameters: dict[str, np.ndarray]) -> float:
            return self._validation_score(parameters, held_out, seed)

        return validate

    def _validation_score(self, parameters: dict[str, np.ndarray], held_out: Rows, seed: int) -> float:
        """Return the log-likelihood per (weighted) word of held-out documents, estimated on fixed splits."""
        network, inputs = self._network(parameters), self._inputs()
        kind = PICTURES_FIRST if self.predicts_tags_only else "ordering"
        n_draws = int(np.clip(_VALIDATION_DRAWS // len(held_out), 1, 10))
        total = n_words = 0.0
        with torch.inference_mode(), torch_threads(self._n_jobs()):
            for k, chunk in enumerate(held_out.chunks()):
                X = held_out.read(chunk)
                f = torch.from_numpy(inputs.standardize(held_out.read_features(chunk), X.shape[0])).to(self.device)
                n_words += float(inputs.lengths(X).sum()) * n_draws
                for draw in range(n_draws):
                    split = split_documents(X, kind, inputs, seed + 10 * k + draw)
                    context, targets, scale = (torch.from_numpy(array).to(self.device) for array in split)
                    h = network.hidden(context, f)
                    total += float((scale * network.word_losses(h, targets)).double().sum())
        return -total / max(n_words, 1.0)

    # ---- initial parameters ------------------------------------------------------------------------------------------

    def _initialise(self, rng: np.random.RandomState, documents: Rows, statistics: Statistics) -> None:
        """Set the initial parameters and statistics, fresh or from a pretrained model."""
        n_words = documents.shape[1]
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
            self.normalize_ = "std" if n_words >= _NORMALIZE_FROM else "none"
        self.feature_mean_, self.feature_scale_ = statistics.feature_mean, statistics.feature_scale
        if init is not None:
            self._take_over(init)
        self.input_scale_ = self._input_scale(statistics, len(documents)) if self.normalize_ == "none" else 1.0
        parameters = self._fresh_parameters(rng, documents, statistics)
        if init is not None:
            pretrained = {name: array.copy() for name, array in init.parameters_.items() if name not in ("U", "d")}
            expected_shapes = {name: parameters[name].shape for name in parameters if name not in ("U", "d")}
            pretrained_shapes = {name: array.shape for name, array in pretrained.items()}
            if expected_shapes != pretrained_shapes:
                raise ValueError(
                    f"init has parameters of other shapes: {pretrained_shapes} instead of {expected_shapes}"
                )
            parameters |= pretrained
        self._set_theta(parameters)

    def _fresh_parameters(self, rng, documents: Rows, statistics: Statistics) -> dict[str, np.ndarray]:
        n_words, n_classes = documents.shape[1], documents.labels.indicator.shape[1]
        n_outputs = n_words if self.tree_ is None else self.tree_.n_nodes
        shapes = parameter_shapes(n_words, self._sizes(), n_outputs, n_classes, self.n_global_features_)
        parameters = initial_parameters(rng, shapes)
        parameters["W.0"] *= np.float32(self.input_scale_)
        if not self._zero_biases:
            counts = statistics.word_counts
            rates = np.log(word_frequencies(counts)) if self.tree_ is None else self.tree_.base_rates(counts)
            parameters["b"] = rates.astype(np.float32)
        return parameters

    def _pretrained(self) -> DeepModel | None:
        """Return the model to start from: the option `init`, loaded if it is a folder."""
        init = self.init
        if init is None:
            return None
        if not isinstance(init, BaseEstimator):
            from pictopic.models.persistence import load

            init = load(init)
        if not isinstance(init, DeepModel):
            raise ValueError(f"init must be a fitted DeepDocNADE or SupDeepDocNADE, got {type(init).__name__}")
        check_is_fitted(init)
        if self.output != init.output:
            raise ValueError(f"init was trained with output={init.output!r}, this model has output={self.output!r}")
        return init

    def _take_over(self, init: DeepModel) -> None:
        """Take over how a pretrained model reads counts and features, even if these documents have no features."""
        self.tree_ = init.tree_
        if not self.n_global_features_:
            self.n_global_features_ = init.n_global_features_
        self.feature_mean_, self.feature_scale_ = init.feature_mean_, init.feature_scale_
        if self.normalize == "auto":
            self.normalize_ = init.normalize_
        if self.annotation_weight == "balanced":
            self.annotation_weight_ = init.annotation_weight_

    def _input_scale(self, statistics: Statistics, n_documents: int) -> float:
        """Return the mean ratio of the norms of unit-variance rows and plain (weighted) counts."""
        weights = word_weights(len(statistics.squares), self.n_annotation_words, self.annotation_weight_)
        norm = np.sqrt((weights**2 * statistics.squares).sum() / n_documents)
        return float(np.sqrt(len(weights)) / norm)

    def _weighted_words(self, word_counts: np.ndarray) -> float:
        cut = len(word_counts) - self.n_annotation_words
        return float(word_counts[:cut].sum() + self.annotation_weight_ * word_counts[cut:].sum())

    def _check_same_shape(self, documents: Rows) -> None:
        now = (documents.shape[1], *self._sizes(), documents.labels.indicator.shape[1], self.n_global_features_)
        p = self.parameters_
        sizes = [len(p[f"c.{k}"]) for k in range(sum(name.startswith("c.") for name in p))]
        before = (p["W.0"].shape[1], *sizes, len(p["d"]), p["P"].shape[1])
        if now != before:
            raise ValueError(
                "warm_start: the model has (words, hidden units.., classes, global features) = "
                f"{before}, but now there are {now}; fit a new model"
            )

    # ---- parameters --------------------------------------------------------------------------------------------

    def _set_theta(self, parameters: dict[str, np.ndarray]) -> None:
        self.parameters_ = parameters

    @property
    def components_(self) -> np.ndarray:
        """W of the first layer."""
        return self.parameters_["W.0"]

    # What `persistence` writes and reads: named arrays and their shapes.
    def _get_arrays(self) -> dict[str, np.ndarray]:
        return self.parameters_ | {"feature_mean": self.feature_mean_, "feature_scale": self.feature_scale_}

    def _set_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        self.feature_mean_, self.feature_scale_ = arrays.pop("feature_mean"), arrays.pop("feature_scale")
        self._set_theta(arrays)

    def _array_shapes(self, n_words: int, n_outputs: int, n_classes: int, learnt: dict) -> dict[str, tuple[int, ...]]:
        n_features = learnt["n_global_features_"]
        shapes = parameter_shapes(n_words, self._sizes(), n_outputs, n_classes, n_features)
        return shapes | {"feature_mean": (n_features,), "feature_scale": (n_features,)}

    def _inputs(self) -> InputOptions:
        return InputOptions(
            self.annotation_weight_, self.n_annotation_words, self.normalize_, self.feature_mean_, self.feature_scale_
        )

    def _network(self, parameters: dict[str, np.ndarray], copy: bool = False) -> Network:
        """Return a network with these parameters, sharing their memory unless `copy`.

        The network of a fitted model is built once, not for each prediction.
        """
        if copy or parameters is not self.parameters_:
            return self._build_network(parameters, copy)
        options = (self.activation, self.tree_, self.device)
        known_options, known_arrays, network = _networks.get(self, (None, {}, None))
        # The user may have replaced a parameter array.
        if options != known_options or any(known_arrays.get(name) is not array for name, array in parameters.items()):
            network = self._build_network(parameters, copy)
            _networks[self] = (options, dict(parameters), network)
        return network

    def _build_network(self, parameters: dict[str, np.ndarray], copy: bool) -> Network:
        tensors = {name: torch.from_numpy(array.copy() if copy else array) for name, array in parameters.items()}
        return Network(tensors, self.activation, self.tree_).to(self.device).requires_grad_(False)

    @property
    def _n_features_out(self) -> int:
        return self._sizes()[-1]

    # ---- representation ----------------------------------------------------------------------------------------

    def transform(self, X: Any, *, global_features: Any = None) -> np.ndarray:
        """Return the top hidden layer h^(N) of each document, given all its words and global features.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts; 0 in the columns of a missing modality.
        global_features : array-like of shape (n_documents, n_features), optional
            NaN where a picture has none; without them, the mean of the training pictures is used.

        Returns
        -------
        ndarray of shape (n_documents, n_components of the last layer), float32
            Each row depends only on the same row of X.
        """
        check_is_fitted(self)
        return self._represent(self.parameters_, self._check_X(X, global_features, reset=False))

    def _represent(self, parameters: dict[str, np.ndarray], documents: Rows) -> np.ndarray:
        network, inputs = self._network(parameters), self._inputs()
        out = np.empty((len(documents), self._n_features_out), np.float32)

        def compute(rows: slice, n_padded: int) -> None:
            n = rows.stop - rows.start
            x = np.zeros((n_padded, self.n_features_in_), np.float32)
            inputs.fill(documents.read(rows), x)
            f = np.zeros((n_padded, len(inputs.feature_mean)), np.float32)
            f[:n] = inputs.standardize(documents.read_features(rows), n)
            h = network.hidden(torch.from_numpy(x).to(self.device), torch.from_numpy(f).to(self.device))
            out[rows] = h[:n].cpu().numpy()

        self._each_chunk(len(documents), compute)
        return out

    def _each_chunk(self, n_documents: int, compute: Callable[[slice, int], None]) -> None:
        """Call ``compute(rows, n_padded)`` for one chunk of documents after the other, without gradients.

        It must compute `n_padded` rows: the result of a row must not depend on how many others there are.
        """

        def run(first: int, last: int) -> None:
            for start in range(first, last, Rows.CHUNK):
                rows = slice(start, min(start + Rows.CHUNK, last))
                with torch.inference_mode():
                    compute(rows, -(-(rows.stop - start) // _ROW_MULTIPLE) * _ROW_MULTIPLE)

        # One thread per part, and one thread per matrix product: its bits are then the same for any `n_jobs`.
        with torch_threads(1):
            in_parts(n_documents, self._n_jobs(), run)
