import json

import numpy as np
import pytest

from pictopic.tasks.classifiers import LinearClassifier
from pictopic.tasks.classify import LINEAR, NETWORK, SVM, ClassHead, fit_class_head, sure_from, temperature


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
    head = ClassHead(LinearClassifier.of_network(U, d), list("abc")[:n_classes], NETWORK)
    np.testing.assert_allclose(head.predict_proba(Z), softmax(Z @ U.T + d), rtol=1e-6)


def test_own_head_of_several_labels_is_the_networks_sigmoid(rng):
    U, d, Z = rng.normal(size=(3, 5)), rng.normal(size=3), rng.normal(size=(20, 5))
    head = ClassHead(LinearClassifier.of_network(U, d), list("abc"), NETWORK, multi_label=True)
    np.testing.assert_allclose(head.predict_proba(Z), 1 / (1 + np.exp(-(Z @ U.T + d))), rtol=1e-6)


@pytest.mark.parametrize(("quality", "expected"), [(1, NETWORK), (-1, SVM)])
def test_the_better_candidate_on_validation_is_taken(rng, quality, expected):
    Z, y, centres = blobs(rng)
    Z_val, y_val, _ = blobs(rng, n=90, spread=0.9)
    # A head that knows the centres, or one that knows them wrong.
    own = (4 * quality * centres, -2 * quality * (centres**2).sum(axis=1))
    head = fit_class_head(Z, y, Z_val, y_val, own, list("abc"))
    assert set(head.scores) == {NETWORK, SVM}
    assert head.name == expected or head.scores[NETWORK] == head.scores[SVM]


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
    assert head.name == NETWORK
    assert head.scores == {}


def made_head(rng, kind):
    """A head of each kind, and rows to ask it about."""
    Z, y, centres = blobs(rng)
    if kind == LINEAR:
        Y = (y[:, None] == np.array(list("abc"), dtype=object)).astype(int)
        return fit_class_head(Z, Y, Z, Y, (-centres, np.zeros(3)), list("abc")), Z
    own = (centres if kind == NETWORK else -centres, np.zeros(3))
    return fit_class_head(Z, y, Z[: 0 if kind == NETWORK else None], y, own, list("abc")), Z


KINDS = [NETWORK, LINEAR, SVM]


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_head_is_read_again(rng, tmp_path, kind):
    head, Z = made_head(rng, kind)
    assert head.name == kind
    head.save(tmp_path)
    again = ClassHead.load(tmp_path, json.loads(json.dumps(head.to_dict())))
    np.testing.assert_array_equal(again.predict_proba(Z), head.predict_proba(Z))
    assert again.to_dict() == head.to_dict()


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_that_was_read_learns_again_as_the_one_that_was_saved(rng, tmp_path, kind):
    head, _ = made_head(rng, kind)
    head.save(tmp_path)
    again = ClassHead.load(tmp_path, head.to_dict())
    Z, y, centres = blobs(rng, n=90)
    y = (y[:, None] == np.array(list("abc"), dtype=object)).astype(int) if head.multi_label else y
    for one in (head, again):
        one.learn(Z + 1, y, (2 * centres, np.ones(3)))
    np.testing.assert_array_equal(again.predict_proba(Z), head.predict_proba(Z))


def test_a_class_of_which_no_picture_is_left_cannot_be_learnt_again(rng):
    head, _ = made_head(rng, SVM)
    Z, y, centres = blobs(rng)
    with pytest.raises(ValueError, match="no picture of the class 'b' is left"):
        head.learn(Z[y != "b"], y[y != "b"], (centres, np.zeros(3)))


_COMMON = ["mean", "scale", "intercept"]
_ARRAYS = {NETWORK: [*_COMMON, "coef"], LINEAR: [*_COMMON, "coef"],
           SVM: [*_COMMON, "dual_coef", "support_vectors", "n_support"]}  # fmt: skip


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in KINDS for name in _ARRAYS[kind]])
@pytest.mark.parametrize("damage", ["missing", "longer", "shorter", "infinite", "other type", "more dimensions"])
def test_a_head_with_a_wrong_array_is_refused_in_one_line(rng, tmp_path, kind, name, damage):
    from safetensors.numpy import load_file, save_file

    head, _ = made_head(rng, kind)
    head.save(tmp_path)
    path = tmp_path / "head.safetensors"
    arrays = load_file(path)
    wrong = arrays.pop(name)
    extreme = np.full_like(wrong, 2**40 if name == "n_support" else np.inf)
    changed = {
        "longer": np.concatenate([wrong, wrong]), "shorter": wrong[:-1], "infinite": extreme,
        "other type": wrong.astype(np.float32), "more dimensions": wrong[None],
    }  # fmt: skip
    save_file(arrays if damage == "missing" else arrays | {name: np.ascontiguousarray(changed[damage])}, path)
    with pytest.raises(ValueError, match=r"^.*head\.safetensors is damaged: .*$") as error:
        ClassHead.load(tmp_path, head.to_dict())
    assert "\n" not in str(error.value)


def test_support_vectors_that_do_not_add_up_are_refused(rng, tmp_path):
    from safetensors.numpy import load_file, save_file

    head, _ = made_head(rng, SVM)
    head.save(tmp_path)
    arrays = load_file(tmp_path / "head.safetensors")
    arrays["n_support"][0] += 1
    save_file(arrays, tmp_path / "head.safetensors")
    with pytest.raises(ValueError, match="'n_support' adds up to"):
        ClassHead.load(tmp_path, head.to_dict())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("classes", ["a"]), ("classes", ["a", "b", "b"]), ("classes", "abc"), ("classes", [1, 2, 3]),
        ("name", "linear"), ("name", "pickle"), ("name", None), ("scores", {"x": 1}), ("scores", []),
        ("multi_label", 1), ("multi_label", True), ("sure_from", float("nan")), ("sure_from", "0.5"),
        ("temperature", 0), ("temperature", -1.0), ("temperature", 1e308), ("temperature", None),
        ("chosen", {}), ("chosen", {"C": 1.0, "gamma": float("inf")}), ("chosen", {"C": True, "gamma": 1.0}),
    ],
)  # fmt: skip
def test_a_head_with_a_wrong_value_is_refused(rng, tmp_path, key, value):
    head, _ = made_head(rng, SVM)
    head.save(tmp_path)
    with pytest.raises(ValueError, match=r"must be|missing|twice|too few|no array|of shape"):
        ClassHead.load(tmp_path, head.to_dict() | {key: value})


@pytest.mark.parametrize("key", ["classes", "name", "scores", "multi_label", "sure_from", "temperature", "chosen"])
def test_a_head_without_a_value_is_refused(rng, tmp_path, key):
    head, _ = made_head(rng, SVM)
    head.save(tmp_path)
    content = head.to_dict()
    del content[key]
    with pytest.raises(ValueError, match=f"'{key}' is missing"):
        ClassHead.load(tmp_path, content)


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
