"""Base of the shallow models: parameters, training and representation of a network with one hidden layer."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from pictopic.corpus.rows import Rows
from pictopic.models.estimator import TopicModel
from pictopic.models.inputs import Statistics, document_lengths, in_parts, summarize
from pictopic.models.likelihood import LikelihoodMixin
from pictopic.models.parameters import Options, Theta, initial_theta, word_frequencies, word_rate
from pictopic.models.run import Run
from pictopic.models.training import train
from pictopic.models.tree import WordTree

_SGD_CHUNK = 32  # documents between two updates of the average, if each document is a step
_VALIDATION_WORDS = 20_000  # held-out words to score, in up to ten orders


class ShallowModel(LikelihoodMixin, TopicModel):
    """Training, likelihood and representation of a shallow model; see `DocNADE` for the options."""

    _parameter_constraints: ClassVar[dict] = {
        **TopicModel._parameter_constraints,
        "smoothing": [StrOptions({"auto"}), Interval(Real, 0, 1, closed="left")],
    }
    _LEARNING_RATES: ClassVar[dict[str, float]] = {"adam": 0.0003, "sgd": 0.05}
    _LARGEST_BATCH = 100

    def __init__(
        self,
        *,
        n_components=200,
        output="tree",
        activation="tanh",
        solver="adam",
        dropout=0.4,
        smoothing="auto",
        **options,
    ):
        super().__init__(
            n_components=n_components, output=output, activation=activation, solver=solver, dropout=dropout, **options
        )
        self.smoothing = smoothing

    # ---- training ----------------------------------------------------------------------------------------------

    def _check_X(self, X: Any, global_features: Any = None, *, reset: bool) -> Rows:
        return super()._check_X(X, reset=reset).without_features()  # a Corpus may have some, which are not used

    def _run_random_state(self, run: Run) -> Any:
        # With a checkpoint always a number, so that the run can be resumed.
        if run.checkpoint is None or isinstance(self.random_state, Integral):
            return self.random_state
        return self._drawn_seed(run.checkpoint)

    def _fit(self, documents: Rows, held_out: Rows | None, run: Run, random_state: Any) -> None:
        rng = check_random_state(random_state)
        statistics = summarize(documents)
        if self.warm_start and hasattr(self, "components_"):
            self._check_same_shape(documents)
        else:
            self._initialise(rng, documents, statistics)
        n_words = statistics.word_counts.sum()
        trainer = self._trainer(documents, auto_smoothing=min(0.3, 2 * documents.shape[1] / max(n_words, 1)))
        validate = None
        if held_out is not None:
            seed = int(rng.randint(2**31))

            def validate(theta: Theta) -> float:
                return self._validation_score(theta, held_out, seed)

        identity = ""
        if run.checkpoint is not None:
            identity = self._identity(
                random_state, statistics.fingerprint, None if held_out is None else summarize(held_out).fingerprint
            )
        outcome = train(
            trainer,
            len(documents),
            n_words=n_words,
            n_labelled=int(documents.labels.known.sum()),
            max_iter=self.max_iter,
            batch_size=self._documents_per_call(len(documents)),
            n_iter_no_change=self.n_iter_no_change,
            rng=rng,
            validate=validate,
            run=run,
            identity=identity,
            verbose=int(self.verbose),
            name=type(self).__name__,
        )
        self._keep(outcome, statistics.fingerprint)

    def _partial_fit(self, documents: Rows) -> None:
        """Train for one pass over the documents, continuing from the last call."""
        rng = self._solver_rng if self._solver_rng is not None else check_random_state(self.random_state)
        statistics = summarize(documents)
        if not hasattr(self, "components_"):
            self._initialise(rng, documents, statistics)
        # More documents may follow: "auto" must not smooth as if these were all.
        trainer = self._trainer(documents, auto_smoothing=0.0)
        if self._solver_state is not None:
            trainer.resume(self._solver_state)
        outcome = train(
            trainer,
            len(documents),
            n_words=statistics.word_counts.sum(),
            n_labelled=int(documents.labels.known.sum()),
            max_iter=1,
            batch_size=self._documents_per_call(len(documents)),
            n_iter_no_change=1,
            rng=rng,
            name=type(self).__name__,
        )
        self._keep_pass(outcome, trainer, rng, statistics.fingerprint)

    def _documents_per_call(self, n_documents: int) -> int:
        each_is_a_step = self.solver == "sgd" and self.batch_size == 1 and self.output == "tree"
        return _SGD_CHUNK if each_is_a_step else self._batch_size(n_documents)

    def _check_options(self, n_words: int) -> None:
        if self.output == "tree" and self.device != "cpu":
            raise ValueError(f'output="tree" runs on device="cpu" only, got device={self.device!r}')
        if self.n_annotation_words > n_words:
            raise ValueError(f"n_annotation_words={self.n_annotation_words}, but X has {n_words} columns only")

    def _check_same_shape(self, documents: Rows) -> None:
        theta = self._theta()
        now = (documents.shape[1], self.n_components, documents.labels.indicator.shape[1])
        before = (theta.W.shape[0], theta.W.shape[1], len(theta.d))
        if now != before:
            raise ValueError(
                "warm_start: the model has (words, n_components, classes) = "
                f"{before}, but now there are {now}; fit a new model"
            )

    def _initialise(self, rng: np.random.RandomState, documents: Rows, statistics: Statistics) -> None:
        n_words, counts = documents.shape[1], statistics.word_counts
        self._check_options(n_words)
        if not counts.any():
            raise ValueError("X has no words: every row is empty")
        self._solver_state = None
        self.mean_length_ = statistics.mean_length
        self.annotation_weight_ = self._rho(counts)
        self.tree_ = WordTree(n_words, rng) if self.output == "tree" else None
        n_outputs = n_words - 1 if self.output == "tree" else n_words
        theta = initial_theta(
            rng, n_words, self.n_components, n_outputs, documents.labels.indicator.shape[1],
            count_norm=np.sqrt(statistics.squares.sum() / len(documents)),
        )  # fmt: skip
        if not self._zero_biases:
            if self.tree_ is not None:
                theta.b = self.tree_.base_rates(counts).astype(np.float32)
            else:
                theta.b = np.log(word_frequencies(counts)).astype(np.float32)
        self._set_theta(theta)

    def _trainer(self, documents: Rows, auto_smoothing: float) -> Any:
        X, labels = documents.read(), documents.labels
        options = Options(
            activation=self.activation,
            generative=self._generative_weight() / self.mean_length_,
            multi_label=getattr(self, "multi_label_", False),
            solver=self.solver,
            batch_size=self._batch_size(X.shape[0]),
            learning_rate=self._learning_rate(),
            dropout=self.dropout,
            averaging=self.averaging or 0.0,
            smoothing=auto_smoothing if self.smoothing == "auto" else self.smoothing,
            n_jobs=self._n_jobs(),
            device=self.device,
            word_rate=word_rate(self.solver, self.mean_length_),
            annotation_weight=self.annotation_weight_,
            n_annotation_words=self.n_annotation_words,
            word_dropout=getattr(self, "word_dropout", 0.0),
        )
        if self.tree_ is not None:
            from pictopic.models.tree_output import TreeTrainer

            return TreeTrainer(self._theta(), self.tree_, X, labels, options)
        from pictopic.models.softmax_output import SoftmaxTrainer

        return SoftmaxTrainer(self._theta(), X, labels, options)

    def _validation_score(self, theta: Theta, held_out: Rows, seed: int) -> float:
        """Return the mean log-likelihood per word of held-out documents.

        Few documents are scored in several orders, always the same ones, to reduce noise.
        """
        X = held_out.read()
        n_words = document_lengths(X).sum()
        n_orderings = int(np.clip(_VALIDATION_WORDS // max(n_words, 1), 1, 10))
        losses = [self._losses(theta, X, seed + k).sum() for k in range(n_orderings)]
        return -float(np.mean(losses)) / max(n_words, 1)

    # ---- parameters --------------------------------------------------------------------------------------------

    def _set_theta(self, theta: Theta) -> None:
        self.components_ = np.ascontiguousarray(theta.W).T  # a word's weights stay contiguous in memory
        self.hidden_intercept_ = theta.c
        self.output_coef_ = theta.V
        self.output_intercept_ = theta.b

    def _theta(self) -> Theta:
        return Theta(
            W=self.components_.T,
            c=self.hidden_intercept_,
            V=self.output_coef_,
            b=self.output_intercept_,
            U=getattr(self, "coef_", np.zeros((0, self.hidden_intercept_.size), np.float32)),
            d=getattr(self, "intercept_", np.zeros(0, np.float32)),
        )

    # What `persistence` writes and reads: named arrays and their shapes.
    _ARRAYS: ClassVar[tuple[str, ...]] = (
        "components_", "hidden_intercept_", "output_coef_", "output_intercept_", "coef_", "intercept_",
    )  # fmt: skip

    def _start(self) -> dict[str, np.ndarray]:
        return self._get_arrays()

    def _get_arrays(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in self._ARRAYS if hasattr(self, name)}

    def _set_arrays(self, arrays: dict[str, np.ndarray]) -> None:
        for name, array in arrays.items():
            setattr(self, name, array)
        self.components_ = np.ascontiguousarray(self.components_.T).T

    def _array_shapes(self, n_words: int, n_outputs: int, n_classes: int, learnt: dict) -> dict[str, tuple[int, ...]]:
        shapes: dict[str, tuple[int, ...]] = {
            "components_": (self.n_components, n_words), "hidden_intercept_": (self.n_components,),
            "output_coef_": (n_outputs, self.n_components), "output_intercept_": (n_outputs,),
        }  # fmt: skip
        if n_classes:
            shapes |= {"coef_": (n_classes, self.n_components), "intercept_": (n_classes,)}
        return shapes

    @property
    def _n_features_out(self) -> int:
        return self.components_.shape[0]

    # ---- representation ----------------------------------------------------------------------------------------

    def transform(self, X: Any) -> np.ndarray:
        """Return the hidden representation h_y of each document (paper: g(c + sum of W over its words)).

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.

        Returns
        -------
        ndarray of shape (n_documents, n_components), float32
            Each row depends only on the same row of X.
        """
        check_is_fitted(self)
        return self._represent(self._theta(), self._check_X(X, reset=False))

    def _represent(self, theta: Theta, documents: Rows) -> np.ndarray:
        from pictopic.kernels.bag import represent
        from pictopic.kernels.elementary import ACTIVATIONS

        X = documents.read()
        out = np.empty((X.shape[0], theta.c.size), np.float32)

        def run(first: int, last: int) -> None:
            represent(first, last, X.indptr, X.indices, X.data, theta.W, theta.c, ACTIVATIONS[self.activation], out)

        in_parts(X.shape[0], self._n_jobs(), run)
        return out
