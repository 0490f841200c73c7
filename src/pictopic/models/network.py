"""Network of the deep models: words and global features -> hidden layers -> words and classes.

Letters in shapes: R rows (documents or contexts), Q words, H1..HN hidden units, F global features, C classes,
T = Q - 1 inner nodes of the tree of words.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from pictopic.models.parameters import glorot_uniform
from pictopic.models.tree import WordTree

_ACTIVATIONS = {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid}


def normalize_counts(x: Tensor, kind: str) -> Tensor:
    """Normalise weighted counts (R, Q), each row by its own scale.

    "std" divides a row by its standard deviation over the Q words (paper: "unit variance"; nothing is subtracted, so
    that absent words stay 0), "sqrt" takes square roots first, "none" returns the counts as they are.  A row without
    words stays 0.
    """
    if kind == "none":
        return x
    if kind == "sqrt":
        x = x.sqrt()
    n = x.shape[1]
    mean = x.sum(1, keepdim=True) / n  # (R, 1)
    square = torch.linalg.vector_norm(x, dim=1, keepdim=True) ** 2 / n  # (R, 1)
    deviation = (square - mean * mean).clamp_min(0).sqrt()
    # A row in which all words are equally frequent has no deviation: use its mean.
    deviation = torch.where(deviation > 1e-3 * mean, deviation, mean)
    return x / torch.where(deviation > 0, deviation, 1)


def parameter_shapes(
    n_words: int, sizes: tuple[int, ...], n_outputs: int, n_classes: int, n_features: int
) -> dict[str, tuple[int, ...]]:
    """Return names and shapes of a network's parameters; `sizes` are H1..HN, `n_outputs` is Q, or T for the tree."""
    inputs = (n_words, *sizes[:-1])
    shapes: dict[str, tuple[int, ...]] = {f"W.{k}": shape for k, shape in enumerate(zip(sizes, inputs, strict=True))}
    shapes |= {f"c.{k}": (size,) for k, size in enumerate(sizes)}
    return shapes | {
        "P": (sizes[0], n_features), "V": (n_outputs, sizes[-1]), "b": (n_outputs,), "U": (n_classes, sizes[-1]),
        "d": (n_classes,),
    }  # fmt: skip


def initial_parameters(rng: np.random.RandomState, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """Return initial parameters of these shapes: Glorot-uniform matrices, zero biases."""
    return {
        name: glorot_uniform(rng, *shape) if len(shape) == 2 else np.zeros(shape, np.float32)
        for name, shape in shapes.items()
    }


class Network(nn.Module):
    """Multilayer perceptron with the paper's parameters; dropout masks are arguments.

    Parameters
    ----------
    parameters : dict of str to Tensor
        Parameters with the names of `parameter_shapes`, which share their memory with the network.
    activation : {"relu", "tanh", "sigmoid"}
        g.
    tree : WordTree, optional
        Tree for p(word) by left/right decisions; None for a softmax over all words.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from pictopic.models.network import Network, initial_parameters, parameter_shapes
    >>> shapes = parameter_shapes(n_words=5, sizes=(4, 3), n_outputs=5, n_classes=2, n_features=0)
    >>> arrays = initial_parameters(np.random.RandomState(0), shapes)
    >>> network = Network({name: torch.from_numpy(array) for name, array in arrays.items()}, "relu")
    >>> h = network.hidden(torch.ones(1, 5))
    >>> tuple(h.shape), tuple(network.log_p_words(h).shape), tuple(network.class_scores(h).shape)
    ((1, 3), (1, 5), (1, 2))
    """

    def __init__(self, parameters: dict[str, Tensor], activation: str, tree: WordTree | None = None):
        super().__init__()
        n_layers = sum(name.startswith("W.") for name in parameters)
        self.W = nn.ParameterList(parameters[f"W.{k}"] for k in range(n_layers))  # (H1, Q), (H2, H1)..
        self.c = nn.ParameterList(parameters[f"c.{k}"] for k in range(n_layers))  # (H1,), (H2,)..
        self.P = nn.Parameter(parameters["P"])  # (H1, F)
        self.V = nn.Parameter(parameters["V"])  # (Q, HN), or (T, HN) for the tree
        self.b = nn.Parameter(parameters["b"])  # (Q,) or (T,)
        self.U = nn.Parameter(parameters["U"])  # (C, HN)
        self.d = nn.Parameter(parameters["d"])  # (C,)
        self.activation = _ACTIVATIONS[activation]
        self.tree = None if tree is None else _TreeTables(tree)

    def hidden(
        self, x: Tensor, f: Tensor | None = None, masks: list[Tensor] | None = None, again: Tensor | None = None
    ) -> Tensor:
        """Return the top hidden layer h^(N): (R, Q) normalised counts -> (R, HN).

        Global features f (B, F) and dropout masks, one (B, H) per layer, belong to documents, which may have two rows:
        x[:B], and x[B:] for the documents whose numbers are in `again`.  P f is computed once per document, and both
        its rows have the same mask.
        """
        act = linear(x, self.W[0], self.c[0])  # (R, H1)
        if f is not None and f.shape[1]:
            act = act + _twice(linear(f, self.P), again)
        h = self.activation(act)
        for layer in range(1, len(self.W)):
            if masks is not None:
                h = h * _twice(masks[layer - 1], again)
            h = self.activation(linear(h, self.W[layer], self.c[layer]))  # (R, H)
        return h if masks is None else h * _twice(masks[-1], again)

    def class_scores(self, h: Tensor) -> Tensor:
        """Return the scores d + U h of the classes: (R, HN) -> (R, C)."""
        return linear(h, self.U, self.d)

    def word_losses(self, h: Tensor, targets: Tensor) -> Tensor:
        """Return the sum of -log p over each row's target words, given h (R, HN) and target counts (R, Q): (R,)."""
        if self.tree is not None:
            return self._tree_losses(h, targets, self.tree)
        return -(linear(h, self.V, self.b).log_softmax(1) * targets).sum(1)

    def log_p_words(self, h: Tensor) -> Tensor:
        """Return log p(next word) of all words: (R, HN) -> (R, Q)."""
        scores = linear(h, self.V, self.b)  # (R, Q) or (R, T)
        return scores.log_softmax(1) if self.tree is None else self.tree.log_p_leaves(scores)[:, self.tree.leaf_of_word]

    def _tree_losses(self, h: Tensor, targets: Tensor, tree: _TreeTables) -> Tensor:
        """Compute `word_losses` from the decisions on the paths to the target words; other nodes are skipped."""
        right, both = tree.turns(targets)  # (R, T) how often a target's path turns right at a node, and passes it
        passed = (both > 0).any(0).nonzero()[:, 0]  # (t,) nodes that any row passes
        scores = linear(h, self.V[passed], self.b[passed])  # (R, t)
        return (both[:, passed] * functional.softplus(scores) - right[:, passed] * scores).sum(1)


class _Linear(torch.autograd.Function):
    """Product x weight^T whose weight gradient reuses the memory of the last step.

    Otherwise each step of a large network allocates and frees 100 MB, which takes a tenth of its time.  As usual,
    gradients add up until they are set to None; the next backward pass then overwrites the former ``weight.grad``.
    """

    @staticmethod
    def forward(ctx, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x)
        ctx.weight, ctx.bias = weight, bias
        return x @ weight.T if bias is None else torch.addmm(bias, x, weight.T)

    @staticmethod
    def backward(ctx, delta: Tensor) -> tuple[Tensor | None, None, Tensor | None]:
        (x,), weight = ctx.saved_tensors, ctx.weight
        if weight.grad is not None:  # from another product in this pass, or from another pass
            weight.grad.addmm_(delta.T, x)
        else:
            memory = getattr(weight, "gradient_memory", None)
            if memory is None or memory.dtype != weight.dtype:
                memory = weight.gradient_memory = torch.empty_like(weight)
            weight.grad = torch.mm(delta.T, x, out=memory)
        delta_x = delta @ weight if ctx.needs_input_grad[0] else None
        return delta_x, None, None if ctx.bias is None else delta.sum(0)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return x weight^T + bias: (R, n) -> (R, m), for a weight (m, n)."""
    if torch.is_grad_enabled() and weight.is_leaf and weight.requires_grad:
        return _Linear.apply(x, weight, bias)
    return functional.linear(x, weight, bias)


def _twice(rows: Tensor, again: Tensor | None) -> Tensor:
    """Return the documents' rows, followed by those of the documents `again` once more."""
    if again is None:
        return rows
    return torch.cat([rows, rows if len(again) == len(rows) else rows[again]])


class _TreeTables(nn.Module):
    """Tree of words as tensors: a node has the leaves low..high-1, its right child middle..high-1."""

    low: Tensor
    middle: Tensor
    high: Tensor
    word_of_leaf: Tensor
    leaf_of_word: Tensor

    def __init__(self, tree: WordTree):
        super().__init__()
        for name, array in zip(("low", "middle", "high"), tree.ranges(), strict=True):
            self.register_buffer(name, torch.from_numpy(array), persistent=False)  # (T,)
        self.register_buffer("word_of_leaf", torch.from_numpy(tree.word_of_leaf), persistent=False)  # (Q,)
        self.register_buffer("leaf_of_word", torch.from_numpy(tree.leaf_of_word), persistent=False)  # (Q,)

    def turns(self, counts: Tensor) -> tuple[Tensor, Tensor]:
        """Return how often the paths to words with these counts (R, Q) turn right at each node and pass it: (R, T)."""
        before = torch.zeros(counts.shape[0], counts.shape[1] + 1, dtype=torch.float64, device=counts.device)
        torch.cumsum(counts[:, self.word_of_leaf], 1, dtype=torch.float64, out=before[:, 1:])  # in leaf order
        right = before[:, self.high] - before[:, self.middle]
        return right.to(counts.dtype), (before[:, self.high] - before[:, self.low]).to(counts.dtype)

    def log_p_leaves(self, scores: Tensor) -> Tensor:
        """Return the log-probability of each leaf from the nodes' scores: (R, T) -> (R, Q).

        A node adds one number to the leaves on its left and another to those on its right; the changes from leaf to
        leaf are collected and summed from left to right.
        """
        left, right = -functional.softplus(scores.double()), -functional.softplus(-scores.double())
        change = torch.zeros(scores.shape[0], scores.shape[1] + 2, dtype=torch.float64, device=scores.device)
        change.index_add_(1, self.low, left).index_add_(1, self.middle, right - left).index_add_(1, self.high, -right)
        return change.cumsum(1)[:, :-1].to(scores.dtype)
