import numpy as np

from pictopic.kernels.pooling import mean_colors, mean_magnitudes
from pictopic.words.pixels import as_rgb


def test_magnitudes_are_averaged_over_blocks(rng):
    responses = (rng.randn(3, 16, 24) + 1j * rng.randn(3, 16, 24)).astype(np.complex64)
    out = np.empty((3, 4, 4), np.float32)
    mean_magnitudes(responses, out)
    np.testing.assert_allclose(out, abs(responses).reshape(3, 4, 4, 4, 6).mean(axis=(2, 4)), rtol=1e-5)


def test_colors_are_averaged_over_blocks_of_nearly_equal_size(rng):
    picture = rng.randint(0, 256, (10, 7, 3)).astype(np.uint8)
    out = np.empty((3, 2, 3))
    mean_colors(as_rgb(picture), out)
    for i, (top, bottom) in enumerate([(0, 3), (3, 6), (6, 10)]):
        for j, (left, right) in enumerate([(0, 3), (3, 7)]):
            np.testing.assert_allclose(out[i, j], picture[top:bottom, left:right].mean(axis=(0, 1)))


def test_blocks_share_pixels_where_there_are_too_few(rng):
    picture = rng.randint(0, 256, (1, 2, 3)).astype(np.uint8)
    out = np.empty((4, 4, 3))
    mean_colors(as_rgb(picture), out)
    np.testing.assert_array_equal(out, np.broadcast_to(picture[:, [0, 0, 1, 1]], (4, 4, 3)))
