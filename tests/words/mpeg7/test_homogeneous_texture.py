import numpy as np
import pytest

from pictopic.words.mpeg7 import homogeneous_texture
from tests.support.pictures import synthetic_picture

GOLDEN = [107.18467, 53.793606, 3.973119, 4.285055, 3.556336, 3.765558, 5.40867, 4.869059, 4.72541, 5.005628]
ENERGIES, BY_SCALE, BY_ORIENTATION = slice(2, 32), slice(32, 37), slice(37, 43)


def texture(degrees):
    """Strong waves of many lengths within 60 degrees and weak ones in all directions; turned left by some degrees."""
    rng = np.random.RandomState(0)
    y, x = np.mgrid[:128, :128] - 63.5
    place = (x - 1j * y) * np.exp(-1j * np.radians(degrees))
    brightness = np.full((128, 128), 128.0)
    for spread, strength in 25 * [(60, 5)] + 60 * [(180, 1.5)]:
        cycles, angle, phase = rng.uniform(2, 50), np.radians(rng.uniform(0, spread) - 20), rng.uniform(0, 6)
        along = (place * np.exp(-1j * angle)).real
        brightness += strength * np.cos(2 * np.pi * cycles * along / 128 + phase)
    return np.rint(brightness).clip(0, 255).astype(np.uint8)[:, :, None].repeat(3, axis=2)


def slow_channels(picture):
    """Energies and deviations from the Fourier transform at places of a polar grid."""
    luminance = picture @ np.array([0.299, 0.587, 0.114])
    y, x = np.mgrid[:128, :128] - 63.5
    window = 0.5 + 0.5 * np.cos(np.pi * np.clip(np.hypot(x, y) / 32 - 1, 0, 1))
    faded = (luminance - (luminance * window).sum() / window.sum()) * window
    w = (np.arange(160) + 0.5) / 160
    theta = np.radians(np.arange(0, 180, 1.5))
    along_x = np.exp(-1j * np.pi * np.outer(np.outer(w, np.cos(theta)).ravel(), x[0]))
    along_y = np.exp(1j * np.pi * np.outer(np.outer(w, np.sin(theta)).ravel(), y[:, 0]))
    power = abs(((along_y @ faded) * along_x).sum(axis=1)).reshape(len(w), len(theta)) ** 2
    energies, deviations = np.zeros((5, 6)), np.zeros((5, 6))
    for s in range(5):
        for r in range(6):
            center, width = 0.75 / 2**s, 0.5 / 2**s / (2 * np.sqrt(2 * np.log(2)))
            turned = np.degrees((theta - np.pi * r / 6 + np.pi / 2) % np.pi - np.pi / 2)
            gaussian = np.exp(-((w - center) ** 2) / (2 * width**2))[:, None] * np.exp(
                -(turned**2) / (2 * (15 / np.sqrt(2 * np.log(2))) ** 2)
            )
            response = (gaussian * w[:, None]) ** 2 * power
            energies[s, r] = np.log10(1 + response.mean())
            deviations[s, r] = np.log10(1 + response.std())
    return energies, deviations


def test_features_are_those_of_the_polar_definition():
    picture = synthetic_picture()
    features = homogeneous_texture(picture)
    luminance = picture @ np.array([0.299, 0.587, 0.114])
    energies, deviations = slow_channels(picture)
    np.testing.assert_allclose(features[:2], [luminance.mean(), luminance.std()], rtol=1e-5)
    np.testing.assert_allclose(features[ENERGIES], energies.ravel(), atol=0.02)
    np.testing.assert_allclose(features[BY_SCALE], deviations.mean(axis=1), atol=0.02)
    np.testing.assert_allclose(features[BY_ORIENTATION], deviations.mean(axis=0), atol=0.02)


def test_golden_values():
    features = homogeneous_texture(synthetic_picture())
    assert features.shape == (43,)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features[[0, 1, 2, 5, 20, 31, 32, 36, 37, 42]], GOLDEN, rtol=1e-4)


@pytest.mark.parametrize("steps", [1, 2, 3, 5])
def test_turning_by_30_degrees_moves_directions_one_place_on(steps):
    straight, turned = homogeneous_texture(texture(0)), homogeneous_texture(texture(30 * steps))
    expected = np.roll(straight[ENERGIES].reshape(5, 6), steps, axis=1)
    np.testing.assert_allclose(turned[ENERGIES].reshape(5, 6), expected, atol=0.03)
    np.testing.assert_allclose(turned[BY_SCALE], straight[BY_SCALE], atol=0.03)
    np.testing.assert_allclose(turned[BY_ORIENTATION], np.roll(straight[BY_ORIENTATION], steps), atol=0.03)
    assert np.ptp(expected, axis=1).min() > 0.3  # the directions do differ


def test_turning_a_wide_picture_by_90_degrees_moves_directions_three_places_on():
    picture = synthetic_picture(150, 260)
    straight, turned = homogeneous_texture(picture), homogeneous_texture(np.rot90(picture))
    expected = np.roll(straight[ENERGIES].reshape(5, 6), 3, axis=1)
    np.testing.assert_allclose(turned[ENERGIES].reshape(5, 6), expected, atol=0.01)


@pytest.mark.parametrize("scale", range(5))
def test_a_wave_is_strongest_in_its_octave(scale):
    wave = 128 + 100 * np.cos(np.arange(128) * np.pi * 0.75 / 2**scale)
    picture = np.broadcast_to(np.rint(wave)[None, :, None], (128, 128, 3)).astype(np.uint8)
    energies = homogeneous_texture(picture)[ENERGIES].reshape(5, 6)
    assert np.unravel_index(energies.argmax(), (5, 6)) == (scale, 0)


def test_constant_picture_has_brightness_only():
    features = homogeneous_texture(np.full((60, 90, 3), 50, np.uint8))
    np.testing.assert_allclose(features, [50] + 42 * [0], atol=1e-5)


def test_more_contrast_is_more_energy():
    picture = texture(0)
    faint = np.rint(128 + (picture.astype(float) - 128) / 4).astype(np.uint8)
    assert (homogeneous_texture(faint)[ENERGIES] < homogeneous_texture(picture)[ENERGIES]).all()
