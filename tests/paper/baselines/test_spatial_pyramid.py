import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils.estimator_checks import parametrize_with_checks

from pictopic.paper.baselines import SpatialPyramidAnnotator, SpatialPyramidClassifier, pyramid_match
from pictopic.tasks.metrics import f_measure_at_k


@parametrize_with_checks([SpatialPyramidClassifier(n_regions=1), SpatialPyramidClassifier(n_regions=1, C=1.0)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


def slow_match(a, b, n_regions):
    """Lazebnik's kernel of two levels: I0 / 2 + I1 / 2."""
    a, b = a / a.sum(), b / b.sum()
    parts = list(zip(np.split(a, n_regions), np.split(b, n_regions), strict=True))
    whole = sum(min(x, y) for x, y in zip(sum(p for p, _ in parts), sum(q for _, q in parts), strict=True))
    quarters = sum(min(x, y) for p, q in parts for x, y in zip(p, q, strict=True))
    return whole / 2 + quarters / 2


@pytest.mark.parametrize("n_regions", [1, 4])
def test_match_is_that_of_a_loop(rng, n_regions):
    A, B = rng.poisson(1, (6, 20)) + np.eye(6, 20, dtype=int), rng.poisson(2, (9, 20)) + 1
    expected = [[slow_match(a, b, n_regions) for b in B] for a in A]
    np.testing.assert_allclose(pyramid_match(sparse.csr_array(A), B, n_regions), expected, rtol=1e-5)


def test_a_picture_without_words_has_nothing_in_common(rng):
    assert pyramid_match(np.zeros((1, 8)), rng.poisson(2, (3, 8)), 4).tolist() == [[0, 0, 0]]


def test_regions_must_have_the_same_words():
    with pytest.raises(ValueError, match="7 columns of visual words cannot be divided into n_regions=4"):
        pyramid_match(np.ones((1, 7)), np.ones((1, 7)), 4)


def test_classes_that_differ_in_place_only_are_told_apart(rng):
    # The same two words; where they are decides.
    y = np.arange(60) % 2
    X = rng.poisson(np.where(y[:, None], [5, 1, 1, 5], [1, 5, 5, 1]), (60, 4))
    model = SpatialPyramidClassifier(n_regions=2).fit(X[:40], y[:40])
    assert model.score(X[40:], y[40:]) > 0.9
    assert set(model.best_params_) == {"C"}
    blind = SpatialPyramidClassifier(n_regions=1).fit(X[:40].reshape(-1, 2, 2).sum(axis=1), y[:40])
    assert blind.score(X[40:].reshape(-1, 2, 2).sum(axis=1), y[40:]) < 0.8


def test_annotation_words_are_not_looked_at(topics):
    X, y = topics
    tagged = np.hstack([X, 50 * y[:, None]])
    model = SpatialPyramidClassifier(n_annotation_words=1, C=1).fit(tagged, y)
    plain = SpatialPyramidClassifier(C=1).fit(X, y)
    np.testing.assert_allclose(model.decision_function(tagged * 0 + 3), plain.decision_function(X * 0 + 3))


def slow_votes(train, tags, picture, k):
    """Of each tag, how many of the k nearest pictures have it, and the sum of their similarities."""
    similarity = [slow_match(picture, other, 4) for other in train]
    nearest = sorted(range(len(train)), key=lambda i: (-similarity[i], i))[:k]
    return [
        (int(tags[nearest, t].sum()), sum(similarity[i] * tags[i, t] for i in nearest)) for t in range(tags.shape[1])
    ]


@pytest.mark.parametrize("k", [1, 3, 7])
def test_tags_are_ranked_by_neighbours_then_by_similarity(rng, k):
    # Counts so large that no two similarities are equal.
    train, tags, test = rng.poisson(200, (25, 8)), rng.randint(2, size=(25, 6)), rng.poisson(200, (10, 8))
    model = SpatialPyramidAnnotator(n_regions=4, n_neighbors=k).fit(train, tags)
    for own, scores in zip(test, model.decision_function(test), strict=True):
        votes = slow_votes(train, tags, own, k)
        ranked = [votes[t] for t in np.argsort(-scores, kind="stable")]
        for (count, weight), (next_count, next_weight) in itertools.pairwise(ranked):
            assert count > next_count or (count == next_count and weight > next_weight - 1e-5)


def test_tags_of_the_same_pictures_are_ranked_by_column(rng):
    tags = rng.randint(2, size=(25, 1)).repeat(3, axis=1)
    scores = (
        SpatialPyramidAnnotator(n_neighbors=5).fit(rng.poisson(2, (25, 8)), tags).decision_function(np.ones((1, 8)))
    )
    assert np.argsort(-scores[0], kind="stable").tolist() == [0, 1, 2]


def test_tags_are_those_of_the_counts_unless_they_are_given(rng):
    words, tags = rng.poisson(2, (20, 8)), rng.poisson(1, (20, 3))
    X = np.hstack([words, tags])
    model = SpatialPyramidAnnotator(n_neighbors=3, n_annotation_words=3).fit(X)
    given = SpatialPyramidAnnotator(n_neighbors=3).fit(words, tags > 0)
    np.testing.assert_allclose(model.decision_function(X * 0 + 1), given.decision_function(words * 0 + 1))
    with pytest.raises(ValueError, match="no tags to learn"):
        SpatialPyramidAnnotator().fit(words)


def test_number_of_neighbours_is_the_best_in_cross_validation(rng):
    # Groups of four pictures that are alike and have the same tags: three neighbours know, the others mislead.
    group = np.repeat(np.arange(12), 4)
    words = rng.poisson(20 * rng.dirichlet(np.full(16, 0.2), 12))[group] + rng.poisson(0.2, (48, 16))
    tags = (rng.uniform(size=(12, 30)) < 0.15)[group]
    model = SpatialPyramidAnnotator(n_neighbors=(40, 3, 20)).fit(words, tags)
    assert model.n_neighbors_ == 3
    ranking = np.argsort(-model.decision_function(words), axis=1, kind="stable")[:, :5]
    worse = SpatialPyramidAnnotator(n_neighbors=40).fit(words, tags)
    other = np.argsort(-worse.decision_function(words), axis=1, kind="stable")[:, :5]
    true = [np.flatnonzero(own).tolist() for own in tags]
    assert f_measure_at_k(true, ranking.tolist()) > f_measure_at_k(true, other.tolist()) + 0.2
