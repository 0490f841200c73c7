"""What a deep model that learns classes says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_is_fitted

from pictopic.models.deep_training import PICTURES_FIRST
from pictopic.models.documents import Documents, check_documents
from pictopic.models.supervised import SupervisedMixin


class DeepSupervisedMixin(SupervisedMixin):
    """Classes of documents with global features."""

    validation_metric: str
    parameters_: dict[str, np.ndarray]

    if TYPE_CHECKING:

        def _represent(self, parameters: dict[str, np.ndarray], documents: Documents) -> np.ndarray: ...

    def _check_labelled(self, X: Any, y: Any, features: Any, *, reset: bool, classes: Any = None) -> Documents:
        if y is None:
            self._check_y(y, 0, reset=reset)
        documents = check_documents(self, X, features, reset=reset)
        documents.labels = self._check_y(y, len(documents), reset=reset, classes=classes)
        return documents

    def _validation_score(self, parameters: dict[str, np.ndarray], held_out: Documents, seed: int) -> float:
        """Larger is better: what `validation_metric` says of the held-out documents' classes."""
        if self.split == PICTURES_FIRST:
            held_out = held_out.without_last_columns(self.n_annotation_words)
        p = self._class_proba(parameters, held_out)
        return self._goodness(p, held_out.labels.indicator[held_out.rows], self.validation_metric)

    def _class_proba(self, parameters: dict[str, np.ndarray], documents: Documents) -> np.ndarray:
        return self._proba_of(self._represent(parameters, documents), parameters["U"], parameters["d"])

    def predict_proba(self, X: Any, *, global_features: Any = None) -> np.ndarray:
        """p(y | v) of each class.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader} of shape (n_documents, n_words)
            Counts.  Columns of a modality that is missing are 0.
        global_features : array-like of shape (n_documents, n_features), optional

        Returns
        -------
        ndarray of shape (n_documents, n_classes)
            In the order of `classes_`.  Rows sum to one, unless a document can have several classes.
        """
        check_is_fitted(self)
        return self._class_proba(self.parameters_, check_documents(self, X, global_features, reset=False))

    def predict(self, X: Any, *, global_features: Any = None) -> np.ndarray:
        """The most probable class of each document, or a 0/1 matrix of the classes above one half.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader} of shape (n_documents, n_words)
            Counts.
        global_features : array-like of shape (n_documents, n_features), optional

        Returns
        -------
        ndarray of shape (n_documents,) or (n_documents, n_classes)
        """
        return self._classes_from(self.predict_proba(X, global_features=global_features))

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, global_features: Any = None) -> float:
        """Accuracy: share of the documents whose class (or all of whose classes) is predicted.

        Parameters
        ----------
        X : {array-like, sparse matrix, RowReader} of shape (n_documents, n_words)
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
