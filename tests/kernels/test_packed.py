import itertools

import numpy as np
import pytest

from pictopic.kernels.packed import add_sums_after, sums_before

OFFSETS = np.array([0, 3, 3, 4, 8])  # the second document is empty


@pytest.fixture
def words(rng):
    return rng.randint(6, size=OFFSETS[-1])


def test_sums_before_are_those_of_a_plain_loop(rng, words):
    W, c = rng.normal(size=(6, 5)).astype(np.float32), rng.normal(size=5).astype(np.float32)
    out = np.empty((len(words), 5), np.float32)
    sums_before(words, OFFSETS, W, c, out)
    expected = [
        c + W[words[first:i]].sum(axis=0) for first, last in itertools.pairwise(OFFSETS) for i in range(first, last)
    ]
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


def test_sums_after_are_those_of_a_plain_loop(rng, words):
    delta = rng.normal(size=(len(words), 5)).astype(np.float32)
    after_all = rng.normal(size=(4, 5)).astype(np.float32)
    out = rng.normal(size=(6, 5)).astype(np.float32)
    expected = out.astype(float)
    for d, (first, last) in enumerate(itertools.pairwise(OFFSETS)):
        for i in range(first, last):
            expected[words[i]] += after_all[d] + delta[i + 1 : last].sum(axis=0)
    add_sums_after(words, OFFSETS, delta, after_all, out)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-5)
