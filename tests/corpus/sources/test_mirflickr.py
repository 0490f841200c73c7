"""The layout of the SupDocNADE authors' MIR Flickr."""

import numpy as np
import pytest
from scipy import sparse

from pictopic.corpus.sources.mirflickr import is_mirflickr, read_mirflickr

N_FEATURES, N_VISUAL, N_TAGS = 3, 4, 5


def _text(path, counts, compressed):
    matrix = sparse.csr_array(counts)
    save = np.savez_compressed if compressed else np.savez
    save(path, data=matrix.data, indices=matrix.indices, indptr=matrix.indptr, shape=np.array(matrix.shape))


@pytest.fixture(params=[False, True], ids=["stored", "compressed"])
def flickr(tmp_path, request):
    """A small one; returns its folder, all counts and all features, labelled pictures first."""
    rng = np.random.default_rng(0)
    visual = rng.integers(0, 9, (12, N_VISUAL))
    tags = rng.integers(0, 2, (12, N_TAGS))
    features = rng.normal(size=(12, N_FEATURES)).astype(np.float32)
    combined = np.hstack([features, visual]).astype(np.float32)
    files = {
        "labelled/combined-00001-of-00100": slice(0, 3),
        "labelled/combined-00003_0-of-00100": slice(3, 5),
        "unlabelled/combined-00003_1-of-00100": slice(5, 6),
        "unlabelled/combined-00004-of-00100": slice(6, 12),
    }
    for name, rows in files.items():
        path = tmp_path / "image" / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        np.save(path, combined[rows])
    (tmp_path / "text").mkdir()
    _text(tmp_path / "text" / "text_all_2000_labelled.npz", tags[:5], request.param)
    _text(tmp_path / "text" / "text_all_2000_unlabelled.npz", tags[5:], request.param)
    np.save(tmp_path / "labels.npy", np.eye(5, 3, dtype=np.int8))
    (tmp_path / "splits").mkdir()
    for k, rows in {"1": ([0, 2], [1], [3, 4]), "2": ([4], [3], [2, 1, 0])}.items():
        for name, part in zip(("train", "valid", "test"), rows, strict=True):
            np.save(tmp_path / "splits" / f"{name}_indices_{k}.npy", np.array(part))
    return tmp_path, np.hstack([visual, tags]), features


def _read(folder, **options):
    return read_mirflickr(folder, n_visual_words=N_VISUAL, **options)


def test_the_layout_is_recognised(flickr, tmp_path_factory):
    assert is_mirflickr(flickr[0])
    assert not is_mirflickr(tmp_path_factory.mktemp("empty"))


@pytest.mark.parametrize("n_rows", [1, 2, 4, 100])
def test_blocks_have_all_counts_and_features_in_order(flickr, n_rows):
    folder, counts, features = flickr
    blocks = list(_read(folder).counts.blocks(n_rows))
    assert max(block.shape[0] for block, _ in blocks) <= n_rows
    assert {block.dtype for block, _ in blocks} == {np.dtype(np.int32)}
    assert np.array_equal(np.vstack([block.toarray() for block, _ in blocks]), counts)
    assert np.array_equal(np.vstack([part for _, part in blocks]), features)


def test_rows_are_the_labelled_then_the_unlabelled(flickr):
    source = _read(flickr[0])
    assert source.rows["file_name"].to_pylist()[4:7] == ["labelled/4", "unlabelled/0", "unlabelled/1"]
    assert source.rows["labels"].to_pylist()[:6] == [["0"], ["1"], ["2"], [], [], None]
    assert (source.multi_label, source.pictures, len(source)) == (True, False, 12)


@pytest.mark.parametrize(
    ("split", "expected"),
    [
        (None, ["train", "validation", "train", "test", "test"]),
        ("1", ["train", "validation", "train", "test", "test"]),
        ("2", ["test", "test", "test", "validation", "train"]),
    ],
)
def test_the_split_is_the_first_or_the_one_asked_for(flickr, split, expected):
    assert _read(flickr[0], split=split).rows["split"].to_pylist()[:6] == [*expected, None]


def test_a_split_that_is_not_there_is_an_error(flickr):
    with pytest.raises(ValueError, match="no split '9'"):
        _read(flickr[0], split="9")


def test_tags_are_named_by_the_vocabulary(flickr):
    words = ["sea", "sky", "sun", "sand", "boat"]
    (flickr[0] / "text" / "vocab.txt").write_text("".join(f"{i} {word} 7\n" for i, word in enumerate(words)))
    assert _read(flickr[0]).counts.annotations == tuple(words)


def test_without_a_vocabulary_tags_are_numbered(flickr):
    assert _read(flickr[0]).counts.annotations == ("tag 0", "tag 1", "tag 2", "tag 3", "tag 4")


def test_the_unlabelled_part_may_be_missing(flickr):
    folder, counts, _ = flickr
    for path in [*(folder / "image" / "unlabelled").iterdir(), folder / "text" / "text_all_2000_unlabelled.npz"]:
        path.unlink()
    source = _read(folder)
    assert len(source) == 5
    assert np.array_equal(np.vstack([block.toarray() for block, _ in source.counts.blocks(9)]), counts[:5])


def test_another_number_of_labels_is_an_error(flickr):
    np.save(flickr[0] / "labels.npy", np.zeros((4, 3)))
    with pytest.raises(ValueError, match="5 labelled pictures, but 4 rows of labels"):
        _read(flickr[0])


def test_another_number_of_texts_is_an_error(flickr):
    _text(flickr[0] / "text" / "text_all_2000_labelled.npz", np.ones((6, N_TAGS), int), False)
    with pytest.raises(ValueError, match="has 6 rows, not 5"):
        _read(flickr[0])


@pytest.mark.parametrize("value", [0.5, -1, np.nan])
def test_visual_words_must_be_counts(flickr, value):
    path = flickr[0] / "image" / "labelled" / "combined-00001-of-00100.npy"
    array = np.load(path)
    array[1, -1] = value
    np.save(path, array)
    with pytest.raises(ValueError, match=r"combined-00001-of-00100\.npy has visual words"):
        list(_read(flickr[0]).counts.blocks(2))


def test_too_few_columns_are_an_error(flickr):
    with pytest.raises(ValueError, match="all arrays need the same number of columns, 2000 or more"):
        read_mirflickr(flickr[0])


def test_a_text_that_ends_too_early_is_an_error(flickr):
    matrix = sparse.csr_array(np.ones((5, N_TAGS), int))
    path = flickr[0] / "text" / "text_all_2000_labelled.npz"
    np.savez(path, data=matrix.data[:9], indices=matrix.indices, indptr=matrix.indptr, shape=np.array([5, N_TAGS]))
    with pytest.raises(ValueError, match="ends too early"):
        list(_read(flickr[0]).counts.blocks(9))


def _blocks(folder):
    return list(_read(folder).counts.blocks(100))


@pytest.mark.parametrize(
    "damage",
    [{"data": [1.5]}, {"data": [2**40]}, {"data": [-1]}, {"data": ["x"]}, {"indices": [99]}, {"indices": [1.0]},
     {"indptr": [1, 1, 1, 1, 1, 1]}, {"indptr": [0, 2**62, 1, 1, 1, 1]}, {"indptr": [0]}, {"indptr": [0.0] * 6},
     {"shape": [5]}, {"shape": [5.0, 5.0]}, {"shape": [5, 2**62]}, {"shape": None}, {"data": None}],
    ids=str,
)  # fmt: skip
def test_damaged_tags_are_an_error_with_the_file(flickr, damage):
    parts = {"data": [1], "indices": [0], "indptr": [0, 1, 1, 1, 1, 1], "shape": [5, N_TAGS]} | damage
    path = flickr[0] / "text" / "text_all_2000_labelled.npz"
    np.savez(path, **{name: np.array(values) for name, values in parts.items() if values is not None})
    with pytest.raises(ValueError, match=r"text_all_2000_labelled\.npz"):
        _blocks(flickr[0])


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more", b"broken"])
@pytest.mark.parametrize(
    "name",
    ["labels.npy", "text/text_all_2000_labelled.npz", "splits/train_indices_1.npy",
     "image/labelled/combined-00001-of-00100.npy"],
)  # fmt: skip
def test_broken_files_are_named(flickr, name, content):
    (flickr[0] / name).write_bytes(content)
    with pytest.raises(ValueError, match=name.split("/")[-1]):
        _blocks(flickr[0])


@pytest.mark.parametrize("name", ["labels.npy", "splits/train_indices_1.npy"])
@pytest.mark.parametrize("array", [np.zeros((), int), np.array(["a", "b", "c", "d", "e"]), np.array([0.5])])
def test_arrays_of_another_kind_are_named(flickr, name, array):
    if array.shape == () and name != "labels.npy":
        array = array.astype(float)
    np.save(flickr[0] / name, array)
    with pytest.raises(ValueError, match=name.split("/")[-1]):
        _blocks(flickr[0])


@pytest.mark.parametrize("cut", range(40, 800, 90))
def test_a_cut_off_archive_is_named(flickr, cut):
    path = flickr[0] / "text" / "text_all_2000_labelled.npz"
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"text_all_2000_labelled\.npz is damaged"):
        _blocks(flickr[0])
