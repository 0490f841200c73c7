"""Processes that train one model together, each on a part of every minibatch.

Call the same `fit` in each process, inside `together`; the estimators need no option for it.  All processes have the
same documents and draw the same random numbers; each computes the gradient of its part, and the gradients are summed.
The result is that of one process, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # the shallow models train without torch
    from torch import Tensor

T = TypeVar("T")


class Peers:
    """A single process; `pictopic.cluster.group` has the implementation for several.

    Examples
    --------
    >>> from pictopic.models.peers import Peers
    >>> Peers().part(10)
    slice(0, 10, None)
    """

    rank = 0  # number of this process
    size = 1  # number of processes

    def part(self, n: int) -> slice:
        """Return this process's part of the `n` documents of a minibatch."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes."""

    def agree(self, decide: Callable[[], T]) -> T:
        """Return what the first process decides; the others wait for it."""
        return decide()


_current: ContextVar[Peers | None] = ContextVar("peers", default=None)


def current() -> Peers:
    """Return the peers that this process trains with."""
    return _current.get() or Peers()


@contextmanager
def together(peers: Peers) -> Iterator[None]:
    """Train with these peers inside the block."""
    token = _current.set(peers)
    try:
        yield
    finally:
        _current.reset(token)
