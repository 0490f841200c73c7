import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from pictopic.paper.baselines import HistogramSVM


@parametrize_with_checks([HistogramSVM(), HistogramSVM(C=1.0, gamma=1.0)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_it_is_an_svm_on_square_roots_of_shares(rng, topics):
    X, y = topics
    test = rng.poisson(1, (30, 12))
    roots = [np.sqrt(part / np.maximum(part.sum(axis=1, keepdims=True), 1)) for part in (X, test)]
    svm = SVC(C=3, gamma=2).fit(roots[0], y)
    model = HistogramSVM(C=3, gamma=2).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(model.decision_function(test), svm.decision_function(roots[1]))
    np.testing.assert_array_equal(model.predict(test), svm.predict(roots[1]))
    assert model.best_params_ == {"C": 3, "gamma": 2}


def test_options_are_chosen_from_those_given(topics):
    X, y = topics
    model = HistogramSVM(C=10, gamma=(1e6, 1)).fit(X, np.where(y, "sea", "city"))
    assert model.best_params_ == {"C": 10, "gamma": 1}
    assert model.classes_.tolist() == ["city", "sea"]
    assert model.score(X, np.where(y, "sea", "city")) > 0.95


def test_annotation_words_are_not_looked_at(rng, topics):
    X, y = topics
    tagged = np.hstack([X, 50 * y[:, None]])
    model = HistogramSVM(n_annotation_words=1, C=1, gamma=1).fit(tagged, y)
    plain = HistogramSVM(C=1, gamma=1).fit(X, y)
    np.testing.assert_allclose(model.decision_function(tagged * 0 + 3), plain.decision_function(X * 0 + 3))


def test_several_classes_a_row_are_refused(topics):
    X, y = topics
    with pytest.raises(ValueError, match="one class a row"):
        HistogramSVM().fit(X, np.column_stack([y, 1 - y]))
