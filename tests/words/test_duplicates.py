import io

import numpy as np
import pytest
from PIL import Image, ImageEnhance

from pictopic.words.duplicates import groups, perceptual_hash
from tests.support.pictures import made_photo


def distance(a, b):
    return (perceptual_hash(a) ^ perceptual_hash(b)).bit_count()


def compressed(image):
    buffer = io.BytesIO()
    image.save(buffer, "JPEG", quality=40)
    return Image.open(buffer)


@pytest.mark.parametrize(
    "change",
    [
        lambda image: image.resize((200, 150)),
        compressed,
        lambda image: ImageEnhance.Brightness(image).enhance(1.1),
    ],
)
def test_copies_of_a_picture_have_near_fingerprints(change):
    image = Image.fromarray(made_photo(300, 400, seed=3))
    assert distance(image, change(image)) <= 4


def test_other_pictures_have_other_fingerprints():
    images = [Image.fromarray(made_photo(100, 140, seed=seed)) for seed in range(12)]
    assert min(distance(a, b) for k, a in enumerate(images) for b in images[:k]) > 8


def test_a_jpegs_own_grey_plane_gives_the_same_fingerprint(photo):
    plain, own = compressed(Image.fromarray(photo)), compressed(Image.fromarray(photo))
    own.draft("YCbCr", own.size)
    assert own.mode == "YCbCr"
    assert distance(own, plain) <= 1


def test_groups_are_those_of_all_pairs(rng):
    base = rng.randint(0, 2**63, size=30).astype(np.uint64)
    hashes = np.repeat(base, 4)
    for _ in range(3):
        hashes ^= np.uint64(1) << rng.randint(0, 64, size=len(hashes)).astype(np.uint64) * (rng.rand(120) < 0.7)
    near = np.bitwise_count(hashes[:, None] ^ hashes) <= 4
    reach = near.copy()
    for _ in range(8):
        reach = (reach.astype(int) @ reach.astype(int)) > 0
    found = groups(hashes)
    np.testing.assert_array_equal(found[:, None] == found, reach)


def test_groups_of_nothing_are_none():
    assert groups(np.zeros(0, np.uint64)).tolist() == []


def test_a_negative_distance_is_refused():
    with pytest.raises(ValueError, match="at least 0"):
        groups(np.zeros(2, np.uint64), max_distance=-1)
