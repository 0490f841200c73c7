import base64
import io

import numpy as np
import pytest
from PIL import Image

from pictopic.demo.report import collect
from pictopic.demo.report.collect import thumbnail, word_picture
from pictopic.words.codebook import Patch


@pytest.fixture
def others(parts):
    return parts["test"]


def test_examples_are_of_all_classes_and_the_second_ones_are_others(others):
    first, second = collect.examples(others, 0), collect.examples(others, 1)
    assert [others.labels[row] for row in first] == others.classes
    assert not set(first) & set(second)


def test_examples_of_small_classes_start_again(others):
    few = others[collect.examples(others)]
    assert collect.examples(few, 7) == collect.examples(few, 0)


def test_confusion_counts_every_picture_once(model, others):
    shown = collect.confusion(model, others)
    assert np.sum(shown.counts) == len(others)
    right = [answer[0][0] == label for answer, label in
             zip(model.classify(list(others.paths), 1), others.labels, strict=True)]  # fmt: skip
    assert np.trace(shown.counts) == sum(right)


def test_cells_of_the_confusion_have_a_few_of_their_pictures(model, others):
    shown = collect.confusion(model, others)
    confused = collect.confused_pictures(shown, others)
    assert confused.keys() == shown.pictures.keys()
    for cell, pictures in confused.items():
        assert len(pictures) == min(4, np.array(shown.counts)[cell])
        assert all(picture.alt.startswith(shown.classes[cell[0]]) for picture in pictures)


def test_tags_are_right_if_the_picture_has_them(model, others):
    [shown] = collect.tagged(model, others, [3])
    assert all(answer.is_right == (answer.name in others.tags[3]) for answer in shown.tags)
    assert sorted([answer.name for answer in shown.tags if answer.is_right] + shown.missing) == sorted(others.tags[3])
    assert shown.file_name == others.file_names[3]


def test_neighbours_are_right_if_they_are_of_the_same_class(model, others):
    [shown] = collect.neighbours(model, others, [0])
    assert len(shown.similar) == 5
    assert all(picture.is_right == (picture.label == shown.label) for picture in shown.similar)
    similarities = [picture.similarity for picture in shown.similar]
    assert similarities == sorted(similarities, reverse=True)


def test_topics_have_words_tags_and_units(model, parts):
    shown = collect.topics(model, parts["train"])
    assert [topic.label for topic in shown] == parts["train"].classes
    assert all(len(topic.words) == 4 and len(topic.units) == 3 and topic.tags for topic in shown)


def test_explanation_says_what_was_answered_and_what_is_right(model, others):
    [shown] = collect.explained(model, others, [1])
    assert shown.label == others.labels[1]
    assert shown.answer.is_right == (shown.answer.name == shown.label)
    assert 0 < shown.probability <= 1
    assert shown.overlay.uri != shown.picture.uri


def test_training_run_has_the_losses_of_every_pass(model):
    run = collect.training_run("small model", model)
    classes, words = run.charts
    n_passes = int(run.note.split()[0])
    assert [len(series.values) for series in [*classes.series, *words.series]] == [n_passes] * 3
    assert all(value > 0 for series in classes.series for value in series.values)


def opened(uri):
    kind, _, content = uri.partition(",")
    assert kind == "data:image/jpeg;base64"
    return Image.open(io.BytesIO(base64.b64decode(content)))


def test_thumbnail_is_small_and_keeps_the_shape(photo):
    picture = thumbnail(np.repeat(np.repeat(photo, 4, axis=0), 4, axis=1), "a photo")
    assert opened(picture.uri).size == (160, 120)
    assert picture.alt == "a photo"


def test_picture_that_cannot_be_read_is_grey_and_says_why(tmp_path):
    (tmp_path / "bad.jpg").write_text("no picture")
    picture = thumbnail(tmp_path / "bad.jpg", "coast")
    assert opened(picture.uri).getpixel((5, 5)) == pytest.approx((128, 128, 128), abs=2)
    assert picture.alt.startswith("coast (")


def test_word_is_shown_by_its_patches(tmp_path):
    pixels = np.zeros((64, 64, 3), np.uint8)
    pixels[16:32, 32:48] = (250, 20, 20)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    patches = [Patch("a.png", 40.0, 24.0, 4.0), Patch("a.png", 8.0, 8.0, 4.0), Patch("gone.png", 8.0, 8.0, 4.0)]
    page = opened(word_picture(patches, {"a.png": tmp_path / "a.png"}, None, "a word").uri)
    first, second, third = (page.getpixel((19 + 40 * k, 19)) for k in range(3))
    assert first[0] > 200
    assert max(second) < 40
    assert third == pytest.approx((128, 128, 128), abs=12)
