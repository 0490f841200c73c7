import numpy as np
import pytest
from scipy import sparse

from pictopic.paper.baselines import NeighborAnnotator


def slow_scores(train, tags, picture, k):
    """A plain loop over the k nearest by the cosine of square roots."""
    roots = np.sqrt(train)
    own = np.sqrt(picture)
    similarity = [own @ other / np.linalg.norm(own) / np.linalg.norm(other) for other in roots]
    nearest = sorted(range(len(train)), key=lambda i: (-similarity[i], i))[:k]
    votes = np.zeros(tags.shape[1])
    for i in nearest:
        votes += np.exp(10 * (similarity[i] - 1)) * tags[i]
    return votes


@pytest.mark.parametrize("k", [1, 4, 99])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_scores_are_those_of_a_loop(rng, k, kind):
    train, tags, test = rng.gamma(0.5, size=(30, 7)), rng.randint(2, size=(30, 5)), rng.gamma(0.5, size=(8, 7))
    model = NeighborAnnotator(n_neighbors=k).fit(kind(train), kind(tags))
    expected = [slow_scores(train, tags, own, k) for own in test]
    np.testing.assert_allclose(model.decision_function(kind(test)), expected, rtol=1e-9)


def test_number_of_neighbours_is_chosen_from_those_given(rng):
    group = np.repeat(np.arange(10), 5)
    features = rng.gamma(0.2, size=(10, 12))[group] + rng.uniform(0, 0.01, (50, 12))
    tags = (rng.uniform(size=(10, 20)) < 0.2)[group]
    tags[rng.permutation(50)[:10]] = 0  # some pictures without tags
    tags[:, 0] = 1
    model = NeighborAnnotator(n_neighbors=(1, 4)).fit(features, tags)
    assert model.n_neighbors_ == 4
    assert NeighborAnnotator(n_neighbors=(1, 4)).fit(features[:1], tags[:1]).n_neighbors_ == 1


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([[1, -1]], [[1]], "Negative values"),
        ([[1, 1]], [[3]], "0 and 1"),
        ([[1, 1]], [[1], [0]], "inconsistent numbers of samples"),
        ([[1, 1], [2, 1]], [[0], [0]], "no picture has a true tag"),
    ],
)
def test_bad_input_is_refused(X, Y, message):
    with pytest.raises(ValueError, match=message):
        NeighborAnnotator().fit(X, Y)


def test_no_neighbours_are_refused():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        NeighborAnnotator(n_neighbors=(0, 3)).fit([[1, 1]], [[1]])
