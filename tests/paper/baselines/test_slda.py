import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from sklearn.utils.estimator_checks import parametrize_with_checks

from pictopic.paper.baselines import SupervisedLDA
from tests.paper.baselines.slda_reference import random_model


@parametrize_with_checks([SupervisedLDA(n_components=4)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def drawn():
    """Counts with tags, and classes, drawn from a known model; the last 100 without tags."""
    rng = np.random.RandomState(0)
    n_topics, n_words, n_tags, length = 4, 30, 12, 50
    model = random_model(rng, n_topics, n_words, n_tags, 3, scale=10)
    model.beta = rng.dirichlet(np.full(n_words, 0.1), n_topics)
    model.pi = rng.dirichlet(np.full(n_tags, 0.1), n_topics)
    X, y = np.zeros((400, n_words + n_tags), int), np.zeros(400, int)
    for d in range(400):
        z = rng.choice(n_topics, length, p=rng.dirichlet(np.full(n_topics, model.alpha)))
        for k in z:
            X[d, rng.choice(n_words, p=model.beta[k])] += 1
        for k in rng.choice(z, 3):
            X[d, n_words + rng.choice(n_tags, p=model.pi[k])] += 1
        scores = np.exp(model.eta @ np.bincount(z, minlength=n_topics) / length)
        y[d] = rng.choice(3, p=scores / scores.sum())
    X[300:, n_words:] = 0
    return model, X, y


@pytest.fixture(scope="module")
def fitted(drawn):
    _, X, y = drawn
    return SupervisedLDA(n_components=4, alpha=0.3, n_annotation_words=12).fit(X[:300], y[:300])


def matched(found, true):
    """Which true topic each found one is, by the cosine, and those cosines."""
    cosine = (found / np.linalg.norm(found, axis=1, keepdims=True)) @ (true / np.linalg.norm(true, axis=1)[:, None]).T
    rows, columns = linear_sum_assignment(-cosine)
    return columns, cosine[rows, columns]


def test_topics_classes_and_tags_of_a_known_model_are_found_again(drawn, fitted):
    model, X, y = drawn
    order, cosine = matched(fitted.components_, model.beta)
    assert (cosine > 0.98).all()
    assert (matched(fitted.tag_components_, model.pi[order])[1] > 0.9).all()
    # eta is known up to a number a topic.
    found, true = (eta - eta.mean(axis=0) for eta in (fitted.coef_, model.eta[:, order]))
    assert np.corrcoef(found.ravel(), true.ravel())[0, 1] > 0.9
    assert fitted.score(X[300:], y[300:]) > np.bincount(y[300:]).max() / 100 + 0.15


def test_bound_rises(fitted):
    assert (np.diff(fitted.bounds_) > -1e-3).all()
    assert fitted.n_iter_ == len(fitted.bounds_) < fitted.max_iter


def test_tags_are_the_mean_of_their_topics_tags(drawn, fitted):
    _, X, _ = drawn
    scores = fitted.tag_scores(X[:20])
    np.testing.assert_allclose(scores, fitted.transform(X[:20]) @ fitted.tag_components_)
    np.testing.assert_allclose(scores.sum(axis=1), 1, rtol=1e-6)


def test_tags_that_go_with_words_are_told_from_them():
    # Two kinds of pictures with words of their own; a has the tags 0 and 1, b the tag 2.
    a, b = [5, 4, 0, 0, 1, 1, 0], [0, 0, 6, 3, 0, 0, 1]
    model = SupervisedLDA(n_components=2, n_annotation_words=3, smoothing=1e-3).fit([a, b] * 10, ["a", "b"] * 10)
    scores = model.tag_scores([[9, 1, 0, 0, 0, 0, 0], [0, 0, 1, 1, 0, 0, 0], [5, 4, 6, 3, 0, 0, 0]])
    np.testing.assert_allclose(scores, [[0.5, 0.5, 0], [0, 0, 1], [0.25, 0.25, 0.5]], atol=0.02)


def test_new_pictures_are_described_by_their_visual_words_alone(drawn, fitted):
    _, X, _ = drawn
    hidden = X[:30].copy()
    hidden[:, 30:] = 0
    np.testing.assert_array_equal(fitted.transform(X[:30]), fitted.transform(hidden))
    np.testing.assert_array_equal(fitted.transform(X[:30])[7:9], fitted.transform(sparse.csr_array(X[7:9])))


def test_a_picture_without_words_has_all_topics_alike(fitted):
    np.testing.assert_allclose(fitted.transform(np.zeros((1, 42), int)), [[0.25] * 4])


def test_unlabelled_pictures_teach_words(drawn):
    _, X, y = drawn
    some = y[:300].astype(object)
    some[50:] = None
    model = SupervisedLDA(n_components=4, alpha=0.3, n_annotation_words=12).fit(X[:300], some)
    assert model.classes_.tolist() == [0, 1, 2]
    assert model.score(X[300:], y[300:]) > np.bincount(y[300:]).max() / 100


@pytest.mark.parametrize(
    ("y", "message"), [([[0, 1], [1, 0]], "one class a row"), ([1, 1], "at least two classes"), (None, "requires y")]
)
def test_bad_classes_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        SupervisedLDA().fit([[1, 2], [2, 1]], y)
