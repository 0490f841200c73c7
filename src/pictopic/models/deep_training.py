"""Training of the deep models: minibatches of split documents, one stacked pass for words and classes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy import sparse
from torch import Tensor
from torch.nn import functional

from pictopic.corpus.rows import Rows
from pictopic.kernels.rows import NORMALIZATIONS, fill_rows
from pictopic.kernels.splits import split_annotations, split_each_word, split_orderings
from pictopic.models.inputs import PICTURES_FIRST
from pictopic.models.network import Network
from pictopic.models.parameters import word_weights
from pictopic.models.softmax_output import torch_threads
from pictopic.models.solver import Solver
from pictopic.models.training import Peers, Trainer

# Learning rate factors of fine-tuning: classes start fresh and learn faster, pretrained parameters slower so as not to
# be forgotten.  The best of a few pairs on validation splits of the MIR Flickr tags with a tenth of the labels.
_FRESH_RATE, _PRETRAINED_RATE = 10.0, 0.2
_TAGS_ONLY = 0.25  # share of documents that lose their visual words, with split=PICTURES_FIRST
_WITHOUT_TAGS = 2 / 3  # share of the other documents whose classes are learnt without their tags
_SPLITS = {"ordering": split_orderings, "per_word": split_each_word, PICTURES_FIRST: split_orderings}


@dataclass(frozen=True)
class InputOptions:
    """Conversion of counts and global features to the network's input."""

    annotation_weight: float  # rho
    n_annotation_words: int
    normalize: str
    feature_mean: np.ndarray  # (F,)
    feature_scale: np.ndarray  # (F,)

    def fill(self, X: sparse.csr_array, out: np.ndarray, counts: np.ndarray | None = None, plain: bool = False) -> None:
        """Write rows of X, weighted and (unless `plain`) normalised, into an array of zeros.

        `counts` replaces the entries of X.
        """
        counts = X.data if counts is None else counts
        kind = NORMALIZATIONS["none" if plain else self.normalize]
        n_visual = X.shape[1] - self.n_annotation_words
        fill_rows(X.indptr, X.indices, counts, n_visual, float(self.annotation_weight), kind, out)

    def lengths(self, X: sparse.csr_array) -> np.ndarray:
        """Return the number of words of each row, with annotation words times rho."""
        return X @ word_weights(X.shape[1], self.n_annotation_words, self.annotation_weight)

    def standardize(self, features: np.ndarray | None, n: int) -> np.ndarray:
        """Standardise global features (n, F); missing ones become their mean, 0."""
        if features is None:
            return np.zeros((n, len(self.feature_mean)), np.float32)
        return np.nan_to_num((features - self.feature_mean) / self.feature_scale, nan=0.0).astype(
            np.float32, copy=False
        )


@dataclass(frozen=True)
class TrainingOptions:
    """Options of a training, resolved for one set of documents."""

    split: str
    generative: float  # weight of a document's NLL in its loss, lambda
    multi_label: bool
    dropout: float
    word_dropout: float
    solver: str
    learning_rate: float
    averaging: float
    weight_decay: float
    pretrained: bool  # whether all but U and d come from a pretrained model
    input_scale: float  # ratio of normalised input to plain counts; 1.0 if the input is normalised
    n_jobs: int
    device: str


@dataclass
class Minibatch:
    """Split documents, ready for the network."""

    x: Tensor  # (B + K, Q) input: contexts; below them all (or most) words of the documents with labels
    targets: Tensor  # (B, Q) weighted counts of the words to predict
    scale: Tensor  # (B,) D / (D - k), 0 where there is nothing to predict
    features: Tensor  # (B, F)
    known: Tensor  # (K,) numbers of the documents with labels
    labels: Tensor  # (K, C) 0 or 1
    n_all: int  # documents of the whole minibatch; these may be only a part
    first: int  # position of the first of these in the minibatch

    def to(self, device: str) -> Minibatch:
        """Move the tensors to a device."""
        moved = {name: value.to(device) for name, value in vars(self).items() if isinstance(value, Tensor)}
        return replace(self, **moved)  # type: ignore[arg-type]


def split_documents(
    X: sparse.csr_array,
    split: str,
    inputs: InputOptions,
    seed: int,
    n_more: int = 0,
    tags_only: np.ndarray | None = None,
    first: int = 0,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Split documents at random: return input (B + `n_more`, Q), targets (B, Q), and D / (D - k), (B,).

    The additional rows of the input are 0.  With split=PICTURES_FIRST, the documents `tags_only` (B,) have no visual
    words in their context.  A part of a minibatch, from position `first`, is split as within the whole.
    """
    n, n_words = X.shape
    drawn = np.empty_like(X.data)
    _SPLITS[split](X.indptr, X.data, seed, drawn, first)
    if split == PICTURES_FIRST:
        X.sort_indices()
        tags_only = np.zeros(n, bool) if tags_only is None else tags_only
        n_visual = n_words - inputs.n_annotation_words
        split_annotations(X.indptr, X.indices, X.data, n_visual, tags_only, seed, drawn, first)
    x = np.zeros((n + n_more, n_words), np.float32)
    targets = np.zeros((n, n_words), np.float32)
    inputs.fill(X, x, drawn)
    rest = X.data - drawn
    inputs.fill(X, targets, rest, plain=True)
    n_targets = inputs.lengths(sparse.csr_array((rest, X.indices, X.indptr), shape=X.shape))
    scale = np.divide(inputs.lengths(X), n_targets, out=np.zeros(n), where=n_targets > 0)
    return x, targets, scale.astype(np.float32)


class DeepTrainer(Trainer):
    """Minibatch training of a network.

    Parameters
    ----------
    network : Network
        Network to train in place.
    documents : Rows
        With encoded labels.
    inputs : InputOptions
    options : TrainingOptions
    peers : Peers, optional
        Other processes that train the same network on other documents of each minibatch.
    """

    reads_ahead = True

    def __init__(
        self, network: Network, documents: Rows, inputs: InputOptions, options: TrainingOptions,
        peers: Peers | None = None,
    ):  # fmt: skip
        self.network = network.to(options.device).requires_grad_(True)
        self.documents, self.inputs, self.options = documents, inputs, options
        self.labels = documents.labels
        self.peers = peers or Peers()
        # Small inputs need a large W, so it learns faster.  V needs no decay: the words keep it in check.
        rate = options.input_scale ** (2 if options.solver == "sgd" else 1)
        rates = {"W.0": rate}
        if options.pretrained:
            rates = {name: rates.get(name, 1.0) * _PRETRAINED_RATE for name, _ in self.network.named_parameters()}
            rates |= {"U": _FRESH_RATE, "d": _FRESH_RATE}
        self.solver = Solver(
            dict(self.network.named_parameters()), kind=options.solver, learning_rate=options.learning_rate,
            rates=rates, averaging=options.averaging, weight_decay=options.weight_decay, not_decayed=("V",),
        )  # fmt: skip

    def load(self, documents: np.ndarray, seed: int) -> tuple[Minibatch, int]:
        """Read and split documents; runs in the background.

        Of a shared minibatch, only this process's part is prepared, with the same random numbers as in one process.
        """
        part = self.peers.part(len(documents))
        labels = self.labels[documents]
        known = np.flatnonzero(labels.known) if labels.indicator.shape[1] else np.zeros(0, np.int64)
        dropped = None
        if known.size:  # word dropout depends on the documents before
            X = self.documents.read(documents)
            tags_only = self.draw_tags_only(X, seed)
            in_part = slice(*np.searchsorted(known, (part.start, part.stop)))
            dropped, known = self.drop_words(X[known], tags_only[known], seed)[in_part], known[in_part]
            if self.peers.size > 1:
                X, tags_only = X[part], tags_only[part]
        else:
            X = self.documents.read(documents[part])
            tags_only = self.draw_tags_only(X, seed, part.start)
        x, targets, scale = split_documents(X, self.options.split, self.inputs, seed, len(known), tags_only, part.start)
        if dropped is not None:
            self.inputs.fill(dropped, x[len(scale) :])
        features = self.inputs.standardize(self.documents.read_features(documents[part]), len(scale))
        features[tags_only] = 0
        indicator = labels.indicator[known].astype(np.float32)
        tensors = map(torch.from_numpy, (x, targets, scale, features, known - part.start, indicator))
        return Minibatch(*tensors, len(documents), part.start), seed  # type: ignore[call-arg, arg-type]

    def draw_tags_only(self, X: sparse.csr_array, seed: int, first: int = 0) -> np.ndarray:
        """Draw the documents that lose their visual words: a quarter of the tagged ones, with split=PICTURES_FIRST.

        X holds the documents of a minibatch from position `first`.
        """
        if self.options.split != PICTURES_FIRST:
            return np.zeros(X.shape[0], bool)
        tags = X[:, X.shape[1] - self.inputs.n_annotation_words :].sum(axis=1) > 0
        drawn = np.random.default_rng([seed, 2]).random(first + X.shape[0])[first:]
        return tags & (drawn < _TAGS_ONLY)

    def drop_words(self, X: sparse.csr_array, tags_only: np.ndarray, seed: int) -> sparse.csr_array:
        """Leave out random words (with all their occurrences) of documents.

        With split=PICTURES_FIRST, half of the documents lose all annotation words, as new pictures have none, and those
        in `tags_only` lose all visual words, as in a search by tags.
        """
        if not self.options.word_dropout and self.options.split != PICTURES_FIRST:
            return X
        rng = np.random.default_rng([seed, 1])
        is_kept = rng.random(X.nnz) >= self.options.word_dropout
        if self.options.split == PICTURES_FIRST:
            is_visual = X.indices < X.shape[1] - self.inputs.n_annotation_words
            n_entries = np.diff(X.indptr)
            without_tags = np.repeat((rng.random(X.shape[0]) < _WITHOUT_TAGS) & ~tags_only, n_entries)
            is_kept &= np.where(is_visual, ~np.repeat(tags_only, n_entries), ~without_tags)
        return sparse.csr_array((X.data * is_kept, X.indices, X.indptr), shape=X.shape)

    def learn(self, minibatch: Minibatch, seed: int) -> tuple[float, float]:
        """Do one step; return the sums of the estimated -log p(v) and of -log p(y | v) before it."""
        with torch_threads(self.options.n_jobs):
            self.network.zero_grad(set_to_none=True)
            nll, class_loss = self.losses(minibatch.to(self.options.device), seed)
            loss = (class_loss + self.options.generative * nll) / minibatch.n_all
            if loss.requires_grad:  # False if there is neither a word nor a class to learn
                loss.backward()
            # Parameters without a gradient still need one for their averages.
            for parameter in self.network.parameters():
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
            sums = torch.stack([nll.detach(), class_loss.detach()]).double()
            gradients = [parameter.grad for parameter in self.solver.parameters.values() if parameter.grad is not None]
            self.peers.add([*gradients, sums])
            self.solver.step()
        return float(sums[0]), float(sums[1])

    def losses(self, minibatch: Minibatch, seed: int) -> tuple[Tensor, Tensor]:
        """Return the sums over documents of the estimated -log p(v) and of -log p(y | v)."""
        n = len(minibatch.scale)
        supervised = len(minibatch.known) > 0
        # One pass for the words (the first n rows) and for the classes.
        masks = self.masks(minibatch.n_all, seed, slice(minibatch.first, minibatch.first + n))
        h = self.network.hidden(minibatch.x, minibatch.features, masks, minibatch.known if supervised else None)
        nll = class_loss = torch.zeros((), device=h.device)
        if self.options.generative > 0:
            nll = (minibatch.scale * self.network.word_losses(h[:n], minibatch.targets)).sum()
        if supervised:
            scores = self.network.class_scores(h[n:])  # (K, C)
            if self.options.multi_label:
                class_loss = functional.binary_cross_entropy_with_logits(scores, minibatch.labels, reduction="sum")
            else:
                class_loss = -(minibatch.labels * scores.log_softmax(1)).sum()
        return nll, class_loss

    def masks(self, n: int, seed: int, part: slice = slice(None)) -> list[Tensor] | None:
        """Draw dropout masks (B, H) of each layer, 0 or 1 / share of units kept, for a part of `n` documents."""
        if not self.options.dropout:
            return None
        keep = 1 - self.options.dropout
        random = torch.Generator(self.options.device).manual_seed(seed)
        return [
            (torch.rand(n, len(c), generator=random, device=self.options.device)[part] < keep).float().div_(keep)
            for c in self.network.c
        ]

    def parameters(self) -> dict[str, np.ndarray]:
        """Return a copy of the averages, or without averaging of the parameters."""
        solver_tensors = self.solver.used()
        return {
            name: solver_tensors.get(name, tensor).detach().cpu().numpy().copy()
            for name, tensor in self.network.named_parameters()
        }

    def state(self) -> dict[str, Any]:
        """Return the state from which training can be resumed."""
        return self.solver.state()

    def resume(self, state: dict[str, Any]) -> None:
        """Continue from a `state`."""
        self.solver.resume(state)
