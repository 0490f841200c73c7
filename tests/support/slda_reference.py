"""Independent oracle: the equations of Wang, Blei, Fei-Fei (2009) for one document, as plain loops over its tokens."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, psi
from scipy.stats import dirichlet


@dataclass
class Model:
    beta: np.ndarray  # (K, V)
    pi: np.ndarray  # (K, T)
    eta: np.ndarray  # (C, K)
    alpha: float


def random_model(rng, n_topics, n_words, n_tags, n_classes, scale=3.0) -> Model:
    return Model(
        rng.dirichlet(np.ones(n_words), n_topics), rng.dirichlet(np.ones(n_tags), n_topics),
        scale * rng.normal(size=(n_classes, n_topics)), 0.3,
    )  # fmt: skip


def lambdas(model: Model, tags, phi) -> np.ndarray:
    """lambda[m, n]: which token tag m comes from."""
    found = np.array([[np.exp(phi[n] @ np.log(model.pi[:, tag])) for n in range(len(phi))] for tag in tags])
    return found / found.sum(axis=1, keepdims=True) if len(tags) else np.zeros((0, len(phi)))


def normaliser(model: Model, phi) -> np.ndarray:
    """E[exp(eta_c z_mean)] of each class."""
    n = len(phi)
    return np.array([np.prod([row @ np.exp(eta / n) for row in phi]) for eta in model.eta])


def sweep(model: Model, tokens, tags, label, phi, gamma):
    """New phi (n_tokens, K) and gamma; tokens of the same word are updated together, words in ascending order."""
    phi, n = phi.copy(), len(tokens)
    sources = lambdas(model, tags, phi)
    for word in sorted(set(tokens)):
        own = [i for i in range(n) if tokens[i] == word]
        i = own[0]
        log_phi = psi(gamma) + np.log(model.beta[:, word])
        for m, tag in enumerate(tags):
            log_phi = log_phi + sources[m, i] * np.log(model.pi[:, tag])
        if label >= 0:
            h = np.zeros(len(gamma))
            for eta in model.eta:
                others = np.prod([phi[j] @ np.exp(eta / n) for j in range(n) if j != i])
                h += np.exp(eta / n) * others
            log_phi = log_phi + model.eta[label] / n - h / (h @ phi[i])
        new = np.exp(log_phi - log_phi.max())
        phi[own] = new / new.sum()
    return phi, model.alpha + phi.sum(axis=0)


def bound(model: Model, tokens, tags, label, phi, gamma) -> float:
    """E_q[log p(theta, z, words, sources, tags, class)] + entropy of q, term by term."""
    n, n_topics = len(tokens), len(gamma)
    log_theta = psi(gamma) - psi(gamma.sum())
    total = gammaln(model.alpha * n_topics) - n_topics * gammaln(model.alpha) + (model.alpha - 1) * log_theta.sum()
    total += dirichlet(gamma).entropy()
    for i, word in enumerate(tokens):
        total += phi[i] @ (log_theta + np.log(model.beta[:, word]) - np.log(np.maximum(phi[i], 1e-300)))
    for source, tag in zip(lambdas(model, tags, phi), tags, strict=True):
        for i in range(n):
            total += source[i] * (phi[i] @ np.log(model.pi[:, tag]) - np.log(n) - np.log(source[i]))
    if label >= 0:
        total += model.eta[label] @ phi.mean(axis=0) - np.log(normaliser(model, phi).sum())
    return float(total)


def log_probability(model: Model, tokens, tags, label) -> float:
    """log p(words, tags, class), summing over all assignments of topics to tokens."""
    n, n_topics = len(tokens), len(model.beta)
    total = 0.0
    for z in itertools.product(range(n_topics), repeat=n):
        counts = np.bincount(z, minlength=n_topics)
        log_p = gammaln(model.alpha * n_topics) - gammaln(model.alpha * n_topics + n)
        log_p += (gammaln(model.alpha + counts) - gammaln(model.alpha)).sum()
        p = np.exp(log_p) * np.prod([model.beta[k, word] for k, word in zip(z, tokens, strict=True)])
        for tag in tags:
            p *= np.mean([model.pi[k, tag] for k in z])
        if label >= 0:
            scores = np.exp(model.eta @ counts / n)
            p *= scores[label] / scores.sum()
        total += p
    return float(np.log(total))
