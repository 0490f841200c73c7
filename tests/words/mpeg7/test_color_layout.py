import numpy as np
import pytest

from pictopic.words.mpeg7 import color_layout
from tests.support.pictures import synthetic_picture

# Row and column of the first and last coefficients of JPEG's zigzag.
BEGINNING = [(0, 0), (0, 1), (1, 0), (2, 0), (1, 1), (0, 2), (0, 3), (1, 2), (2, 1), (3, 0), (4, 0)]
GOLDEN = [860.3194, -105.2241, -267.5674, 1047.097, 34.73003, 1024.545, -277.9531, -0.2616969]
END = [(7, 5), (6, 6), (5, 7), (6, 7), (7, 6), (7, 7)]


def slow_coefficient(picture, channel, u, v):
    """One coefficient of one of Y, Cb, Cr, by its formula."""
    height, width = picture.shape[0] // 8, picture.shape[1] // 8
    red, green, blue = picture.astype(float).reshape(8, height, 8, width, 3).mean(axis=(1, 3)).transpose(2, 0, 1)
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    plane = (luma, 128 + 0.564334 * (blue - luma), 128 + 0.713267 * (red - luma))[channel]
    norm = (np.sqrt(1 / 8) if u == 0 else 0.5) * (np.sqrt(1 / 8) if v == 0 else 0.5)
    return norm * sum(
        plane[y, x] * np.cos((2 * y + 1) * u * np.pi / 16) * np.cos((2 * x + 1) * v * np.pi / 16)
        for y in range(8)
        for x in range(8)
    )


@pytest.mark.parametrize("channel", [0, 1, 2])
def test_coefficients_are_those_of_the_formula_in_zigzag_order(channel):
    picture = synthetic_picture(48, 64)
    features = color_layout(picture).reshape(3, 64)[channel]
    expected = [slow_coefficient(picture, channel, u, v) for u, v in BEGINNING + END]
    np.testing.assert_allclose(np.r_[features[: len(BEGINNING)], features[-len(END) :]], expected, atol=2e-3)


def test_golden_values():
    features = color_layout(synthetic_picture(48, 64))
    assert features.shape == (192,)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features[[0, 1, 2, 64, 65, 128, 129, 191]], GOLDEN, rtol=1e-5)


def test_constant_picture_has_means_only():
    features = color_layout(np.full((31, 77, 3), (200, 100, 50), np.uint8)).reshape(3, 64)
    np.testing.assert_allclose(features[:, 0], 8 * np.array([124.2, 86.126, 182.066]), rtol=1e-3)
    assert abs(features[:, 1:]).max() < 1e-3


def test_grey_picture_has_no_waves_of_colour(rng):
    grey = rng.randint(0, 256, (40, 40, 1)).astype(np.uint8).repeat(3, axis=2)
    features = color_layout(grey).reshape(3, 64)
    assert abs(features[0, 1:]).max() > 10
    assert abs(features[1:, 1:]).max() < 1e-3


def test_enlarged_picture_has_the_same_features():
    picture = synthetic_picture(16, 24)
    enlarged = picture.repeat(5, axis=0).repeat(2, axis=1)
    np.testing.assert_allclose(color_layout(enlarged), color_layout(picture), atol=1e-3)


def test_picture_of_fewer_than_eight_pixels_is_enlarged(rng):
    picture = rng.randint(0, 256, (2, 4, 3)).astype(np.uint8)
    enlarged = picture.repeat(4, axis=0).repeat(2, axis=1)
    np.testing.assert_allclose(color_layout(picture), color_layout(enlarged), atol=1e-3)
