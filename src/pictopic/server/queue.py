"""A bounded queue of requests for some threads, and what these threads need of the process."""

from __future__ import annotations

import asyncio
import ctypes
import sys
import threading
from collections import deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

from threadpoolctl import threadpool_limits

from pictopic.server.problems import ProblemError, no_answer_within

T = TypeVar("T")
_MAX_SHARED = 8  # items in a call for several requests: more would save little, and delay the first ones

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of mallopt, in glibc's malloc.h
_LARGE = 4 << 20  # bytes
_FREE_AT_THE_END = 16 << 20


class _Share(NamedTuple):
    """The part of one request in a call that several requests share."""

    function: Callable[[list[Any]], list[Any]]
    items: list[Any]
    future: Future[list[Any]]


def one_thread_each() -> None:
    """Limit numerical libraries to one thread in each of ours.

    The limit belongs to the whole process.  Models set it for a while and restore what it was before; several at once
    would restore each other's.  With one thread everywhere there is nothing to restore, and answers are the same bits
    as in a program with one thread.
    """
    import torch

    torch.set_num_threads(1)
    threadpool_limits(1)


def give_back_large_blocks() -> bool:
    """Make glibc return large blocks of memory to the system when they are freed; returns whether that can be set.

    By default glibc raises its threshold after the first large block is freed, and keeps later ones of that size
    between small blocks that are in use: one picture of 49 million pixels kept 1.4 GB.

    Examples
    --------
    >>> from pictopic.server.queue import give_back_large_blocks
    >>> give_back_large_blocks() in (True, False)
    True
    """
    if not sys.platform.startswith("linux"):
        return False
    with suppress(OSError, AttributeError):  # another library than glibc
        libc = ctypes.CDLL(None)
        return bool(libc.mallopt(_M_MMAP_THRESHOLD, _LARGE) and libc.mallopt(_M_TRIM_THRESHOLD, _FREE_AT_THE_END))
    return False


class WorkQueue:
    """Runs functions in threads, and refuses them when too many wait already.

    Parameters
    ----------
    n_threads : int
    max_waiting : int
        Functions that run or wait.
    timeout : float
        Seconds until the caller gets an error.  A function cannot be stopped: it keeps its place until it ends.
    name : str
        Of the threads.

    Examples
    --------
    >>> import asyncio
    >>> from pictopic.server.queue import WorkQueue
    >>> queue = WorkQueue(1, max_waiting=2, timeout=10, name="example")
    >>> asyncio.run(queue.run(sum, [1, 2, 3]))
    6
    >>> queue.close()
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

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Call a function in a thread; raises as `share` does."""
        self._enter()
        future = self._pool.submit(function, *arguments)
        future.add_done_callback(self._leave)
        return await self._answer(future)

    async def share(
        self, key: Hashable, function: Callable[[list[Any]], list[T]], items: list[Any], is_inside: bool = False
    ) -> list[T]:
        """Call a function in a thread, once for several requests that wait at the same time.

        Requests with the same key share calls; `function` takes a list and returns one of the same length, and must be
        the same for all of them.  A request that arrives while a thread is free waits for no other.  With `is_inside`,
        for the later parts of a request whose first part was let in, it waits but is not refused.

        Raises a `ProblemError`: 429 if too many wait, 504 if it takes too long.
        """
        self._enter(is_inside)
        share = _Share(function, items, Future())
        share.future.add_done_callback(self._leave)
        with self._lock:
            self._shares.setdefault(key, deque()).append(share)
        # As many turns as requests: a turn whose request was answered by an earlier one finds nothing to do.
        self._pool.submit(self._turn, key)
        return await self._answer(share.future)

    def _turn(self, key: Hashable) -> None:
        with self._lock:
            taken = self._take(key)
        if taken:
            _call(taken)

    def _take(self, key: Hashable) -> list[_Share]:
        """The requests for the next call: those that came first, and not more than this thread's part of all."""
        waiting = self._shares.get(key, deque())
        room = min(_MAX_SHARED, -(-sum(len(share.items) for share in waiting) // self.n_threads))
        taken: list[_Share] = []
        while waiting and (not taken or len(waiting[0].items) <= room):
            share = waiting.popleft()
            if share.future.set_running_or_notify_cancel():  # otherwise nobody waits for it any more
                taken.append(share)
                room -= len(share.items)
        if not waiting:
            self._shares.pop(key, None)
        return taken

    def _enter(self, is_inside: bool = False) -> None:
        with self._lock:
            if self._waiting >= self.max_waiting and not is_inside:
                raise ProblemError(429, "too many requests wait already", headers={"Retry-After": "1"})
            self._waiting += 1

    async def _answer(self, future: Future[T]) -> T:
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.timeout)
        except TimeoutError:
            raise no_answer_within(self.timeout) from None

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
        answers = shares[0].function([item for share in shares for item in share.items])
    except Exception as error:
        if len(shares) == 1:
            shares[0].future.set_exception(error)
        else:
            for share in shares:
                _call([share])
        return
    for share in shares:
        share.future.set_result(answers[: len(share.items)])
        answers = answers[len(share.items) :]
