import colorsys

import numpy as np
from PIL import Image

from pictopic.paper.baselines import hsv_histograms


def test_colours_are_those_of_pythons_own_conversion(photo, tmp_path):
    Image.fromarray(photo).save(tmp_path / "photo.png")
    found = hsv_histograms([tmp_path / "photo.png", photo])
    np.testing.assert_array_equal(found[0], found[1])
    height, width = photo.shape[:2]
    expected = np.zeros((2, 2, 8, 4, 4), int)
    for y in range(height):
        for x in range(width):
            hue, saturation, value = colorsys.rgb_to_hsv(*(photo[y, x] / 255))
            cell = int(hue * 255) // 32, int(saturation * 255) // 64, int(value * 255 + 1e-9) // 64
            expected[(2 * y // height, 2 * x // width, *cell)] += 1
    assert found.shape == (2, 512)
    assert found[0].sum() == height * width
    # Pillow rounds hues a little differently: a few pixels lie on the other side of a border.
    assert abs(found[0] - expected.ravel()).sum() < 0.02 * height * width


def test_pictures_of_odd_size_and_grey_ones_have_four_regions():
    grey = np.full((5, 7), 200, np.uint8)
    counts = hsv_histograms([grey]).reshape(4, 128)
    assert counts.sum(axis=1).tolist() == [6, 8, 9, 12]
    assert np.flatnonzero(counts[0]).tolist() == [3]  # no hue, no saturation, the highest value


def test_no_pictures_have_no_rows():
    assert hsv_histograms([]).shape == (0, 512)
