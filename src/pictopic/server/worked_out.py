"""What takes long to work out, and is the same as long as the model is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any

# Reading rows of a corpus goes through all arrays that are mapped, which opening another corpus adds to.
reading = threading.Lock()


class WorkedOut:
    """Answers that are worked out when they are asked for the first time, once, however many ask at the same time.

    Parameters
    ----------
    work : mapping of str to callable
        How each of them is worked out.

    Examples
    --------
    >>> from pictopic.server.worked_out import WorkedOut
    >>> found = WorkedOut({"sum": lambda: print("working") or 3})
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
