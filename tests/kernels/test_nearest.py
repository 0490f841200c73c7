import numpy as np
import pytest

from pictopic.kernels.nearest import BLOCK, best_columns


def best(scores, offsets):
    columns, values = np.empty(len(scores), np.int32), np.empty(len(scores), np.float32)
    best_columns(scores.astype(np.float32), offsets.astype(np.float32), columns, values)
    return columns, values


@pytest.mark.parametrize("n_blocks", [1, 2, 7])
def test_best_columns_are_numpys_argmax(rng, n_blocks):
    scores, offsets = rng.normal(size=(50, n_blocks * BLOCK)), rng.normal(size=n_blocks * BLOCK)
    total = scores.astype(np.float32) + offsets.astype(np.float32)
    columns, values = best(scores, offsets)
    np.testing.assert_array_equal(columns, total.argmax(axis=1))
    np.testing.assert_array_equal(values, total.max(axis=1))


def test_of_equal_columns_the_first_is_taken(rng):
    scores = rng.randint(3, size=(40, 3 * BLOCK))
    columns, _ = best(scores, np.zeros(3 * BLOCK))
    np.testing.assert_array_equal(columns, scores.argmax(axis=1))
