import numpy as np
from PIL import Image

from pictopic import Rows
from pictopic.tasks.explain import contributions, heat_map, overlay
from pictopic.words.codebook import Codebook
from pictopic.words.extract import Extractor, WordOptions


def test_contributions_of_a_linear_score_are_its_terms(rng):
    weights = rng.normal(size=6)
    rows = Rows([[3, 0, 1, 2, 1, 0]], n_annotation_words=2)
    total, columns, falls = contributions(rows, lambda given: given.read() @ weights)
    assert columns.tolist() == [0, 2, 3]
    np.testing.assert_allclose(falls, [3 * weights[0], weights[2], 2 * weights[3]])
    np.testing.assert_allclose(total, rows.read().toarray()[0] @ weights)


def test_features_stay_while_words_are_taken_away():
    rows = Rows([[1, 1]], [[7.0]])
    _, _, falls = contributions(rows, lambda given: given.read_features()[:, 0])
    np.testing.assert_array_equal(falls, 0)


def test_heat_lies_where_the_patches_of_a_word_are():
    picture = np.full((64, 64), 120, np.uint8)
    picture[:, :32] = np.where(np.arange(32) % 4 < 2, 60, 180)  # stripes at the left
    extractor = Extractor(WordOptions(n_words=2, regions="1x1"))
    image = extractor.open(picture)
    descriptors, _ = next(extractor.describe(image))
    extractor.codebook = Codebook(np.stack([descriptors[0], np.zeros(128)]))
    heat = heat_map(image, extractor, np.array([1.0, 0.0]))
    assert heat[:60, :20].min() > 0.9
    assert np.abs(heat[:, 56:]).max() == 0


def test_overlay_is_red_for_and_blue_against(rng):
    heat = np.zeros((10, 20))
    heat[:, :5], heat[:, 15:] = 1, -1
    found = np.asarray(overlay(Image.new("RGB", (20, 10), (128, 128, 128)), heat)).astype(int)
    assert found[5, 2, 0] > found[5, 2, 2] + 50
    assert found[5, 17, 2] > found[5, 17, 0] + 50
    assert np.ptp(found[5, 10]) == 0


def test_a_picture_without_heat_has_an_overlay_without_colours():
    found = np.asarray(overlay(Image.new("RGB", (8, 8), (9, 9, 9)), np.zeros((8, 8))))
    assert np.ptp(found) == 0
