"""Training and likelihood with the tree output, on the kernels.

The kernels need words in the order of the leaves and rows padded to whole vectors, with the biases in the column after
the last hidden unit.  `pack` and `unpack` convert; no other module depends on this layout.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit, log_expit

from pictopic.kernels import learning
from pictopic.kernels.elementary import ACTIVATIONS
from pictopic.kernels.simd import padded
from pictopic.models.inputs import Labels, chunks, in_parts
from pictopic.models.parameters import ADAM_BETAS, Options, Theta, average_decay
from pictopic.models.training import Trainer
from pictopic.models.tree import WordTree

_CHUNK_WORDS = 1 << 20  # words whose orders are drawn at once
_PROBA_ROWS = 256  # documents whose probabilities are computed at once


def pack(theta: Theta, tree: WordTree) -> learning.Parameters:
    """Convert parameters to the kernels' layout."""
    n_hidden = theta.c.size
    arrays = {}
    for name, weights, bias in (
        ("W", theta.W[tree.word_of_leaf], None),
        ("c", theta.c[None], None),
        ("V", theta.V, theta.b),
        ("U", theta.U, theta.d),
    ):
        array = learning.aligned_zeros((weights.shape[0], padded(n_hidden + 1)))
        array[:, :n_hidden] = weights
        if bias is not None:
            array[:, n_hidden] = bias
        arrays[name] = array
    return learning.Parameters(**arrays)


def unpack(packed: learning.Parameters, tree: WordTree, n_hidden: int) -> Theta:
    """Convert parameters back from the kernels' layout."""
    return Theta(
        W=packed.W[tree.leaf_of_word, :n_hidden],
        c=packed.c[0, :n_hidden].copy(),
        V=packed.V[:, :n_hidden].copy(),
        b=packed.V[:, n_hidden].copy(),
        U=packed.U[:, :n_hidden].copy(),
        d=packed.U[:, n_hidden].copy(),
    )


def to_leaves(X: sparse.csr_array, tree: WordTree) -> sparse.csr_array:
    """Return X with columns in the order of the leaves, sorted in each row, and counts as int32."""
    leaves = sparse.csr_array(
        (X.data.astype(np.int32), tree.leaf_of_word[X.indices].astype(np.int32), X.indptr.copy()), shape=X.shape
    )
    leaves.sort_indices()
    return leaves


class TreeTrainer(Trainer):
    """Minibatch training of a tree-output model, with the solver's memory between steps.

    Parameters
    ----------
    theta : Theta
        Initial parameters.
    tree : WordTree
    X : csr_array of shape (n_documents, n_words)
        Counts.
    labels : Labels
    options : Options
    """

    def __init__(self, theta: Theta, tree: WordTree, X: sparse.csr_array, labels: Labels, options: Options):
        self.tree, self.labels, self.options = tree, labels, options
        self.n_hidden = theta.c.size
        self.X = to_leaves(X, tree)
        self.lengths = np.asarray(X.sum(axis=1)).ravel().astype(np.int64)
        self.theta = pack(theta, tree)
        self.rates = expit(tree.base_rates(np.asarray(X.sum(axis=0)).ravel())).astype(np.float32)
        weights = options.word_weights(tree.n_words)
        self.weights = np.zeros(0, np.float32) if weights is None else weights[tree.word_of_leaf]
        n_jobs = options.n_jobs
        longest = int(self.lengths.max(initial=1))
        try:
            self.scratch = [
                learning.make_scratch(longest, tree.n_words, self.n_hidden, theta.d.size) for _ in range(n_jobs)
            ]
        except MemoryError:
            row = int(self.lengths.argmax())
            raise ValueError(f"row {row} has {longest:,} words: too many for the memory of this machine") from None
        self.gradients = [np.stack([np.zeros_like(a)] * n_jobs) for a in self.theta]
        self.touched = [np.zeros(g.shape[:2], np.bool_) for g in self.gradients]
        self.moment, self.square, self.average = (
            [a.copy() if name == "average" else np.zeros_like(a) for a in self.theta]
            for name in ("moment", "square", "average")
        )
        self.synced = [np.zeros(len(a) if options.averaging else 0) for a in self.theta]
        self.step = 0
        self.decays = (0.0, 0.0)  # sums of the logarithms of the average's decays before and after the last step
        self.pool = ThreadPoolExecutor(n_jobs) if n_jobs > 1 else None

    @property
    def in_place(self) -> bool:
        """Whether each document is a step."""
        return self.options.solver == "sgd" and self.options.batch_size == 1

    def learn(self, documents: np.ndarray, seed: int) -> tuple[float, float]:
        """Do one step on a minibatch; return the sums of -log p(v) and -log p(y | v) before it."""
        if self.in_place:
            losses = self._run(0, documents, seed, self.theta, -self.options.learning_rate)
            self._next_step(len(documents))
            self._sync()
            return losses
        n_jobs = self.options.n_jobs
        step = 1.0 / len(documents)
        if self.pool is None:
            losses = self._run(0, documents, seed, self._gradient(0), step)
        else:
            # Parts with nearly equal numbers of words, the same for the same n_jobs.
            ends = np.cumsum(self.lengths[documents])
            cuts = np.searchsorted(ends, ends[-1] * np.arange(1, n_jobs) / n_jobs)
            parts = np.split(documents, cuts)
            runs = [self.pool.submit(self._run, j, part, seed, self._gradient(j), step) for j, part in enumerate(parts)]
            results = [run.result() for run in runs]
            losses = sum(r[0] for r in results), sum(r[1] for r in results)
        self._next_step(1)
        self._update()
        return losses

    def _gradient(self, j: int) -> learning.Parameters:
        return learning.Parameters(*(g[j] for g in self.gradients))

    def _run(self, j, documents, seed, out, step) -> tuple[float, float]:
        options = self.options
        touched = learning.Touched(*(t[j] for t in self.touched))
        touched.c[:] = True
        touched.U[:] = True
        return learning.learn(
            documents, self.X.indptr, self.X.indices, self.X.data, self.labels.indicator, self.labels.known,
            options.multi_label, self.theta, self.rates, np.float32(options.smoothing), self.weights, out, touched,
            np.float32(step), np.float32(options.generative),
            ACTIVATIONS[options.activation], np.float32(options.dropout), np.float32(options.word_dropout),
            np.uint64(seed), self.n_hidden, *self.scratch[j],
        )  # fmt: skip

    def _next_step(self, n: int) -> None:
        self.step += n
        if self.options.averaging:
            decay = average_decay(self.options.averaging, self.step) ** n
            self.decays = (self.decays[1], self.decays[1] + float(np.log(decay)))

    def _update(self) -> None:
        rates = [
            self.options.learning_rate * (self.options.word_rate if name == "W" else 1.0) for name in self.theta._fields
        ]
        for arrays in zip(
            rates, self.theta, self.gradients, self.touched, self.moment, self.square, self.average, self.synced,
            strict=True,
        ):  # fmt: skip
            self._update_one(*arrays)

    def _update_one(self, rate, theta, gradients, touched, moment, square, average, synced) -> None:
        def rows(first: int, last: int) -> None:
            learning.update_rows(
                first, last, theta, gradients, touched, moment, square, average, synced,
                np.float32(rate), *(np.float32(beta) for beta in ADAM_BETAS),
                self.step, *self.decays, self.options.solver == "adam",
            )  # fmt: skip

        in_parts(len(theta), self.options.n_jobs, rows, self.pool)

    def _sync(self) -> None:
        for theta, average, synced in zip(self.theta, self.average, self.synced, strict=True):
            if synced.size:
                learning.sync_average(theta, average, synced, self.decays[1])

    def parameters(self) -> Theta:
        """Return a copy of the averages, or without averaging of the parameters."""
        self._sync()
        packed = learning.Parameters(*self.average) if self.options.averaging else self.theta
        return unpack(packed, self.tree, self.n_hidden)

    def to_arrays(self, parameters: Theta) -> dict[str, np.ndarray]:
        """Return parameters as named arrays, for a checkpoint."""
        return vars(parameters)

    def from_arrays(self, arrays: dict[str, np.ndarray]) -> Theta:
        """Return parameters from named arrays, the inverse of `to_arrays`."""
        return Theta(**arrays)

    def _state_arrays(self) -> dict[str, np.ndarray]:
        """Return everything that steps change, in the kernels' layout; averages are not synchronised first."""
        return {
            f"{kind}.{name}": array
            for kind in ("theta", "moment", "square", "average", "synced")
            for name, array in zip(self.theta._fields, getattr(self, kind), strict=True)
        }

    def state(self) -> dict[str, Any]:
        """Return the state from which training can be resumed."""
        tensors = {name: array.copy() for name, array in self._state_arrays().items()}
        return {"tensors": tensors, "step": self.step, "decays": list(self.decays)}

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from a `state`."""
        for name, array in self._state_arrays().items():
            array[...] = np.asarray(state["tensors"][name])
        self.step, self.decays = state["step"], (state["decays"][0], state["decays"][1])


def count_losses(
    theta: Theta, tree: WordTree, X: sparse.csr_array, activation: str, n_jobs: int, seed: int
) -> np.ndarray:
    """Return -log p of each document, with its words in a random order."""
    X = to_leaves(X, tree)
    lengths = np.asarray(X.sum(axis=1, dtype=np.int64)).ravel()
    packed = pack(theta, tree)
    losses = np.zeros(len(lengths))
    for number, (first, last) in enumerate(chunks(lengths, _CHUNK_WORDS)):
        part = X[first:last]
        leaves = np.repeat(part.indices.astype(np.int64), part.data)
        offsets = np.concatenate([[0], np.cumsum(lengths[first:last])])
        order = np.zeros(len(leaves), np.int64)
        learning.random_orders(offsets, np.uint64(seed + number), order)
        losses[first:last] = _losses(packed, theta.c.size, leaves, order, offsets, activation, n_jobs)
    return losses


def sequence_losses(
    theta: Theta, tree: WordTree, words: np.ndarray, lengths: np.ndarray, activation: str, n_jobs: int
) -> np.ndarray:
    """Return -log p of documents whose words are in the given order."""
    leaves = tree.leaf_of_word[words]
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    document = np.repeat(np.arange(len(lengths)), lengths)
    by_leaf = np.lexsort((leaves, document))
    order = np.empty(len(words), np.int64)
    order[by_leaf] = np.arange(len(words)) - offsets[document]
    return _losses(pack(theta, tree), theta.c.size, leaves[by_leaf], order, offsets, activation, n_jobs)


def _losses(packed, n_hidden, leaves, order, offsets, activation, n_jobs) -> np.ndarray:
    n_documents = len(offsets) - 1
    losses = np.zeros(n_documents)
    longest = int(np.diff(offsets).max(initial=1))

    def run(first: int, last: int) -> None:
        scratch = learning.make_scratch(longest, len(packed.W), n_hidden, 0)
        learning.sequence_losses(
            first, last, offsets, leaves, order, packed.W, packed.c, packed.V,
            ACTIVATIONS[activation], n_hidden, losses, *scratch,
        )  # fmt: skip

    in_parts(n_documents, n_jobs, run)
    return losses


def next_word_proba(theta: Theta, tree: WordTree, hidden: np.ndarray, columns: np.ndarray | None) -> np.ndarray:
    """Return p(next word) of the columns (all by default), given hidden layers; other paths are not computed."""
    nodes, sides = tree.word_paths
    if columns is not None:
        nodes, sides = nodes[columns], sides[columns]
    path_nodes, node_positions = np.unique(nodes[nodes >= 0], return_inverse=True)
    inner = np.full(nodes.shape, -1)
    inner[nodes >= 0] = node_positions
    out = np.empty((len(hidden), len(nodes)), np.float32)
    for start in range(0, len(hidden), _PROBA_ROWS):
        rows = hidden[start : start + _PROBA_ROWS].astype(np.float64)
        logits = rows @ theta.V[path_nodes].T + theta.b[path_nodes]
        log_p = np.zeros((len(rows), len(nodes)))
        for k in range(tree.depth):
            on_path = inner[:, k] >= 0
            sign = np.where(sides[on_path, k] == 1, 1.0, -1.0)
            log_p[:, on_path] += log_expit(sign * logits[:, inner[on_path, k]])
        out[start : start + _PROBA_ROWS] = np.exp(log_p)
    return out
