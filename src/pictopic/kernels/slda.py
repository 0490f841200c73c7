"""Variational inference in supervised LDA: the topics of each picture's words, given its tags and its class.

Symbols as in Wang, Blei, Fei-Fei (2009), "Simultaneous Image Classification and Annotation".  Tokens of the same word
in a document share their topics, phi: a row for each word of the document, which counts so many times.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from pictopic.kernels.elementary import FAST, exp_negative

_f = np.float32
_TINY = 1e-25  # weights below are nothing; smaller ones would become denormal, which is slow


@njit(**FAST)
def infer(
    indptr, words, counts, lengths, tag_indptr, tags, labels, topics, log_tags, eta, alpha, max_sweeps, tol, phi, gamma,
    bounds,
):  # fmt: skip
    """Raise each document's bound by coordinate ascent, from the `phi` and `gamma` that come in.

    Parameters
    ----------
    indptr, words, counts : arrays of a CSR matrix
        The visual words.
    lengths : float64 array of shape (n_documents,)
        Their number in each document, N.
    tag_indptr, tags : arrays of a CSR matrix
        The tags; each counts once.
    labels : int64 array of shape (n_documents,)
        Classes; -1 where unknown.
    topics : float32 array of shape (n_words, n_topics)
        p(word | topic), beta.
    log_tags : float32 array of shape (n_tags, n_topics)
        log p(tag | topic), log pi.
    eta : float64 array of shape (n_classes, n_topics)
    alpha : float
    max_sweeps : int
        Updates of phi and gamma.
    tol : float
        No more updates when gamma changes by less than this share of the words.
    phi : float32 array of shape (n_entries, n_topics), or (longest row, n_topics)
        Topics of each document's words, one document after the other; if smaller, a place to work.  Without tags and
        classes it does not matter what comes in.
    gamma : float64 array of shape (n_documents, n_topics)
        In the end alpha + the sum of phi over all tokens.
    bounds : float64 array of shape (n_documents,)
        Filled: the lower bound on log p(words, tags, class).
    """
    n_topics, n_classes, longest = topics.shape[1], eta.shape[0], longest_row(indptr)
    expected, total = np.empty(n_topics), np.empty(n_topics)
    weight, pull = np.empty(n_topics, np.float32), np.empty(n_topics, np.float32)
    D, sums, p = np.empty((n_classes, n_topics), np.float32), np.empty((longest, n_classes)), np.empty(n_classes)
    share = np.empty((longest_row(tag_indptr), longest), np.float32)
    for d in range(lengths.size):
        start, end, length, label = indptr[d], indptr[d + 1], lengths[d], labels[d]
        if start == end:
            gamma[d, :] = alpha
            bounds[d] = 0.0
            continue
        row = start if phi.shape[0] == words.size else 0
        own, own_words, own_counts = phi[row : row + end - start], words[start:end], counts[start:end]
        own_tags = tags[tag_indptr[d] : tag_indptr[d + 1]]
        log_normaliser, word_bound = 0.0, 0.0
        if label >= 0:
            _divide(eta, length, D)
            log_normaliser = _class_sums(own_counts, own, D, sums, p)
        for _sweep in range(max_sweeps):
            top = _topic_weights(gamma[d], expected, weight)
            _share_tags(own_counts, own, own_tags, log_tags, length, share)
            word_bound = length * top
            for i in range(end - start):
                count = own_counts[i]
                _pull_of_tags(i, own_tags, log_tags, share, pull)
                if label >= 0:
                    _add_pull_of_class(i, label, D, eta, length, sums, p, pull)
                word_bound += count * _update_word(i, own_words[i], topics, weight, pull, own)
                if label >= 0:
                    log_normaliser += _update_class_sums(i, count, own, D, sums, p)
            change, by_topics = _update_gamma(own_counts, own, alpha, expected, total, gamma[d])
            word_bound -= by_topics
            if change < tol * length:
                break
        bounds[d] = word_bound + _log_dirichlet_ratio(alpha, gamma[d])
        bounds[d] += _share_tags(own_counts, own, own_tags, log_tags, length, share)
        if label >= 0:
            for k in range(n_topics):
                bounds[d] += eta[label, k] * (gamma[d, k] - alpha) / length
            bounds[d] -= log_normaliser


@njit(**FAST)
def add_topics(indptr, words, counts, lengths, tag_indptr, tags, log_tags, phi, topic_counts, tag_counts):
    """Add up how often each word, and each tag, comes from each topic: (n_words, n_topics) and (n_tags, n_topics)."""
    n_topics = phi.shape[1]
    share = np.empty((longest_row(tag_indptr), longest_row(indptr)), np.float32)
    for d in range(lengths.size):
        start, n = indptr[d], indptr[d + 1] - indptr[d]
        if n == 0:
            continue
        own, own_counts = phi[start : start + n], counts[start : start + n]
        own_tags = tags[tag_indptr[d] : tag_indptr[d + 1]]
        _share_tags(own_counts, own, own_tags, log_tags, lengths[d], share)
        for i in range(n):
            for k in range(n_topics):
                topic_counts[words[start + i], k] += own_counts[i] * own[i, k]
            for m in range(own_tags.size):
                times = own_counts[i] * share[m, i]
                for k in range(n_topics):
                    tag_counts[own_tags[m], k] += times * own[i, k]


@njit(**FAST)
def class_bound(indptr, counts, lengths, labels, phi, eta, gradient):
    """Sum over the labelled documents of eta_y z - log sum of E[exp(eta_c z)], z the mean topics; adds its gradient."""
    n_classes, n_topics = eta.shape
    D, along = np.empty((n_classes, n_topics), np.float32), np.empty((n_classes, n_topics), np.float32)
    sums, p, total = np.empty((longest_row(indptr), n_classes)), np.empty(n_classes), np.empty(n_topics)
    bound = 0.0
    for d in range(lengths.size):
        start, n, label, length = indptr[d], indptr[d + 1] - indptr[d], labels[d], lengths[d]
        if label < 0 or n == 0:
            continue
        own, own_counts = phi[start : start + n], counts[start : start + n]
        _divide(eta, length, D)
        bound -= _class_sums(own_counts, own, D, sums, p)
        along[:] = _f(0)
        total[:] = 0.0
        for i in range(n):
            for k in range(n_topics):
                total[k] += own_counts[i] * own[i, k]
            for c in range(n_classes):
                times = _f(own_counts[i] / sums[i, c])
                for k in range(n_topics):
                    along[c, k] += times * own[i, k]
        for k in range(n_topics):
            bound += eta[label, k] * total[k] / length
            gradient[label, k] += total[k] / length
            for c in range(n_classes):
                gradient[c, k] -= p[c] * (1.0 + D[c, k]) * along[c, k] / length
    return bound


@njit(**FAST)
def longest_row(indptr):
    """Largest number of entries of a row, and at least 1."""
    longest = 1
    for d in range(indptr.size - 1):
        longest = max(longest, indptr[d + 1] - indptr[d])
    return longest


# ---- topics of a document and of its words ---------------------------------------------------------------------------


@njit(**FAST)
def digamma(x):
    """Derivative of log gamma, for x > 0: up to 6 by recurrence, then the asymptotic series."""
    result = 0.0
    while x < 6.0:
        result -= 1.0 / x
        x += 1.0
    y = 1.0 / (x * x)
    tail = y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y * (1 / 132 - y * (691 / 32760))))))
    return result + math.log(x) - 0.5 / x - tail


@njit(**FAST)
def _topic_weights(gamma, expected, weight):
    """Set expected = E[log theta] under Dirichlet(gamma), weight = exp(expected - its largest); returns the largest."""
    shift = digamma(gamma.sum())
    for k in range(gamma.size):
        expected[k] = digamma(gamma[k]) - shift
    top = expected.max()
    for k in range(gamma.size):
        value = math.exp(expected[k] - top)
        weight[k] = value if value > _TINY else 0.0
    return top


@njit(**FAST)
def _update_word(i, word, topics, weight, pull, phi):
    """Set phi[i] = weight * topics[word] * exp(pull), divided by its sum; returns log of the sum - phi pull.

    With E[log theta] for log(weight) that is the word's part of the bound: its log probability and phi's entropy.
    """
    top = pull.max()
    total, pulled = _f(0), _f(0)
    for k in range(weight.size):
        phi[i, k] = weight[k] * topics[word, k] * exp_negative(top - pull[k])
        total += phi[i, k]
    for k in range(weight.size):
        phi[i, k] /= total
        pulled += phi[i, k] * pull[k]
    return math.log(total) + top - pulled


@njit(**FAST)
def _update_gamma(counts, phi, alpha, expected, total, gamma):
    """Set gamma = alpha + sum of phi over tokens; returns its change, and that sum times `expected`."""
    total[:] = 0.0
    for i in range(counts.size):
        for k in range(gamma.size):
            total[k] += counts[i] * phi[i, k]
    change, by_topics = 0.0, 0.0
    for k in range(gamma.size):
        change += abs(alpha + total[k] - gamma[k])
        by_topics += total[k] * expected[k]
        gamma[k] = alpha + total[k]
    return change, by_topics


@njit(**FAST)
def _log_dirichlet_ratio(alpha, gamma):
    """Log of the ratio of the normalisers of Dirichlet(alpha, alpha, ...) and Dirichlet(gamma)."""
    result = math.lgamma(alpha * gamma.size) - gamma.size * math.lgamma(alpha) - math.lgamma(gamma.sum())
    for k in range(gamma.size):
        result += math.lgamma(gamma[k])
    return result


@njit(**FAST)
def _dot(a, i, b, j):
    """Product of row i of a and row j of b."""
    total = _f(0)
    for k in range(a.shape[1]):
        total += a[i, k] * b[j, k]
    return total


# ---- which word a tag comes from -------------------------------------------------------------------------------------


@njit(**FAST)
def _share_tags(counts, phi, tags, log_tags, length, share):
    """Set share[m, i] = probability that tag m comes from a given token of word i, lambda; returns the bound's part.

    That part is log of the mean over tokens of exp(phi log pi), for each tag.
    """
    bound = 0.0
    for m in range(tags.size):
        top = _dot(phi, 0, log_tags, tags[m])
        for i in range(counts.size):
            share[m, i] = _dot(phi, i, log_tags, tags[m])
            top = max(top, share[m, i])
        total = 0.0
        for i in range(counts.size):
            share[m, i] = exp_negative(top - share[m, i])
            total += counts[i] * share[m, i]
        for i in range(counts.size):
            share[m, i] /= _f(total)
        bound += top + math.log(total / length)
    return bound


@njit(**FAST)
def _pull_of_tags(i, tags, log_tags, share, pull):
    """Set pull to the tags' part of the log weights of the topics of word i."""
    pull[:] = _f(0)
    for m in range(tags.size):
        for k in range(pull.size):
            pull[k] += share[m, i] * log_tags[tags[m], k]


# ---- the class -------------------------------------------------------------------------------------------------------


@njit(**FAST)
def _divide(eta, length, D):
    """Set D = exp(eta / N) - 1: small numbers, of which float32 loses nothing."""
    for c in range(D.shape[0]):
        for k in range(D.shape[1]):
            D[c, k] = math.expm1(eta[c, k] / length)


@njit(**FAST)
def _class_sums(counts, phi, D, sums, p):
    """Set sums[i, c] = E[exp(eta_c z / N)] for a token of word i, and p to their product over all tokens.

    `p` is divided by its sum; returns log of that sum, which is log of the sum of E[exp(eta_c z)], z the mean topics.
    """
    p[:] = 0.0
    for i in range(counts.size):
        for c in range(p.size):
            sums[i, c] = 1.0 + _dot(phi, i, D, c)
            p[c] += counts[i] * math.log(sums[i, c])
    top, total = p.max(), 0.0
    for c in range(p.size):
        p[c] = math.exp(p[c] - top)
        total += p[c]
    for c in range(p.size):
        p[c] /= total
    return top + math.log(total)


@njit(**FAST)
def _update_class_sums(i, count, phi, D, sums, p):
    """The same after phi[i] has changed; returns the change of the log."""
    total = 0.0
    for c in range(p.size):
        before = sums[i, c]
        sums[i, c] = 1.0 + _dot(phi, i, D, c)
        p[c] *= _power(sums[i, c] / before, count)
        total += p[c]
    for c in range(p.size):
        p[c] /= total
    return math.log(total)


@njit(**FAST)
def _add_pull_of_class(i, label, D, eta, length, sums, p, pull):
    """Add the class's part to the log weights of the topics of word i: eta_y / N - h / (h phi), up to a constant.

    That is the bound of the paper: h phi, linear in this word's phi, is the sum of which `p` has the shares.
    """
    for k in range(pull.size):
        pull[k] += _f(eta[label, k] / length)
    for c in range(p.size):
        factor = _f(p[c] / sums[i, c])
        for k in range(pull.size):
            pull[k] -= factor * D[c, k]


@njit(**FAST)
def _power(x, n):
    """The n-th power of x, for whole n from 0 on, in log2(n) products."""
    result = 1.0
    while n > 0:
        if n & 1:
            result *= x
        x *= x
        n >>= 1
    return result
