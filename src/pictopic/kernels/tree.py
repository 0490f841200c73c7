"""The binary-tree output: likelihood and gradient of a document's words, in the order of the leaves.

The tree over Q leaves is never stored.  A node covers the leaves ``low..high-1`` and splits them at the
middle; inner nodes are numbered depth first, so that a node's left child is its own number + 1 and its right
child its own number + the size of its left half.  Everything else follows.

A document comes as rows sorted by leaf: neighbours share most of their path, so the rows of V on the path stay
in the first-level cache, and each row of V is read and written once per document, in the order of memory.  The
words' random *time* order (`kernels.document`) only says when each row's hidden layer was reached.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from pictopic.kernels.document import times_derivative
from pictopic.kernels.elementary import FAST, exp_negative, log_one_plus
from pictopic.kernels.simd import add_nodes, add_outer, add_path, add_row, dots

GROUP = 16  # most rows handled together

_NEVER = np.float32(-40)  # the logit of a place in the group that no path reaches: no probability, no loss

_f = np.float32


class TreeScratch(NamedTuple):
    """Memory of `tree_pass`, made once by `tree_scratch` and used for every document."""

    low: np.ndarray  # (depth,) the open path: leaves low..high-1 of each inner node, split at middle
    middle: np.ndarray  # (depth,)
    high: np.ndarray  # (depth,)
    node: np.ndarray  # (depth,)
    path: np.ndarray  # (GROUP, depth) inner nodes on each row's path, l(v_i)
    side: np.ndarray  # (GROUP, depth) 1 where the path turns right, pi(v_i); smoothed
    depth: np.ndarray  # (GROUP,) length of each row's path
    shared: np.ndarray  # (GROUP + 1,) how many nodes a row's path has in common with the row before
    delta: np.ndarray  # (GROUP, depth) logits, then the loss's derivatives by them
    gradient: np.ndarray  # (GROUP, H) the loss's derivatives by the hidden layers
    open_V: np.ndarray  # (depth, H) updates of the nodes whose subtree goes on in the next group
    todo: np.ndarray  # (GROUP + 1, 3) first row, row after the last, and level of subtrees still to be updated


def tree_depth(n_leaves: int) -> int:
    """Length of the longest path in the balanced tree (at least 1, so that no scratch array is empty)."""
    return max(1, int(n_leaves - 1).bit_length())


def tree_scratch(n_leaves: int, n_hidden: int) -> TreeScratch:
    """Scratch memory for a tree over `n_leaves` leaves and `n_hidden` hidden units."""
    depth = tree_depth(n_leaves)
    ints = [np.empty(depth, np.int64) for _ in range(4)]
    return TreeScratch(
        *ints,
        path=np.zeros((GROUP, depth), np.int64),
        side=np.zeros((GROUP, depth), np.float32),
        depth=np.zeros(GROUP, np.int64),
        shared=np.zeros(GROUP + 1, np.int64),
        delta=np.zeros((GROUP, depth), np.float32),
        gradient=np.zeros((GROUP, n_hidden), np.float32),
        open_V=np.zeros((depth, n_hidden), np.float32),
        todo=np.zeros((GROUP + 1, 3), np.int64),
    )


@njit(**FAST)
def _open_path(leaf, n_leaves, top, low, middle, high, node):
    """Go down to `leaf` from the last node of the open path that is above it; return the new path's length."""
    lo, hi, inner = np.int64(0), np.int64(n_leaves), np.int64(0)
    if top >= 0:
        if leaf < middle[top]:
            lo, hi, inner = low[top], middle[top], node[top] + 1
        else:
            lo, hi, inner = middle[top], high[top], node[top] + middle[top] - low[top]
    while hi - lo > 1:
        top += 1
        half = (lo + hi) // 2
        low[top], middle[top], high[top], node[top] = lo, half, hi, inner
        if leaf < half:
            hi, inner = half, inner + 1
        else:
            lo, inner = half, inner + half - lo
    return top + 1


@njit(**FAST)
def _find_group(
    leaves, start, n, n_leaves, n_open, rates, smoothing, low, middle, high, node, path, side, depth, shared
):
    """Find the rows from `start` on to handle together, and their paths.

    They are all the rows below one node: the highest that begins here and has at most GROUP of them.  Where even the
    lowest has more, they are rows of the same word.  Returns the number of rows, and how many nodes of their paths
    (those above the one) may have rows outside the group.
    """
    shared[0] = n_open
    rows, n_above = 0, 0
    while True:
        leaf = np.int64(leaves[start + rows])
        length = _open_path(leaf, n_leaves, shared[rows] - 1, low, middle, high, node)
        depth[rows] = length
        if rows == 0:
            n_above = n_open
            if start + GROUP < n:
                while n_above < length and leaves[start + GROUP] < high[n_above]:
                    n_above += 1
        # What all rows share need not be written again.
        for k in range(side.shape[1]):
            side[rows, k] = side[0, k]
        for k in range(n_above if rows else 0, length):
            path[rows, k] = node[k]
            side[rows, k] = _f(1) if leaf >= middle[k] else _f(0)
            if smoothing > _f(0):
                side[rows, k] += smoothing * (rates[node[k]] - side[rows, k])
        for k in range(length, side.shape[1]):
            side[rows, k] = _f(0)
        rows += 1
        if start + rows == n:
            shared[rows] = 0
            return rows, n_above
        still_open = length
        while still_open > 0 and leaves[start + rows] >= high[still_open - 1]:
            still_open -= 1
        shared[rows] = still_open
        inside = still_open > n_above if n_above < depth[0] else leaves[start + rows] == leaf
        if rows == GROUP or not inside:
            return rows, n_above


@njit(**FAST)
def _group_logits(hidden, start, rows, n_shared, V, path, depth, z):
    """V h for every node on the rows' paths; two rows at a time for the nodes that all share."""
    for r in range(0, rows, 2):
        dots(hidden, start + r, V, path, 0, r, 0, n_shared, z, 2)
    for r in range(rows):
        dots(hidden, start + r, V, path, r, r, n_shared, depth[r], z, 1)
        for k in range(depth[r], z.shape[1]):
            z[r, k] = _NEVER


@njit(**FAST)
def _losses(z, side, n, scale):
    """Sum of -log p over the block's decisions; logits become scale * (p - side) in place."""
    loss = _f(0)
    for m in range(n):
        x = z[m]
        # softplus(x) - side * x and sigmoid(x) - side, from one exponential.
        e = exp_negative(abs(x))
        q = _f(1) / (_f(1) + e)
        loss += max(x, _f(0)) + log_one_plus(e) - side[m] * x
        z[m] = scale * ((q if x >= _f(0) else e * q) - side[m])
    return loss


@njit(**FAST)
def _hidden_gradients(rows, n_shared, V, path, depth, t, out):
    """out[r] = sum over row r's path of t * V: the derivative by its hidden layer."""
    out[:rows] = _f(0)
    for r in range(0, rows, 2):
        add_path(out, r, V, path, 0, 0, n_shared, t, 2)
    for r in range(rows):
        add_path(out, r, V, path, r, n_shared, depth[r], t, 1)


@njit(**FAST)
def _update_above(hidden, start, rows, n_above, out_V, touched, step, path, shared, t, open_V):
    """Gather the gradients of the nodes with rows outside the group; add those that end here to out_V."""
    open_V[shared[0] : n_above] = _f(0)
    r = 0
    while r < rows:
        if rows - r >= 3:
            add_outer(open_V, 0, n_above, hidden, start + r, t, r, step, 4)
            r += 4
        else:
            add_outer(open_V, 0, n_above, hidden, start + r, t, r, step, 2)
            r += 2
    for k in range(shared[rows], n_above):
        node = path[0, k]
        touched[node] = True
        add_row(out_V, node, open_V, k, _f(1))


@njit(**FAST)
def _update_inside(leaves, hidden, start, rows, n_above, out_V, touched, step, path, depth, shared, t, todo):
    """Add the gradients of the nodes whose rows are all in the group to out_V: depth first, from the group's node."""
    todo[0, 0], todo[0, 1], todo[0, 2] = 0, rows, n_above
    waiting = 1
    while waiting:
        waiting -= 1
        first, last, k = todo[waiting, 0], todo[waiting, 1], todo[waiting, 2]
        end = depth[first]
        if leaves[start + first] != leaves[start + last - 1]:
            # Down to the first node at which the rows part: there is one, for they have different words.
            split = first + 1
            for r in range(first + 2, last):
                if shared[r] < shared[split]:
                    split = r
            end = shared[split]
            todo[waiting, 0], todo[waiting, 1], todo[waiting, 2] = split, last, end
            todo[waiting + 1, 0], todo[waiting + 1, 1], todo[waiting + 1, 2] = first, split, end
            waiting += 2
        add_nodes(out_V, path, first, k, end, hidden, start, t, first, last, step)
        for j in range(k, end):
            touched[path[first, j]] = True


@njit(**FAST)
def tree_pass(
    leaves,
    n,
    hidden,
    V,
    n_leaves,
    rates,
    smoothing,
    weights,
    scale,
    out_V,
    touched,
    step,
    activation,
    mask,
    keep,
    bias,
    learn,
    s,
):
    """-log p of a document's words, and what it teaches.

    With `learn`, ``step * scale * gradient`` is added to `out_V`, and `hidden` is overwritten with
    scale * the gradient by each position's activations.  `smoothing` moves each decision that is learnt towards the
    node's base rate, `rates`; `weights`, unless empty, multiplies the gradient of each leaf's words, not the loss.
    `out_V` may be `V` itself (SGD in place): a row is only written once its whole subtree has been read.
    """
    # Taken apart here once: an array taken out of a tuple costs an atomic reference count each time.
    low, middle, high, node, path, side, depth, shared, delta, gradient, open_V, todo = s
    flat_delta, flat_side = delta.ravel(), side.ravel()
    loss = 0.0
    start, n_open = 0, np.int64(0)
    while start < n:
        rows, n_above = _find_group(
            leaves, start, n, n_leaves, n_open, rates, smoothing, low, middle, high, node, path, side, depth, shared
        )
        n_shared = min(n_above + 1, depth[0])
        _group_logits(hidden, start, rows, n_shared, V, path, depth, delta)
        loss += _losses(flat_delta, flat_side, rows * delta.shape[1], scale)
        if learn:
            if weights.size:
                for r in range(rows):
                    for k in range(delta.shape[1]):
                        delta[r, k] *= weights[leaves[start + r]]
            if rows % 2:
                # An odd row is done together with the next, which must then count for nothing.
                for k in range(delta.shape[1]):
                    delta[rows, k] = _f(0)
            _hidden_gradients(rows, n_shared, V, path, depth, delta, gradient)
            _update_above(hidden, start, rows, n_above, out_V, touched, step, path, shared, delta, open_V)
            _update_inside(leaves, hidden, start, rows, n_above, out_V, touched, step, path, depth, shared, delta, todo)
            times_derivative(hidden, start, rows, gradient, activation, mask, keep, bias)
        start += rows
        n_open = shared[rows]
    return loss
