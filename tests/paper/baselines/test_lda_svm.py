import numpy as np
import pytest
from scipy import sparse
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from pictopic.paper.baselines import LDAClassifier


@parametrize_with_checks([LDAClassifier(n_components=3, max_iter=3, C=1.0, gamma=1.0)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.fixture
def drawn(rng):
    """Documents of three topics with words of their own, and which topic each has most of."""
    shares = rng.dirichlet(np.full(3, 0.3), 150)
    words = np.kron(np.eye(3), np.full(5, 0.2))
    X = np.array([rng.multinomial(40, own @ words) for own in shares])
    return X, shares, shares.argmax(axis=1)


def test_topics_are_found_again(drawn):
    X, shares, y = drawn
    model = LDAClassifier(n_components=3, C=1, gamma=1).fit(X, y)
    found = model.transform(X)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    match = np.corrcoef(found.T, shares.T)[:3, 3:].argmax(axis=1)
    assert sorted(match) == [0, 1, 2]
    assert abs(found - shares[:, match]).mean() < 0.08
    assert model.score(X, y) > 0.9


def test_classifier_is_an_svm_on_roots_of_the_topics_of_visual_words(rng, drawn):
    X, _, y = drawn
    tagged = np.hstack([X, 2 * np.eye(3, dtype=int)[y]])
    model = LDAClassifier(n_components=3, n_annotation_words=3, C=5, gamma=2).fit(sparse.csr_array(tagged), y)
    assert model.lda_.components_.shape == (3, 18)
    alone = np.hstack([X, np.zeros((150, 3), int)])
    np.testing.assert_array_equal(model.transform(tagged), model.lda_.transform(alone))
    svm = SVC(C=5, gamma=2).fit(np.sqrt(model.transform(alone)), y)
    np.testing.assert_allclose(model.decision_function(tagged), svm.decision_function(np.sqrt(model.transform(alone))))


def test_several_classes_a_row(drawn):
    X, shares, _ = drawn
    Y = (shares > 0.3).astype(int)
    model = LDAClassifier(n_components=3).fit(X, Y)
    assert set(model.best_params_) == {"C"}
    assert (model.predict(X) == Y).mean() > 0.85
    assert model.decision_function(X).shape == (150, 3)


def test_log_likelihoods_are_scikit_learns_bound_without_the_topics_part(rng, drawn):
    X, _, y = drawn
    X[7] = 0
    model = LDAClassifier(n_components=4, max_iter=3, C=1, gamma=1).fit(X, y)
    lda = model.lda_
    # A document without words says nothing: all that is left of the bound is about the topics.
    expected = lda.score(X) - lda.score(np.zeros((1, 15)))
    found = model.log_likelihood(X)
    assert found.sum() == pytest.approx(expected, rel=1e-6)
    assert found[7] == pytest.approx(0, abs=1e-6)
    some = np.delete(np.arange(150), 7)
    assert model.perplexity(X[some]) == pytest.approx(np.exp(-expected / X.sum()), rel=1e-6)
    each = found[some] / X[some].sum(axis=1)
    assert model.perplexity(X[some], per="document") == pytest.approx(np.exp(-each.mean()), rel=1e-6)
