"""DeepDocNADE and SupDeepDocNADE: topic models with several hidden layers, for pictures, tags and global features."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.metrics import accuracy_score
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from pictopic.corpus.rows import Rows
from pictopic.models.deep_model import DeepModel
from pictopic.models.estimator import SupervisedMixin
from pictopic.models.run import Run

_SCORE_POSITIONS = 32  # positions of a longer document that `score` samples


class DeepDocNADE(DeepModel):
    """Deep document neural autoregressive distribution estimator.

    A network that predicts words of a document from others: at each visit the words are split at random into a context
    and the words to predict.  The top hidden layer of the whole document is its representation (`transform`).

    Parameters
    ----------
    n_components : int or tuple of int, default=512
        Hidden units of each layer, from the words up.  One layer is enough for some thousand pictures; the paper
        uses (2048, 2048, 2048) for a million.
    output : {"softmax", "tree"}, default="softmax"
        How p(word | context) is computed: by a softmax over all words, or by left/right decisions in a binary tree of
        words, where only the decisions on the paths to the predicted words are computed.  The tree pays off with tens
        of thousands of words of which a document has few.
    activation : {"relu", "tanh", "sigmoid"}, default="relu"
        g.
    annotation_weight : float or "balanced", default="balanced"
        rho: the number of words that an annotation word (tag) counts as, in contexts and in targets.
        "balanced" is mean visual words / mean annotation words of the training documents, and 1 where either is absent.
    split : {"ordering", "per_word", "pictures_first"}, default="ordering"
        How contexts are drawn.  "ordering": the words are shuffled and cut at a random place, which estimates the
        likelihood without bias.  "per_word": a random number of each word's occurrences, as in the authors' code.
        "pictures_first": for models that tag pictures: all visual words and none or some of the tags, so that only
        tags are predicted, and for a quarter of the documents only tags; classes are learnt from pictures with and
        without tags, and early stopping uses pictures without tags.
    normalize : {"auto", "std", "sqrt", "none"}, default="auto"
        Normalisation of a context's counts.  "std": divide by their standard deviation, as in the paper; "sqrt": take
        square roots first, so that a few frequent words do not dominate; "none": no normalisation.  "auto" is "std",
        but "none" for a vocabulary of fewer than 100 words, where too much would be lost.
    max_iter : int, default=200
        Maximum number of passes over the documents.
    batch_size : int or "auto", default="auto"
        Documents per step.  "auto" is 128, and fewer in a small collection (n_documents / 12, but at least 8).
    solver : {"adam", "adamw", "sgd"}, default="adamw"
        The paper uses "sgd".
    learning_rate : float or "auto", default="auto"
        0.0003 for Adam and 0.03 for SGD, in units of the loss per word.
    weight_decay : float, default=0.05
        Share by which matrices (all but V) would shrink per pass over the documents, at most three times the learning
        rate per step; only with ``solver="adamw"``.
    n_annotation_words : int, default=0
        Number of annotation words (tags), which are the last columns of X.
    dropout : float, default=0.5
        Share of the units of each hidden layer left out while training.
    averaging : float or None, default=0.998
        Decay per step of the exponential average of the parameters, which becomes the model; None: no average.
    validation_fraction : float or None, default=0.1
        Share of the documents held out; training stops when their score no longer improves, and the best parameters
        are kept.  None: train on all documents for `max_iter` passes.
    n_iter_no_change : int, default=10
        Number of passes without a better held-out score before stopping.
    init : estimator or path, optional
        A fitted deep model, or the folder of one, to start from; the scales of global features and, with
        ``annotation_weight="balanced"``, the annotation weight are taken over from it.
    random_state : int, RandomState instance or None, default=None
        The same number gives the same model, bit for bit, for the same `n_jobs`.
    n_jobs : int or None, default=None
        Number of threads; None is 1, -1 all processors.
    device : str, default="cpu"
        Device to compute on, as torch names it.
    warm_start : bool, default=False
        Whether `fit` starts from the parameters of the last fit.
    verbose : int, default=0
        1: a progress bar; 2: one line per pass.

    Attributes
    ----------
    parameters_ : dict of str to ndarray
        "W.0", "W.1", ... and "c.0", "c.1", ... of the layers, P of the global features, V and b of the words, U and d
        of the classes (empty without classes): averages, unless ``averaging=None``.
    components_ : ndarray of shape (n_components of the first layer, n_words)
        W of the first layer.
    annotation_weight_ : float
        rho.
    normalize_ : str
        The normalisation in use, which "auto" has chosen.
    feature_mean_, feature_scale_ : ndarrays of shape (n_features,)
        Mean and scale by which global features are standardised.
    tree_ : WordTree or None
    mean_length_ : float
        Mean number of words of the training documents.
    n_iter_ : int
        Number of completed passes.
    stop_reason_ : {"max_iter", "converged", "time", "interrupted"}
        Why training ended; "converged": the held-out score no longer improved.
    history_ : dict of lists
        Per pass: "nll" (estimated -log p per weighted word, in training), "class_loss", "validation_score" and
        "seconds".
    best_validation_score_ : float or None
        Held-out log-likelihood per weighted word of the best parameters.

    References
    ----------
    Y. Zheng, Y.-J. Zhang, H. Larochelle, "A Deep and Autoregressive Approach for Topic Modeling of Multimodal
    Data", section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic import DeepDocNADE
    >>> X = np.array([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 1]] * 10)
    >>> model = DeepDocNADE(n_components=(64, 32), random_state=0).fit(X)
    >>> model.transform(X).shape
    (40, 32)
    >>> bool(model.next_word_proba([[3, 2, 0, 0]])[0, :2].sum() > 0.8)
    True
    """

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        global_features: Any = None,
        X_val: Any = None,
        global_features_val: Any = None,
        run: Run | None = None,
    ) -> DeepDocNADE:
        """Fit the model to documents.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts: whole numbers from 0 on.  A `RowReader` need not fit into memory.
        y : ignored
        global_features : {array-like, memory map} of shape (n_documents, n_features), optional
            Features of whole pictures; NaN where a picture has none.
        X_val, global_features_val : like X and global_features, optional
            Held-out documents for early stopping, instead of a fraction of X.
        run : Run, optional
            Settings of this fit: checkpoints, a time limit, the effect of Ctrl-C.

        Returns
        -------
        self
        """
        documents = self._check(X, y, global_features, reset=True)
        held_out = None if X_val is None else self._check(X_val, None, global_features_val, reset=False)
        return self._fit_rows(documents, held_out, run)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, *, global_features: Any = None) -> DeepDocNADE:
        """Train for one pass over documents, continuing from earlier calls.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.
        y : ignored
        global_features : array-like of shape (n_documents, n_features), optional

        Returns
        -------
        self
        """
        self._partial_fit(self._check(X, y, global_features, reset=not hasattr(self, "parameters_")))
        return self

    def score(self, X: Any, y: Any = None, *, global_features: Any = None) -> float:
        """Return the mean log-likelihood per word; larger is better.

        Documents of more than 32 words are scored on 32 random contexts.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.
        y : ignored
        global_features : array-like of shape (n_documents, n_features), optional

        Returns
        -------
        float
        """
        log_perplexity = np.log(
            self.perplexity(X, per="word", n_positions=_SCORE_POSITIONS, global_features=global_features)
        )
        return -float(log_perplexity)


class SupDeepDocNADE(SupervisedMixin, DeepModel):
    """DeepDocNADE that learns the classes of a document together with its words.

    The loss of a document is -log p(y | v) + generative_weight * -log p(v) / mean number of words; p(y | v) comes from
    the top hidden layer given all words, p(v) from that given a random context.  The options not named here are
    `DeepDocNADE`'s.

    Parameters
    ----------
    generative_weight : float, default=1.0
        Weight of the words relative to the class.  The paper's lambda, on the sum over words, is
        ``generative_weight / mean_length_``; the authors' 0.25 is 0.25 here.
    word_dropout : float, default=0.3
        Share of a document's distinct words left out while its class is learnt, so that no class depends on a single
        word; 0 is the paper's model.
    validation_metric : {"loss", "accuracy", "map"}, default="loss"
        Score for early stopping: the class loss of the held-out documents, their accuracy, or the mean average
        precision of the classes (for several classes per document).
    init : estimator or path, optional
        A pretrained `DeepDocNADE` (or another `SupDeepDocNADE`).  U and d start fresh and learn ten times as fast;
        the rest learns a fifth as fast, so that it is not forgotten.
    n_components, output, activation, annotation_weight, split, normalize, max_iter, batch_size, solver, learning_rate
        See `DeepDocNADE`.
    weight_decay, n_annotation_words, dropout, averaging, validation_fraction, n_iter_no_change, random_state, n_jobs
        See `DeepDocNADE`.
    device, warm_start, verbose
        See `DeepDocNADE`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, or column numbers of y if that was a 0/1 matrix.
    multi_label_ : bool
        Whether a document can have several classes.
    best_validation_score_ : float or None
        Held-out `validation_metric` of the best parameters (minus the loss).
    parameters_, components_, annotation_weight_, normalize_, feature_mean_, feature_scale_, tree_, mean_length_
        See `DeepDocNADE`.
    n_iter_, stop_reason_, history_
        See `DeepDocNADE`.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic import DeepDocNADE, SupDeepDocNADE
    >>> X = np.array([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 1]] * 10)
    >>> y = ["sea", "sea", "city", "city"] * 10
    >>> pretrained = DeepDocNADE(n_components=(16, 8), random_state=0).fit(X)
    >>> model = SupDeepDocNADE(n_components=(16, 8), init=pretrained, random_state=0).fit(X, y)
    >>> model.predict([[1, 1, 0, 0], [0, 0, 3, 1]]).tolist()
    ['sea', 'city']
    """

    _parameter_constraints: ClassVar[dict] = {
        **DeepModel._parameter_constraints,
        "generative_weight": [Interval(Real, 0, None, closed="left")],
        "word_dropout": [Interval(Real, 0, 1, closed="left")],
        "validation_metric": [StrOptions({"loss", "accuracy", "map"})],
    }

    def __init__(self, *, generative_weight=1.0, word_dropout=0.3, validation_metric="loss", **options):
        super().__init__(**options)
        self.generative_weight = generative_weight
        self.word_dropout = word_dropout
        self.validation_metric = validation_metric

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        global_features: Any = None,
        X_val: Any = None,
        y_val: Any = None,
        global_features_val: Any = None,
        run: Run | None = None,
    ) -> SupDeepDocNADE:
        """Fit the model to documents and their classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts: whole numbers from 0 on.  A `RowReader` need not fit into memory.
        y : array-like of shape (n_documents,), or 0/1 matrix of shape (n_documents, n_classes)
            One class per document, or several.  Rows with None or NaN are unlabelled: only their words are learnt.
        global_features : {array-like, memory map} of shape (n_documents, n_features), optional
            Features of whole pictures; NaN where a picture has none.
        X_val, y_val, global_features_val : like X, y and global_features, optional
            Held-out documents and classes for early stopping, instead of a fraction of X.
        run : Run, optional
            Settings of this fit: checkpoints, a time limit, the effect of Ctrl-C.

        Returns
        -------
        self
        """
        documents = self._check(X, y, global_features, reset=True)
        held_out = None if X_val is None else self._check(X_val, y_val, global_features_val, reset=False)
        return self._fit_rows(documents, held_out, run)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, *, global_features: Any = None) -> SupDeepDocNADE:
        """Train for one pass over documents and their classes, continuing from earlier calls.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.
        y : array-like of shape (n_documents,), or 0/1 matrix of shape (n_documents, n_classes)
            Classes; None or NaN for unlabelled.
        classes : array-like, optional
            All classes of all calls.  Needed in the first call, unless its y has all of them.
        global_features : array-like of shape (n_documents, n_features), optional

        Returns
        -------
        self
        """
        first = not hasattr(self, "parameters_")
        self._partial_fit(self._check(X, y, global_features, reset=first, classes=classes))
        return self

    @property
    def coef_(self) -> np.ndarray:
        """U."""
        return self.parameters_["U"]

    @property
    def intercept_(self) -> np.ndarray:
        """D."""
        return self.parameters_["d"]

    def _validation_score(self, parameters: dict[str, np.ndarray], held_out: Rows, seed: int) -> float:
        """Return the `validation_metric` of the held-out documents' classes; larger is better."""
        if self.predicts_tags_only:
            held_out = held_out.without_tags()
        return self._proba_score(
            self._class_proba(parameters, held_out), held_out.labels.indicator, self.validation_metric
        )

    def _class_proba(self, parameters: dict[str, np.ndarray], documents: Rows) -> np.ndarray:
        return self._proba_of(self._represent(parameters, documents), parameters["U"], parameters["d"])

    def predict_proba(self, X: Any, *, global_features: Any = None) -> np.ndarray:
        """Return p(y | v) of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts; 0 in the columns of a missing modality.
        global_features : array-like of shape (n_documents, n_features), optional

        Returns
        -------
        ndarray of shape (n_documents, n_classes)
            In the order of `classes_`.  Rows sum to one, unless a document can have several classes.
        """
        check_is_fitted(self)
        return self._class_proba(self.parameters_, self._check_X(X, global_features, reset=False))

    def predict(self, X: Any, *, global_features: Any = None) -> np.ndarray:
        """Return the most probable class of each document, or a 0/1 matrix of the classes above one half.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.
        global_features : array-like of shape (n_documents, n_features), optional

        Returns
        -------
        ndarray of shape (n_documents,) or (n_documents, n_classes)
        """
        return self._classes_from(self.predict_proba(X, global_features=global_features))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, global_features: Any = None) -> float:
        """Return the accuracy: the share of documents with the right class (or all the right classes).

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.
        y : array-like of shape (n_documents,), or 0/1 matrix of shape (n_documents, n_classes)
        sample_weight : array-like of shape (n_documents,), optional
        global_features : array-like of shape (n_documents, n_features), optional

        Returns
        -------
        float
        """
        predicted = self.predict(X, global_features=global_features)
        return float(accuracy_score(y, predicted, sample_weight=sample_weight))
