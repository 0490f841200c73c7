from itertools import combinations
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from pictopic import SupDocNADE
from pictopic.tasks.topics import class_words, npmi_coherence, project, topic_diversity


def test_words_of_the_strongest_units_go_with_the_class():
    model = SupDocNADE(n_components=4)
    model.classes_ = np.array(["sea", "city"])
    model.coef_ = np.array([[3.0, 2.0, 1.0, -9.0], [-9.0, 0.0, 0.0, 5.0]])
    model.components_ = np.array([[0.0, 6, 0, 0, 0], [0, 0, 5, 0, 0], [0, 0, 0, 4, 0], [9, 0, 0, 0, 9]])
    words = class_words(model, n_units=3, n_words=3)
    assert words["sea"].tolist() == [1, 2, 3]
    assert class_words(model, n_units=1, n_words=2)["city"].tolist() == [0, 4]


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


def clusters(n: int, n_clusters: int = 4, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows around some centres, and which of them each is around."""
    rng = np.random.RandomState(seed)
    own = np.arange(n) % n_clusters
    return rng.normal(scale=3, size=(n_clusters, 12))[own] + rng.normal(scale=0.5, size=(n, 12)), own


def share_of_near_ones(places: np.ndarray, own: np.ndarray) -> float:
    """How often the nearest other place is of the same cluster."""
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    return float(np.mean(own[distances.argmin(axis=1)] == own))


@pytest.mark.parametrize("n_landmarks", [2000, 50])
def test_rows_of_a_cluster_lie_together(n_landmarks):
    vectors, own = clusters(200)
    assert share_of_near_ones(project(vectors, n_landmarks), own) > 0.95


def test_a_row_lies_near_the_landmarks_it_is_most_like():
    vectors, own = clusters(300)
    places = project(vectors, n_landmarks=60)
    middles = np.stack([places[own == k].mean(axis=0) for k in range(4)])
    nearest = np.linalg.norm(places[:, None] - middles[None], axis=2).argmin(axis=1)
    assert np.mean(nearest == own) > 0.95


def test_the_map_is_always_the_same():
    vectors, _ = clusters(80)
    assert np.array_equal(project(vectors, 40), project(vectors, 40))
    assert not np.array_equal(project(vectors, 40), project(vectors, 40, random_state=1))


@pytest.mark.parametrize(
    "vectors",
    [
        np.zeros((0, 5)), np.ones((1, 5)), np.eye(2, 5), np.eye(3, 5), np.eye(4, 5), np.ones((40, 8)), np.eye(10, 3),
        np.repeat(np.eye(2, 4), 5, axis=0), np.arange(7.0)[:, None],
    ],
    ids=["none", "one", "two", "three", "four", "all equal", "many equal", "two places", "one column"],
)  # fmt: skip
def test_few_or_equal_rows_have_places_within_the_map(vectors):
    places = project(vectors)
    assert places.shape == (len(vectors), 2)
    assert places.dtype == np.float32
    assert np.all((places >= 0) & (places <= 1))
    assert len(np.unique(places, axis=0)) == len(vectors)  # each can be seen


def test_the_map_is_filled():
    vectors, _ = clusters(120)
    low, high = project(vectors).min(axis=0), project(vectors).max(axis=0)
    assert max(high - low) > 0.95
