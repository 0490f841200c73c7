import math

import numpy as np
import pytest

from pictopic import DeepDocNADE, DocNADE, Rows
from pictopic.tasks import likelihood
from pictopic.tasks.likelihood import compare_with_unigram, log_likelihood_per_word, odd_means, unigram_log_proba

X = np.array([[3, 1, 0, 1], [0, 1, 3, 1], [2, 1, 0, 1], [0, 2, 2, 0]] * 5)
ONE_WORD = np.vstack([np.eye(4, dtype=int), np.zeros((1, 4), int)])


@pytest.mark.parametrize("kind", [DocNADE, DeepDocNADE])
def test_a_picture_of_one_word_is_as_probable_as_the_word(kind):
    estimator = kind(n_components=4, max_iter=5, random_state=0).fit(X)
    found = log_likelihood_per_word(estimator, Rows(ONE_WORD))
    expected = np.log(estimator.next_word_proba(np.zeros((1, 4), int))[0])
    assert np.allclose(found[:4], expected, atol=1e-5)
    assert np.isnan(found[4])


def test_it_is_a_mean_over_the_words_and_always_the_same():
    estimator = DocNADE(n_components=4, max_iter=5, random_state=0).fit(X)
    found = log_likelihood_per_word(estimator, Rows(X))
    assert "visual words" in odd_means(estimator)
    assert np.exp(-found).max() < 20  # of four words: not a sum over them
    assert np.array_equal(found, log_likelihood_per_word(estimator, Rows(X)))


def test_where_only_tags_are_predicted_it_is_the_mean_over_the_tags():
    options = {"n_annotation_words": 2, "split": "pictures_first", "max_iter": 5, "random_state": 0}
    estimator = DeepDocNADE(n_components=4, **options).fit(X)
    found = log_likelihood_per_word(estimator, Rows(X[:4], n_annotation_words=2))
    assert "tags, given the picture" in odd_means(estimator)
    pictures = X[:4] * [1, 1, 0, 0]
    p = estimator.next_word_proba(pictures, columns=[2, 3])
    log_p = np.log(p / p.sum(axis=1, keepdims=True))
    expected = [log_p[0, 1], log_p[1].mean(), log_p[2, 1], log_p[3, 0]]
    assert np.allclose(found, expected, atol=1e-5)


# ---- beside the unigram model ----------------------------------------------------------------------------------------

HELD_OUT = np.array([[1, 1, 0, 2], [0, 0, 0, 0], [0, 3, 1, 0]])


def unigram_by_loops(train, held_out):
    """Nats per word of a model that draws each word by how often it occurs in `train`, plus one."""
    counts = [1.0] * len(train[0])
    for row in train:
        for word, count in enumerate(row):
            counts[word] += count
    total, n_words = 0.0, 0
    for row in held_out:
        for word, count in enumerate(row):
            for _ in range(count):
                total += math.log(counts[word] / sum(counts))
                n_words += 1
    return total / n_words


def compare(estimator, held_out, n_annotation_words=0):
    rows = [Rows(own, n_annotation_words=n_annotation_words) for own in (held_out, X)]
    return compare_with_unigram(estimator, *rows)


@pytest.mark.parametrize("kind", [DocNADE, DeepDocNADE])
def test_both_are_means_over_the_same_words(kind):
    estimator = kind(n_components=4, max_iter=5, random_state=0).fit(X)
    found = compare(estimator, HELD_OUT)
    assert found["log_likelihood_per_word_baseline"] == pytest.approx(unigram_by_loops(X.tolist(), HELD_OUT.tolist()))
    assert found["log_likelihood_per_word"] == pytest.approx(
        estimator.log_likelihood(HELD_OUT, random_state=0).sum() / 8
    )
    assert found == compare(estimator, HELD_OUT)


def test_a_network_that_has_learnt_nothing_is_as_good_as_words_that_are_equally_frequent():
    """Both are then a uniform distribution over four words."""
    estimator = DeepDocNADE(n_components=4, max_iter=1, random_state=0).fit(X)
    for name, values in estimator.parameters_.items():
        estimator.parameters_[name] = np.zeros_like(values)
    assert compare(estimator, HELD_OUT)["log_likelihood_per_word"] == pytest.approx(-math.log(4), abs=1e-6)
    assert unigram_log_proba(np.full(4, 7)) == pytest.approx(np.full(4, -math.log(4)))


def test_of_many_pictures_some_are_scored_by_both(monkeypatch):
    monkeypatch.setattr(likelihood, "_MAX_SCORED", 2)
    estimator = DocNADE(n_components=4, max_iter=5, random_state=0).fit(X)
    assert compare(estimator, HELD_OUT) == compare(estimator, HELD_OUT[[0, 2]])


def test_pictures_without_words_give_no_figure():
    estimator = DocNADE(n_components=4, max_iter=1, random_state=0).fit(X)
    assert compare(estimator, np.zeros((3, 4), int)) == {}


def test_a_network_that_predicts_only_tags_gives_no_figure():
    options = {"n_annotation_words": 2, "split": "pictures_first", "max_iter": 1, "random_state": 0}
    assert compare(DeepDocNADE(n_components=4, **options).fit(X), HELD_OUT, 2) == {}
