import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pictopic.corpus.readers import MappedRows, RowsInParts
from pictopic.tasks import search
from pictopic.tasks.search import Index
from tests.support.vectors import cosines, made


def check(index, vectors, queries, k, allowed, found) -> None:
    """That rows and similarities are the k best of those that are allowed, by a plain loop."""
    for query, own, rows, similarities in zip(queries, allowed, *found, strict=True):
        cosine = cosines(query, vectors)
        n = min(k, len(own))
        assert rows[n:].tolist() == [-1] * (k - n)
        assert np.isnan(similarities[n:]).all()
        rows, similarities = rows[:n], similarities[:n]
        assert len(set(rows)) == n
        assert set(rows.tolist()) <= set(own)
        np.testing.assert_allclose(similarities, np.sort(cosine[list(own)])[::-1][:n], atol=1e-6)
        np.testing.assert_allclose(similarities, cosine[rows], atol=1e-6)
        assert [(-s, r) for s, r in zip(similarities, rows, strict=True)] == sorted(
            (-s, r) for s, r in zip(similarities, rows, strict=True)
        )
        # No row is left out for an equal one with a higher number.
        for row in set(own) - set(rows.tolist()):
            equal = [r for r in rows if np.array_equal(vectors[r], vectors[row])]
            assert all(r < row for r in equal)


small = st.integers(1, 4).flatmap(
    lambda d: st.tuples(
        arrays(np.float64, st.tuples(st.integers(1, 12), st.just(d)), elements=st.integers(-3, 3)),
        arrays(np.float64, st.tuples(st.integers(1, 4), st.just(d)), elements=st.integers(-3, 3)),
    )
)


@settings(max_examples=200, deadline=None)
@given(small, st.integers(1, 15), st.integers(1, 5), st.data())
def test_search_equals_a_plain_loop(pair, k, block_rows, data):
    vectors, queries = pair
    n = len(vectors)
    exclude = data.draw(st.lists(st.integers(-1, n - 1), min_size=len(queries), max_size=len(queries)))
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(search, "_BLOCK", 4 * vectors.shape[1] * block_rows)  # several blocks
        index = Index.build(vectors)
        every = [range(n)] * len(queries)
        check(index, vectors, queries, k, every, index.search(queries, k))
        allowed = [[r for r in np.flatnonzero(mask) if r != x] for x in exclude]
        check(index, vectors, queries, k, allowed, index.search(queries, k, among=mask, exclude=exclude))


def test_equal_vectors_come_in_the_order_of_their_numbers_in_any_block(rng, monkeypatch):
    # In float32 products, what one row comes to depends on where in a block it is.
    vectors = np.tile(rng.normal(size=(1, 517)), (103, 1))
    monkeypatch.setattr(search, "_BLOCK", 4 * 517 * 7)
    rows, similarities = Index.build(vectors).search(rng.normal(size=(3, 517)), k=103)
    assert (rows == np.arange(103)).all()
    assert (similarities == similarities[:, :1]).all()


def test_one_query_and_many_give_the_same_bits():
    vectors, queries = made(3000, 96), made(200, 96, seed=1)
    index = Index.build(vectors)
    rows, similarities = index.search(queries, k=7)
    for i in (0, 63, 64, 199):
        alone = index.search(queries[i : i + 1], k=7)
        assert np.array_equal(alone[0][0], rows[i])
        assert np.array_equal(alone[1][0], similarities[i])


def test_similarities_are_never_outside_their_range():
    vectors = made(2000, 3)  # without care, some of them come to more than 1
    _, similarities = Index.build(vectors).search(vectors, k=1)
    assert similarities.max() <= 1
    assert similarities.min() > 1 - 1e-6


def test_vectors_of_zeros_are_similar_to_nothing():
    index = Index.build([[0.0, 0.0], [-1.0, 0.0], [1.0, 1.0]])
    rows, similarities = index.search([[1.0, 0.0], [0.0, 0.0]], k=3)
    assert rows.tolist() == [[2, 0, 1], [0, 1, 2]]
    np.testing.assert_allclose(similarities, [[np.sqrt(0.5), 0, -1], [0, 0, 0]], atol=1e-6)


@pytest.mark.parametrize("scale", [1e-200, 1e-30, 1e30, 1e200])
def test_very_large_and_small_numbers_have_a_direction(scale):
    index = Index.build(np.array([[1.0, 0.0], [3.0, 4.0]]) * scale)
    rows, similarities = index.search(np.array([[3.0, 4.0]]) * scale, k=2)
    assert rows.tolist() == [[1, 0]]
    np.testing.assert_allclose(similarities, [[1, 0.6]], atol=1e-6)


def test_rows_to_choose_among_may_be_in_any_order_and_repeated():
    index = Index.build(np.eye(5) + 0.1)
    query = np.array([[5.0, 4.0, 3.0, 2.0, 1.0]])
    assert index.search(query, k=3, among=[4, 2, 2, 1])[0].tolist() == [[1, 2, 4]]
    assert index.search(query, k=2, among=[])[0].tolist() == [[-1, -1]]


def test_few_chosen_rows_and_many_are_searched_exactly():
    vectors, queries = made(1000, 16), made(5, 16, seed=1)
    index = Index.build(vectors)
    for share in (0.05, 0.9):
        mask = np.random.default_rng(0).random(1000) < share
        check(index, vectors, queries, 10, [np.flatnonzero(mask).tolist()] * 5, index.search(queries, among=mask))


def test_exclude_takes_none_for_nothing():
    index = Index.build(np.eye(3))
    assert index.search(np.eye(3), k=1, exclude=[0, None, -1])[0].tolist() == [[1], [1], [2]]


def test_no_vectors_and_no_queries(tmp_path):
    index = Index.build(np.zeros((0, 3)))
    assert index.search(np.eye(3), k=2)[0].tolist() == [[-1, -1]] * 3
    assert Index.build(np.eye(3)).search(np.zeros((0, 3)), k=2)[0].shape == (0, 2)
    index.save(tmp_path / "index")
    assert len(Index.load(tmp_path / "index")) == 0


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int32])
def test_memory_maps_and_rows_in_parts_are_read(tmp_path, dtype, monkeypatch):
    vectors = (10 * made(60, 8)).astype(dtype)
    np.save(tmp_path / "a.npy", vectors[:35])
    np.save(tmp_path / "b.npy", vectors[35:])
    monkeypatch.setattr(search, "_BLOCK", 4 * 8 * 16)
    maps = [np.load(tmp_path / name, mmap_mode="r") for name in ("a.npy", "b.npy")]
    expected = Index.build(vectors).vectors
    assert np.array_equal(Index.build(maps[0]).vectors, expected[:35])
    assert np.array_equal(Index.build(RowsInParts([MappedRows(part) for part in maps])).vectors, expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"queries": np.ones((1, 4))}, r"shape \(any, 3\), got \(1, 4\)"),
        ({"queries": np.ones(3)}, r"shape \(any, 3\)"),
        ({"queries": [[1, 2, 3], [1, np.nan, 3]]}, "queries have NaN or infinite numbers, the first in row 1"),
        ({"k": 0}, "k must be at least 1"),
        ({"among": [True, False]}, "each of the 3 vectors"),
        ({"among": [0, 3]}, "row number 3"),
        ({"among": [-1]}, "row number -1"),
        ({"among": [0.5]}, "row numbers"),
        ({"exclude": [0, 1]}, "each of the 1 queries"),
        ({"exclude": [7]}, "row number 7"),
    ],
)
def test_bad_searches_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Index.build(np.eye(3)).search(**{"queries": np.ones((1, 3))} | arguments)


@pytest.mark.parametrize(
    ("vectors", "options", "message"),
    [
        (np.ones(3), {}, r"shape \(n, d\)"),
        (np.ones((3, 0)), {}, r"shape \(n, d\)"),
        ([[1, 2], [np.inf, 1]], {}, "vectors have NaN or infinite numbers, the first in row 1"),
        (np.eye(2), {"kind": "fast"}, "kind must be"),
    ],
)
def test_bad_vectors_are_refused(vectors, options, message):
    with pytest.raises(ValueError, match=message):
        Index.build(vectors, **options)


def test_number_of_the_bad_row_counts_all_blocks(monkeypatch):
    monkeypatch.setattr(search, "_BLOCK", 4 * 2 * 3)
    vectors = np.ones((10, 2))
    vectors[7, 1] = np.nan
    with pytest.raises(ValueError, match="row 7"):
        Index.build(vectors)
