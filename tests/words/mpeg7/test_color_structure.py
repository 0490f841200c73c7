from fractions import Fraction

import numpy as np
import pytest

from pictopic.words.mpeg7 import _quantized, color_structure
from tests.support.pictures import synthetic_picture

# Where a shell of differences begins, its numbers of hues and sums, and its first cell.
SHELLS = [(110, 16, 4, 0), (60, 16, 4, 64), (20, 16, 4, 128), (6, 4, 8, 192), (0, 1, 32, 224)]


def cell(pixel):
    """Cell of HMMD space, 0 to 255, from the standard's table."""
    red, green, blue = map(int, pixel)
    top, low = max(red, green, blue), min(red, green, blue)
    difference = top - low
    if difference == 0:
        hue = Fraction(0)
    elif red == top:
        hue = Fraction(green - blue, difference) % 6
    elif green == top:
        hue = 2 + Fraction(blue - red, difference)
    else:
        hue = 4 + Fraction(red - green, difference)
    start, n_hues, n_sums, first = next(shell for shell in SHELLS if difference >= shell[0])
    level = int(Fraction(top + low - start, 2) * n_sums / (255 - start))
    return first + int(hue * n_hues / 6) * n_sums + min(level, n_sums - 1)


def slow_counts(picture):
    """Share of the windows of 8 x 8 pixels in which each cell occurs."""
    cells = np.array([[cell(pixel) for pixel in row] for row in picture])
    height, width = cells.shape
    counts, n = np.zeros(256), 0
    for y in range(max(1, height - 7)):
        for x in range(max(1, width - 7)):
            counts[np.unique(cells[y : y + 8, x : x + 8])] += 1
            n += 1
    return counts / n


@pytest.mark.parametrize("shape", [(30, 22), (8, 8), (5, 20), (20, 1), (1, 1)])
def test_features_are_those_of_the_definition(rng, shape):
    picture = rng.choice([0, 3, 40, 90, 140, 255], (*shape, 3)).astype(np.uint8)
    np.testing.assert_array_equal(color_structure(picture), _quantized(slow_counts(picture)))


def test_golden_values():
    picture = synthetic_picture(40, 60)
    features = color_structure(picture)
    np.testing.assert_array_equal(features, _quantized(slow_counts(picture)))
    assert features.dtype == np.float32
    assert [int(features.sum()), int(features.argmax()), *map(int, features[[0, 70, 130]])] == [5530, 41, 0, 43, 40]


def test_shares_are_quantised_in_the_steps_of_the_standard():
    shares = np.array([0, 1e-6, 0.0369, 0.037, 0.08, 0.195, 0.32, 0.66, 0.9999, 1])
    assert _quantized(shares).tolist() == [0, 1, 25, 26, 46, 81, 116, 186, 255, 255]


def test_constant_picture_has_one_colour_in_every_window():
    features = color_structure(np.full((40, 50, 3), (10, 200, 30), np.uint8))
    assert sorted(features)[-2:] == [0, 255]


def test_scattered_pixels_count_more_than_a_spot(rng):
    spot = np.zeros((64, 64, 3), np.uint8)
    spot[:8, :8] = 255
    scattered = rng.permutation(spot.reshape(-1, 3)).reshape(spot.shape)
    assert color_structure(scattered)[255] > 2 * color_structure(spot)[255] > 0


def test_of_a_large_picture_every_second_pixel_is_looked_at(rng):
    large = rng.choice([0, 90, 255], (512, 400, 3)).astype(np.uint8)
    np.testing.assert_array_equal(color_structure(large), color_structure(large[::2, ::2]))
