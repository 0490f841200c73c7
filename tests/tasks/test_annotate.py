import numpy as np
import pytest
from sklearn.metrics import f1_score

from pictopic.tasks.annotate import TagThresholds, _best_threshold, rank_tags

NAMES = ("sea", "sky", "car", "dog")


def test_ranks_are_renormalised_over_all_tags():
    found = rank_tags(np.array([0.01, 0.02, 0.0, 0.01]), NAMES, k=4)
    assert [name for name, _ in found] == ["sky", "sea", "dog", "car"]
    assert sum(score for _, score in found) == pytest.approx(1)


def test_known_tags_are_left_out_before_counting_to_k():
    assert [name for name, _ in rank_tags(np.array([4, 3, 2, 1]), NAMES, 2, known=("sea",))] == ["sky", "car"]


def made_up(rng, n=4000):
    """p(next word), and tags that are there with a probability that is some other function of it."""
    p = rng.dirichlet([0.5] * 4, n)
    chance = 1 / (1 + np.exp(-(1.5 * np.log(p + 1e-12) + np.array([2.0, 1.0, 0.5, 2.5]))))
    return p, rng.uniform(size=p.shape) < chance, chance


def test_probabilities_are_those_by_which_tags_were_made(rng):
    p, has_tag, chance = made_up(rng)
    learnt = TagThresholds.fit(p, has_tag)
    assert learnt.slope == pytest.approx(1.5, abs=0.1)
    assert np.abs(learnt.probabilities(p) - chance).mean() < 0.02


def test_best_threshold_has_the_best_f_measure(rng):
    probabilities, has_tag = rng.uniform(size=60), rng.uniform(size=60) < 0.4
    found = f1_score(has_tag, probabilities >= _best_threshold(probabilities, has_tag))
    best = max(f1_score(has_tag, probabilities >= value) for value in probabilities)
    assert found == pytest.approx(best)


def test_rare_tags_have_the_common_threshold(rng):
    p, has_tag, _ = made_up(rng, n=300)
    has_tag[:, 2] = False
    has_tag[:2, 2] = True
    learnt = TagThresholds.fit(p, has_tag)
    common = _best_threshold(learnt.probabilities(p).ravel(), has_tag.ravel())
    assert learnt.thresholds[2] == pytest.approx(common)
    assert learnt.thresholds[0] != pytest.approx(common)


def test_without_any_tag_there_is_a_plain_threshold():
    assert TagThresholds.fit(np.full((3, 2), 0.5), np.zeros((3, 2), bool)).thresholds.tolist() == [0.5, 0.5]


def test_thresholds_survive_json(rng):
    import json

    learnt = TagThresholds.fit(*made_up(rng, n=100)[:2])
    again = TagThresholds.from_dict(json.loads(json.dumps(learnt.to_dict())))
    np.testing.assert_array_equal(again.thresholds, learnt.thresholds)
    np.testing.assert_array_equal(again.offsets, learnt.offsets)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("slope", None), ("slope", float("nan")), ("slope", 1e308), ("slope", True), ("offsets", 1),
        ("offsets", [0.0]), ("offsets", [0.0, "1"]), ("thresholds", [0.5, 2.0]), ("thresholds", {"a": 1}),
    ],
)  # fmt: skip
def test_thresholds_with_a_wrong_value_are_refused(key, value):
    content = {"slope": 1.0, "offsets": [0.0, 1.0], "thresholds": [0.5, 0.5]}
    assert TagThresholds.from_dict(content).to_dict() == content
    with pytest.raises(ValueError, match=key):
        TagThresholds.from_dict(content | {key: value})
