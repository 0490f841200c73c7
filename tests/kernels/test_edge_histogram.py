import numpy as np
import pytest

from pictopic.kernels.edge_histogram import edge_counts
from pictopic.words.pixels import as_rgb


def count(picture, size, threshold=11.0):
    counts = np.zeros((4, 4, 5), np.int64)
    edge_counts(as_rgb(picture), size, threshold, counts)
    return counts


@pytest.mark.parametrize("size", [2, 4, 6])
def test_kinds_are_those_of_the_strongest_filter(rng, size):
    picture = rng.randint(0, 256, (50, 41, 3)).astype(np.uint8)
    filters = np.array(
        [[1, -1, 1, -1], [1, 1, -1, -1], [2**0.5, 0, 0, -(2**0.5)], [0, 2**0.5, -(2**0.5), 0], [2, -2, -2, 2]]
    )
    luminance = picture @ np.array([0.299, 0.587, 0.114])
    n_rows, n_columns, half = 50 // size, 41 // size, size // 2
    expected = np.zeros((4, 4, 5), int)
    for i in range(n_rows):
        for j in range(n_columns):
            block = luminance[i * size : (i + 1) * size, j * size : (j + 1) * size]
            quarters = [block[y : y + half, x : x + half].mean() for y in (0, half) for x in (0, half)]
            strengths = abs(filters @ quarters)
            if strengths.max() >= 30:
                expected[4 * i // n_rows, 4 * j // n_columns, strengths.argmax()] += 1
    np.testing.assert_array_equal(count(picture, size, threshold=30.0), expected)


def test_of_equally_strong_kinds_the_first_is_taken():
    # A single bright quarter is an edge of strength 10 for the two upright filters, and of 20 for the last.
    block = np.zeros((8, 8, 3), np.uint8)
    block[:4, :4] = 10
    assert count(block, 8, threshold=5.0).sum(axis=(0, 1)).tolist() == [0, 0, 0, 0, 1]


def test_sums_of_large_bright_blocks_do_not_overflow():
    picture = np.full((2400, 2400, 3), 255, np.uint8)
    picture[:, 300::600] = 0
    picture[:, :300] = 0
    assert count(picture, 600)[:, 0, 0].tolist() == [1, 1, 1, 1]
