"""Independent oracles: the paper's equations as plain loops, in numpy and in torch's float64 autograd."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import torch

from pictopic.models.parameters import Theta
from pictopic.models.tree import WordTree

_NUMPY = {
    "relu": lambda a: np.maximum(a, 0),
    "tanh": np.tanh,
    "sigmoid": lambda a: 1 / (1 + np.exp(-a)),
}
_TORCH = {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid}


def random_theta(rng, n_words, n_hidden, n_outputs, n_classes, scale=0.7) -> Theta:
    """Parameters with nothing small or zero in them."""
    shapes = {
        "W": (n_words, n_hidden), "c": (n_hidden,), "V": (n_outputs, n_hidden), "b": (n_outputs,),
        "U": (n_classes, n_hidden), "d": (n_classes,),
    }  # fmt: skip
    return Theta(**{name: (scale * rng.normal(size=shape)).astype(np.float32) for name, shape in shapes.items()})


def log_p_words(theta: Theta, words, activation: str, tree: WordTree | None) -> float:
    """log p(v) by Algorithm 1: a plain loop over the words in their order, in float64."""
    act = theta.c.astype(float)
    total = 0.0
    for word in words:
        h = _NUMPY[activation](act)
        if tree is None:
            logits = theta.b + theta.V.astype(float) @ h
            total += logits[word] - np.log(np.exp(logits).sum())
        else:
            for node, side in zip(*(path[0] for path in tree.paths([word])), strict=True):
                if node >= 0:
                    p = 1 / (1 + np.exp(-(theta.b[node] + theta.V[node].astype(float) @ h)))
                    total += np.log(p if side == 1 else 1 - p)
        act = act + theta.W[word].astype(float)
    return total


def autograd(
    theta, documents, labels, generative, multi_label, activation, tree, smoothing=0.0, rates=None, weights=None,
    class_counts=None,
):  # fmt: skip
    """Mean loss of documents (word ids in order) and its gradients, from float64 autograd.

    With `smoothing`, `rates` are the words' frequencies (softmax) or the nodes' rates of turning right (tree).
    `weights` are those of the words in the loss, 1 by default; `class_counts` (n, Q) the counts that the classes are
    learnt from, all by default.
    """
    p = {f.name: torch.tensor(getattr(theta, f.name).astype(float), requires_grad=True) for f in fields(theta)}
    loss = torch.zeros((), dtype=torch.float64)
    for d, words in enumerate(documents):
        act = p["c"]
        for word in words:
            h = _TORCH[activation](act)
            weight = generative * (1.0 if weights is None else float(weights[word]))
            if tree is None:
                log_p = torch.log_softmax(p["b"] + p["V"] @ h, 0)
                loss = loss - weight * (1 - smoothing) * log_p[word]
                if smoothing:
                    loss = loss - weight * smoothing * (torch.tensor(rates) * log_p).sum()
            else:
                for node, side in zip(*(path[0] for path in tree.paths([word])), strict=True):
                    if node >= 0:
                        z = p["b"][node] + p["V"][node] @ h
                        target = (1 - smoothing) * side + (smoothing * rates[node] if smoothing else 0)
                        loss = loss + weight * (torch.nn.functional.softplus(z) - target * z)
            act = act + p["W"][word]
        if labels.known[d]:
            if class_counts is not None:
                act = p["c"] + torch.tensor(np.asarray(class_counts[d], float)) @ p["W"]
            scores = p["d"] + p["U"] @ _TORCH[activation](act)
            y = torch.tensor(labels.indicator[d].astype(float))
            if multi_label:
                loss = loss + torch.nn.functional.binary_cross_entropy_with_logits(scores, y, reduction="sum")
            else:
                loss = loss - (y * torch.log_softmax(scores, 0)).sum()
    loss = loss / len(documents)
    if loss.requires_grad:
        loss.backward()
    gradients = {name: np.zeros(t.shape) if t.grad is None else t.grad.numpy() for name, t in p.items()}
    return float(loss.detach()), gradients


def algorithm_2_as_printed(theta, words, y, lambda_, tree) -> dict[str, np.ndarray]:
    """The paper's Algorithm 2 to the letter (relu, tree output, one label): its gradients are wrong."""
    nodes, sides = tree.paths(words)
    act = theta.c.astype(float)
    hidden = []
    for word in words:
        hidden.append(np.maximum(act, 0))
        act = act + theta.W[word]
    top = np.maximum(act, 0)
    scores = theta.d + theta.U @ top
    f = np.exp(scores - scores.max())
    delta_d = f / f.sum() - np.eye(len(scores))[y]
    delta_act = (theta.U.T @ delta_d) * (top > 0)
    gradients = {name: np.zeros(getattr(theta, name).shape) for name in ("W", "c", "V", "b")}
    gradients["U"], gradients["d"] = np.outer(delta_d, top), delta_d
    for i in range(len(words) - 1, -1, -1):
        h = hidden[i]
        delta_h = np.zeros_like(h)
        for node, side in zip(nodes[i], sides[i], strict=True):
            if node >= 0:
                delta_t = lambda_ * (1 / (1 + np.exp(-(theta.b[node] + theta.V[node] @ h))) - side)
                gradients["b"][node] += delta_t
                gradients["V"][node] += delta_t * h
                delta_h += delta_t * theta.V[node]
        delta_act = delta_act + delta_h * (h > 0)
        gradients["c"] += delta_h * (h > 0)
        gradients["W"][words[i]] += delta_act
    return gradients


def deep_hidden(parameters, x, f, activation: str) -> np.ndarray:
    """Top hidden layer of one document by the paper's equations: x its normalised counts, f its global features."""
    h = np.asarray(x, float)
    for layer in range(sum(name.startswith("W.") for name in parameters)):
        act = parameters[f"c.{layer}"] + parameters[f"W.{layer}"].astype(float) @ h
        if layer == 0 and f is not None:
            act = act + parameters["P"].astype(float) @ f
        h = _NUMPY[activation](act)
    return h
