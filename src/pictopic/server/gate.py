"""Some threads, and a bounded number of requests that wait for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from threadpoolctl import threadpool_limits

from pictopic.server.problems import ProblemError

T = TypeVar("T")


def one_thread_each() -> None:
    """Let the libraries use one thread in each of ours.

    How many they use is a setting of the whole process, which the models change for a while and then set back; with
    several of them at once the last to leave would bring back what it found when it came.  If it is always one, there
    is nothing to mix up, and answers are the same bits as in a program with one thread.
    """
    import torch

    torch.set_num_threads(1)
    threadpool_limits(1)


class Gate:
    """Runs functions in threads; refuses when too many wait already.

    Parameters
    ----------
    n_threads : int
    max_waiting : int
        Functions that run or wait.
    timeout : float
        Seconds until the caller is told that it takes too long.  A function cannot be stopped: it keeps its place
        until it ends.
    name : str
        Of the threads.

    Examples
    --------
    >>> import asyncio
    >>> from pictopic.server.gate import Gate
    >>> gate = Gate(1, max_waiting=2, timeout=10, name="example")
    >>> asyncio.run(gate.run(sum, [1, 2, 3]))
    6
    >>> gate.close()
    """

    def __init__(self, n_threads: int, max_waiting: int, timeout: float, name: str):
        self.max_waiting, self.timeout = max_waiting, timeout
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix=name, initializer=one_thread_each)
        self._lock = threading.Lock()
        self._waiting = 0

    @property
    def waiting(self) -> int:
        """How many functions run or wait."""
        return self._waiting

    async def run(self, function: Callable[..., T], *arguments: Any, is_inside: bool = False) -> T:
        """Call a function in a thread.

        Parameters
        ----------
        function : callable
        *arguments
        is_inside : bool, default=False
            For the later parts of a request whose first part was let in: it waits, but is not refused.

        Raises
        ------
        ProblemError
            429 if too many wait, 504 if it takes too long.
        """
        with self._lock:
            if self._waiting >= self.max_waiting and not is_inside:
                raise ProblemError(429, "too many requests wait already", headers={"Retry-After": "1"})
            self._waiting += 1
        future = self._pool.submit(function, *arguments)
        future.add_done_callback(self._leave)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.timeout)
        except TimeoutError:
            raise ProblemError(504, f"no answer within {self.timeout:g} seconds") from None

    def _leave(self, future: Future[Any]) -> None:
        with self._lock:
            self._waiting -= 1

    def close(self) -> None:
        """Start nothing more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
