"""Corel 5k: lists, words, vectors and photographs."""

import numpy as np
import pytest
from scipy.io import savemat

from pictopic.paper.datasets.corel5k import read_corel5k, read_hvecs
from tests.paper.datasets.conftest import write_picture, write_text

WORDS = ["city", "Sea", "sun", "tree"]
NAMES = {"train": ["1000/1000", "1000/1003", "2000/2005"], "test": ["2000/2001", "1000/1001"]}
ANNOTATIONS = {
    "train": np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 0, 0, 0]]),
    "test": np.array([[0, 0, 1, 1], [1, 1, 1, 1]]),
}


def write_hvecs(path, values, header="<u2"):
    rows = (np.array([values.shape[1]], header).tobytes() + row.astype("<u2").tobytes() for row in values)
    path.write_bytes(b"".join(rows))


@pytest.fixture
def corel(tmp_path):
    """Three pictures to train with, two to test."""
    folder = tmp_path / "data"
    write_text(folder / "corel5k_dictionary.txt", "\n".join(WORDS) + "\n")
    for part, names in NAMES.items():
        write_text(folder / f"corel5k_{part}_list.txt", "\r\n".join(names) + "\r\n")
        write_hvecs(folder / f"corel5k_{part}_annot.hvecs", ANNOTATIONS[part])
        for k, name in enumerate(names):
            write_picture(folder / "images" / f"{name}.jpeg", k)
    return folder


def test_rows_have_pictures_words_groups_and_the_split(corel):
    source = read_corel5k(corel)
    assert (source.pictures, source.multi_label, source.skipped) == (True, False, [])
    assert [tuple(row.values()) for row in source.rows.to_pylist()] == [
        ("images/1000/1000.jpeg", ["city", "sun"], ["1000"], "train"),
        ("images/1000/1003.jpeg", ["sea"], ["1000"], "train"),
        ("images/2000/2005.jpeg", [], ["2000"], "train"),
        ("images/2000/2001.jpeg", ["sun", "tree"], ["2000"], "test"),
        ("images/1000/1001.jpeg", ["city", "sea", "sun", "tree"], ["1000"], "test"),
    ]


@pytest.mark.parametrize("place", ["{}.jpg", "images/{}.jpg", "{}.jpeg"])
def test_photographs_may_lie_beside_the_lists_and_be_called_jpg(corel, place):
    for name in NAMES["train"] + NAMES["test"]:
        target = corel / place.format(name)
        target.parent.mkdir(exist_ok=True)
        (corel / "images" / f"{name}.jpeg").rename(target)
    source = read_corel5k(corel)
    assert source.rows["file_name"].to_pylist()[0] == place.format("1000/1000")
    assert source.rows["labels"].to_pylist()[0] == ["1000"]


@pytest.mark.parametrize("place", ["corel5k", "corel5k.20091111"])
def test_the_set_may_lie_in_a_folder_of_its_name(corel, place):
    corel.rename(corel.with_name(place))
    assert len(read_corel5k(corel.parent)) == 5


def test_words_may_have_their_other_name(corel):
    (corel / "corel5k_dictionary.txt").rename(corel / "corel5k_words.txt")
    assert len(read_corel5k(corel)) == 5


def test_annotations_may_be_a_matrix_of_matlab(corel):
    expected = read_corel5k(corel).rows
    for part, values in ANNOTATIONS.items():
        (corel / f"corel5k_{part}_annot.hvecs").unlink()
        savemat(corel / f"corel5k_{part}_annot.mat", {"annot1": values.astype(np.uint8)})
    assert read_corel5k(corel).rows.equals(expected)


@pytest.mark.parametrize("content", [{"a": np.eye(2), "b": np.eye(2)}, {"a": "text"}, {}])
def test_another_content_of_a_matlab_file_is_an_error(corel, content):
    (corel / "corel5k_train_annot.hvecs").unlink()
    savemat(corel / "corel5k_train_annot.mat", content)
    with pytest.raises(ValueError, match=r"corel5k_train_annot\.mat must hold one matrix of numbers"):
        read_corel5k(corel)


@pytest.mark.parametrize("content", [b"", b"no matrix", b"\0" * 200])
def test_a_damaged_matlab_file_is_an_error(corel, content):
    (corel / "corel5k_train_annot.hvecs").unlink()
    (corel / "corel5k_train_annot.mat").write_bytes(content)
    with pytest.raises(ValueError, match=r"corel5k_train_annot\.mat (cannot be read|must hold)"):
        read_corel5k(corel)


@pytest.mark.parametrize(
    ("gone", "what"),
    [
        ("corel5k_dictionary.txt", "the words of the annotations"),
        ("corel5k_train_list.txt", "the names of the train pictures"),
        ("corel5k_test_list.txt", "the names of the test pictures"),
        ("corel5k_train_annot.hvecs", "the annotations of the train pictures"),
        ("corel5k_test_annot.hvecs", "the annotations of the test pictures"),
    ],
)
def test_what_is_missing_is_named(corel, gone, what):
    (corel / gone).unlink()
    with pytest.raises(ValueError, match=f"{gone} is missing: {what}; `pictopic reproduce corel5k --help`"):
        read_corel5k(corel)


def test_a_missing_photograph_is_skipped(corel):
    (corel / "images" / "1000" / "1003.jpeg").unlink()
    source = read_corel5k(corel)
    assert (len(source), source.skipped) == (4, [("1000/1003", "missing")])


def test_no_photographs_at_all_are_an_error(corel):
    (corel / "images").rename(corel / "pictures")
    with pytest.raises(ValueError, match=r"images/1000/1000\.jpeg is missing: Corel's photographs"):
        read_corel5k(corel)


@pytest.mark.parametrize("hostile", ["../../secret", "/secret", "1000/../../../secret"])
def test_hostile_names_are_skipped(corel, hostile):
    write_picture(corel.parent / "secret.jpeg")
    write_text(corel / "corel5k_test_list.txt", f"{hostile}\n1000/1001\n")
    source = read_corel5k(corel)
    assert len(source) == 4
    assert [name for name, _ in source.skipped] == [hostile]


def test_another_number_of_pictures_is_an_error(corel):
    write_text(corel / "corel5k_test_list.txt", "2000/2001\n")
    with pytest.raises(
        ValueError, match=r"test_annot\.hvecs has 2 rows of 4 words, but there are 1 pictures and 4 wor"
    ):
        read_corel5k(corel)


def test_an_empty_list_is_an_error(corel):
    write_text(corel / "corel5k_test_list.txt", "\n")
    with pytest.raises(ValueError, match=r"corel5k_test_list\.txt is empty"):
        read_corel5k(corel)


@pytest.mark.parametrize("header", ["<u2", "<i4"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 260), (4, 3), (7, 260)])
def test_vectors_are_read_with_short_and_long_headers(tmp_path, rng, header, shape):
    values = rng.randint(0, 2, shape)
    write_hvecs(tmp_path / "a.hvecs", values, header)
    assert np.array_equal(read_hvecs(tmp_path / "a.hvecs"), values)


@pytest.mark.parametrize("content", [b"", b"\1", b"\0\0\0\0", b"\3\0\1\0", b"\2\0\1\0\1\0\3\0\1\0\1\0", b"\xff" * 12])
def test_damaged_vectors_are_an_error(tmp_path, content):
    (tmp_path / "a.hvecs").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.hvecs is damaged: not vectors of the same length"):
        read_hvecs(tmp_path / "a.hvecs")


def test_an_image_folder_has_its_classes_in_the_column_group(tmp_path):
    write_picture(tmp_path / "images" / "1000" / "1000.jpeg")
    write_text(tmp_path / "metadata.csv", "file_name,tags,group\nimages/1000/1000.jpeg,city;sun,1000\n")
    assert read_corel5k(tmp_path).rows.to_pylist() == [
        {"file_name": "images/1000/1000.jpeg", "tags": ["city", "sun"], "labels": ["1000"], "split": None}
    ]
