from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pictopic.kernels.color_histogram import hsv_histogram, hue_level
from pictopic.words.pixels import as_rgb

BYTE = st.integers(0, 255)


def hue(red, green, blue):
    """Exact position on the colour circle, from 0 to 1, by turning the circle until red is the largest."""
    for third, (a, b, c) in enumerate([(red, green, blue), (green, blue, red), (blue, red, green)]):
        if a == max(a, b, c) > min(a, b, c):
            return (Fraction(b - c, 6 * (a - min(b, c))) + Fraction(third, 3)) % 1
    return Fraction(0)


@given(BYTE, BYTE, BYTE, st.sampled_from([1, 4, 16]))
def test_hue_level_is_the_exact_part_of_the_circle(red, green, blue, n_levels):
    top, low = max(red, green, blue), min(red, green, blue)
    assert hue_level(red, green, blue, top, top - low, n_levels) == int(hue(red, green, blue) * n_levels)


@pytest.mark.parametrize(
    ("color", "place"),
    [
        ((0, 0, 0), (0, 0, 0)),
        ((255, 255, 255), (3, 0, 0)),
        ((255, 0, 0), (3, 3, 0)),
        ((0, 63, 0), (0, 3, 5)),
        ((0, 0, 64), (1, 3, 10)),
        ((200, 151, 151), (3, 0, 0)),
        ((200, 150, 150), (3, 1, 0)),
        ((200, 100, 101), (3, 2, 15)),
    ],
)
def test_color_has_its_place_in_the_histogram(color, place):
    counts = np.zeros((4, 4, 16), np.int64)
    hsv_histogram(as_rgb(np.full((2, 3, 3), color, np.uint8)), counts)
    assert counts[place] == 6 == counts.sum()


def test_every_pixel_is_counted(rng):
    counts = np.zeros((4, 4, 16), np.int64)
    hsv_histogram(as_rgb(rng.randint(0, 256, (37, 23, 3)).astype(np.uint8)), counts)
    assert counts.sum() == 37 * 23
