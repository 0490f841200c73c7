import numpy as np
import pytest
from scipy import sparse

from pictopic.paper.baselines import MostFrequent


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_every_picture_is_of_the_most_frequent_class(rng, kind):
    X = kind(rng.poisson(1, (5, 3)))
    model = MostFrequent().fit(X, ["sea", "city", "sea", "tree", "sea"])
    assert model.predict(X).tolist() == ["sea"] * 5
    assert model.score(X, ["sea", "sea", "tree", "tree", "sea"]) == 0.6
    np.testing.assert_allclose(model.decision_function(X), [[0.2, 0.6, 0.2]] * 5)
    assert model.classes_.tolist() == ["city", "sea", "tree"]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_every_picture_has_the_tags_frequencies(rng, kind):
    Y = rng.randint(2, size=(30, 6)) * [1, 1, 1, 1, 1, 0]
    X = np.zeros((30, 2))
    model = MostFrequent().fit(X, kind(Y))
    np.testing.assert_allclose(model.decision_function(X[:4]), [Y.mean(axis=0)] * 4)
    np.testing.assert_array_equal(model.predict(X[:4]), [Y.mean(axis=0) > 0.5] * 4)
