import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pictopic.models.tree import WordTree


def _walk(tree, word):
    """Path of a word by following the definition down from the root."""
    low, high, node, path = 0, tree.n_words, 0, []
    leaf = int(tree.leaf_of_word[word])
    while high - low > 1:
        middle = (low + high) // 2
        path.append((node, int(leaf >= middle)))
        if leaf < middle:
            high, node = middle, node + 1
        else:
            low, node = middle, node + middle - low
    return path


@given(n_words=st.integers(1, 200), seed=st.integers(0, 5))
def test_paths_lead_to_each_words_leaf(n_words, seed):
    tree = WordTree(n_words, seed)
    nodes, sides = tree.paths()
    for word in range(n_words):
        on_path = nodes[word] >= 0
        found = list(zip(nodes[word, on_path].tolist(), sides[word, on_path].tolist(), strict=True))
        assert found == _walk(tree, word)


@given(n_words=st.integers(1, 200))
def test_tree_is_balanced_and_uses_every_node(n_words):
    tree = WordTree(n_words, 0)
    nodes, _ = tree.paths()
    lengths = (nodes >= 0).sum(axis=1)
    assert lengths.max() - lengths.min() <= 1
    assert lengths.max() == int(np.ceil(np.log2(n_words)))
    assert sorted(set(nodes[nodes >= 0].tolist())) == list(range(n_words - 1))


def test_same_random_state_gives_the_same_leaves():
    assert np.array_equal(WordTree(50, 3).word_of_leaf, WordTree(50, 3).word_of_leaf)
    assert not np.array_equal(WordTree(50, 3).word_of_leaf, WordTree(50, 4).word_of_leaf)


@given(n_words=st.integers(2, 60), seed=st.integers(0, 5))
def test_base_rates_give_each_word_its_frequency(n_words, seed):
    counts = np.random.RandomState(seed).poisson(3, n_words)
    tree = WordTree(n_words, seed)
    right = 1 / (1 + np.exp(-tree.base_rates(counts)))
    nodes, sides = tree.paths()
    p = np.where(nodes < 0, 1.0, np.where(sides == 1, right[nodes], 1 - right[nodes])).prod(axis=1)
    np.testing.assert_allclose(p, (counts + 1) / (counts + 1).sum(), rtol=1e-9)


def test_leaves_that_are_no_permutation_are_refused():
    with pytest.raises(ValueError, match="exactly once"):
        WordTree.from_leaves(np.array([0, 0, 2]))


def test_tree_without_words_is_refused():
    with pytest.raises(ValueError, match="at least one word"):
        WordTree(0)
