"""Things that took some time to make, kept as long as there is room."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

T = TypeVar("T")


class Kept(Generic[T]):
    """The most recently used of many things.

    Parameters
    ----------
    max_things : int
    max_bytes : int
        Together.
    size : callable
        Bytes of a thing.

    Examples
    --------
    >>> from pictopic.server.kept import Kept
    >>> kept = Kept(max_things=2, max_bytes=100, size=len)
    >>> [kept.get(name, lambda: print("made") or b"some bytes") for name in ("a", "a")]
    made
    [b'some bytes', b'some bytes']
    """

    def __init__(self, max_things: int, max_bytes: int, size: Callable[[T], int]):
        self.max_things, self.max_bytes, self._size = max_things, max_bytes, size
        self._things: OrderedDict[Hashable, T] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._things)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """What is kept under a key; otherwise it is made, and kept."""
        with self._lock:
            if key in self._things:
                self._things.move_to_end(key)
                return self._things[key]
        made = make()  # others need not wait: at worst it is made twice
        with self._lock:
            if key not in self._things:
                self._things[key] = made
                self._bytes += self._size(made)
            while len(self._things) > self.max_things or self._bytes > self.max_bytes:
                _, oldest = self._things.popitem(last=False)
                self._bytes -= self._size(oldest)
        return made
