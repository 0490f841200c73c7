import colorsys

import numpy as np
import pytest
from PIL import Image
from scipy import sparse

from pictopic.paper.baselines import NeighborAnnotator, hsv_histograms


def slow_scores(train, tags, picture, k):
    """A plain loop over the k nearest by the cosine of square roots."""
    roots = np.sqrt(train)
    own = np.sqrt(picture)
    similarity = [own @ other / np.linalg.norm(own) / np.linalg.norm(other) for other in roots]
    nearest = sorted(range(len(train)), key=lambda i: (-similarity[i], i))[:k]
    votes = np.zeros(tags.shape[1])
    for i in nearest:
        votes += np.exp(10 * (similarity[i] - 1)) * tags[i]
    return votes


@pytest.mark.parametrize("k", [1, 4, 99])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_scores_are_those_of_a_loop(rng, k, kind):
    train, tags, test = rng.gamma(0.5, size=(30, 7)), rng.randint(2, size=(30, 5)), rng.gamma(0.5, size=(8, 7))
    model = NeighborAnnotator(n_neighbors=k).fit(kind(train), kind(tags))
    expected = [slow_scores(train, tags, own, k) for own in test]
    np.testing.assert_allclose(model.decision_function(kind(test)), expected, rtol=1e-9)


def test_number_of_neighbours_is_chosen_from_those_given(rng):
    group = np.repeat(np.arange(10), 5)
    features = rng.gamma(0.2, size=(10, 12))[group] + rng.uniform(0, 0.01, (50, 12))
    tags = (rng.uniform(size=(10, 20)) < 0.2)[group]
    tags[rng.permutation(50)[:10]] = 0  # some pictures without tags
    tags[:, 0] = 1
    model = NeighborAnnotator(n_neighbors=(1, 4)).fit(features, tags)
    assert model.n_neighbors_ == 4
    assert NeighborAnnotator(n_neighbors=(1, 4)).fit(features[:1], tags[:1]).n_neighbors_ == 1


@pytest.mark.parametrize(
    ("X", "Y", "message"),
    [
        ([[1, -1]], [[1]], "Negative values"),
        ([[1, 1]], [[3]], "0 and 1"),
        ([[1, 1]], [[1], [0]], "inconsistent numbers of samples"),
        ([[1, 1], [2, 1]], [[0], [0]], "no picture has a true tag"),
    ],
)
def test_bad_input_is_refused(X, Y, message):
    with pytest.raises(ValueError, match=message):
        NeighborAnnotator().fit(X, Y)


def test_no_neighbours_are_refused():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        NeighborAnnotator(n_neighbors=(0, 3)).fit([[1, 1]], [[1]])


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
