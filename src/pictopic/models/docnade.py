"""DocNADE and SupDocNADE: topic models with one hidden layer and an exact likelihood."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import _fit_context
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from pictopic.corpus.rows import Rows
from pictopic.models.estimator import SupervisedMixin
from pictopic.models.parameters import Theta
from pictopic.models.run import Run
from pictopic.models.shallow import ShallowModel


class DocNADE(ShallowModel):
    """Document neural autoregressive distribution estimator.

    Models a bag of words as the product of p(v_i | the words before it), each from a hidden layer that sums the
    weights of those words.  The order of the words is drawn anew at every visit.  The hidden layer of the whole
    document is its representation (`transform`): one matrix product, no inference.

    Parameters
    ----------
    n_components : int, default=200
        Number of hidden units (topics), H.
    output : {"tree", "softmax"}, default="tree"
        How p(v_i | ...) is computed: by left/right decisions in a binary tree of words, O(log Q) per word, or by a
        softmax over all words.  The softmax fits better and can use a GPU; the tree is faster, especially
        with a large vocabulary (see the table in the README).
    activation : {"relu", "tanh", "sigmoid"}, default="tanh"
        g.
    max_iter : int, default=200
        Maximum number of passes over the documents.
    batch_size : int or "auto", default="auto"
        Documents per step.  "auto" is 100, and fewer in a small collection (n_documents / 12, but at least 8).
    solver : {"adam", "sgd"}, default="adam"
        With ``solver="sgd", batch_size=1`` each document is a step of plain gradient descent, as in the paper.
    learning_rate : float or "auto", default="auto"
        0.0003 for Adam and 0.05 for SGD, in units of the loss per word.  With Adam, W learns ten times as fast as the
        rest, less so the longer the documents are: at the same rate with 110 words, at a tenth of it with 1,100.
    n_annotation_words : int, default=0
        Number of annotation words (tags), which are the last columns of X.
    annotation_weight : float or "balanced", default="balanced"
        rho: the number of words that an annotation word counts as in the loss; 1 is the paper's.  "balanced" is mean
        visual words / mean annotation words of the training documents, and 1 where either is absent.  Contexts,
        likelihood and perplexity count every word once; but above 1, tags become more probable among all words than
        they are, which is no loss where they are compared with each other.
    dropout : float, default=0.4
        Share of hidden units left out per document while training.
    averaging : float or None, default=0.998
        Decay per step of the exponential average of the parameters, which becomes the model; None: no average.
    smoothing : float or "auto", default="auto"
        Share of the training targets that goes to the words' overall frequencies.  "auto" is
        2 * n_words / number of words in X, at most 0.3: negligible, unless the collection is tiny (0 in
        `partial_fit`).
    validation_fraction : float or None, default=0.1
        Share of the documents held out; training stops when their likelihood no longer improves, and the best
        parameters are kept.  None: train on all documents for `max_iter` passes.
    n_iter_no_change : int, default=10
        Number of passes without a better held-out likelihood before stopping.
    random_state : int, RandomState instance or None, default=None
        The same number gives the same model, bit for bit, for the same `n_jobs`.
    n_jobs : int or None, default=None
        Number of threads; None is 1, -1 all processors.
    device : str, default="cpu"
        Device on which the softmax output is trained, as torch names it.
    warm_start : bool, default=False
        Whether `fit` starts from the parameters of the last fit.
    verbose : int, default=0
        1: a progress bar; 2: one line per pass.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_words)
        W.
    hidden_intercept_ : ndarray of shape (n_components,)
        c.
    output_coef_ : ndarray of shape (n_words - 1, n_components), or (n_words, n_components) for softmax
        V: one row per inner node of the tree, or per word.
    output_intercept_ : ndarray
        b, in the same order.
    tree_ : WordTree or None
        The tree of words.
    annotation_weight_ : float
        rho.
    mean_length_ : float
        Mean number of words of the training documents.
    n_iter_ : int
        Number of completed passes.
    stop_reason_ : {"max_iter", "converged", "time", "interrupted"}
        Why training ended; "converged": the held-out score no longer improved.
    history_ : dict of lists
        Per pass: "nll" (-log p per word, in training), "class_loss", "validation_score" and "seconds".
    best_validation_score_ : float or None
        Held-out mean log-likelihood per word of the best parameters.

    References
    ----------
    Y. Zheng, Y.-J. Zhang, H. Larochelle, "A Deep and Autoregressive Approach for Topic Modeling of Multimodal
    Data", section 3.  H. Larochelle, S. Lauly, "A Neural Autoregressive Topic Model", NIPS 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic import DocNADE
    >>> X = np.array([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 1]] * 10)
    >>> model = DocNADE(n_components=8, random_state=0).fit(X)
    >>> model.transform(X).shape
    (40, 8)
    >>> p = model.next_word_proba([[3, 2, 0, 0]])
    >>> bool(p[0, :2].sum() > 0.9)
    True
    """

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, X_val: Any = None, run: Run | None = None) -> DocNADE:
        """Fit the model to documents.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts: whole numbers from 0 on.
        y : ignored
        X_val : like X, optional
            Held-out documents for early stopping, instead of a fraction of X.
        run : Run, optional
            Settings of this fit: checkpoints, a time limit, the effect of Ctrl-C.

        Returns
        -------
        self
        """
        documents = self._check(X, y, reset=True)
        return self._fit_rows(documents, None if X_val is None else self._check(X_val, None, reset=False), run)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None) -> DocNADE:
        """Train for one pass over documents, continuing from earlier calls.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.
        y : ignored

        Returns
        -------
        self
        """
        self._partial_fit(self._check(X, y, reset=not hasattr(self, "components_")))
        return self

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log-likelihood per word; larger is better.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.
        y : ignored

        Returns
        -------
        float
        """
        return -float(np.log(self.perplexity(X, per="word")))


class SupDocNADE(SupervisedMixin, ShallowModel):
    """DocNADE that learns the class of a document together with its words.

    The loss of a document is -log p(y | v) + generative_weight * -log p(v) / mean number of words, with
    p(y | v) from the same hidden layer that represents the document.  The options not named here are `DocNADE`'s.

    Parameters
    ----------
    generative_weight : float, default=1.0
        Weight of the words relative to the class.  The paper's lambda, on the sum over words, is
        ``generative_weight / mean_length_``; the authors' 0.25 is 0.25 here.
    word_dropout : float, default=0.0
        Share of a document's distinct words left out while its class is learnt, so that no class depends on a single
        word.  0.3 helps in small collections of long documents; 0 is the paper's model.
    n_components, output, activation, max_iter, batch_size, solver, learning_rate, n_annotation_words
        See `DocNADE`.
    annotation_weight, dropout, averaging, smoothing, random_state, n_jobs, device, warm_start, verbose
        See `DocNADE`.
    validation_fraction, n_iter_no_change
        See `DocNADE`; early stopping uses the class loss of the held-out documents.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels, or column numbers of y if that was a 0/1 matrix.
    multi_label_ : bool
        Whether a document can have several classes.
    coef_ : ndarray of shape (n_classes, n_components)
        U.
    intercept_ : ndarray of shape (n_classes,)
        d.
    components_, hidden_intercept_, output_coef_, output_intercept_, tree_, annotation_weight_, mean_length_
    n_iter_, history_, stop_reason_
        See `DocNADE`.
    best_validation_score_ : float or None
        Minus the held-out class loss of the best parameters.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic import SupDocNADE
    >>> X = np.array([[2, 1, 0, 0], [1, 2, 0, 0], [0, 0, 1, 3], [0, 0, 2, 1]] * 10)
    >>> y = ["sea", "sea", "city", "city"] * 10
    >>> model = SupDocNADE(n_components=8, random_state=0).fit(X, y)
    >>> model.predict([[1, 1, 0, 0], [0, 0, 3, 1]]).tolist()
    ['sea', 'city']
    """

    _parameter_constraints: ClassVar[dict] = {
        **ShallowModel._parameter_constraints,
        "generative_weight": [Interval(Real, 0, None, closed="left")],
        "word_dropout": [Interval(Real, 0, 1, closed="left")],
    }

    def __init__(self, *, generative_weight=1.0, word_dropout=0.0, **options):
        super().__init__(**options)
        self.generative_weight = generative_weight
        self.word_dropout = word_dropout

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: Any, y: Any = None, *, X_val: Any = None, y_val: Any = None, run: Run | None = None) -> SupDocNADE:
        """Fit the model to documents and their classes.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts: whole numbers from 0 on.
        y : array-like of shape (n_documents,), or 0/1 matrix of shape (n_documents, n_classes)
            One class per document, or several.  Rows with None or NaN are unlabelled: only their words are learnt.
        X_val, y_val : like X and y, optional
            Held-out documents and classes for early stopping, instead of a fraction of X.
        run : Run, optional
            Settings of this fit: checkpoints, a time limit, the effect of Ctrl-C.

        Returns
        -------
        self
        """
        documents = self._check(X, y, reset=True)
        return self._fit_rows(documents, None if X_val is None else self._check(X_val, y_val, reset=False), run)

    @_fit_context(prefer_skip_nested_validation=True)
    def partial_fit(self, X: Any, y: Any = None, classes: Any = None) -> SupDocNADE:
        """Train for one pass over documents and their classes, continuing from earlier calls.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.
        y : array-like of shape (n_documents,), or 0/1 matrix of shape (n_documents, n_classes)
            Classes; None or NaN for unlabelled.
        classes : array-like, optional
            All classes of all calls.  Needed in the first call, unless its y has all of them.

        Returns
        -------
        self
        """
        self._partial_fit(self._check(X, y, reset=not hasattr(self, "components_"), classes=classes))
        return self

    def _set_theta(self, theta: Theta) -> None:
        super()._set_theta(theta)
        self.coef_, self.intercept_ = theta.U, theta.d

    def _validation_score(self, theta: Theta, held_out: Rows, seed: int) -> float:
        """Return minus the class loss of the held-out documents."""
        return self._proba_score(self._class_proba(theta, held_out), held_out.labels.indicator)

    def _class_proba(self, theta: Theta, documents: Rows) -> np.ndarray:
        return self._proba_of(self._represent(theta, documents), theta.U, theta.d)

    def predict_proba(self, X: Any) -> np.ndarray:
        """Return p(y | v) of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.

        Returns
        -------
        ndarray of shape (n_documents, n_classes)
            In the order of `classes_`.  Rows sum to one, unless a document can have several classes.
        """
        check_is_fitted(self)
        return self._class_proba(self._theta(), self._check_X(X, reset=False))

    def predict(self, X: Any) -> np.ndarray:
        """Return the most probable class of each document, or a 0/1 matrix of the classes above one half.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader, Corpus, Rows} of shape (n_documents, n_words)
            Counts.

        Returns
        -------
        ndarray of shape (n_documents,) or (n_documents, n_classes)
        """
        return self._classes_from(self.predict_proba(X))
