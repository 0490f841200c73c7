import colorsys

import numpy as np
import pytest

from pictopic.words.mpeg7 import color_structure, scalable_color
from tests.support.pictures import synthetic_picture


def levels(picture):
    """The histogram in 4 bits, of shape (value, saturation, hue)."""
    counts = np.zeros((4, 4, 16))
    for pixel in picture.reshape(-1, 3):
        hue, saturation, value = colorsys.rgb_to_hsv(*(int(x) / 255 for x in pixel))
        # A little more, because colorsys rounds; no hue or saturation of whole numbers is as near below a border.
        counts[int(value * 255 / 64), min(3, int(saturation * 4 + 1e-9)), int(hue * 16 + 1e-9) % 16] += 1
    eleven_bits = np.round(2047 * counts / counts.sum())
    return np.round(15 * np.minimum(1, eleven_bits / (0.4 * 2047)) ** 0.4)


def test_first_coefficients_compare_halves_of_the_histogram(rng):
    picture = rng.randint(0, 256, (40, 30, 3)).astype(np.uint8)
    h = levels(picture)
    first, second = h[:, :, :8].sum(), h[:, :, 8:].sum()
    quarters = [h[:, :, k : k + 4].sum() for k in (0, 4, 8, 12)]
    halves = [[h[v : v + 2, :, k : k + 4].sum() for v in (0, 2)] for k in (0, 4, 8, 12)]
    expected = [first + second, second - first, quarters[1] - quarters[0], quarters[3] - quarters[2]]
    expected += [high - low for low, high in halves]
    assert scalable_color(picture)[:8].tolist() == expected


def test_last_coefficients_compare_neighbouring_hues(rng):
    picture = rng.randint(0, 256, (40, 30, 3)).astype(np.uint8)
    h = levels(picture)
    assert scalable_color(picture)[128:].tolist() == (h[:, :, 1::2] - h[:, :, ::2]).ravel().tolist()


def test_histogram_can_be_had_back_from_the_coefficients():
    picture = synthetic_picture(60, 50)
    rest = scalable_color(picture)
    sums, shape = rest[:1].reshape(1, 1, 1), [1, 1, 1]
    rest = rest[1:]
    for axis in (2, 2, 0, 1, 2, 0, 1, 2):
        differences, rest = rest[: sums.size].reshape(shape), rest[sums.size :]
        pair = np.stack([(sums - differences) / 2, (sums + differences) / 2], axis=axis + 1)
        shape[axis] *= 2
        sums = pair.reshape(shape)
    np.testing.assert_array_equal(sums, levels(picture))


def test_golden_values():
    features = scalable_color(synthetic_picture(60, 50))
    assert features.dtype == np.float32
    assert features[[0, 1, 2, 3, 4, 5, 40, 100]].tolist() == [429, 9, 16, 3, 31, 57, 7, 1]


def test_order_of_pixels_does_not_matter_but_does_for_color_structure(rng):
    picture = synthetic_picture(60, 50)
    permuted = rng.permutation(picture.reshape(-1, 3)).reshape(picture.shape)
    np.testing.assert_array_equal(scalable_color(permuted), scalable_color(picture))
    assert (color_structure(permuted) != color_structure(picture)).sum() > 20


@pytest.mark.parametrize("color", [(0, 0, 0), (255, 255, 255), (255, 0, 0), (255, 0, 1), (12, 200, 100)])
def test_constant_picture_has_one_full_bin(color):
    features = scalable_color(np.full((7, 9, 3), color, np.uint8))
    assert features[0] == 15
    # One of the numbers of each of the 8 steps has it.
    assert np.count_nonzero(features) == 9
    assert set(abs(features)) == {0, 15}
