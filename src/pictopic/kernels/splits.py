"""Random splits of bags of words into context and targets, on the counts of a CSR matrix."""

from __future__ import annotations

import numpy as np
from numba import njit

from pictopic.kernels.elementary import FAST, next_random

_u = np.uint64


@njit(**FAST)
def _ones(bits):
    """Number of ones among 64 bits."""
    bits = bits - ((bits >> _u(1)) & _u(0x5555555555555555))
    bits = (bits & _u(0x3333333333333333)) + ((bits >> _u(2)) & _u(0x3333333333333333))
    bits = (bits + (bits >> _u(4))) & _u(0x0F0F0F0F0F0F0F0F)
    return np.int64((bits * _u(0x0101010101010101)) >> _u(56))


@njit(**FAST)
def _binomial(n, p, state):
    """How many of `n` coins come up, each with probability p / 2**64; and the advanced random state.

    64 coins are thrown at once: coin i comes up if a random number, whose binary digits are drawn one by one for all
    coins, is below p.  Half of the coins are decided by each digit, so that about eight draws do for 64 coins.
    """
    total = 0
    while n > 0:
        undecided = ~_u(0) if n >= 64 else (_u(1) << _u(n)) - _u(1)
        below = _u(0)
        digit = _u(1) << _u(63)
        while undecided != _u(0) and digit != _u(0):
            state, bits = next_random(state)
            if p & digit != _u(0):
                below |= undecided & ~bits
                undecided &= bits
            else:
                undecided &= ~bits
            digit >>= _u(1)
        total += _ones(below)
        n -= 64
    return total, state


@njit(**FAST)
def split_orderings(indptr, counts, seed, context, first=0):
    """Shuffle each row's bag of D words, draw k uniformly from 0..D-1 and count the first k words in `context`.

    Each word goes to the context with the same probability p, and p is uniform on (0, 1): then all numbers k = 0..D of
    words are equally likely, and all sets of k words, too.  The case k = D is drawn again.

    A row's random numbers depend on the seed and its number, counted from `first`, alone.
    """
    for row in range(indptr.size - 1):
        state, _ = next_random(_u(seed) ^ (_u(first + row) << _u(32)))
        n_targets = np.int64(0)
        while n_targets == 0 and indptr[row] < indptr[row + 1]:
            state, p = next_random(state)
            for j in range(indptr[row], indptr[row + 1]):
                taken, state = _binomial(counts[j], p, state)
                context[j] = taken
                n_targets += counts[j] - taken


@njit(**FAST)
def split_each_word(indptr, counts, seed, context, first=0):
    """Put a number of each word's occurrences into `context` that is uniform on 0..count."""
    for row in range(indptr.size - 1):
        state, _ = next_random(_u(seed) ^ (_u(first + row) << _u(32)))
        for j in range(indptr[row], indptr[row + 1]):
            state, bits = next_random(state)
            context[j] = np.int64(((bits >> _u(32)) * _u(counts[j] + 1)) >> _u(32))


@njit(**FAST)
def split_annotations(indptr, indices, counts, n_visual, tags_only, seed, context, first=0):
    """Put all visual words into `context`, and of the annotation words none or, every second time, a random share.

    At least one annotation word is left.  Rows with `tags_only` have a random share of the annotation words and no
    visual ones instead.  Rows without visual or without annotation words stay as they are.
    """
    for row in range(indptr.size - 1):
        # Columns are sorted: annotation words are the last.
        begin, last = indptr[row], indptr[row + 1]
        middle = begin + np.searchsorted(indices[begin:last], n_visual)
        if middle in (begin, last):
            continue
        for j in range(begin, middle):
            context[j] = 0 if tags_only[row] else counts[j]
        state, coin = next_random(_u(seed) ^ (_u(first + row) << _u(32)) ^ _u(0x9E3779B97F4A7C15))
        state, p = next_random(state)
        n_targets = np.int64(0)
        for j in range(middle, last):
            context[j] = 0
            if tags_only[row] or coin & _u(1):
                context[j], state = _binomial(counts[j], p, state)
            n_targets += counts[j] - context[j]
        if n_targets == 0 and not tags_only[row]:
            context[middle:last] = 0


@njit(**FAST)
def counts_before(words, offsets, first, last, running, out):
    """out[i - first] = how often each word occurs in its document before position i, for positions first..last-1.

    ``offsets[d]`` is document d's first position.  `running` holds the counts before position `first` (any values, if a
    document begins there) and afterwards those before position `last`.
    """
    d = np.searchsorted(offsets, first, side="right") - 1
    for i in range(first, last):
        while i >= offsets[d + 1]:
            d += 1
        if i == offsets[d]:
            running[:] = 0
        for q in range(out.shape[1]):
            out[i - first, q] = running[q]
        running[words[i]] += 1
