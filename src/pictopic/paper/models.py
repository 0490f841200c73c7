"""The deep models with the settings that the paper and its authors' implementation give."""

from __future__ import annotations

from pictopic.models.deep import DeepDocNADE, SupDeepDocNADE

_SIZES = (2048, 2048, 2048)


class PublishedDeepDocNADE(DeepDocNADE):
    """`DeepDocNADE` with the paper's settings as defaults, and output biases b that start at zero.

    Saved, it is a `DeepDocNADE`: what was learnt does not depend on where it started.

    Examples
    --------
    >>> from pictopic.paper.models import PublishedDeepDocNADE
    >>> PublishedDeepDocNADE().solver
    'sgd'
    """

    _zero_biases = True

    def __init__(self, *, n_components=_SIZES, solver="sgd", split="per_word", normalize="std", **options):
        super().__init__(n_components=n_components, solver=solver, split=split, normalize=normalize, **options)


class PublishedSupDeepDocNADE(SupDeepDocNADE):
    """`SupDeepDocNADE` with the paper's settings as defaults, and output biases b that start at zero.

    Saved, it is a `SupDeepDocNADE`.

    Examples
    --------
    >>> from pictopic.paper.models import PublishedSupDeepDocNADE
    >>> model = PublishedSupDeepDocNADE(n_components=8, max_iter=1, random_state=0)
    >>> model.fit([[2, 1, 0], [0, 1, 2]] * 4, ["sea", "city"] * 4).word_dropout
    0.0
    """

    _zero_biases = True

    def __init__(
        self, *, n_components=_SIZES, solver="sgd", split="per_word", normalize="std", word_dropout=0.0, **options
    ):
        super().__init__(
            n_components=n_components, solver=solver, split=split, normalize=normalize, word_dropout=word_dropout,
            **options,
        )  # fmt: skip
