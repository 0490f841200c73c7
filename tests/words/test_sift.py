import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from pictopic.words.sift import dense_sift, each_bin_size, n_patches
from tests.support import vlfeat
from tests.support.pictures import made_photo

GOLDEN = Path(__file__).parent / "golden" / "dense_sift.json"
GRID = [(8, 4), (3, 4), (3, 6), (3, 8), (3, 10), (5, 3), (1, 1)]


def cosines(a, b):
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return (a * b).sum(axis=1)[lengths > 0] / lengths[lengths > 0]


@pytest.fixture(scope="module")
def vl():
    library = vlfeat.library()
    if library is None:
        pytest.skip("VLFeat is not installed (Debian: libvlfeat-dev)")
    return library


@pytest.fixture
def gray(photo):
    return photo.mean(axis=2).astype(np.uint8)


@pytest.mark.parametrize(("step", "bin_size"), GRID)
def test_descriptors_are_vlfeats(vl, gray, step, bin_size):
    expected, frames = vlfeat.dense_sift(vl, gray, step, bin_size)
    found, centres = dense_sift(gray, step=step, bin_sizes=bin_size)
    np.testing.assert_array_equal(centres[:, :2], frames[:, :2])
    similar = cosines(found, expected)
    assert similar.mean() >= 0.9998
    assert similar.min() >= 0.999


@pytest.mark.parametrize("bin_size", [4, 8])
def test_phow_smoothing_is_vlfeats(vl, gray, bin_size):
    expected, _ = vlfeat.dense_sift(vl, vlfeat.smooth(vl, gray, bin_size / 6), 5, bin_size)
    similar = cosines(dense_sift(gray, step=5, bin_sizes=bin_size, smooth=True)[0], expected)
    assert similar.mean() >= 0.9998
    assert similar.min() >= 0.995


@pytest.mark.parametrize("bin_size", [4, 6])
def test_contrast_is_measured_in_vlfeats_units(vl, gray, bin_size):
    _, frames = vlfeat.dense_sift(vl, gray / 255, 4, bin_size)
    threshold = np.median(frames[:, 2])
    found, _ = dense_sift(gray, step=4, bin_sizes=bin_size, min_contrast=threshold)
    np.testing.assert_array_equal(found.any(axis=1), frames[:, 2] >= threshold)


def test_golden_descriptors_are_vlfeats():
    golden = json.loads(GOLDEN.read_text())
    found, _ = dense_sift(made_photo(40, 48, seed=1)[:, :, 1], step=golden["step"], bin_sizes=golden["bin_size"])
    similar = cosines(found[golden["rows"]], np.array(golden["descriptors"]))
    assert similar.min() >= 0.9998


def test_opencv_describes_patches_alike(gray):
    cv2 = pytest.importorskip("cv2")
    blurred = ndimage.gaussian_filter(gray.astype(np.float32), np.sqrt(1.6**2 - 0.5**2))  # as OpenCV does first
    found, centres = dense_sift(blurred, step=6, bin_sizes=4)
    inside = ((centres[:, :2] > 12) & (centres[:, :2] < np.array(gray.shape[::-1]) - 12)).all(axis=1)
    keypoints = [cv2.KeyPoint(float(x), float(y), 2 * 4 / 3, 0.0) for x, y, _ in centres[inside]]
    _, theirs = cv2.SIFT_create().compute(gray, keypoints)
    # OpenCV counts the directions the other way round.
    theirs = theirs.reshape(-1, 16, 8)[:, :, (8 - np.arange(8)) % 8].reshape(-1, 128)
    assert np.median(cosines(found[inside], theirs)) > 0.97


def test_descriptors_follow_their_definition(rng):
    """One patch, added up pixel by pixel."""
    gray = rng.randint(256, size=(13, 13)).astype(float)
    dy, dx = np.gradient(gray)
    size, turn = np.hypot(dx, dy), np.arctan2(dy, dx) % (2 * np.pi) * 4 / np.pi
    expected = np.zeros((4, 4, 8))
    inside = np.arange(-3, 4)
    weights = [np.exp(-0.5 * ((inside - 4 * (j - 1.5)) / 8) ** 2).mean() for j in range(4)]
    for j, c, y, x in np.ndindex(4, 4, 13 + 6, 13 + 6):
        near = max(0, 4 - abs(y - 3 - 4 * j)) * max(0, 4 - abs(x - 3 - 4 * c)) * weights[j] * weights[c]
        at = min(max(y - 3, 0), 12), min(max(x - 3, 0), 12)  # the border goes on outside
        k, share = int(turn[at]), turn[at] % 1
        expected[j, c, k % 8] += near * size[at] * (1 - share)
        expected[j, c, (k + 1) % 8] += near * size[at] * share
    expected = np.minimum(expected.ravel() / np.linalg.norm(expected), 0.2)
    np.testing.assert_allclose(dense_sift(gray)[0], [expected / np.linalg.norm(expected)], atol=2e-5)


def test_flat_parts_have_zero_descriptors_beside_strong_edges():
    gray = np.zeros((200, 40), np.uint8)
    gray[:60] = np.random.RandomState(0).randint(256, size=(60, 40))
    descriptors, centres = dense_sift(gray, step=4)
    np.testing.assert_array_equal(descriptors[centres[:, 1] > 60 + 12], 0)


def test_rotating_a_picture_permutes_its_bins_and_directions(gray):
    square = gray[:93, :93]
    found = dense_sift(square, step=8)[0].reshape(11, 11, 4, 4, 8)
    turned = dense_sift(np.rot90(square, 2), step=8)[0].reshape(11, 11, 4, 4, 8)
    expected = np.roll(found[::-1, ::-1, ::-1, ::-1], 4, axis=4)
    assert cosines(turned.reshape(-1, 128), expected.reshape(-1, 128)).min() > 0.9999


def test_several_bin_sizes_follow_one_another(gray):
    together, centres = dense_sift(gray, step=5, bin_sizes=(4, 8))
    apart = [dense_sift(gray, step=5, bin_sizes=size) for size in (4, 8)]
    np.testing.assert_array_equal(together, np.concatenate([part[0] for part in apart]))
    np.testing.assert_array_equal(centres, np.concatenate([part[1] for part in apart]))


def test_bin_sizes_one_at_a_time_give_the_same(gray):
    together, _ = dense_sift(gray, step=5, bin_sizes=(4, 8), smooth=True, min_contrast=0.01)
    parts = [part for part, _ in each_bin_size(gray, step=5, bin_sizes=(4, 8), smooth=True, min_contrast=0.01)]
    np.testing.assert_array_equal(np.concatenate(parts), together)


def test_the_papers_flickr_pictures_have_69176_patches():
    assert n_patches(360, 480, 3, (4, 6, 8, 10)) == 69176


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 9), st.integers(1, 9), st.integers(0, 99))
def test_pictures_of_any_size_have_unit_or_zero_descriptors(height, width, step, bin_size, seed):
    gray = np.random.RandomState(seed).choice([0, 255], size=(height, width), p=[0.9, 0.1])
    descriptors, centres = dense_sift(gray, step=step, bin_sizes=bin_size)
    lengths = np.linalg.norm(descriptors, axis=1)
    assert len(descriptors) == len(centres) == n_patches(height, width, step, [bin_size])
    np.testing.assert_allclose(lengths[lengths > 0], 1, atol=1e-5)
    assert ((centres[:, :2] >= 0) & (centres[:, :2] <= [width - 1, height - 1])).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [({"step": 0}, "step and bin_sizes must be at least 1"), ({"bin_sizes": ()}, "at least 1")],
)
def test_wrong_options_are_refused(gray, options, message):
    with pytest.raises(ValueError, match=message):
        dense_sift(gray, **options)


def test_a_colour_picture_is_refused(photo):
    with pytest.raises(ValueError, match="expected a grey picture"):
        dense_sift(photo)
