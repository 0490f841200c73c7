"""Caches: results that took some time, kept as long as there is room or as long as the model is served."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, Generic, TypeVar

T = TypeVar("T")

# Reading rows of a corpus goes through all arrays that are mapped, which opening another corpus adds to.
reading = threading.Lock()


class LRUCache(Generic[T]):
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
    >>> from pictopic.server.cache import LRUCache
    >>> kept = LRUCache(max_things=2, max_bytes=100, size=len)
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


class ComputedOnce:
    """Answers that are worked out when they are asked for the first time, once, however many ask at the same time.

    Parameters
    ----------
    work : mapping of str to callable
        How each of them is worked out.

    Examples
    --------
    >>> from pictopic.server.cache import ComputedOnce
    >>> found = ComputedOnce({"sum": lambda: print("working") or 3})
    >>> found.has("sum"), found.get("sum"), found.get("sum"), found.has("sum")
    working
    (False, 3, 3, True)
    """

    def __init__(self, work: Mapping[str, Callable[[], Any]]):
        self._work, self._found = work, dict[str, Any]()

    def has(self, name: str) -> bool:
        """Whether an answer is there already."""
        return name in self._found

    def get(self, name: str) -> Any:
        """An answer; the first one to ask waits until it is worked out, and so do all others."""
        if name not in self._found:
            # One after the other: together they would not be faster.
            with reading:
                if name not in self._found:
                    self._found[name] = self._work[name]()
        return self._found[name]
