import itertools
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from pictopic.kernels.splits import counts_before, split_annotations, split_each_word, split_orderings


def draws(split, document, n=60_000, seed=1):
    """How often each context comes out of n splits of one document."""
    counts = np.tile(np.array(document, np.int32), n)
    context = np.empty_like(counts)
    split(np.arange(n + 1) * len(document), counts, seed, context)
    return Counter(map(tuple, context.reshape(n, -1).tolist()))


def contexts_by_enumeration(document):
    """Probability of each context: all orderings of the bag, all k = 0..D-1."""
    bag = np.repeat(np.arange(len(document)), document)
    found: Counter = Counter()
    for ordering in itertools.permutations(bag):
        for k in range(len(bag)):
            found[tuple(np.bincount(ordering[:k], minlength=len(document)).tolist())] += 1
    total = sum(found.values())
    return {context: n / total for context, n in found.items()}


@pytest.mark.parametrize("document", [[1], [3], [2, 1], [1, 1, 1], [2, 0, 3]])
def test_ordering_split_draws_contexts_as_shuffling_and_cutting_does(document):
    expected = contexts_by_enumeration(document)
    found = draws(split_orderings, document)
    assert set(found) == set(expected)
    observed = [found[context] for context in expected]
    if len(expected) > 1:
        assert stats.chisquare(observed, np.array(list(expected.values())) * 60_000).pvalue > 1e-4


def test_context_sizes_of_a_long_document_are_uniform():
    n = 20_000
    counts = np.tile(np.array([500, 3, 130], np.int32), n)
    context = np.empty_like(counts)
    split_orderings(np.arange(n + 1) * 3, counts, 5, context)
    sizes = context.reshape(n, 3).sum(axis=1)
    assert sizes.max() < 633
    assert stats.kstest(sizes / 633, "uniform").pvalue > 1e-4


def test_each_count_is_split_uniformly_and_independently():
    found = draws(split_each_word, [2, 1])
    assert len(found) == 6
    assert stats.chisquare(list(found.values())).pvalue > 1e-4


@pytest.mark.parametrize("split", [split_orderings, split_each_word])
def test_documents_without_words_disturb_no_others(split):
    indptr, counts = np.array([0, 0, 3, 3, 5]), np.array([2, 1, 4, 1, 3], np.int32)
    context = np.full(5, -1, np.int32)
    split(indptr, counts, 1, context)
    assert (context >= 0).all()
    assert (context <= counts).all()


@pytest.mark.parametrize("split", [split_orderings, split_each_word])
def test_split_repeats_for_the_same_seed_and_changes_with_it(split):
    assert draws(split, [3, 2, 4], n=10, seed=7) == draws(split, [3, 2, 4], n=10, seed=7)
    assert draws(split, [3, 2, 4], n=10, seed=7) != draws(split, [3, 2, 4], n=10, seed=8)


def annotation_draws(document, n_visual, n=60_000, seed=1, tags_only=False):
    counts = np.tile(np.array(document, np.int32), n)
    context = np.full_like(counts, -1)
    places = np.tile(np.arange(len(document)), n)
    flags = np.full(n, tags_only)
    split_annotations(np.arange(n + 1) * len(document), places, counts, n_visual, flags, seed, context)
    return context.reshape(n, -1)


def test_all_visual_words_are_given_when_pictures_come_first():
    np.testing.assert_array_equal(annotation_draws([5, 70, 1, 1], 2)[:, :2], [[5, 70]] * 60_000)


def test_no_annotation_words_are_given_every_second_time_and_a_random_share_otherwise():
    found = annotation_draws([3, 1, 1, 1], 1)[:, 1:]
    assert found.sum(axis=1).max() == 2
    shares = np.bincount(found.sum(axis=1)) / len(found)
    # Half of them, and of the other half the quarters for 0 of 3 and for 3 of 3 words, which becomes 0.
    np.testing.assert_allclose(shares, [0.75, 0.125, 0.125], atol=0.01)


def test_a_random_share_of_the_tags_is_all_that_is_given_of_a_picture_that_is_lost():
    found = annotation_draws([3, 1, 1, 1], 1, tags_only=True)
    np.testing.assert_array_equal(found[:, 0], 0)
    shares = np.bincount(found[:, 1:].sum(axis=1)) / len(found)
    np.testing.assert_allclose(shares, [0.25] * 4, atol=0.01)


@pytest.mark.parametrize("n_visual", [0, 4])
def test_documents_of_one_modality_are_left_to_the_other_split(n_visual):
    np.testing.assert_array_equal(annotation_draws([3, 1, 1, 1], n_visual, n=5), -1)


@pytest.mark.parametrize("size", [1, 2, 5, 100])
def test_counts_before_equal_a_plain_loop_in_any_chunks(rng, size):
    lengths = np.array([3, 0, 1, 6, 2])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    words = rng.randint(4, size=12)
    document = np.repeat(np.arange(5), lengths)
    expected = [np.bincount(words[offsets[document[i]] : i], minlength=4) for i in range(12)]
    running = np.zeros(4, np.float32)
    found = []
    for first in range(0, 12, size):
        last = min(first + size, 12)
        out = np.empty((last - first, 4), np.float32)
        counts_before(words, offsets, first, last, running, out)
        found.append(out)
    np.testing.assert_array_equal(np.concatenate(found), expected)
