"""DocNADE as one writes it in torch: autograd, no kernels.  What the speed is compared with."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from scipy import sparse

from pictopic.models.parameters import Theta
from pictopic.models.tree import WordTree


def parameters(theta: Theta) -> dict[str, torch.Tensor]:
    """Tensors that autograd follows."""
    return {name: torch.from_numpy(array.copy()).requires_grad_() for name, array in vars(theta).items() if array.size}


def words_of(X: sparse.csr_array, row: int) -> np.ndarray:
    """A document's words, repeated as they occur."""
    part = slice(X.indptr[row], X.indptr[row + 1])
    return np.repeat(X.indices[part].astype(np.int64), X.data[part])


class TreeBaseline:
    """Tree output: the rows of V on each word's path are gathered with F.embedding."""

    def __init__(self, theta: Theta, tree: WordTree, learning_rate: float):
        self.p = parameters(theta)
        self.rng = np.random.default_rng(0)
        nodes, sides = tree.paths()
        self.nodes = torch.from_numpy(np.maximum(nodes, 0))
        self.sides = torch.from_numpy(np.maximum(sides, 0).astype(np.float32))
        self.on_path = torch.from_numpy((nodes >= 0).astype(np.float32))
        self.learning_rate = learning_rate

    def step(self, batch: list[np.ndarray], scale: float) -> float:
        """One SGD step on documents of the same length (or one)."""
        p = self.p
        words = torch.from_numpy(np.stack([self.rng.permutation(words) for words in batch]))  # (B, D)
        vectors = F.embedding(words, p["W"])  # (B, D, H)
        before = F.pad(vectors.cumsum(1)[:, :-1], (0, 0, 1, 0))
        h = torch.relu(p["c"] + before)  # (B, D, H)
        nodes = self.nodes[words]  # (B, D, depth)
        rows = F.embedding(nodes, p["V"])  # (B, D, depth, H)
        logits = torch.matmul(rows, h[..., None])[..., 0] + F.embedding(nodes, p["b"][:, None])[..., 0]
        losses = F.binary_cross_entropy_with_logits(logits, self.sides[words], reduction="none")
        loss = (losses * self.on_path[words]).sum() * scale / len(batch)
        loss.backward()
        self._descend()
        return float(loss.detach())

    def _descend(self) -> None:
        with torch.no_grad():
            for tensor in self.p.values():
                tensor.sub_(tensor.grad, alpha=self.learning_rate)
                tensor.grad = None


class SoftmaxBaseline:
    """Softmax output on packed documents, Adam."""

    def __init__(self, theta: Theta, learning_rate: float):
        self.p = parameters(theta)
        self.rng = np.random.default_rng(0)
        self.optimizer = torch.optim.Adam(self.p.values(), lr=learning_rate, fused=True)

    def step(self, batch: list[np.ndarray], scale: float) -> float:
        """One step on documents of any lengths."""
        p = self.p
        words = torch.from_numpy(np.concatenate([self.rng.permutation(words) for words in batch]))  # (N,)
        lengths = torch.tensor([len(words) for words in batch])
        vectors = F.embedding(words, p["W"])
        total = F.pad(vectors.cumsum(0), (0, 0, 1, 0))
        start = (lengths.cumsum(0) - lengths).repeat_interleave(lengths)
        h = torch.tanh(p["c"] + total[:-1] - total[start])
        loss = F.cross_entropy(h @ p["V"].T + p["b"], words, reduction="sum") * scale / len(batch)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())
