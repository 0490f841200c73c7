import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from pictopic.paper.baselines import LogisticNeighborAnnotator


def slow_shares(train, tags, picture, k, sharpness, blocks):
    """A plain loop: the share of the k nearest with each tag, by the mean cosine of the kinds of features."""
    ends = np.cumsum(blocks)
    kinds = [slice(end - n, end) for end, n in zip(ends, blocks, strict=True)]
    similarity = [
        np.mean([picture[s] @ other[s] / np.linalg.norm(picture[s]) / np.linalg.norm(other[s]) for s in kinds])
        for other in train
    ]
    nearest = sorted(range(len(train)), key=lambda i: -similarity[i])[:k]
    weights = {i: np.exp(sharpness * similarity[i]) for i in nearest}
    return sum(weights[i] * tags[i] for i in nearest) / sum(weights.values())


@pytest.fixture
def made(rng):
    X, Y = rng.normal(size=(40, 7)), rng.randint(2, size=(40, 3))
    return X, Y, rng.normal(size=(6, 7))


@pytest.mark.parametrize("k", [1, 5, 99])
def test_probabilities_are_the_mean_of_neighbours_and_logistic_regressions(made, k):
    X, Y, queries = made
    blocks = (3, 4)
    model = LogisticNeighborAnnotator(blocks=blocks, n_neighbors=k, sharpness=5.0, C=2.0).fit(X, Y)
    unit = [
        np.hstack([rows[:, s] / np.linalg.norm(rows[:, s], axis=1, keepdims=True) for s in (slice(3), slice(3, 7))])
        / np.sqrt(2)
        for rows in (X, queries)
    ]
    logistic = np.column_stack([
        LogisticRegression(C=2.0, tol=1e-8, max_iter=10_000).fit(unit[0], y).predict_proba(unit[1])[:, 1] for y in Y.T
    ])  # fmt: skip
    shares = np.array([slow_shares(X, Y, picture, k, 5.0, blocks) for picture in queries])
    np.testing.assert_allclose(model.predict_proba(queries), (logistic + shares) / 2, atol=2e-3)


def test_a_single_tag_is_logistic_regression_too(made):
    X, Y, queries = made
    p = LogisticNeighborAnnotator(C=1.0).fit(X, Y[:, :1]).predict_proba(queries)
    assert p.shape == (6, 1)
    assert ((p > 0) & (p < 1)).all()


def test_c_is_chosen_from_those_given(rng):
    kind = rng.randint(12, size=200)
    X = np.eye(12)[kind] + 0.3 * rng.normal(size=(200, 12))
    Y = np.eye(12, dtype=int)[kind]
    # All neighbours count the same, so that only logistic regression can tell; with the first C it knows nothing.
    model = LogisticNeighborAnnotator(n_neighbors=999, sharpness=0.0, C=(1e-9, 10.0)).fit(X, Y)
    assert model.C_ == 10.0
    assert LogisticNeighborAnnotator(C=(3.0, 10.0)).fit(X[:4], Y[:4]).C_ == 3.0  # too few to choose by


def test_the_same_random_state_gives_the_same_probabilities(made):
    X, Y, queries = made
    first, second = (LogisticNeighborAnnotator(random_state=3).fit(X, Y).predict_proba(queries) for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("options", "X", "Y", "message"),
    [
        ({"blocks": (1, 2)}, [[1, 1]], [[1]], "do not add up to the 2 columns"),
        ({}, [[1, 1]], [[3]], "0 and 1"),
        ({}, [[1, 1]], [[1], [0]], "inconsistent numbers of samples"),
        ({"n_neighbors": 0}, [[1, 1]], [[1]], "n_neighbors"),
    ],
)
def test_bad_input_is_refused(options, X, Y, message):
    with pytest.raises(ValueError, match=message):
        LogisticNeighborAnnotator(**options).fit(X, Y)
