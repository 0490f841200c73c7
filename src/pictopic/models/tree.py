"""Balanced binary tree with a word at each leaf."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from sklearn.utils import check_random_state


class WordTree:
    """Balanced binary tree over `n_words` words, which are assigned to its leaves at random.

    A node covers a range of leaves and splits it at the middle.  Inner nodes are numbered depth first from the
    root, 0; there are ``n_words - 1`` of them.  A word's probability is the product of the left/right decisions on
    its path (the paper's l(v) are the nodes of the path, pi(v) the decisions: 0 left, 1 right).

    Parameters
    ----------
    n_words : int
        Number of words, Q.
    random_state : int, RandomState instance or None, default=None
        Draws the assignment of words to leaves.

    Attributes
    ----------
    word_of_leaf : ndarray of shape (n_words,)
        The word at each leaf, from left to right.
    leaf_of_word : ndarray of shape (n_words,)
        The leaf of each word.
    n_nodes : int
        Number of inner nodes, T.
    depth : int
        Length of the longest path, ceil(log2(n_words)).

    Examples
    --------
    >>> from pictopic.models.tree import WordTree
    >>> tree = WordTree(5, random_state=0)
    >>> tree.n_nodes, tree.depth
    (4, 3)
    >>> nodes, sides = tree.paths([tree.word_of_leaf[4]])  # the rightmost leaf
    >>> nodes.tolist(), sides.tolist()
    ([[0, 2, 3]], [[1, 1, 1]])
    """

    def __init__(self, n_words: int, random_state: int | np.random.RandomState | None = None):
        if n_words < 1:
            raise ValueError(f"a tree needs at least one word, got n_words={n_words}")
        self.word_of_leaf = check_random_state(random_state).permutation(n_words)
        self._finish()

    @classmethod
    def from_leaves(cls, word_of_leaf: np.ndarray) -> WordTree:
        """Return the tree whose leaves hold these words, from left to right."""
        tree = cls.__new__(cls)
        tree.word_of_leaf = np.array(word_of_leaf, dtype=np.int64)
        if not np.array_equal(np.sort(tree.word_of_leaf), np.arange(tree.word_of_leaf.size)):
            raise ValueError("word_of_leaf must hold each word 0..n_words-1 exactly once")
        tree._finish()
        return tree

    def _finish(self) -> None:
        self.n_words = int(self.word_of_leaf.size)
        self.n_nodes = self.n_words - 1
        self.depth = self.n_nodes.bit_length()
        self.leaf_of_word = np.empty(self.n_words, np.int64)
        self.leaf_of_word[self.word_of_leaf] = np.arange(self.n_words)

    def paths(self, words: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return inner nodes and left/right decisions from the root to each word's leaf.

        Parameters
        ----------
        words : array-like of int, optional
            Words whose paths to return; all by default.

        Returns
        -------
        nodes, sides : ndarrays of shape (n_words, depth)
            Both are -1 after the end of a path shorter than `depth`.
        """
        leaves = self.leaf_of_word if words is None else self.leaf_of_word[np.asarray(words, dtype=np.int64)]
        low, high = np.zeros_like(leaves), np.full_like(leaves, self.n_words)
        node = np.zeros_like(leaves)
        nodes = np.full((leaves.size, self.depth), -1, np.int64)
        sides = np.full((leaves.size, self.depth), -1, np.int8)
        for k in range(self.depth):
            inner = high - low > 1
            middle = (low + high) // 2
            right = leaves >= middle
            nodes[inner, k] = node[inner]
            sides[inner, k] = right[inner]
            node = np.where(right, node + middle - low, node + 1)
            low, high = np.where(right & inner, middle, low), np.where(~right & inner, middle, high)
        return nodes, sides

    @cached_property
    def word_paths(self) -> tuple[np.ndarray, np.ndarray]:
        """The `paths` of all words, computed once: predictions need them each time."""
        return self.paths()

    def ranges(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return low, middle and high of each inner node: it has the leaves ``low..high-1``, split at the middle."""
        low, middle, high = (np.zeros(self.n_nodes, np.int64) for _ in range(3))
        lows, highs, nodes = np.array([0]), np.array([self.n_words]), np.array([0])
        while True:
            inner = highs - lows > 1
            lows, highs, nodes = lows[inner], highs[inner], nodes[inner]
            if not nodes.size:
                return low, middle, high
            middles = (lows + highs) // 2
            low[nodes], middle[nodes], high[nodes] = lows, middles, highs
            right = nodes + middles - lows
            lows, highs, nodes = (
                np.concatenate([lows, middles]),
                np.concatenate([middles, highs]),
                np.concatenate([nodes + 1, right]),
            )

    def base_rates(self, word_counts: np.ndarray) -> np.ndarray:
        """Return the log-odds of turning right at each node, for words with these frequencies.

        One is added to each word's count, so that no word is impossible.
        """
        total = np.concatenate([[0.0], np.cumsum(np.asarray(word_counts, float)[self.word_of_leaf] + 1.0)])
        low, middle, high = self.ranges()
        return np.log((total[high] - total[middle]) / (total[middle] - total[low]))
