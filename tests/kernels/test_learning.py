import itertools

import numpy as np
import pytest

from pictopic.kernels.learning import aligned_zeros, make_scratch, random_orders, sync_average, update_rows

BETAS = np.float32(0.9), np.float32(0.999)
RATE = np.float32(0.1)


@pytest.mark.parametrize("shape", [(1, 16), (5, 32), (3, 2, 16)])
def test_zeros_begin_on_a_cache_line(shape):
    zeros = aligned_zeros(shape)
    assert zeros.shape == shape
    assert zeros.dtype == np.float32
    assert zeros.ctypes.data % 64 == 0
    assert not zeros.any()


def test_scratch_has_room_for_the_longest_document():
    scratch, tree = make_scratch(longest=30, n_words=10, n_hidden=20, n_classes=0)
    assert len(scratch.leaves) == len(scratch.order) == 30
    assert scratch.hidden.shape == (31, 32)
    assert tree.gradient.shape[1] == 32


def test_each_document_gets_an_order_of_its_own():
    offsets = np.array([0, 20, 20, 21, 61])
    orders = [np.zeros(61, np.int64) for _ in range(3)]
    for order, seed in zip(orders, (3, 3, 4), strict=True):
        random_orders(offsets, np.uint64(seed), order)
    for first, last in itertools.pairwise(offsets):
        assert sorted(orders[0][first:last]) == list(range(last - first))
    np.testing.assert_array_equal(orders[0], orders[1])
    assert not np.array_equal(orders[0], orders[2])


@pytest.fixture
def state(rng):
    """Parameters, the gradients of two threads, moments and averages; row 2 has no gradient."""

    def normal(*shape):
        return rng.normal(size=shape).astype(np.float32)

    gradients = normal(2, 4, 16)
    gradients[:, 2] = 0
    touched = np.array([[True, False, False, True], [False, True, False, True]])
    return normal(4, 16), gradients, touched, normal(4, 16), np.abs(normal(4, 16)), normal(4, 16)


def update(state, synced, adam):
    theta, gradients, touched, moment, square, average = state
    update_rows(
        0, 4, theta, gradients, touched, moment, square, average, synced, RATE, *BETAS, 3, -0.3, -0.5, adam
    )  # fmt: skip


@pytest.mark.parametrize("adam", [True, False])
def test_a_step_is_that_of_the_sum_of_the_gradients_and_rows_without_one_rest(state, adam):
    theta, gradients, touched, moment, square, _ = (array.astype(float) for array in state)
    total = gradients.sum(axis=0)
    step = total
    if adam:
        moment = 0.9 * moment + 0.1 * total
        square = 0.999 * square + 0.001 * total**2
        step = moment / (1 - 0.9**3) / (np.sqrt(square / (1 - 0.999**3)) + 1e-8)
    step[~touched.any(axis=0)] = 0
    update(state, np.zeros(0), adam)
    np.testing.assert_allclose(state[0], theta - 0.1 * step, rtol=1e-3, atol=1e-5)
    assert not state[1].any()
    assert not state[2].any()


def test_averages_are_brought_up_to_date_when_they_are_needed(state):
    theta, average = state[0].astype(float), state[5].astype(float)
    synced = np.array([-0.1, -0.1, -0.1, -0.2])
    update(state, synced.copy(), False)
    moved = state[0].astype(float)
    expected = theta + np.exp(-0.3 - synced)[:, None] * (average - theta)  # what a row was until now
    expected = moved + np.exp(-0.5 + 0.3) * (expected - moved)  # and since this step
    np.testing.assert_allclose(state[5][[0, 1, 3]], expected[[0, 1, 3]], rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(state[5][2], average[2].astype(np.float32))
    sync_average(state[0], state[5], np.array([-0.5, -0.5, -0.1, -0.5]), -0.5)
    np.testing.assert_allclose(state[5][2], theta[2] + np.exp(-0.4) * (average[2] - theta[2]), rtol=1e-4, atol=1e-5)
