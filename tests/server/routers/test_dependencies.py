import asyncio
import inspect
from types import SimpleNamespace

import pytest

from pictopic.server.queue import WorkQueue
from pictopic.server.routers.dependencies import State, page_of, queued, split_tags


def test_tags_may_be_separated_by_commas_or_come_one_after_the_other():
    assert split_tags(["sky,sea", "boat", " ,", ""]) == ["sky", "sea", "boat"]


@pytest.mark.parametrize(
    ("offset", "limit", "page", "following"), [(0, 2, [0, 1], 2), (2, 3, [2, 3, 4], None), (9, 2, [], None)]
)
def test_a_page_says_where_the_next_one_begins(offset, limit, page, following):
    assert page_of(range(5), offset, limit)[1] == {"total": 5, "next_offset": following}
    assert list(page_of(range(5), offset, limit)[0]) == page


def test_a_queued_handler_keeps_its_signature_and_runs_in_the_queue():
    @queued
    def handler(state: State, k: int = 3) -> list[int]:
        """Numbers."""
        return [state.queue.waiting] * k

    queue = WorkQueue(1, max_waiting=2, timeout=10, name="test")
    assert asyncio.run(handler(state=SimpleNamespace(queue=queue), k=2)) == [1, 1]
    queue.close()
    assert inspect.iscoroutinefunction(handler)
    assert (handler.__name__, handler.__doc__) == ("handler", "Numbers.")
    assert inspect.signature(handler).parameters["k"].default == 3
