import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from pictopic import CountsOnDisk, DeepDocNADE, DocNADE, Rows
from pictopic.models.inputs import Labels, check_rows, chunks, document_lengths, encode_labels, in_parts, summarize


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint64, np.float32, np.float64])
def test_whole_numbers_of_any_type_are_counts(rng, dtype):
    X = rng.randint(2, size=(5, 4)).astype(dtype)
    counts = check_rows(DocNADE(), sparse.coo_matrix(X), reset=True).read()
    assert counts.data.dtype == np.int32
    np.testing.assert_array_equal(counts.toarray(), X)


def _with(value, dtype=float):
    X = np.ones((4, 3), dtype=dtype)
    X[2, 1] = value
    return X


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("output", ["tree", "softmax"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (-1, r"Negative values in data.*row 2, column 1: -1"),
        (0.5, r"fraction.*row 2, column 1: 0.5"),
        (np.nan, r"NaN.*row 2, column 1"),
        (np.inf, r"infinity.*row 2, column 1"),
        (3e9, r"count above.*row 2, column 1"),
    ],
)
def test_wrong_count_is_named_with_its_place(convert, output, value, message):
    with pytest.raises(ValueError, match=message):
        DocNADE(output=output).fit(convert(_with(value)))
    with pytest.raises(ValueError, match=message):
        DocNADE(output=output, max_iter=1).fit(_with(1)).transform(convert(_with(value)))


def test_rows_bring_their_own_features_and_labels(topics):
    X, y = topics
    rows = Rows(X, np.arange(len(y) * 2.0).reshape(-1, 2), y)
    assert check_rows(DeepDocNADE(), rows, reset=True) is rows
    other = check_rows(DeepDocNADE(), rows, np.ones((len(y), 3)), reset=True)
    assert other.n_global_features == 3


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


def test_lengths_count_repeated_words():
    assert document_lengths(sparse.csr_array([[2, 0, 3], [0, 0, 0]])).tolist() == [5, 0]


# ---- statistics ------------------------------------------------------------------------------------------------------


def made_rows(rng, n=30, n_features=2):
    """Counts, features and labels."""
    labels = Labels(rng.randint(2, size=(n, 3)).astype(np.uint8), rng.rand(n) < 0.5)
    return sparse.csr_array(rng.poisson(1, (n, 5))), rng.normal(5, 3, (n, n_features)), labels


def test_statistics_over_many_chunks_are_those_of_the_whole(rng):
    n = 9 * Rows.CHUNK + 5
    X, features, labels = made_rows(rng, n)
    features[rng.rand(n, 2) < 0.2] = np.nan
    found = summarize(Rows(X, features, labels))
    np.testing.assert_array_equal(found.word_counts, X.toarray().sum(axis=0))
    np.testing.assert_allclose(found.squares, (X.toarray() ** 2).sum(axis=0))
    assert found.mean_length == pytest.approx(X.sum() / n)
    np.testing.assert_allclose(found.feature_mean, np.nanmean(features, axis=0), rtol=1e-5)
    np.testing.assert_allclose(found.feature_scale, np.nanstd(features, axis=0), rtol=1e-5)


def test_a_feature_that_is_always_missing_or_constant_has_scale_one(rng):
    X, features, labels = made_rows(rng)
    features[:, 0] = np.nan
    features[:, 1] = 1e6
    np.testing.assert_array_equal(summarize(Rows(X, features, labels)).feature_scale, [1, 1])


@pytest.mark.parametrize("what", ["counts", "features", "labels", "known"])
def test_fingerprint_changes_with_anything_that_is_learnt_from(rng, what):
    X, features, labels = made_rows(rng)
    before = summarize(Rows(X, features, labels)).fingerprint
    assert summarize(Rows(X.copy(), features.copy(), labels)).fingerprint == before
    if what == "counts":
        X.data[0] += 1
    elif what == "features":
        features[3, 1] += 1
    elif what == "labels":
        labels.indicator[2, 1] ^= 1
    else:
        labels.known[0] ^= True
    assert summarize(Rows(X, features, labels)).fingerprint != before


# ---- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_missing_labels_are_unlabelled(missing):
    labels, classes, multi_label = encode_labels(np.array(["b", missing, "a"], dtype=object), 3)
    assert classes.tolist() == ["a", "b"]
    assert labels.known.tolist() == [True, False, True]
    assert labels.indicator.tolist() == [[0, 1], [0, 0], [1, 0]]
    assert not multi_label


def test_integers_that_became_float_for_a_nan_are_integers_again():
    _, classes, _ = encode_labels(np.array([3.0, np.nan, 5.0]), 3)
    assert classes.tolist() == [3, 5]
    assert classes.dtype.kind == "i"


@pytest.mark.parametrize("convert", [np.array, sparse.csr_matrix, lambda y: np.array(y, dtype=object)])
def test_indicator_matrix_is_multi_label(convert):
    labels, classes, multi_label = encode_labels(convert([[1, 0, 1], [0, 0, 0]]), 2)
    assert multi_label
    assert classes.tolist() == [0, 1, 2]
    assert labels.indicator.tolist() == [[1, 0, 1], [0, 0, 0]]
    assert labels.known.all()


def test_rows_of_nan_in_a_matrix_are_unlabelled():
    labels, _, _ = encode_labels(np.array([[1.0, 0.0], [np.nan, np.nan]]), 2)
    assert labels.known.tolist() == [True, False]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[1.0, np.nan], [0, 1]], "missing labels in row 0"),
        ([[1, 2], [0, 1]], "0/1 matrix"),
        ([[0.5, 1], [0, 1]], "Unknown label type|0/1 matrix"),
        ([0.5, 1.5], "Unknown label type"),
        ([0, 1, 1], "inconsistent"),
    ],
)
def test_wrong_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        encode_labels(np.array(y), 2)


def test_class_outside_the_known_ones_is_named_with_its_row():
    with pytest.raises(ValueError, match="row 1: 'z'"):
        encode_labels(np.array(["a", "z"]), 2, np.array(["a", "b"]))


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
