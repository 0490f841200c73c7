import numpy as np
import pytest

from pictopic.words.pixels import as_rgb, center_square, resized


@pytest.mark.parametrize(
    "wrong",
    [
        np.zeros((4, 5), np.uint8),
        np.zeros((4, 5, 4), np.uint8),
        np.zeros((4, 5, 3), np.float32),
        np.zeros((0, 5, 3), np.uint8),
    ],
)
def test_what_is_no_picture_is_refused(wrong):
    with pytest.raises(ValueError, match="picture"):
        as_rgb(wrong)


def test_pixels_are_not_copied_and_the_callers_array_stays_writable(rng):
    picture = rng.randint(0, 256, (5, 4, 3)).astype(np.uint8)
    checked = as_rgb(picture)
    assert np.shares_memory(checked, picture)
    assert not checked.flags.writeable
    assert picture.flags.writeable


def test_halving_a_picture_averages_neighbours(rng):
    blocks = rng.randint(0, 256, (8, 8, 3)).astype(np.uint8)
    picture = blocks.repeat(16, axis=0).repeat(16, axis=1)
    # Away from the borders of the blocks.
    np.testing.assert_allclose(resized(picture, 64)[4::8, 4::8], blocks, atol=1)


@pytest.mark.parametrize(("height", "width"), [(90, 30), (30, 90), (1, 7), (40, 40)])
def test_center_square_is_in_the_middle_and_square(height, width):
    left, top, right, bottom = center_square(np.zeros((height, width, 3), np.uint8), share=0.5)
    assert right - left == bottom - top == min(height, width) / 2
    assert left + right == width
    assert top + bottom == height
