from hypothesis import given
from hypothesis import strategies as st

from pictopic.models.parallel import chunks, in_parts


@given(lengths=st.lists(st.integers(0, 9), max_size=30), size=st.integers(1, 12))
def test_chunks_cover_all_documents_in_order_and_stay_small(lengths, size):
    found = list(chunks(lengths, size))
    assert [d for first, last in found for d in range(first, last)] == list(range(len(lengths)))
    for first, last in found:
        assert sum(lengths[first:last]) <= size or last == first + 1


@given(n=st.integers(0, 20), n_jobs=st.integers(1, 5))
def test_parts_cover_everything_once(n, n_jobs):
    seen = []
    in_parts(n, n_jobs, lambda first, last: seen.extend(range(first, last)))
    assert sorted(seen) == list(range(n))
