import itertools

import numpy as np

from pictopic.models.parameters import average_decay, glorot_uniform, initial_theta, word_frequencies


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


def test_no_word_is_impossible():
    assert np.allclose(word_frequencies([3, 0, 1]), [4 / 7, 1 / 7, 2 / 7])


def test_the_average_forgets_its_first_values_quickly():
    decays = [average_decay(0.998, step) for step in range(1, 3000)]
    assert decays[0] == 2 / 5
    assert all(a <= b for a, b in itertools.pairwise(decays))
    assert decays[-1] == 0.998
