"""Processes that train together by way of torch.distributed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from torch import Tensor, distributed

from pictopic.models.training import Peers

T = TypeVar("T")


class ProcessGroup(Peers):
    """The processes of torch's process group: gloo between processors, nccl between graphics cards."""

    def __init__(self) -> None:
        self.rank, self.size = distributed.get_rank(), distributed.get_world_size()

    def add(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all processes."""
        under_way = [distributed.all_reduce(tensor, async_op=True) for tensor in tensors]
        for work in under_way:
            work.wait()

    def agree(self, decide: Callable[[], T]) -> T:
        """What the first process decides; the others wait for it."""
        decided = [decide() if self.rank == 0 else None]
        distributed.broadcast_object_list(decided, src=0)
        return decided[0]  # type: ignore[return-value]
