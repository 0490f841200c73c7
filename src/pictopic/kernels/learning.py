"""Learning from documents with the tree output: gradients of a minibatch, or SGD in place, and the updates.

Parameters are 2-D float32 arrays with rows of `simd.padded` length, words in the order of their leaves.  The column
`bias` belongs to a hidden unit that is always on: V[:, bias] is b, U[:, bias] is d.  (W[:, bias] and all columns
beyond stay 0.)
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from pictopic.kernels.document import activate, backpropagate, hidden_layers, times_derivative
from pictopic.kernels.elementary import FAST, exp_negative, next_random, shuffle, sigmoid, softplus
from pictopic.kernels.simd import add_row, padded
from pictopic.kernels.tree import TreeScratch, tree_pass, tree_scratch

_f = np.float32
_u = np.uint64


class Parameters(NamedTuple):
    """The parameters theta, or something of their shape: gradients, moments, averages."""

    W: np.ndarray  # (Q, P) one row per word, in the order of the leaves
    c: np.ndarray  # (1, P)
    V: np.ndarray  # (Q - 1, P) one row per inner node, depth first; b in column `bias`
    U: np.ndarray  # (C, P) one row per class; d in column `bias`


class Touched(NamedTuple):
    """Which rows a gradient has been added to."""

    W: np.ndarray
    c: np.ndarray
    V: np.ndarray
    U: np.ndarray


class Scratch(NamedTuple):
    """Working memory of one thread."""

    leaves: np.ndarray  # (D,) the document's words in the order of the leaves, repeated as they occur
    order: np.ndarray  # (D,) order[t] = which of them comes at time t
    hidden: np.ndarray  # (D + 1, P)
    act: np.ndarray  # (1, P)
    delta: np.ndarray  # (1, P)
    top: np.ndarray  # (1, P) the hidden layer after all words, h_y
    mask: np.ndarray  # (1, P) dropout
    scores: np.ndarray  # (C,)
    class_counts: np.ndarray  # (D,) counts of the document's distinct words, as its class is learnt from them


def aligned_zeros(shape: tuple[int, ...]) -> np.ndarray:
    """float32 zeros that begin on a cache line: a vector load that crosses two lines takes twice as long."""
    size = int(np.prod(shape)) * 4
    raw = np.zeros(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(np.float32).reshape(shape)


def make_scratch(longest: int, n_words: int, n_hidden: int, n_classes: int) -> tuple[Scratch, TreeScratch]:
    """Memory for documents of up to `longest` words."""
    width = padded(n_hidden + 1)
    scratch = Scratch(
        leaves=np.zeros(longest, np.int64),
        order=np.zeros(longest, np.int64),
        hidden=aligned_zeros((longest + 1, width)),
        act=aligned_zeros((1, width)),
        delta=aligned_zeros((1, width)),
        top=aligned_zeros((1, width)),
        mask=aligned_zeros((1, width)),
        scores=np.zeros(max(n_classes, 1), np.float32),
        class_counts=np.zeros(longest, np.float32),
    )
    tree = tree_scratch(n_words, width)
    return scratch, tree._replace(gradient=aligned_zeros(tree.gradient.shape), open_V=aligned_zeros(tree.open_V.shape))


@njit(**FAST)
def _draw_mask(mask, bias, dropout, state):
    """One mask for all positions of a document: kept units are scaled up by 1 / (1 - dropout)."""
    if dropout == _f(0):
        for h in range(bias):
            mask[0, h] = _f(1)
        return state
    threshold = np.int64(np.float64(dropout) * 4294967296.0)
    keep = _f(1) / (_f(1) - dropout)
    for h in range(bias):
        state, bits = next_random(state)
        mask[0, h] = keep if np.int64(bits >> _u(32)) >= threshold else _f(0)
    return state


@njit(**FAST)
def _class_loss(top, U, indicator, d, multi_label, scores):
    """-log p(y | v); scores become its derivatives by the classes' activations."""
    n_classes = scores.size
    for k in range(n_classes):
        total = _f(0)
        for h in range(top.shape[1]):
            total += top[0, h] * U[k, h]
        scores[k] = total
    loss = 0.0
    if multi_label:
        for k in range(n_classes):
            y = _f(indicator[d, k])
            loss += softplus(scores[k]) - y * scores[k]
            scores[k] = sigmoid(scores[k]) - y
        return loss
    largest = scores[0]
    for k in range(1, n_classes):
        largest = max(largest, scores[k])
    total = _f(0)
    for k in range(n_classes):
        total += exp_negative(largest - scores[k])
    for k in range(n_classes):
        y = _f(indicator[d, k])
        loss += y * (largest + np.log(total) - scores[k])
        scores[k] = exp_negative(largest - scores[k]) / total - y
    return loss


@njit(**FAST)
def _learn_class(act, U, out_U, indicator, d, multi_label, step, activation, keep, bias, scratch):
    """Class loss of a document; scratch.delta becomes its gradient by the activations, out_U takes U's."""
    delta, top, mask, scores = scratch.delta, scratch.top, scratch.mask, scratch.scores
    activate(act, top, np.int64(0), activation, mask, bias)
    loss = _class_loss(top, U, indicator, d, multi_label, scores)
    for k in range(scores.size):
        add_row(delta, np.int64(0), U, np.int64(k), scores[k])
        add_row(out_U, np.int64(k), top, np.int64(0), step * scores[k])
    times_derivative(top, 0, 1, delta, activation, mask, keep, bias)
    for h in range(delta.shape[1]):
        delta[0, h] = top[0, h]
    return loss


@njit(**FAST)
def _draw_class_counts(first, last, counts, word_dropout, state, class_counts):
    """Leave out a share of the distinct words; the counts of the others are scaled up by 1 / (1 - word_dropout)."""
    threshold = np.int64(np.float64(word_dropout) * 4294967296.0)
    keep = _f(1) - word_dropout
    for p in range(first, last):
        state, bits = next_random(state)
        class_counts[p - first] = _f(counts[p]) / keep if np.int64(bits >> _u(32)) >= threshold else _f(0)
    return state


@njit(**FAST)
def _sum_of_words(first, last, indices, class_counts, W, c, act):
    for h in range(c.shape[1]):
        act[0, h] = c[0, h]
    for p in range(first, last):
        add_row(act, np.int64(0), W, np.int64(indices[p]), class_counts[p - first])


@njit(**FAST)
def _unpack(first, last, indices, counts, leaves):
    """Repeat each leaf as often as its word occurs; return the number of words."""
    n = 0
    for p in range(first, last):
        for _ in range(counts[p]):
            leaves[n] = indices[p]
            n += 1
    return n


@njit(**FAST)
def learn(
    documents, indptr, indices, counts, indicator, known, multi_label, theta, rates, smoothing, weights, out, touched,
    step, generative, activation, dropout, word_dropout, seed, bias, scratch, tree,
):  # fmt: skip
    """Add step * the gradient of each document's loss to `out`; return the sums of the two losses.

    A document's loss is -log p(y | v) + generative * -log p(v), with smoothed decisions and weighted words (see
    `tree_pass`); its class is learnt without a share `word_dropout` of its distinct words.  With `out` = `theta` and a
    negative step it is stochastic gradient descent, one document after the other.  What is drawn for a document depends
    on `seed` and its row alone.
    """
    nll, class_loss = 0.0, 0.0
    keep = _f(1) - dropout
    n_words = theta.W.shape[0]
    n_classes = theta.U.shape[0]
    for d in documents:
        first, last = indptr[d], indptr[d + 1]
        _, state = next_random(seed ^ _u(d))
        state = _draw_mask(scratch.mask, bias, dropout, state)
        scratch.delta[:] = _f(0)
        labelled = n_classes > 0 and known[d]
        # Where all words are learnt, and none left out for the class, hidden_layers leaves their sum in scratch.act.
        sums_words = generative == _f(0) or word_dropout > _f(0)
        if generative > _f(0):
            n = _unpack(first, last, indices, counts, scratch.leaves)
            state = shuffle(scratch.order, n, state)
            hidden_layers(
                scratch.leaves,
                scratch.order,
                n,
                theta.W,
                theta.c,
                activation,
                scratch.mask,
                bias,
                scratch.act,
                scratch.hidden,
            )
            nll += tree_pass(
                scratch.leaves, n, scratch.hidden, theta.V, n_words, rates, smoothing, weights, generative, out.V,
                touched.V, step, activation, scratch.mask, keep, bias, True, tree,
            )  # fmt: skip
        if labelled:
            if sums_words:
                state = _draw_class_counts(first, last, counts, word_dropout, state, scratch.class_counts)
                _sum_of_words(first, last, indices, scratch.class_counts, theta.W, theta.c, scratch.act)
            class_loss += _learn_class(
                scratch.act, theta.U, out.U, indicator, d, multi_label, step, activation, keep, bias, scratch
            )
            if sums_words:
                for p in range(first, last):
                    w = np.int64(indices[p])
                    touched.W[w] = True
                    add_row(out.W, w, scratch.delta, np.int64(0), step * scratch.class_counts[p - first])
                add_row(out.c, np.int64(0), scratch.delta, np.int64(0), step)
                scratch.delta[:] = _f(0)
        if generative > _f(0):
            backpropagate(
                scratch.leaves, scratch.order, n, scratch.delta, scratch.hidden, out.W, out.c, touched.W, step
            )
    return nll, class_loss


@njit(**FAST)
def random_orders(offsets, seed, order):
    """A random order for each document, its words being offsets[d]..offsets[d + 1] - 1."""
    for d in range(offsets.size - 1):
        _, state = next_random(seed ^ _u(d))
        shuffle(order[offsets[d] : offsets[d + 1]], offsets[d + 1] - offsets[d], state)


@njit(**FAST)
def sequence_losses(first, last, offsets, leaves, order, W, c, V, activation, bias, losses, scratch, tree):
    """-log p of documents first..last-1, their leaves sorted and `order` telling their places in time."""
    _draw_mask(scratch.mask, bias, _f(0), _u(0))
    untouched, nothing = np.zeros(0, np.bool_), np.zeros(0, np.float32)
    for d in range(first, last):
        begin, end = offsets[d], offsets[d + 1]
        words, n = leaves[begin:end], end - begin
        hidden_layers(words, order[begin:end], n, W, c, activation, scratch.mask, bias, scratch.act, scratch.hidden)
        losses[d] = tree_pass(
            words, n, scratch.hidden, V, W.shape[0], nothing, _f(0), nothing, _f(1), V, untouched, _f(0),
            activation, scratch.mask, _f(1), bias, False, tree,
        )  # fmt: skip


@njit(**FAST)
def update_rows(
    first,
    last,
    theta,
    gradients,
    touched,
    moment,
    square,
    average,
    synced,
    rate,
    beta_1,
    beta_2,
    step,
    before,
    now,
    adam,
):
    """One step of Adam or SGD on the rows first..last-1 that have a gradient, and of their averages.

    `gradients[j]` is thread j's, added up in this fixed order and set back to zero.  Rows without a gradient rest
    (as in torch's SparseAdam).  Their averages are brought up to date when they are next needed: `before` and `now`
    are the sums of the logarithms of the decays up to the last step and to this, `synced` the sum that a row's average
    has seen.  (It is empty without averaging.)
    """
    correction_1 = _f(1) - beta_1 ** _f(step)
    correction_2 = _f(1) - beta_2 ** _f(step)
    for row in range(first, last):
        has_gradient = False
        for j in range(touched.shape[0]):
            has_gradient = has_gradient or touched[j, row]
            touched[j, row] = False
        if not has_gradient:
            continue
        for j in range(1, gradients.shape[0]):
            for h in range(theta.shape[1]):
                gradients[0, row, h] += gradients[j, row, h]
            for h in range(theta.shape[1]):
                gradients[j, row, h] = _f(0)
        if synced.size:
            catch_up = _f(np.exp(before - synced[row]))
            for h in range(theta.shape[1]):
                average[row, h] = theta[row, h] + catch_up * (average[row, h] - theta[row, h])
        if adam:
            for h in range(theta.shape[1]):
                moment[row, h] = beta_1 * moment[row, h] + (_f(1) - beta_1) * gradients[0, row, h]
            for h in range(theta.shape[1]):
                g = gradients[0, row, h]
                square[row, h] = beta_2 * square[row, h] + (_f(1) - beta_2) * g * g
            for h in range(theta.shape[1]):
                root = np.sqrt(square[row, h] / correction_2) + _f(1e-8)
                theta[row, h] -= rate * moment[row, h] / correction_1 / root
        else:
            for h in range(theta.shape[1]):
                theta[row, h] -= rate * gradients[0, row, h]
        for h in range(theta.shape[1]):
            gradients[0, row, h] = _f(0)
        if synced.size:
            last_decay = _f(np.exp(now - before))
            for h in range(theta.shape[1]):
                average[row, h] = theta[row, h] + last_decay * (average[row, h] - theta[row, h])
            synced[row] = now


@njit(**FAST)
def sync_average(theta, average, synced, decay):
    """Bring the averages of all rows up to date."""
    for row in range(theta.shape[0]):
        catch_up = _f(np.exp(decay - synced[row]))
        for h in range(theta.shape[1]):
            average[row, h] = theta[row, h] + catch_up * (average[row, h] - theta[row, h])
        synced[row] = decay
