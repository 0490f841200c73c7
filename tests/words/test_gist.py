import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pictopic.words.gist import gist
from tests.support.pictures import synthetic_picture

GOLDEN = [0.072035, 0.019206, 0.014592, 0.032833, 0.017074, 0.033331, 0.261292]
SMALL = st.tuples(st.integers(1, 12), st.integers(1, 12), st.just(3))


def slow_gist(picture):
    """The definition, for a picture of 128 x 128 pixels: all responses at all pixels, in float64."""
    n = 128
    logarithms = np.log(picture.astype(float) + 1).transpose(2, 0, 1)
    high = logarithms - blur(logarithms)
    high /= 0.2 + np.sqrt(blur(high.mean(axis=0) ** 2))
    spectra = np.fft.fft2(high)
    fy, fx = np.meshgrid(np.fft.fftfreq(n), np.fft.fftfreq(n), indexing="ij")
    features = []
    for scale, n_orientations in enumerate((8, 8, 4)):
        for k in range(n_orientations):
            angle = np.angle(np.exp(1j * (np.angle(fx + 1j * fy) + np.pi * k / n_orientations)))
            radius = np.hypot(fx, fy) / (0.3 / 1.85**scale)
            transfer = np.exp(-10 * 0.35 * (radius - 1) ** 2 - 2 * np.pi * (16 * n_orientations**2 / 32**2) * angle**2)
            magnitudes = np.abs(np.fft.ifft2(spectra * transfer))
            features.append(magnitudes.reshape(3, 4, 32, 4, 32).mean(axis=(2, 4)))
    return np.stack(features, axis=1)


def blur(channels):
    """Gaussian low-pass of a picture that goes on mirrored."""
    mirrored = np.concatenate([channels, channels[..., ::-1]], axis=-1)
    mirrored = np.concatenate([mirrored, mirrored[..., ::-1, :]], axis=-2)
    cycles = np.fft.fftfreq(256) * 128  # a picture
    low = np.exp(-(cycles[:, None] ** 2 + cycles**2) / (4 / np.sqrt(np.log(2))) ** 2)
    return np.fft.ifft2(np.fft.fft2(mirrored) * low).real[..., :128, :128]


def test_features_are_those_of_the_definition():
    picture = synthetic_picture()
    features, expected = gist(picture).reshape(3, 20, 4, 4), slow_gist(picture)
    np.testing.assert_allclose(features[:, :8], expected[:, :8], rtol=2e-4, atol=1e-5)
    # The coarser scales are looked at in every second place.
    np.testing.assert_allclose(features[:, 8:], expected[:, 8:], rtol=0.03, atol=5e-4)
    assert abs(features[:, 8:] / expected[:, 8:] - 1).mean() < 0.005


def test_golden_values():
    features = gist(synthetic_picture())
    assert features.shape == (960,)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features[[0, 5, 130, 319, 320, 640, 959]], GOLDEN, rtol=1e-3)


def test_constant_picture_has_no_edges():
    assert gist(np.full((50, 70, 3), 200, np.uint8)).max() < 1e-4


def test_darker_picture_has_the_same_features():
    picture = synthetic_picture() // 2 + 100
    darker = (picture.astype(int) * 6 // 10).astype(np.uint8)
    features = gist(picture)
    assert np.linalg.norm(gist(darker) - features) < 0.05 * np.linalg.norm(features)


@pytest.mark.parametrize("scale", [0, 1, 2])
@pytest.mark.parametrize("k", [0, 1, 3])
def test_stripes_excite_the_filter_of_their_size_and_direction(scale, k):
    n, first = (8, 8, 4)[scale], (0, 8, 16)[scale]
    y, x = np.mgrid[:128, :128]
    angle = -np.pi * k / n
    phase = 2 * np.pi * 0.3 / 1.85**scale * (x * np.cos(angle) + y * np.sin(angle))
    stripes = np.rint(128 + 60 * np.cos(phase))[:, :, None].repeat(3, axis=2).astype(np.uint8)
    strengths = gist(stripes).reshape(3, 20, 16).mean(axis=(0, 2))
    assert strengths[first : first + n].argmax() == k
    assert strengths.argmax() == first + k


def test_an_edge_shows_up_in_its_block_only():
    picture = np.full((128, 128, 3), 100, np.uint8)
    picture[70:90, 40:60] = 120  # third row, second column of blocks
    strengths = gist(picture).reshape(3, 20, 4, 4).mean(axis=(0, 1))
    assert strengths.argmax() == 2 * 4 + 1


def test_channels_are_apart():
    picture = synthetic_picture()
    swapped = gist(picture[:, :, [2, 0, 1]]).reshape(3, -1)
    np.testing.assert_allclose(swapped, gist(picture).reshape(3, -1)[[2, 0, 1]], rtol=1e-4, atol=1e-6)


def test_size_hardly_matters():
    small = gist(synthetic_picture(128, 128))
    large = gist(synthetic_picture(128, 128).repeat(3, axis=0).repeat(4, axis=1))
    assert np.corrcoef(small, large)[0, 1] > 0.95


@settings(max_examples=30, deadline=None)
@given(arrays(np.uint8, SMALL))
def test_any_small_picture_has_finite_features(picture):
    assert np.isfinite(gist(picture)).all()
