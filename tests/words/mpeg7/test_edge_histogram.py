import numpy as np
import pytest

from pictopic.words.mpeg7 import edge_histogram
from tests.support.pictures import synthetic_picture

FILTERS = {
    "vertical": [[1, -1], [1, -1]],
    "horizontal": [[1, 1], [-1, -1]],
    "45 degrees": [[np.sqrt(2), 0], [0, -np.sqrt(2)]],
    "135 degrees": [[0, np.sqrt(2)], [-np.sqrt(2), 0]],
    "no direction": [[2, -2], [-2, 2]],
}


def slow_local(picture, size):
    """Shares of the five kinds in the 4 x 4 sub-images, block by block; of a picture of 4 x 4 equal parts."""
    luminance = picture @ np.array([0.299, 0.587, 0.114])
    half = size // 2
    filters = np.array(list(FILTERS.values()))
    height, width = (side // 4 for side in luminance.shape)
    shares = np.zeros((4, 4, 5))
    for i in range(4):
        for j in range(4):
            part = luminance[i * height : (i + 1) * height, j * width : (j + 1) * width]
            kinds = []
            for y in range(0, height, size):
                for x in range(0, width, size):
                    block = part[y : y + size, x : x + size]
                    means = block.reshape(2, half, 2, half).mean(axis=(1, 3))
                    strengths = abs((filters * means).sum(axis=(1, 2)))
                    if strengths.max() >= 11:
                        kinds.append(strengths.argmax())
            shares[i, j] = np.bincount(kinds, minlength=5) / (height * width / size**2)
    return shares


def test_local_shares_are_those_of_the_definition():
    picture = synthetic_picture(160, 192)  # sqrt(160 * 192 / 1100) = 5.3: blocks of 4 x 4
    expected = slow_local(picture, 4)
    np.testing.assert_allclose(edge_histogram(picture)[:80], expected.ravel(), atol=1e-6)
    assert (expected.sum(axis=(0, 1)) > 0).all()  # all kinds occur


def test_golden_values():
    features = edge_histogram(synthetic_picture(160, 192))
    assert features.shape == (150,)
    assert features.dtype == np.float32
    np.testing.assert_allclose(features[80:85], [0.008854, 0.089583, 0.004688, 0.009375, 0.303646], atol=1e-5)


def test_global_and_semi_global_shares_are_means_of_the_local_ones():
    features = edge_histogram(synthetic_picture(200, 170))
    local, whole, groups = features[:80].reshape(4, 4, 5), features[80:85], features[85:].reshape(13, 5)
    np.testing.assert_allclose(whole, local.reshape(16, 5).mean(axis=0), atol=1e-6)
    members = [[(i, j) for i in range(4)] for j in range(4)]  # columns
    members += [[(i, j) for j in range(4)] for i in range(4)]  # rows
    members += [[(i + a, j + b) for a in (0, 1) for b in (0, 1)] for i, j in [(0, 0), (0, 2), (2, 0), (2, 2), (1, 1)]]
    for group, places in zip(groups, members, strict=True):
        np.testing.assert_allclose(group, np.mean([local[place] for place in places], axis=0), atol=1e-6)


def edge(kind, size=64):
    """A picture of many blocks of 2 x 2 pixels, each with an edge of a kind."""
    quarters = np.array(FILTERS[kind])
    block = np.rint(128 + 60 * quarters / abs(quarters).max()).astype(np.uint8)
    return np.tile(block, (size // 2, size // 2))[:, :, None].repeat(3, axis=2)


@pytest.mark.parametrize("kind", list(FILTERS))
def test_an_edge_fills_the_bin_of_its_kind(kind):
    shares = edge_histogram(edge(kind)).reshape(30, 5)
    expected = np.eye(5)[list(FILTERS).index(kind)]
    np.testing.assert_array_equal(shares, np.tile(expected, (30, 1)))


def test_vertical_edge_fills_the_vertical_bins_of_its_column():
    picture = np.zeros((160, 160, 3), np.uint8)
    picture[:, 50:] = 255  # in the middle of a block of 4 pixels, in the second column of sub-images
    local = edge_histogram(picture)[:80].reshape(4, 4, 5)
    assert (local[:, 1, 0] == np.float32(0.1)).all()
    assert local.sum() == pytest.approx(0.4)


def test_constant_picture_has_no_edges():
    assert not edge_histogram(np.full((100, 60, 3), 77, np.uint8)).any()


def test_weak_edges_are_none():
    # An edge between 100 and 105 has the strength 10, one between 100 and 106 the strength 12.
    weak, strong = ((edge("vertical") > 128) * np.uint8(step) + np.uint8(100) for step in (5, 6))
    assert not edge_histogram(weak).any()
    assert edge_histogram(strong)[80] == 1


def test_turned_picture_has_turned_edges():
    picture = synthetic_picture(128, 128)
    local = edge_histogram(picture)[:80].reshape(4, 4, 5)
    turned = edge_histogram(np.rot90(picture))[:80].reshape(4, 4, 5)
    np.testing.assert_allclose(turned, np.rot90(local)[:, :, [1, 0, 3, 2, 4]], atol=0.02)


@pytest.mark.parametrize("shape", [(1, 1), (1, 3000), (3000, 2), (7, 9), (8, 8), (11, 13), (9, 5000)])
def test_every_part_of_a_picture_of_any_shape_has_blocks(shape):
    columns = (np.arange(shape[1]) % 2 * 255).astype(np.uint8)
    picture = np.broadcast_to(columns[None, :, None], (*shape, 3))
    features = edge_histogram(picture)
    assert np.isfinite(features).all()
    assert 0 <= features.min() <= features.max() <= 1
