import numpy as np
import pytest

from pictopic.tasks.classify import LINEAR, OWN, SVM, ClassHead, _own_head, fit_class_head, sure_from, temperature


def blobs(rng, n=120, n_classes=3, spread=0.4):
    centres = 2 * np.eye(n_classes, 5)
    y = np.arange(n) % n_classes
    return centres[y] + rng.normal(0, spread, (n, 5)), np.array(list("abc"), dtype=object)[y], centres


def softmax(scores):
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_own_head_is_the_networks_softmax(rng, n_classes):
    U, d, Z = rng.normal(size=(n_classes, 5)), rng.normal(size=n_classes), rng.normal(size=(20, 5))
    head = _own_head((U, d), list("abc")[:n_classes], several=False)
    np.testing.assert_allclose(head.predict_proba(Z), softmax(Z @ U.T + d), rtol=1e-6)


def test_own_head_of_several_labels_is_the_networks_sigmoid(rng):
    U, d, Z = rng.normal(size=(3, 5)), rng.normal(size=3), rng.normal(size=(20, 5))
    head = _own_head((U, d), list("abc"), several=True)
    np.testing.assert_allclose(head.predict_proba(Z), 1 / (1 + np.exp(-(Z @ U.T + d))), rtol=1e-6)


@pytest.mark.parametrize(("quality", "expected"), [(1, OWN), (-1, SVM)])
def test_the_better_candidate_on_validation_is_taken(rng, quality, expected):
    Z, y, centres = blobs(rng)
    Z_val, y_val, _ = blobs(rng, n=90, spread=0.9)
    # A head that knows the centres, or one that knows them wrong.
    own = (4 * quality * centres, -2 * quality * (centres**2).sum(axis=1))
    head = fit_class_head(Z, y, Z_val, y_val, own, list("abc"))
    assert set(head.scores) == {OWN, SVM}
    assert head.name == expected or head.scores[OWN] == head.scores[SVM]


def test_probabilities_are_calibrated(rng):
    Z, y, centres = blobs(rng, n=600, spread=1.5)
    Z_val, y_val, _ = blobs(rng, n=600, spread=1.5)
    Z_test, y_test, _ = blobs(rng, n=3000, spread=1.5)
    head = fit_class_head(Z, y, Z_val, y_val, (20 * centres, -20 * np.ones(3)), list("abc"))  # far too sure of itself
    p = head.predict_proba(Z_test)
    right = np.array(head.classes, dtype=object)[p.argmax(axis=1)] == y_test
    assert abs(p.max(axis=1).mean() - right.mean()) < 0.05


def test_several_labels_have_a_linear_head(rng):
    Y = rng.randint(2, size=(200, 3))
    Z = np.hstack([Y, rng.normal(size=(200, 2))]) + rng.normal(0, 0.3, (200, 5))
    head = fit_class_head(Z[:150], Y[:150], Z[150:], Y[150:], (rng.normal(size=(3, 5)), np.zeros(3)), list("abc"))
    assert head.name == LINEAR
    assert head.multi_label
    assert ((head.predict_proba(Z[150:]) > 0.5) == Y[150:]).mean() > 0.9


def test_without_a_validation_part_the_networks_own_is_taken(rng):
    Z, y, centres = blobs(rng, n=9)
    head = fit_class_head(Z, y, Z[:0], y[:0], (centres, np.zeros(3)), list("abc"))
    assert head.name == OWN
    assert head.scores == {}


def test_a_saved_head_is_read_again(rng, tmp_path):
    Z, y, centres = blobs(rng)
    head = fit_class_head(Z, y, Z, y, (centres, np.zeros(3)), list("abc"))
    head.save(tmp_path)
    again = ClassHead.load(tmp_path, head.to_dict())
    np.testing.assert_array_equal(again.predict_proba(Z), head.predict_proba(Z))
    assert again.to_dict() == head.to_dict()


def test_where_all_answers_are_right_none_is_certain():
    scores = np.tile([5.0, 0.0], (20, 1))
    t = temperature(scores, np.array(["a"] * 20, dtype=object), ["a", "b"])
    np.testing.assert_allclose(softmax(scores / t)[:, 0], 21 / 22, atol=1e-3)


def test_rows_of_a_class_that_the_head_does_not_know_do_not_count():
    scores, y = np.array([[2.0, 0.0], [0.0, 1.0], [3.0, 1.0]]), np.array(["a", "a", "c"], dtype=object)
    assert temperature(scores, y, ["a", "b"]) == temperature(scores[:2], y[:2], ["a", "b"])


@pytest.mark.parametrize("quality", [1, -1])
def test_learning_again_keeps_what_was_chosen(rng, quality):
    Z, y, centres = blobs(rng)
    own = (4 * quality * centres, -2 * quality * (centres**2).sum(axis=1))
    head = fit_class_head(Z, y, *blobs(rng, n=90)[:2], own, list("abc"))
    name, heat = head.name, head.temperature
    moved = Z + 10.0  # as a network that was trained again would represent them
    head.learn(moved, y, (own[0], own[1] - 10 * own[0].sum(axis=1)))
    assert (head.name, head.temperature) == (name, heat)
    assert np.mean(np.array(head.classes, dtype=object)[head.predict_proba(moved).argmax(axis=1)] == y) > 0.95


def test_nothing_is_sure_where_most_answers_are_wrong():
    assert sure_from(np.array([[0.9, 0.1], [0.8, 0.2]]), np.array(["b", "b"]), ["a", "b"]) == 1.0
