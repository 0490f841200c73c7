import itertools

import numpy as np
import pytest

from pictopic.models.parameters import (
    average_decay,
    glorot_uniform,
    initial_theta,
    word_frequencies,
    word_rate,
    word_weights,
)


def test_glorots_weights_fill_their_range_and_not_more():
    weights = glorot_uniform(np.random.RandomState(0), 300, 100)
    limit = np.sqrt(6 / 400)
    assert weights.dtype == np.float32
    assert 0.99 * limit < np.abs(weights).max() <= limit * (1 + 1e-6)
    assert np.isclose(weights.var(), limit**2 / 3, rtol=0.05)  # of a uniform distribution


def test_fresh_parameters_have_the_papers_shapes_and_no_biases():
    theta = initial_theta(np.random.RandomState(0), n_words=7, n_hidden=3, n_outputs=6, n_classes=2)
    shapes = {name: array.shape for name, array in vars(theta).items()}
    assert shapes == {"W": (7, 3), "c": (3,), "V": (6, 3), "b": (6,), "U": (2, 3), "d": (2,)}
    assert not any(getattr(theta, name).any() for name in "cbd")


@pytest.mark.parametrize("mean_length", [8, 961, 70_000])
def test_first_activations_are_small_for_documents_of_any_length(mean_length):
    rng = np.random.RandomState(0)
    counts = rng.poisson(mean_length * rng.dirichlet(np.full(300, 0.5), size=200))
    norm = np.sqrt((counts.astype(float) ** 2).sum() / len(counts))
    theta = initial_theta(rng, 300, 100, 300, 0, norm)
    assert (counts @ theta.W).std() == pytest.approx(min(0.1, norm * np.sqrt(2 / 400)), rel=0.05)
    assert (counts @ theta.W).std() <= 0.105


def test_short_documents_begin_with_glorots_weights():
    start = initial_theta(np.random.RandomState(0), 300, 100, 300, 0, count_norm=1.0)
    np.testing.assert_array_equal(start.W, glorot_uniform(np.random.RandomState(0), 300, 100))


def test_w_learns_more_slowly_the_longer_the_documents():
    assert word_rate("adam", 8.0) == word_rate("adam", 11.0) == 10.0
    assert word_rate("adam", 110.0) == pytest.approx(1.0)
    assert word_rate("adam", 1100.0) == pytest.approx(0.1)
    assert word_rate("sgd", 961.0) == 1.0


def test_annotation_words_are_the_last_ones_and_weigh_rho():
    assert word_weights(5, 2, 30.0).tolist() == [1, 1, 1, 30, 30]
    assert word_weights(3, 0, 30.0).tolist() == [1, 1, 1]


def test_no_word_is_impossible():
    assert np.allclose(word_frequencies([3, 0, 1]), [4 / 7, 1 / 7, 2 / 7])


def test_the_average_forgets_its_first_values_quickly():
    decays = [average_decay(0.998, step) for step in range(1, 3000)]
    assert decays[0] == 2 / 5
    assert all(a <= b for a, b in itertools.pairwise(decays))
    assert decays[-1] == 0.998
