import numpy as np
import pytest

from pictopic.demo.report import collect


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
    found = collect.confusion(model, others)
    assert np.sum(found.counts) == len(others)
    right = [answer[0][0] == label for answer, label in
             zip(model.classify(list(others.paths), 1), others.labels, strict=True)]  # fmt: skip
    assert np.trace(found.counts) == sum(right)


def test_cells_of_the_confusion_have_a_few_of_their_pictures(model, others):
    found = collect.confusion(model, others)
    for cell, pictures in found.examples.items():
        assert len(pictures) == min(4, np.array(found.counts)[cell])
        assert all(picture.alt.startswith(found.classes[cell[0]]) for picture in pictures)


def test_tags_are_right_if_the_picture_has_them(model, others):
    [found] = collect.tagged(model, others, [3])
    assert all(told.is_right == (told.name in others.tags[3]) for told in found.tags)
    assert sorted([told.name for told in found.tags if told.is_right] + found.missing) == sorted(others.tags[3])
    assert found.file_name == others.file_names[3]


def test_neighbours_are_right_if_they_are_of_the_same_class(model, others):
    [found] = collect.neighbours(model, others, [0])
    assert len(found.found) == 5
    assert all(own.is_right == (own.label == found.label) for own in found.found)
    assert [own.similarity for own in found.found] == sorted((own.similarity for own in found.found), reverse=True)


def test_topics_have_words_tags_and_units(model, parts):
    found = collect.topics(model, parts["train"])
    assert [topic.label for topic in found] == parts["train"].classes
    assert all(len(topic.words) == 4 and len(topic.units) == 3 and topic.tags for topic in found)


def test_explanation_says_what_was_answered_and_what_is_right(model, others):
    [found] = collect.explained(model, others, [1])
    assert found.label == others.labels[1]
    assert found.answer.is_right == (found.answer.name == found.label)
    assert 0 < found.probability <= 1
    assert found.overlay.uri != found.picture.uri


def test_training_run_has_the_losses_of_every_pass(model):
    run = collect.training_run("small model", model)
    classes, words = run.charts
    n_passes = int(run.note.split()[0])
    assert [len(series.values) for series in [*classes.series, *words.series]] == [n_passes] * 3
    assert all(value > 0 for series in classes.series for value in series.values)
