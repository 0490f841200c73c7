from itertools import combinations
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from pictopic.tasks.coherence import npmi_coherence, topic_diversity

words = st.sampled_from("abcde")
documents = st.lists(st.lists(words, max_size=5), min_size=1, max_size=12)


def npmi(a, b, documents) -> float:
    """By the formula, with counts of documents."""
    n = len(documents)
    p_a, p_b = (sum(word in own for own in documents) / n for word in (a, b))
    p = sum(a in own and b in own for own in documents) / n
    if p == 0:
        return -1
    return 1 if p == 1 else log(p / (p_a * p_b)) / -log(p)


@given(st.lists(st.lists(words, max_size=6), max_size=4), documents, st.integers(1, 5))
def test_coherence_equals_a_plain_loop_over_pairs(topics, documents, top_k):
    expected = []
    for topic in topics:
        first = sorted(set(topic), key=topic.index)[:top_k]
        values = [npmi(a, b, documents) for a, b in combinations(first, 2)]
        expected.append(np.mean(values) if values else np.nan)
    np.testing.assert_allclose(npmi_coherence(topics, documents, top_k), expected, atol=1e-12)


@given(st.lists(st.lists(words, max_size=6), max_size=4), documents)
def test_counts_and_lists_of_words_give_the_same(topics, documents):
    names = "abcde"
    X = np.array([[own.count(word) for word in names] for own in documents])
    columns = [[names.index(word) for word in topic] for topic in topics]
    expected = npmi_coherence(topics, documents)
    for matrix in (X, sparse.csr_array(X)):
        np.testing.assert_allclose(npmi_coherence(columns, matrix), expected)


def test_a_word_that_never_occurs_meets_nothing():
    assert npmi_coherence([["a", "z"]], [["a"], ["b"]]).tolist() == [-1]


def test_documents_may_be_an_iterator():
    assert npmi_coherence([["a", "b"]], iter([["a", "b"], ["c"]])).tolist() == [1]


@given(st.lists(st.lists(words, min_size=1, max_size=6), min_size=1, max_size=4), st.integers(1, 5))
def test_diversity_equals_a_plain_loop(topics, top_k):
    found = [word for topic in topics for word in sorted(set(topic), key=topic.index)[:top_k]]
    assert topic_diversity(topics, top_k) == pytest.approx(len(np.unique(found)) / len(found))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: npmi_coherence([["a", "b"]], []), "no document"),
        (lambda: npmi_coherence([[0, 3]], np.eye(3)), "column numbers below 3"),
        (lambda: npmi_coherence([["a", "b"]], np.eye(3)), "column numbers"),
        (lambda: npmi_coherence(["sea"], [["sea"]]), "topic 0 is a text"),
        (lambda: npmi_coherence([["a"]], [["a"]], top_k=0), "top_k"),
        (lambda: topic_diversity([]), "no topic has a word"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
