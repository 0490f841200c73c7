import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import KFold
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from pictopic.paper.baselines import TfidfClassifier
from pictopic.tasks.metrics import mean_average_precision


@parametrize_with_checks([TfidfClassifier(), TfidfClassifier(C=1.0)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


def tfidf(train, X):
    """Count x (1 + log((1 + n) / (1 + rows with the word))), of length 1."""
    idf = 1 + np.log((1 + len(train)) / (1 + (train > 0).sum(axis=0)))
    weighted = X * idf
    return weighted / np.linalg.norm(weighted, axis=1, keepdims=True)


def test_it_is_a_linear_svm_on_tfidf(rng, topics):
    X, y = topics
    X = X + 1
    test = rng.poisson(1, (30, 12)) + 1
    svm = LinearSVC(C=0.3, random_state=0).fit(tfidf(X, X), y)
    model = TfidfClassifier(C=0.3).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(model.decision_function(test), svm.decision_function(tfidf(X, test)), atol=1e-6)
    np.testing.assert_array_equal(model.predict(test), svm.predict(tfidf(X, test)))


def test_counts_may_have_64_bit_indices(topics):
    X, y = sparse.csr_array(topics[0]), topics[1]
    large = sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape)
    np.testing.assert_array_equal(
        TfidfClassifier().fit(large, y).predict(large), TfidfClassifier().fit(X, y).predict(X)
    )


def test_several_classes_a_row_have_an_svm_each(rng):
    X = rng.poisson(1, (80, 10))
    Y = np.column_stack([X[:, 0] > 1, X[:, 1] > 0, X[:, 2] > 0]).astype(int)
    model = TfidfClassifier(C=1.0).fit(X, sparse.csr_array(Y))
    features = TfidfTransformer().fit_transform(X)
    expected = [LinearSVC(random_state=0).fit(features, Y[:, c]).decision_function(features) for c in range(3)]
    np.testing.assert_allclose(model.decision_function(X), np.transpose(expected), atol=1e-6)
    assert model.predict(X).shape == (80, 3)
    assert mean_average_precision(Y, model.decision_function(X)) > 0.9


def test_c_of_several_classes_is_the_best_by_mean_average_precision(rng):
    X = rng.poisson(1, (80, 10))
    Y = (X[:, :4] + rng.poisson(0.6, (80, 4)) > 1).astype(int)
    features = TfidfTransformer().fit_transform(X)
    score = {}
    for C in (1e-4, 0.1, 100.0):
        folds = KFold(5, shuffle=True, random_state=3).split(X)
        score[C] = np.mean([
            mean_average_precision(Y[b], np.transpose([
                LinearSVC(C=C, random_state=3).fit(features[a], Y[a, c]).decision_function(features[b])
                for c in range(4)
            ]))
            for a, b in folds
        ])  # fmt: skip
    model = TfidfClassifier(C=(1e-4, 0.1, 100.0), random_state=3).fit(X, Y)
    assert score[model.best_params_["C"]] == pytest.approx(max(score.values()))
