import numpy as np
import pytest

from pictopic import DeepDocNADE, Rows
from pictopic.tasks.annotate import TagThresholds
from pictopic.tasks.fitting import Fitted
from pictopic.tasks.missing import suggest

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
    found = suggest(fitted, rows, kept=40)
    has_tag = rows.has_tag()[:, 3]
    asked = _one_by_one(fitted, rows, 3)
    missing = sorted((own for own in asked if not has_tag[own[0]]), key=lambda own: -own[1])[:40]
    doubtful = sorted((own for own in asked if has_tag[own[0]]), key=lambda own: own[1])[:40]
    for ours, expected in ((found.missing.of(3), missing), (found.doubtful.of(3), doubtful)):
        assert [p for _, p in ours] == pytest.approx([p for _, p in expected], abs=1e-5)
        probability = dict(asked)
        assert all(p == pytest.approx(probability[row], abs=1e-5) for row, p in ours)


def test_all_pictures_are_in_one_of_the_lists_if_there_is_room(fitted, rows):
    found = suggest(fitted, rows, kept=len(rows))
    for tag in range(N_TAGS):
        missing, doubtful = (sorted(row for row, _ in own.of(tag)) for own in found)
        assert missing == np.flatnonzero(~rows.has_tag()[:, tag]).tolist()
        assert doubtful == np.flatnonzero(rows.has_tag()[:, tag]).tolist()


def test_no_more_are_kept_than_wanted(fitted, rows):
    many, few = suggest(fitted, rows, kept=700), suggest(fitted, rows, kept=7)
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
