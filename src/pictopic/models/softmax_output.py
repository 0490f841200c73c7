"""Training and likelihood with the full softmax over the words, in torch.

Documents are packed, not padded: each position of each document is a row.  The gradient is written by hand,
512 rows at a time, so that the (rows, Q) probabilities stay in the cache and only three matrix products and
one pass over them remain.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor

from pictopic.kernels import packed
from pictopic.models.inputs import Labels, chunks
from pictopic.models.parameters import Options, Theta, word_frequencies
from pictopic.models.solver import Solver
from pictopic.models.training import Trainer

ROWS = 512  # positions whose probabilities are computed at once
_CHUNK_WORDS = 1 << 18  # positions whose hidden layers are computed at once


@contextmanager
def torch_threads(n_jobs: int) -> Iterator[None]:
    """Let torch use `n_jobs` threads inside the block."""
    before = torch.get_num_threads()
    torch.set_num_threads(n_jobs)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def to_tensors(theta: Theta, device: str) -> dict[str, Tensor]:
    """Copy parameters to tensors on a device."""
    return {name: torch.from_numpy(array.copy()).to(device) for name, array in vars(theta).items()}


def to_theta(tensors: dict[str, Tensor]) -> Theta:
    """Copy tensors back to parameters."""
    return Theta(**{name: tensor.detach().cpu().numpy().copy() for name, tensor in tensors.items()})


def activate(act: Tensor, activation: str) -> Tensor:
    """Return g(act)."""
    return {"relu": torch.relu, "tanh": torch.tanh, "sigmoid": torch.sigmoid}[activation](act)


def derivative(h: Tensor, activation: str) -> Tensor:
    """Return g'(act) from h = g(act)."""
    if activation == "relu":
        return (h > 0).to(h.dtype)
    return 1 - h * h if activation == "tanh" else h * (1 - h)


class Packed:
    """Documents as one sequence of words, with the start of each document."""

    def __init__(self, words: np.ndarray, lengths: np.ndarray, device: str):
        self.on_cpu = device == "cpu"
        self.words = torch.from_numpy(words).to(device)  # (N,)
        self.offsets = np.concatenate([[0], np.cumsum(lengths)])  # (B + 1,)
        document = np.repeat(np.arange(len(lengths)), lengths)
        self.document = torch.from_numpy(document).to(device)  # (N,) which document a position belongs to
        self.start = torch.from_numpy(self.offsets[document]).to(device)  # (N,) that document's first position

    def activations(self, W: Tensor, c: Tensor) -> Tensor:
        """Return c + sum of W over the words before each position: (N, H)."""
        if self.on_cpu:
            out = torch.empty(len(self.words), W.shape[1])
            packed.sums_before(self.words.numpy(), self.offsets, W.numpy(), c.numpy(), out.numpy())
            return out
        return c + self._sums_before(W[self.words])

    def last_activations(self, W: Tensor, c: Tensor) -> Tensor:
        """Return c + sum of W over all words of each document: (B, H)."""
        return c + self._sums(W[self.words])

    def add_word_gradients(self, delta: Tensor, delta_y: Tensor, out: Tensor) -> None:
        """Add the gradient of each word's row of W, from the positions after the word and from the end.

        `delta` (N, H) is the gradient by each position's activations, `delta_y` (B, H) by the last ones.  W[v_i]
        affects only the positions after i.
        """
        if self.on_cpu:
            after_all = delta_y.clone().numpy()
            packed.add_sums_after(self.words.numpy(), self.offsets, delta.numpy(), after_all, out.numpy())
        else:
            after = (self._sums(delta) + delta_y)[self.document] - self._sums_before(delta) - delta
            out.index_add_(0, self.words, after)

    def _sums_before(self, rows: Tensor) -> Tensor:
        """Return the sum of the rows of the same document before each row: (N, H) -> (N, H).

        Running sums go over all documents in float64, and the document's start is subtracted: no padding is needed,
        and the rounding error is below float32's.
        """
        total = torch.zeros(len(rows) + 1, rows.shape[1], dtype=torch.float64, device=rows.device)
        torch.cumsum(rows, 0, dtype=torch.float64, out=total[1:])
        return (total[:-1] - total[self.start]).to(rows.dtype)

    def _sums(self, rows: Tensor) -> Tensor:
        """Return the sum of each document's rows: (N, H) -> (B, H)."""
        out = torch.zeros(len(self.offsets) - 1, rows.shape[1], dtype=rows.dtype, device=rows.device)
        return out.index_add_(0, self.document, rows)


def random_words(X: sparse.csr_array, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return the documents' words, concatenated in random order per document, and the documents' lengths."""
    lengths = np.asarray(X.sum(axis=1, dtype=np.int64)).ravel()
    words = np.repeat(X.indices.astype(np.int64), X.data)
    document = np.repeat(np.arange(len(lengths)), lengths)
    return words[np.lexsort((rng.random(len(words)), document))], lengths


class SoftmaxTrainer(Trainer):
    """Minibatch training of a softmax-output model.

    Parameters
    ----------
    theta : Theta
        Initial parameters.
    X : csr_array of shape (n_documents, n_words)
        Counts.
    labels : Labels
    options : Options
    """

    def __init__(self, theta: Theta, X: sparse.csr_array, labels: Labels, options: Options):
        self.X, self.labels, self.options = X, labels, options
        self.theta = to_tensors(theta, options.device)
        self.gradient = {name: torch.zeros_like(tensor) for name, tensor in self.theta.items()}
        for name, tensor in self.theta.items():
            tensor.grad = self.gradient[name]
        self.solver = Solver(
            self.theta, kind=options.solver, learning_rate=options.learning_rate, averaging=options.averaging,
            rates={"W": options.word_rate},
        )  # fmt: skip
        weights = options.word_weights(X.shape[1])
        self.weights = None if weights is None else torch.from_numpy(weights).to(options.device)
        frequencies = word_frequencies(X.sum(axis=0))
        self.smooth = torch.from_numpy((options.smoothing * frequencies).astype(np.float32)).to(options.device)

    @torch.no_grad()
    def learn(self, documents: np.ndarray, seed: int) -> tuple[float, float]:
        """Do one step on a minibatch; return the sums of -log p(v) and -log p(y | v) before it."""
        with torch_threads(self.options.n_jobs):
            losses = self._gradients(documents, np.random.default_rng(seed))
            self.solver.step()
        return losses

    def _gradients(self, documents: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
        """Set the gradients of the documents' mean loss."""
        options, theta, gradient = self.options, self.theta, self.gradient
        device = options.device
        torch._foreach_zero_(list(gradient.values()))
        part = Packed(*random_words(self.X[documents], rng), device)
        keep = 1 - options.dropout
        mask = torch.ones(len(documents), theta["c"].numel(), device=device)  # (B, H) one mask per document
        if options.dropout:
            mask = torch.from_numpy(rng.random(mask.shape, dtype=np.float32) < keep).to(device) / keep
        delta_y = torch.zeros_like(mask)  # (B, H) gradient by the activations after all words
        delta = torch.zeros(len(part.words), mask.shape[1], device=device)  # (N, H) by those of each position
        nll = class_loss = 0.0
        if theta["d"].numel() and options.word_dropout:
            class_loss, delta_c = self._class_gradients_of_some_words(documents, mask, rng)
            gradient["c"] += delta_c
        elif theta["d"].numel():
            class_loss, delta_y = self._class_gradients(documents, part.last_activations(theta["W"], theta["c"]), mask)
        if options.generative > 0:
            h = activate(part.activations(theta["W"], theta["c"]), options.activation)  # (N, H)
            scale = options.generative / len(documents)
            if options.dropout:
                mask = mask[part.document]
                nll, delta = self._word_gradients(h * mask, part.words, scale)
                delta *= mask
            else:
                nll, delta = self._word_gradients(h, part.words, scale)
            delta *= derivative(h, options.activation)
        gradient["c"] += delta.sum(0) + delta_y.sum(0)
        part.add_word_gradients(delta, delta_y, gradient["W"])
        return nll, class_loss

    def _word_gradients(self, h: Tensor, words: Tensor, scale: float) -> tuple[float, Tensor]:
        """Return -log p of the words given hidden layers h, and scale * its gradient by h; set those of V and b."""
        V, b = self.theta["V"], self.theta["b"]
        delta_h = torch.empty_like(h)
        nll = 0.0
        buffer = torch.empty(min(ROWS, len(h)), len(b), dtype=h.dtype, device=h.device)
        for start in range(0, len(h), ROWS):
            rows = h[start : start + ROWS]
            target = words[start : start + ROWS, None]
            logits = torch.addmm(b, rows, V.T, out=buffer[: len(rows)])  # (rows, Q)
            p = torch.softmax(logits, 1, out=logits)
            target_p = p.gather(1, target)
            nll -= float(target_p.clamp_min(torch.finfo(target_p.dtype).tiny).double().log().sum())
            # p becomes p - target, where a share `smoothing` of the target is the words' frequencies.
            p.scatter_(1, target, target_p - (1 - self.options.smoothing))
            if self.options.smoothing:
                p -= self.smooth
            # `scale` and the words' weights are applied to the small matrices, not to the large one.
            part_delta_h = torch.mm(p, V, out=delta_h[start : start + ROWS])
            if self.weights is None:
                self.gradient["V"].addmm_(p.T, rows, alpha=scale)
                self.gradient["b"].add_(p.sum(0), alpha=scale)
            else:
                weights = self.weights[target]  # (rows, 1)
                self.gradient["V"].addmm_(p.T, rows * weights, alpha=scale)
                self.gradient["b"].addmv_(p.T, weights[:, 0], alpha=scale)
                part_delta_h *= weights
        return nll, delta_h.mul_(scale)

    def _class_gradients_of_some_words(
        self, documents: np.ndarray, mask: Tensor, rng: np.random.Generator
    ) -> tuple[float, Tensor]:
        """Return -log p(y | v) without a share of each document's distinct words, and the gradient of its mean by c.

        The gradients of W, U and d are set.
        """
        X, W, keep = self.X[documents], self.theta["W"], 1 - self.options.word_dropout
        is_kept = rng.random(len(X.data), dtype=np.float32) < keep
        counts = torch.from_numpy((X.data * is_kept / keep).astype(np.float32)).to(W.device)[:, None]
        words = torch.from_numpy(X.indices.astype(np.int64)).to(W.device)
        document = torch.from_numpy(np.repeat(np.arange(len(documents)), np.diff(X.indptr))).to(W.device)
        act = self.theta["c"].repeat(len(documents), 1).index_add_(0, document, counts * W[words])
        class_loss, delta = self._class_gradients(documents, act, mask)
        self.gradient["W"].index_add_(0, words, counts * delta[document])
        return class_loss, delta.sum(0)

    def _class_gradients(self, documents: np.ndarray, act: Tensor, mask: Tensor) -> tuple[float, Tensor]:
        """Return -log p(y | v) and the gradient of its mean by the activations; set those of U and d."""
        theta = self.theta
        known = torch.from_numpy(self.labels.known[documents]).to(act.device)[:, None]
        y = torch.from_numpy(self.labels.indicator[documents].astype(np.float32)).to(act.device)
        h = activate(act, self.options.activation)
        scores = torch.addmm(theta["d"], h * mask, theta["U"].T)  # (B, C)
        if self.options.multi_label:
            losses = torch.nn.functional.softplus(scores) - y * scores
            delta = scores.sigmoid() - y
        else:
            losses = -y * scores.log_softmax(1)
            delta = scores.softmax(1) - y
        delta = delta * known / len(documents)
        self.gradient["U"] += delta.T @ (h * mask)
        self.gradient["d"] += delta.sum(0)
        delta_h = (delta @ theta["U"]) * mask * derivative(h, self.options.activation)
        return float((losses * known).sum()), delta_h

    def parameters(self) -> Theta:
        """Return a copy of the averages, or without averaging of the parameters."""
        return to_theta(self.theta | self.solver.used())

    def to_arrays(self, parameters: Theta) -> dict[str, np.ndarray]:
        """Return parameters as named arrays, for a checkpoint."""
        return vars(parameters)

    def from_arrays(self, arrays: dict[str, np.ndarray]) -> Theta:
        """Return parameters from named arrays, the inverse of `to_arrays`."""
        return Theta(**arrays)

    def state(self) -> dict[str, Any]:
        """Return the state from which training can be resumed."""
        return self.solver.state()

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from a `state`."""
        self.solver.resume(state)


@torch.inference_mode()
def sequence_losses(
    theta: Theta, words: np.ndarray, lengths: np.ndarray, activation: str, n_jobs: int, device: str
) -> np.ndarray:
    """Return -log p of documents whose words are in the given order."""
    tensors = to_tensors(theta, device)
    losses = []
    with torch_threads(n_jobs):
        for first, last in chunks(lengths, _CHUNK_WORDS):
            begin, end = int(lengths[:first].sum()), int(lengths[:last].sum())
            part = Packed(words[begin:end], lengths[first:last], device)
            h = activate(part.activations(tensors["W"], tensors["c"]), activation)
            log_p = torch.empty(len(h), 1, dtype=torch.float64, device=device)
            for start in range(0, len(h), ROWS):
                rows = slice(start, start + ROWS)
                logits = torch.addmm(tensors["b"], h[rows], tensors["V"].T)
                target_logits = logits.gather(1, part.words[rows, None])
                log_p[rows] = (target_logits - logits.logsumexp(1, keepdim=True)).double()
            losses.append(-part._sums(log_p)[:, 0].cpu().numpy())
    return np.concatenate(losses) if losses else np.zeros(0)


@torch.inference_mode()
def next_word_proba(
    theta: Theta, hidden: np.ndarray, columns: np.ndarray | None, n_jobs: int, device: str
) -> np.ndarray:
    """Return p(next word) of the columns (all by default), given hidden layers."""
    V, b = torch.from_numpy(theta.V).to(device), torch.from_numpy(theta.b).to(device)
    h = torch.from_numpy(hidden).to(device)
    out = []
    with torch_threads(n_jobs):
        for start in range(0, len(h), ROWS):
            p = torch.addmm(b, h[start : start + ROWS], V.T).softmax(1)
            out.append((p if columns is None else p[:, torch.from_numpy(columns).to(device)]).cpu().numpy())
    n_columns = len(b) if columns is None else len(columns)
    return np.concatenate(out) if out else np.zeros((0, n_columns), np.float32)


def count_losses(theta: Theta, X: sparse.csr_array, activation: str, n_jobs: int, device: str, seed: int) -> np.ndarray:
    """Return -log p of each document, with its words in a random order."""
    lengths = np.asarray(X.sum(axis=1, dtype=np.int64)).ravel()
    rng = np.random.default_rng(seed)
    losses = [np.zeros(0)]
    for first, last in chunks(lengths, _CHUNK_WORDS):
        losses.append(sequence_losses(theta, *random_words(X[first:last], rng), activation, n_jobs, device))
    return np.concatenate(losses)
