"""Runs the work of a build on the processors of a Ray cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

T = TypeVar("T")

_AHEAD = 2  # calls for each processor that are under way or waiting
_RETRIES = 5  # of a call whose worker died; a picture that kills each of them must not be tried for ever


class RayWorkers:
    """Calls functions on a cluster: `pictopic.corpus.chunks.Workers`.

    A call whose worker dies is made again elsewhere; as a call's answer depends on nothing but its arguments, nothing
    is lost and nothing counted twice.

    Parameters
    ----------
    ray : module
        Connected; see `pictopic.cluster.connection.connected`.
    """

    def __init__(self, ray: Any):
        self.ray = ray

    def __call__(self, function: Callable[..., T], calls: Iterable[Sequence[Any]]) -> Iterator[T]:
        """The answers, in the order of the calls, which are taken as processors become free."""
        remote = self.ray.remote(num_cpus=1, max_retries=_RETRIES)(_call)
        waiting: deque[Any] = deque()
        try:
            for call in calls:
                waiting.append(remote.remote(function, *call))
                while len(waiting) >= _AHEAD * self.n_processors():
                    yield self._answer(waiting.popleft())
            while waiting:
                yield self._answer(waiting.popleft())
        finally:
            for reference in waiting:  # whoever asked does not want the rest
                self.ray.cancel(reference)

    def n_processors(self) -> int:
        """Processors of the cluster, which may grow and shrink."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    def _answer(self, reference: Any) -> Any:
        errors = self.ray.exceptions
        try:
            return self.ray.get(reference)
        except errors.RayTaskError as error:
            raise error.cause from None  # as it would be raised here
        except (errors.WorkerCrashedError, errors.NodeDiedError, errors.ObjectLostError) as error:
            raise RuntimeError(
                f"workers of the cluster died {_RETRIES + 1} times over the same pictures (out of memory?): {error}"
            ) from None


def _call(function: Callable[..., T], *arguments: Any) -> T:
    # One thread, as in a local build: sums in another order would be other numbers.
    with threadpool_limits(1):
        return function(*arguments)
