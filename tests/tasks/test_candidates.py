import sys

import numpy as np
import pytest

from pictopic.tasks import candidates as candidates_module
from pictopic.tasks import search
from pictopic.tasks.search import Index
from tests.support.vectors import cosines, made

FAISS = ["8bit", "ivf"]


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
