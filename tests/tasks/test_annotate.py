import numpy as np
import pytest
from sklearn.metrics import f1_score

from pictopic import DeepDocNADE, Rows
from pictopic.tasks.annotate import TagThresholds, _best_threshold, rank_tags, suggest
from pictopic.tasks.fit import Fitted

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


N_TAGS = 5


@pytest.fixture(scope="module")
def rows() -> Rows:
    """Pictures whose tags follow from their words, except that one is missing and one is wrong."""
    rng = np.random.RandomState(0)
    kind = np.arange(1200) % N_TAGS
    words = rng.poisson(np.eye(N_TAGS)[kind] * 6 + 0.3)
    tags = np.eye(N_TAGS, dtype=int)[kind]
    tags[rng.uniform(size=len(kind)) < 0.2] += np.eye(N_TAGS, dtype=int)[0]  # some have two
    tags = np.minimum(tags, 1)
    tags[12] = 0  # of kind 2: missing
    tags[13] = [0, 1, 0, 1, 0]  # of kind 3: 1 is wrong
    return Rows(np.hstack([words, tags]), n_annotation_words=N_TAGS)


@pytest.fixture(scope="module")
def fitted(rows) -> Fitted:
    options = {"n_annotation_words": N_TAGS, "split": "pictures_first", "max_iter": 30, "random_state": 0}
    estimator = DeepDocNADE(n_components=16, **options).fit(rows)
    return Fitted(estimator, None, TagThresholds(1.5, np.linspace(0, 1, N_TAGS), np.full(N_TAGS, 0.5)), {})


def test_a_tag_that_was_forgotten_is_found(fitted, rows):
    found = suggest(fitted, rows)
    assert 12 in [row for row, _ in found.missing.of(2)[:3]]


def test_a_tag_that_is_wrong_is_found(fitted, rows):
    assert 13 in [row for row, _ in suggest(fitted, rows).doubtful.of(1)[:3]]


def _one_by_one(fitted, rows, tag):
    """Row and probability of all pictures, each asked about alone."""
    found = []
    for row in range(len(rows)):
        counts = rows[[row]].read().toarray()
        counts[:, -N_TAGS:] = 0
        p = fitted.estimator.next_word_proba(counts)[0, -N_TAGS:]
        p = fitted.thresholds.probabilities(p / p.sum())[tag]
        found.append((row, p))
    return found


def test_ranking_is_that_of_pictures_asked_about_one_by_one(fitted, rows):
    found = suggest(fitted, rows, n_pictures=40)
    has_tag = rows.has_tag()[:, 3]
    asked = _one_by_one(fitted, rows, 3)
    missing = sorted((own for own in asked if not has_tag[own[0]]), key=lambda own: -own[1])[:40]
    doubtful = sorted((own for own in asked if has_tag[own[0]]), key=lambda own: own[1])[:40]
    for ours, expected in ((found.missing.of(3), missing), (found.doubtful.of(3), doubtful)):
        assert [p for _, p in ours] == pytest.approx([p for _, p in expected], abs=1e-5)
        probability = dict(asked)
        assert all(p == pytest.approx(probability[row], abs=1e-5) for row, p in ours)


def test_all_pictures_are_in_one_of_the_lists_if_there_is_room(fitted, rows):
    found = suggest(fitted, rows, n_pictures=len(rows))
    for tag in range(N_TAGS):
        missing, doubtful = (sorted(row for row, _ in own.of(tag)) for own in found)
        assert missing == np.flatnonzero(~rows.has_tag()[:, tag]).tolist()
        assert doubtful == np.flatnonzero(rows.has_tag()[:, tag]).tolist()


def test_no_more_are_kept_than_wanted(fitted, rows):
    many, few = suggest(fitted, rows, n_pictures=700), suggest(fitted, rows, n_pictures=7)
    assert few.missing.rows.shape == (N_TAGS, 7)
    assert [few.missing.of(tag) for tag in range(N_TAGS)] == [many.missing.of(tag)[:7] for tag in range(N_TAGS)]


def test_without_thresholds_it_is_the_share_among_the_tags(fitted, rows):
    raw = Fitted(fitted.estimator, None, None, {})
    row, p = suggest(raw, rows).missing.of(2)[0]
    counts = rows[[row]].read().toarray() * ([1] * N_TAGS + [0] * N_TAGS)
    expected = raw.estimator.next_word_proba(counts)[0, -N_TAGS:]
    assert p == pytest.approx(expected[2] / expected.sum(), abs=1e-5)


@pytest.mark.parametrize(("columns", "n_tags"), [(slice(0, N_TAGS), 0), (slice(N_TAGS, None), N_TAGS)])
def test_without_tags_or_without_pictures_nothing_can_be_said(fitted, rows, columns, n_tags):
    with pytest.raises(ValueError, match="the collection"):
        suggest(fitted, Rows(rows.read()[:, columns], n_annotation_words=n_tags))
