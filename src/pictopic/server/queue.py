"""Some threads, and a bounded number of requests that wait for them."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, TypeVar

from threadpoolctl import threadpool_limits

from pictopic.server.problems import ProblemError

T = TypeVar("T")
_AT_ONCE = 8  # things that one call takes from several requests: more would save little, and let the first ones wait


class _Share(NamedTuple):
    """What one request adds to a call that it shares with others."""

    function: Callable[[list[Any]], list[Any]]
    things: list[Any]
    future: Future[list[Any]]


def one_thread_each() -> None:
    """Let the libraries use one thread in each of ours.

    How many they use is a setting of the whole process, which the models change for a while and then set back; with
    several of them at once the last to leave would bring back what it found when it came.  If it is always one, there
    is nothing to mix up, and answers are the same bits as in a program with one thread.
    """
    import torch

    torch.set_num_threads(1)
    threadpool_limits(1)


class WorkQueue:
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
    >>> from pictopic.server.queue import WorkQueue
    >>> gate = WorkQueue(1, max_waiting=2, timeout=10, name="example")
    >>> asyncio.run(gate.run(sum, [1, 2, 3]))
    6
    >>> gate.close()
    """

    def __init__(self, n_threads: int, max_waiting: int, timeout: float, name: str):
        self.n_threads, self.max_waiting, self.timeout = n_threads, max_waiting, timeout
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix=name, initializer=one_thread_each)
        self._lock = threading.Lock()
        self._waiting = 0
        self._shares: dict[Hashable, deque[_Share]] = {}  # that no thread has taken yet

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
        self._enter(is_inside)
        future = self._pool.submit(function, *arguments)
        future.add_done_callback(self._leave)
        return await self._answer(future)

    async def share(
        self, key: Hashable, function: Callable[[list[Any]], list[T]], things: list[Any], is_inside: bool = False
    ) -> list[T]:
        """Call a function in a thread, once for several requests that wait at the same time.

        Who comes while a thread is free waits for nobody.

        Parameters
        ----------
        key : hashable
            Requests with the same key share calls.
        function : callable
            Takes a list and returns one of the same length; for all requests of a key the same.
        things : list
            What the function is asked about.
        is_inside : bool, default=False
            As for `run`.

        Returns
        -------
        list
            What the function returned for these things.

        Raises
        ------
        ProblemError
            429 if too many wait, 504 if it takes too long.
        """
        self._enter(is_inside)
        own = _Share(function, things, Future())
        own.future.add_done_callback(self._leave)
        with self._lock:
            self._shares.setdefault(key, deque()).append(own)
        # As many turns as requests: whose request was taken along by another's turn has nothing left to do in its own.
        self._pool.submit(self._turn, key)
        return await self._answer(own.future)

    def _turn(self, key: Hashable) -> None:
        with self._lock:
            taken = self._take(key)
        if taken:
            _call(taken)

    def _take(self, key: Hashable) -> list[_Share]:
        """The requests for the next call: those that came first, and not more than this thread's part of all."""
        waiting = self._shares.get(key, deque())
        room = min(_AT_ONCE, -(-sum(len(share.things) for share in waiting) // self.n_threads))
        taken: list[_Share] = []
        while waiting and (not taken or len(waiting[0].things) <= room):
            share = waiting.popleft()
            if share.future.set_running_or_notify_cancel():  # otherwise nobody waits for it any more
                taken.append(share)
                room -= len(share.things)
        if not waiting:
            self._shares.pop(key, None)
        return taken

    def _enter(self, is_inside: bool) -> None:
        with self._lock:
            if self._waiting >= self.max_waiting and not is_inside:
                raise ProblemError(429, "too many requests wait already", headers={"Retry-After": "1"})
            self._waiting += 1

    async def _answer(self, future: Future[T]) -> T:
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
        with self._lock:
            left = [share for waiting in self._shares.values() for share in waiting]
        for share in left:
            share.future.cancel()


def _call(shares: list[_Share]) -> None:
    """One call for some requests; if it fails, one for each, so that nobody fails because of another's."""
    try:
        found = shares[0].function([thing for share in shares for thing in share.things])
    except Exception as error:
        if len(shares) == 1:
            shares[0].future.set_exception(error)
        else:
            for share in shares:
                _call([share])
        return
    for share in shares:
        own, found = found[: len(share.things)], found[len(share.things) :]
        share.future.set_result(own)
