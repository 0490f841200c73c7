import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from pictopic.tasks.quality import confusion, tag_scores

CLASSES = ["a", "b", "c"]


def test_confusion_is_scikit_learns():
    rng = np.random.RandomState(0)
    true, proba = rng.choice(CLASSES, 50).tolist(), rng.dirichlet(np.ones(3), 50)
    found = confusion(true, proba, range(100, 150), CLASSES, CLASSES)
    expected = confusion_matrix(true, np.array(CLASSES)[proba.argmax(axis=1)], labels=CLASSES)
    assert found.counts.tolist() == expected.tolist()


def test_each_cell_names_its_pictures_the_surest_first():
    rng = np.random.RandomState(1)
    true, proba = rng.choice(CLASSES, 50).tolist(), rng.dirichlet(np.ones(3), 50)
    found = confusion(true, proba, range(100, 150), CLASSES, CLASSES)
    for (t, p), pictures in found.pictures.items():
        rows = [row - 100 for row, _ in pictures]
        assert {true[row] for row in rows} == {CLASSES[t]}
        assert set(proba[rows].argmax(axis=1)) == {p}
        assert [value for _, value in pictures] == sorted(proba[rows, p], reverse=True)
        assert len(pictures) == found.counts[t, p]


def test_pictures_without_a_class_are_not_counted():
    found = confusion([None, "b"], np.eye(3)[[0, 1]], [0, 1], CLASSES, CLASSES)
    assert found.counts.sum() == 1


def test_classes_may_be_told_in_another_order_and_be_more():
    found = confusion(["d", "c"], np.eye(3)[[0, 2]], [0, 1], CLASSES, ["d", "c", "b", "a"])
    assert found.counts[0].tolist() == [0, 0, 0, 1]
    assert found.counts[1].tolist() == [0, 1, 0, 0]


def test_tag_scores_are_scikit_learns():
    rng = np.random.RandomState(0)
    has_tag, given = rng.uniform(size=(30, 6)) < 0.3, rng.uniform(size=(30, 6)) < 0.4
    precision, recall, f, count = precision_recall_fscore_support(has_tag, given)
    found = tag_scores(has_tag, given, list("abcdef"))
    assert [own.count for own in found] == sorted(count, reverse=True)
    for own in found:
        k = "abcdef".index(own.name)
        assert (own.precision, own.recall, own.f, own.count) == pytest.approx((precision[k], recall[k], f[k], count[k]))


def test_what_cannot_be_measured_is_none_and_what_nobody_has_is_left_out():
    has_tag, given = np.array([[True, False, False]]), np.array([[False, True, False]])
    [first, second] = tag_scores(has_tag, given, ["never given", "nobody's", "neither"])
    assert (first.precision, first.recall, first.f) == (None, 0.0, 0.0)
    assert (second.precision, second.recall, second.f) == (0.0, None, 0.0)
