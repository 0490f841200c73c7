import json

import numpy as np
import pytest
from PIL import Image

from pictopic.words.codebook import Codebook
from pictopic.words.extract import PRESETS, Extractor, WordOptions
from pictopic.words.sift import dense_sift


def codebook(n_words=7):
    return Codebook(np.random.RandomState(1).uniform(0, 0.2, (n_words, 128)))


def test_counts_are_the_words_of_the_patches_in_their_regions(photo):
    options = WordOptions(n_words=7, regions="2x2", step=5, bin_sizes=(3, 4))
    extractor = Extractor(options, codebook())
    image = extractor.open(photo)
    descriptors, places = dense_sift(np.asarray(image.convert("L")), step=5, bin_sizes=(3, 4))
    expected = np.zeros((4, 7), int)
    for word, (x, y, _) in zip(codebook().predict(descriptors), places, strict=True):
        expected[2 * (y + 0.5 >= 96 / 2) + (x + 0.5 >= 128 / 2), word] += 1
    np.testing.assert_array_equal(extractor.count(image), expected.ravel())


def test_a_pyramid_counts_every_patch_once_a_level(photo):
    flat, pyramid = (Extractor(WordOptions(n_words=7, regions=grid), codebook()) for grid in ("1x1", "1x1+2x2"))
    whole, levels = flat.count(flat.open(photo)), pyramid.count(pyramid.open(photo)).reshape(5, 7)
    np.testing.assert_array_equal(levels[0], whole)
    np.testing.assert_array_equal(levels[1:].sum(axis=0), whole)


def test_large_pictures_are_scaled_down(photo):
    extractor = Extractor(WordOptions(max_side=64), codebook())
    assert extractor.open(photo).size == (64, 48)


def test_features_do_not_change_the_counts(photo, tmp_path):
    Image.fromarray(photo).save(tmp_path / "a.jpg")
    grey, colour = (Extractor(WordOptions(features=kinds), codebook()) for kinds in ((), ("cld",)))
    np.testing.assert_array_equal(
        grey.count(grey.open(tmp_path / "a.jpg")), colour.count(colour.open(tmp_path / "a.jpg"))
    )


def test_features_are_those_of_the_kinds(photo):
    extractor = Extractor(WordOptions(features=("cld", "ehd")), codebook())
    assert extractor.features(extractor.open(photo)).shape == (192 + 150,)


def test_a_picture_smaller_than_a_patch_has_no_words():
    extractor = Extractor(WordOptions(n_words=7), codebook())
    assert extractor.count(extractor.open(np.zeros((1, 1), np.uint8))).sum() == 0


def test_without_a_codebook_nothing_is_counted(photo):
    extractor = Extractor(WordOptions())
    with pytest.raises(ValueError, match="no codebook"):
        extractor.count(extractor.open(photo))


def test_presets_are_the_papers():
    assert PRESETS["scenes"] == WordOptions(240, "2x2", 8, (4,), None)
    assert PRESETS["flickr"] == WordOptions(2000, "1x1", 3, (4, 6, 8, 10), 480)


def test_options_survive_json():
    options = WordOptions.preset("flickr", features=["gist"], n_words=None)
    assert WordOptions.from_dict(json.loads(json.dumps(options.to_dict()))) == options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "sports"}, "there is no preset 'sports'; there are scenes, flickr"),
        ({"words": 3}, "there is no option 'words'; there are bin_sizes, "),
        ({"n_words": 0}, "number of words must be at least 1"),
        ({"regions": "2"}, "is no grid"),
        ({"features": ("sift",)}, "unknown kind of features 'sift'"),
        ({"max_side": 0}, "max_side must be at least 1"),
        ({"bin_sizes": ()}, "bin_sizes must be at least 1"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        WordOptions.preset(**options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_words", 0), ("n_words", 2.0), ("n_words", 10**400), ("regions", 3), ("regions", "99999x99999"),
        ("step", None), ("bin_sizes", 4), ("bin_sizes", []), ("bin_sizes", [0]), ("max_side", "480"), ("smooth", 1),
        ("min_contrast", float("nan")), ("features", "gist"), ("features", [["gist"]]), ("features", ["no such"]),
        ("code", "import os"),
    ],
)  # fmt: skip
def test_options_from_a_file_with_a_wrong_value_are_refused(name, value):
    with pytest.raises(ValueError, match=r"must|regions|no option|unknown kind"):
        WordOptions.from_dict(WordOptions().to_dict() | {name: value})
