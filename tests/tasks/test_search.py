import hashlib
import json
import os
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pictopic.corpus.readers import MappedRows, RowsInParts
from pictopic.tasks import candidates as candidates_module
from pictopic.tasks import search
from pictopic.tasks.search import Index

FAISS = ["8bit", "ivf"]


@pytest.fixture
def faiss():
    return pytest.importorskip("faiss")


def made(n: int, d: int, seed: int = 0) -> np.ndarray:
    """Vectors in clusters."""
    rng = np.random.default_rng(seed)
    return np.tanh(rng.normal(size=(20, d))[rng.integers(20, size=n)] + 0.5 * rng.normal(size=(n, d)))


def cosines(query, vectors) -> np.ndarray:
    values = []
    for vector in np.asarray(vectors, float):
        length = np.sqrt(sum(x * x for x in vector)) * np.sqrt(sum(x * x for x in query))
        values.append(sum(x * y for x, y in zip(query, vector, strict=True)) / length if length else 0.0)
    return np.array(values)


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


def test_what_was_saved_finds_the_same(tmp_path, monkeypatch):
    monkeypatch.setattr("pictopic.corpus.readers._IN_MEMORY", 0)  # as if it were large
    vectors, queries = made(300, 16), made(20, 16, seed=1)
    index = Index.build(vectors)
    index.save(tmp_path / "index")
    loaded = Index.load(tmp_path / "index")
    assert (loaded.kind, loaded.recall_) == ("exact", 1.0)
    assert isinstance(loaded.vectors.base, np.memmap)
    for one, other in zip(index.search(queries), loaded.search(queries), strict=True):
        assert np.array_equal(one, other)


def test_an_index_that_is_built_in_a_folder_is_mapped_and_saved(tmp_path, monkeypatch):
    monkeypatch.setattr("pictopic.corpus.readers._IN_MEMORY", 0)  # as if it were large
    vectors = made(50, 8)
    index = Index.build(vectors, folder=tmp_path / "index")
    assert isinstance(index.vectors.base, np.memmap)
    assert np.array_equal(index.vectors, Index.build(vectors).vectors)
    assert np.array_equal(Index.load(tmp_path / "index").vectors, index.vectors)


def test_saving_again_replaces_the_files(tmp_path):
    Index.build(made(50, 8)).save(tmp_path)
    Index.load(tmp_path).save(tmp_path)
    Index.build(made(40, 8)).save(tmp_path)
    assert len(Index.load(tmp_path)) == 40
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("call", range(3))
def test_a_save_that_is_interrupted_leaves_the_old_index(tmp_path, monkeypatch, call):
    Index.build(made(50, 8)).save(tmp_path)
    replace, calls = os.replace, []

    def interrupted(source, target):
        calls.append(target)
        if len(calls) > call:
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", interrupted)
        if call < 2:
            with pytest.raises(KeyboardInterrupt):
                Index.build(made(40, 8)).save(tmp_path)
        else:
            Index.build(made(40, 8)).save(tmp_path)
    assert len(Index.load(tmp_path)) == (50 if call < 2 else 40)
    assert not [path.name for path in tmp_path.iterdir() if path.name.startswith(".")]
    Index.build(made(30, 8)).save(tmp_path)
    assert len(list(tmp_path.iterdir())) == 2


def test_a_folder_with_something_else_is_left_alone(tmp_path):
    (tmp_path / "photo.jpg").write_bytes(b"mine")
    with pytest.raises(ValueError, match="not a search index"):
        Index.build(np.eye(2)).save(tmp_path)
    with pytest.raises(ValueError, match="not a search index"):
        Index.build(np.eye(2), folder=tmp_path)
    with pytest.raises(ValueError, match=r"there is no index\.json"):
        Index.load(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["photo.jpg"]


def change(path, position=-1) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(bytes(content))


def test_changed_vectors_are_refused(tmp_path):
    Index.build(made(50, 8)).save(tmp_path)
    change(next(tmp_path.glob("vectors-*.npy")))
    with pytest.raises(ValueError, match="damaged or was changed"):
        Index.load(tmp_path)
    assert len(Index.load(tmp_path, verify=False)) == 50


def test_truncated_and_missing_vectors_are_refused(tmp_path):
    Index.build(made(50, 8)).save(tmp_path)
    path = next(tmp_path.glob("vectors-*.npy"))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="damaged"):
        Index.load(tmp_path, verify=False)
    path.unlink()
    with pytest.raises(ValueError, match="there is no vectors-"):
        Index.load(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("shape", [51, 8], "should be of shape"),
        ("shape", [50], "'shape' is missing or wrong"),
        ("vectors", "../vectors-0123456789abcdef.npy", "'vectors' is missing or wrong"),
        ("kind", "pickle", "'kind' is missing or wrong"),
        ("kind", "ivf", "'clusters' is missing or wrong"),
        ("shape", [50, True], "'shape' is missing or wrong"),
        ("shape", [50, 2**40], "'shape' is missing or wrong"),
        ("vectors_sha256", "", "'vectors_sha256' is missing or wrong"),
        ("recall", 2, "'recall' is missing or wrong"),
        ("format_version", 3, "reads up to 2"),
        ("format_version", None, "no format_version"),
    ],
)
def test_a_wrong_index_json_is_refused(tmp_path, key, value, message):
    Index.build(made(50, 8)).save(tmp_path)
    path = tmp_path / "index.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {key: value}))
    with pytest.raises(ValueError, match=message):
        Index.load(tmp_path)


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_index_json_is_refused(tmp_path, text):
    (tmp_path / "index.json").write_text(text)
    with pytest.raises(ValueError, match=r"index\.json is"):
        Index.load(tmp_path)


@pytest.mark.usefixtures("faiss")
@pytest.mark.parametrize("kind", FAISS)
class TestFaiss:
    def test_most_of_the_nearest_are_found_and_their_similarities_are_exact(self, kind):
        vectors, queries = np.split(made(4050, 24), [4000])
        index, exact = Index.build(vectors, kind=kind), Index.build(vectors)
        assert index.kind == kind
        rows, similarities = index.search(queries)
        wanted = exact.search(queries)[0]
        recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(rows, wanted, strict=True)])
        assert recall > 0.95
        assert index.recall_ > 0.95
        for i in range(50):
            np.testing.assert_allclose(similarities[i], cosines(queries[i], vectors[rows[i]]), atol=1e-6)

    def test_filters_are_exact(self, kind):
        vectors, queries = made(2000, 12), made(20, 12, seed=1)
        index, exact = Index.build(vectors, kind=kind), Index.build(vectors)
        mask = np.arange(2000) % 3 == 0
        for one, other in zip(index.search(queries, among=mask), exact.search(queries, among=mask), strict=True):
            assert np.array_equal(one, other)

    def test_excluded_rows_are_never_found(self, kind):
        vectors = made(2000, 12)
        rows, _ = Index.build(vectors, kind=kind).search(vectors[:50], k=5, exclude=np.arange(50))
        assert not (rows == np.arange(50)[:, None]).any()
        assert (rows >= 0).all()

    def test_more_wanted_than_a_cluster_holds(self, kind):
        vectors = np.concatenate([made(1500, 6), np.zeros((20, 6))])
        index, exact = Index.build(vectors, kind=kind), Index.build(vectors)
        index._candidates.use(1)
        for k in (140, 1500, 1600):
            assert (index.search(vectors[:5], k=k)[0] >= 0).sum() == (exact.search(vectors[:5], k=k)[0] >= 0).sum()

    def test_few_vectors_are_enough(self, kind):
        index = Index.build(np.eye(3), kind=kind)
        assert index.search(np.eye(3), k=1)[0].tolist() == [[0], [1], [2]]
        assert index.recall_ == 1

    def test_recall_is_that_of_the_sampled_rows(self, kind, monkeypatch):
        # With candidates that miss half of what they should find, so must the measured recall.
        find = candidates_module.Candidates.find

        def half(self, queries, k):
            rows = find(self, queries, k)
            return np.where(rows % 2, rows, -1)

        monkeypatch.setattr(candidates_module.Candidates, "find", half)
        assert 0.35 < Index.build(made(3000, 16), kind=kind).recall_ < 0.65

    def test_what_was_saved_finds_the_same(self, kind, tmp_path):
        vectors, queries = made(2000, 12), made(20, 12, seed=1)
        index = Index.build(vectors, kind=kind, folder=tmp_path / "index")
        loaded = Index.load(tmp_path / "index")
        assert (loaded.kind, loaded.recall_) == (kind, index.recall_)
        for one, other in zip(index.search(queries), loaded.search(queries), strict=True):
            assert np.array_equal(one, other)

    def test_no_file_of_faiss_own_is_written_or_read(self, kind, tmp_path, faiss, monkeypatch):
        for name in ("deserialize_index", "read_index", "serialize_index", "write_index"):
            monkeypatch.setattr(faiss, name, lambda *_: pytest.fail("faiss was given a file"))
        Index.build(made(500, 12), kind=kind).save(tmp_path)
        assert Index.load(tmp_path).kind == kind

    def test_vectors_that_are_not_of_length_1_are_not_given_to_faiss(self, kind, tmp_path):
        Index.build(made(500, 12), kind=kind).save(tmp_path)
        path = next(tmp_path.glob("vectors-*.npy"))
        vectors = np.load(path)
        vectors[321, 4] = np.nan
        np.save(path, vectors)
        with pytest.raises(ValueError, match="vectors 0 to 499 are not all of length 1"):
            Index.load(tmp_path, verify=False)

    def test_without_faiss_a_saved_index_is_exact(self, kind, tmp_path, monkeypatch):
        Index.build(made(500, 12), kind=kind).save(tmp_path)
        monkeypatch.setitem(sys.modules, "faiss", None)
        with pytest.warns(UserWarning, match=r"pictopic\[search\]"):
            assert Index.load(tmp_path).kind == "exact"

    def test_the_same_seed_gives_the_same_files(self, kind, tmp_path):
        vectors = made(2000, 12)
        for name in ("one", "other"):
            Index.build(vectors, kind=kind, random_state=3).save(tmp_path / name)
        one, other = ({p.name: p.read_bytes() for p in (tmp_path / name).iterdir()} for name in ("one", "other"))
        assert one == other

    def test_vectors_of_zeros_and_duplicates_do_no_harm(self, kind):
        vectors = np.concatenate([np.zeros((500, 5)), np.ones((500, 5)), made(500, 5)])
        index = Index.build(vectors, kind=kind)
        _, similarities = index.search([[1.0] * 5, [0.0] * 5], k=5)
        np.testing.assert_allclose(similarities, [[1] * 5, [0] * 5], atol=1e-6)
        assert index.recall_ > 0.9


@pytest.mark.usefixtures("faiss")
@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("numbers", lambda a: a + 1000),
        ("numbers", lambda a: a - 1),
        ("numbers", lambda a: a[:-1]),
        ("numbers", lambda a: a.astype(np.int64)),
        ("centres", lambda a: a[:, :-1]),
        ("centres", lambda a: a[:0]),
        ("centres", lambda a: a * np.float32(np.nan)),
        ("ranges", lambda a: a[:1]),
        ("ranges", lambda a: a + np.float32(np.inf)),
    ],
)
def test_wrong_clusters_are_refused(tmp_path, name, change):
    from safetensors.numpy import load_file, save

    Index.build(made(500, 12), kind="ivf").save(tmp_path)
    path = next(tmp_path.glob("clusters-*.safetensors"))
    arrays = load_file(path)
    content = save(arrays | {name: np.ascontiguousarray(change(arrays[name]))})
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged or was changed"):
        Index.load(tmp_path)
    meta = json.loads((tmp_path / "index.json").read_text())
    meta["clusters_sha256"] = hashlib.sha256(content).hexdigest()
    (tmp_path / "index.json").write_text(json.dumps(meta))
    with pytest.raises(ValueError, match=r"clusters-\w+\.safetensors is damaged: "):
        Index.load(tmp_path)
    path.unlink()
    with pytest.raises(ValueError, match="there is no clusters-"):
        Index.load(tmp_path)


def test_without_faiss_its_kinds_say_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ImportError, match=r"pip install 'pictopic\[search\]'"):
        Index.build(np.eye(3), kind="ivf")
    monkeypatch.setattr(search, "MAX_EXACT", 2)
    with pytest.warns(UserWarning, match=r"pictopic\[search\]"):
        assert Index.build(np.eye(3)).kind == "exact"


@pytest.mark.usefixtures("faiss")
def test_auto_goes_by_the_number_of_vectors_and_their_size(monkeypatch):
    monkeypatch.setattr(search, "MAX_EXACT", 100)
    monkeypatch.setattr(search, "MAX_8BIT", 1000)
    assert [Index.build(made(n, 5)).kind for n in (100, 150, 250)] == ["exact", "8bit", "ivf"]
