import numpy as np
import pytest

from pictopic.kernels.elementary import ACTIVATIONS
from pictopic.kernels.learning import aligned_zeros
from pictopic.kernels.simd import padded
from pictopic.kernels.tree import tree_depth, tree_pass, tree_scratch

N_HIDDEN = 5
WIDTH = padded(N_HIDDEN + 1)


def path(leaf, n_leaves):
    """Inner nodes above a leaf, numbered depth first, and whether it is in their right half."""
    low, high, node = 0, n_leaves, 0
    while high - low > 1:
        middle = (low + high) // 2
        right = leaf >= middle
        yield node, float(right)
        low, high, node = (middle, high, node + middle - low) if right else (low, middle, node + 1)


def rows(rng, n):
    numbers = aligned_zeros((n, WIDTH))
    numbers[:, : N_HIDDEN + 1] = rng.normal(size=(n, N_HIDDEN + 1))
    return numbers


def run(leaves, n_leaves, hidden, V, out_V, touched, step, learn, weights=()):
    scratch, mask = tree_scratch(n_leaves, WIDTH), aligned_zeros((1, WIDTH))
    mask[0, :N_HIDDEN] = 1
    return tree_pass(
        leaves, len(leaves), hidden, V, n_leaves, np.zeros(n_leaves - 1, np.float32), np.float32(0),
        np.array(weights, np.float32), np.float32(2), out_V, touched, np.float32(step), ACTIVATIONS["relu"], mask,
        np.float32(1), N_HIDDEN, learn, scratch,
    )  # fmt: skip


@pytest.mark.parametrize("n_leaves", [2, 3, 13, 64])
@pytest.mark.parametrize("n", [1, 5, 40])
def test_losses_and_gradients_of_v_are_those_of_each_path(rng, n_leaves, n):
    leaves = np.sort(rng.randint(n_leaves, size=n))
    hidden, V = np.abs(rows(rng, n + 1)), rows(rng, n_leaves - 1)
    loss, expected, on_path = 0.0, np.zeros(V.shape), set()
    for h, leaf in zip(hidden.astype(float), leaves, strict=False):
        for node, side in path(leaf, n_leaves):
            z = V[node] @ h
            loss += np.logaddexp(0, z) - side * z
            expected[node] += 0.5 * 2 * (1 / (1 + np.exp(-z)) - side) * h
            on_path.add(node)
    untouched, no_output = np.zeros(0, np.bool_), V.copy()
    assert run(leaves, n_leaves, hidden.copy(), V, no_output, untouched, 0, False) == pytest.approx(loss, rel=1e-4)
    np.testing.assert_array_equal(no_output, V)
    out_V, touched = aligned_zeros(V.shape), np.zeros(n_leaves - 1, np.bool_)
    assert run(leaves, n_leaves, hidden, V, out_V, touched, 0.5, True) == pytest.approx(loss, rel=1e-4)
    np.testing.assert_allclose(out_V, expected, rtol=1e-3, atol=1e-4)
    assert set(np.flatnonzero(touched).tolist()) == on_path


def test_weights_multiply_the_gradient_of_their_words_and_not_the_loss(rng):
    leaves, weights = np.array([0, 2, 2, 7, 9, 9, 9, 12]), rng.uniform(0.5, 60, 13)
    hidden, V = np.abs(rows(rng, 9)), rows(rng, 12)
    loss, expected = 0.0, np.zeros(V.shape)
    for h, leaf in zip(hidden.astype(float), leaves, strict=False):
        for node, side in path(leaf, 13):
            z = V[node] @ h
            loss += np.logaddexp(0, z) - side * z
            expected[node] += weights[leaf] * 0.5 * 2 * (1 / (1 + np.exp(-z)) - side) * h
    out_V, touched = aligned_zeros(V.shape), np.zeros(12, np.bool_)
    assert run(leaves, 13, hidden, V, out_V, touched, 0.5, True, weights) == pytest.approx(loss, rel=1e-4)
    np.testing.assert_allclose(out_V, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize(("n_leaves", "depth"), [(1, 1), (2, 1), (3, 2), (4, 2), (5, 3), (1024, 10), (1025, 11)])
def test_depth_is_that_of_the_longest_path(n_leaves, depth):
    assert tree_depth(n_leaves) == depth
    assert max(sum(1 for _ in path(leaf, n_leaves)) for leaf in range(n_leaves)) in (depth, depth - (n_leaves == 1))
