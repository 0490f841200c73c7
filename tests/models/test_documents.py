import numpy as np
import pytest
from scipy import sparse

from pictopic import CountsOnDisk, DeepDocNADE
from pictopic.corpus.rows import MappedRows
from pictopic.models.documents import CHUNK, Documents, describe
from pictopic.models.labels import Labels


def documents(rng, n=30, n_features=2):
    labels = Labels(rng.randint(2, size=(n, 3)).astype(np.uint8), rng.rand(n) < 0.5)
    return Documents.of(sparse.csr_array(rng.poisson(1, (n, 5))), rng.normal(5, 3, (n, n_features)), labels)


def test_a_subset_of_a_subset_is_read_from_the_right_rows(rng):
    all_of_them = documents(rng)
    some = all_of_them.subset(np.arange(10, 30)).subset(np.array([3, 0]))
    np.testing.assert_array_equal(some.rows, [13, 10])
    np.testing.assert_array_equal(some.read(slice(None)).toarray(), all_of_them.counts.toarray()[[13, 10]])
    np.testing.assert_allclose(some.read_features(np.array([1])), all_of_them.features[[10]], rtol=1e-6)
    np.testing.assert_array_equal(some.read_labels(slice(0, 1)).indicator, all_of_them.labels.indicator[[13]])


def test_last_columns_can_be_hidden(rng):
    given = documents(rng)
    hidden = given.without_last_columns(2).subset(np.array([7, 3]))
    found = hidden.read(slice(None)).toarray()
    np.testing.assert_array_equal(found[:, :3], given.counts.toarray()[[7, 3], :3])
    np.testing.assert_array_equal(found[:, 3:], 0)


def test_statistics_over_many_chunks_are_those_of_the_whole(rng):
    n = 9 * CHUNK + 5
    given = documents(rng, n)
    given.features[rng.rand(n, 2) < 0.2] = np.nan
    found = describe(given)
    np.testing.assert_array_equal(found.word_counts, given.counts.toarray().sum(axis=0))
    assert found.mean_length == pytest.approx(given.counts.sum() / n)
    np.testing.assert_allclose(found.feature_mean, np.nanmean(given.features, axis=0), rtol=1e-5)
    np.testing.assert_allclose(found.feature_scale, np.nanstd(given.features, axis=0), rtol=1e-5)


def test_a_feature_that_is_always_missing_or_constant_has_scale_one(rng):
    given = documents(rng)
    given.features[:, 0] = np.nan
    given.features[:, 1] = 1e6
    np.testing.assert_array_equal(describe(given).feature_scale, [1, 1])


@pytest.mark.parametrize("what", ["counts", "features", "labels", "known"])
def test_fingerprint_changes_with_anything_that_is_learnt_from(rng, what):
    given = documents(rng)
    before = describe(given).fingerprint
    if what == "counts":
        given.counts.data[0] += 1
    elif what == "features":
        given.features[3, 1] += 1
    elif what == "labels":
        given.labels.indicator[2, 1] ^= 1
    else:
        given.labels.known[0] ^= True
    assert describe(given).fingerprint != before


def test_a_mapped_array_is_read_without_being_held(tmp_path, rng, monkeypatch):
    monkeypatch.setattr("pictopic.corpus.rows._RELEASE", 100)
    array = rng.normal(size=(50, 8))
    np.save(tmp_path / "a.npy", array)
    mapped = MappedRows(np.load(tmp_path / "a.npy", mmap_mode="r"))
    for rows in (np.array([4, 2]), slice(10, 20), np.array([4])):
        np.testing.assert_array_equal(mapped[rows], array[rows])


def test_a_reader_with_another_number_of_words_is_refused(topics, tmp_path):
    model = DeepDocNADE(n_components=3, max_iter=1).fit(topics[0])
    counts = CountsOnDisk.write(tmp_path, [sparse.csr_array(np.eye(5, dtype=int))], 5)
    with pytest.raises(ValueError, match="X has 5 features, but DeepDocNADE is expecting 12"):
        model.transform(counts)


def test_infinite_features_on_disk_are_found_when_they_are_read(topics, tmp_path):
    features = np.zeros((80, 2))
    features[7, 1] = np.inf
    np.save(tmp_path / "f.npy", features)
    mapped = np.load(tmp_path / "f.npy", mmap_mode="r")
    with pytest.raises(ValueError, match="infinity in row 7, column 1"):
        DeepDocNADE(n_components=3, max_iter=1).fit(topics[0], global_features=mapped)
