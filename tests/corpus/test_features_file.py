"""Features that were computed elsewhere."""

import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pictopic.corpus import features_file
from pictopic.corpus.features_file import read_features

NAMES = ["a.jpg", "b.jpg", "c.jpg"]
NAN = [None, None]


def _values(array):
    return [[None if np.isnan(value) else value for value in row] for row in array.tolist()]


@pytest.fixture
def parquet(tmp_path):
    def write(**columns):
        pq.write_table(pa.table(columns), tmp_path / "f.parquet")
        return tmp_path / "f.parquet"

    return write


def test_columns_of_numbers_are_joined_by_name(parquet):
    path = parquet(file_name=["c.jpg", "x.jpg", "a.jpg"], f1=[1, 2, 3], f2=[0.5, None, 1.5], comment=["", "", ""])
    found = read_features(path, NAMES)
    assert found.dtype == np.float32
    assert _values(found) == [[3, 1.5], NAN, [1, 0.5]]


@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.large_list(pa.int8()), pa.list_(pa.float32(), 2)])
def test_a_column_of_lists_is_joined_by_name(parquet, kind):
    path = parquet(file_name=["c.jpg", "a.jpg", "b.jpg"], features=pa.array([[1, 2], [3, 4], None], kind))
    assert _values(read_features(path, NAMES)) == [[3, 4], NAN, [1, 2]]


def test_many_batches_are_joined(parquet, monkeypatch):
    monkeypatch.setattr(features_file, "_BATCH", 7)
    names = [f"{i}.jpg" for i in range(50)]
    path = parquet(file_name=names, features=[[float(i), -i] for i in range(50)])
    assert np.array_equal(read_features(path, names[::-1])[:, 0], np.arange(50)[::-1])


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"name": ["a.jpg"], "f": [1.0]}, "no column 'file_name'; its columns are name, f"),
        ({"file_name": ["a.jpg"], "text": ["x"]}, "needs columns of numbers or one column of lists"),
        ({"file_name": ["a.jpg"], "f": [[1.0]], "g": [[1.0]]}, "needs columns of numbers or one column of lists"),
        ({"file_name": ["a.jpg", "b.jpg"], "f": [[1.0], [1.0, 2.0]]}, "row 2: 2 features instead of 1"),
        ({"file_name": ["a.jpg", "a.jpg"], "f": [1.0, 2.0]}, "'a.jpg' twice"),
        ({"file_name": ["x.jpg"], "f": [1.0]}, r"none of the 3 pictures, such as \['a.jpg'\]"),
    ],
)
def test_mistakes_in_parquet_are_named(parquet, columns, message):
    with pytest.raises(ValueError, match=message):
        read_features(parquet(**columns), NAMES)


def test_an_array_with_a_row_a_picture_is_taken_in_order(tmp_path):
    np.save(tmp_path / "f.npy", np.arange(6).reshape(3, 2))
    assert read_features(tmp_path / "f.npy", NAMES).tolist() == [[0, 1], [2, 3], [4, 5]]


def test_an_array_with_names_beside_it_is_joined(tmp_path):
    np.save(tmp_path / "f.npy", np.arange(6.0).reshape(3, 2))
    (tmp_path / "f.txt").write_text("c.jpg\nx.jpg\na.jpg\n")
    assert _values(read_features(tmp_path / "f.npy", NAMES)) == [[4, 5], NAN, [0, 1]]


def test_an_array_of_another_length_needs_names(tmp_path):
    np.save(tmp_path / "f.npy", np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"2 rows for 3 pictures; put their names into f\.txt"):
        read_features(tmp_path / "f.npy", NAMES)


def test_names_and_array_must_fit(tmp_path):
    np.save(tmp_path / "f.npy", np.zeros((2, 2)))
    (tmp_path / "f.txt").write_text("a.jpg\n")
    with pytest.raises(ValueError, match=r"1 names, but f\.npy has 2 rows"):
        read_features(tmp_path / "f.npy", NAMES)


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((3, 2), complex), np.array([["x"], ["y"], ["z"]])])
def test_other_arrays_are_refused(tmp_path, array):
    np.save(tmp_path / "f.npy", array)
    with pytest.raises(ValueError, match="array of numbers with two dimensions"):
        read_features(tmp_path / "f.npy", NAMES)


def test_nothing_is_unpickled(tmp_path):
    np.save(tmp_path / "f.npy", np.array([[{}], [{}], [{}]]), allow_pickle=True)
    with pytest.raises(ValueError, match="cannot be read"):
        read_features(tmp_path / "f.npy", NAMES)


@pytest.mark.parametrize("name", ["f.npy", "f.parquet"])
@pytest.mark.parametrize("content", [b"", b"broken"])
def test_broken_files_are_named(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} cannot be read"):
        read_features(tmp_path / name, NAMES)


def test_other_extensions_are_refused(tmp_path):
    (tmp_path / "f.csv").touch()
    with pytest.raises(ValueError, match=r"in a \.parquet or a \.npy file"):
        read_features(tmp_path / "f.csv", NAMES)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"f\.npy does not exist"):
        read_features(tmp_path / "f.npy", NAMES)


def test_an_archive_is_no_array(tmp_path):
    np.savez(tmp_path / "f.npz", np.zeros((3, 2)))
    (tmp_path / "f.npz").rename(tmp_path / "f.npy")
    with pytest.raises(ValueError, match=r"f\.npy cannot be read as an array"):
        read_features(tmp_path / "f.npy", NAMES)


@pytest.mark.parametrize("value", [np.inf, -np.inf, 1e300])
def test_infinite_features_are_an_error_with_their_row(parquet, tmp_path, value):
    np.save(tmp_path / "f.npy", [[0.0], [value], [0.0]])
    paths = [parquet(file_name=NAMES, x=[0.0, value, 0.0]), tmp_path / "f.npy"]
    for path in paths:
        with pytest.raises(ValueError, match=rf"{path.name}, row 2: a feature is too large or infinite"):
            read_features(path, NAMES)


def test_a_missing_number_in_a_list_is_missing(parquet):
    assert _values(read_features(parquet(file_name=NAMES[:1], x=[[1.0, None]]), NAMES[:1])) == [[1.0, None]]


def test_too_many_features_are_an_error(parquet):
    path = parquet(file_name=["a.jpg"], x=[np.zeros(70_000)])
    with pytest.raises(ValueError, match=r"f\.parquet has 70,000 features per picture, more than 65,536"):
        read_features(path, NAMES)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"file_name": NAMES, "x": [["a"], ["b"], ["c"]]}, "needs columns of numbers or one column of lists"),
        ({"file_name": NAMES, "x": [[[1.0]]] * 3}, "needs columns of numbers or one column of lists"),
        (
            {"file_name": pa.array([2**31 - 1] * 3, pa.int32()).view(pa.date32()), "x": [1, 2, 3]},
            "must be text, not date",
        ),
        ({"file_name": pa.array([b"\xff"] * 3).view(pa.string()), "x": [1, 2, 3]}, "cannot be read as Parquet"),
    ],
)
def test_strange_types_are_an_error(parquet, columns, message):
    with pytest.raises(ValueError, match=rf"f\.parquet.*{message}"):
        read_features(parquet(**columns), NAMES)


def test_two_columns_of_a_name_are_an_error(tmp_path):
    table = pa.Table.from_arrays([pa.array(NAMES), pa.array([1, 2, 3]), pa.array([1, 2, 3])], ["file_name", "x", "x"])
    pq.write_table(table, tmp_path / "f.parquet")
    with pytest.raises(ValueError, match="two columns 'x'"):
        read_features(tmp_path / "f.parquet", NAMES)


def test_too_many_features_in_an_array_are_an_error_before_it_is_read(tmp_path):
    path = tmp_path / "f.npy"
    array = np.lib.format.open_memmap(path, "w+", np.uint8, (3, 2_000_000_000))  # nearly all hole
    del array
    with pytest.raises(ValueError, match=r"f\.npy has 2,000,000,000 features per picture, more than 65,536"):
        read_features(path, NAMES)


def test_long_lists_in_parquet_are_an_error_before_they_are_python_objects(tmp_path):
    path = tmp_path / "f.parquet"
    names = [f"{i}.jpg" for i in range(2_000)]
    zeros = pa.FixedSizeListArray.from_arrays(pa.array(np.zeros(100 * 70_000, np.float32)), 70_000)
    with pq.ParquetWriter(path, pa.schema({"file_name": pa.string(), "x": zeros.type})) as file:
        for start in range(0, 2_000, 100):
            file.write_table(pa.table({"file_name": names[start : start + 100], "x": zeros}))
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="70,000 features per picture"):
            read_features(path, names)
        assert tracemalloc.get_traced_memory()[1] < 50 << 20
    finally:
        tracemalloc.stop()
