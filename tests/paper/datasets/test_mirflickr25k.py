"""MIR Flickr, as downloaded."""

import shutil

import numpy as np
import pytest
from scipy import sparse

from pictopic import Corpus
from pictopic.paper.datasets.mirflickr25k import POTENTIAL, RELEVANT, read_mirflickr25k
from tests.paper.datasets.conftest import column, write_picture, write_text

LABELS = "mirflickr25k_annotations_v080"
TAGS = {1: "sea\nsun\n", 2: "dog\n", 3: "", 10: "Sea\r\nnight sky\r\nsea\r\n"}
NUMBERS = {"sea": [1, 10], "sea_r1": [10], "dog": [2], "animals": [2, 24999]}


@pytest.fixture
def flickr(tmp_path):
    """Four pictures."""
    for number, tags in TAGS.items():
        write_picture(tmp_path / "mirflickr" / f"im{number}.jpg", number, side=48)
        write_text(tmp_path / "mirflickr" / "meta" / "tags" / f"tags{number}.txt", tags)
    for label in POTENTIAL + RELEVANT:
        numbers = "".join(f"{number}\n" for number in NUMBERS.get(label, []))
        write_text(tmp_path / LABELS / f"{label}.txt", numbers)
    write_text(tmp_path / LABELS / "README.txt", "What the labels mean")
    return tmp_path


@pytest.fixture
def million(flickr):
    """And three pictures of the million, one of which is a labelled one."""
    for number in (9, 25_000, 30_001):
        group = str(number // 10_000)
        write_picture(flickr / "mirflickr1m" / "images" / group / f"{number}.jpg", number)
        write_text(flickr / "mirflickr1m" / "tags" / group / f"{number}.txt", f"tag{number}\n")
    return flickr


def test_there_are_38_labels():
    assert (len(POTENTIAL), len(RELEVANT)) == (24, 14)
    assert {label.removesuffix("_r1") for label in RELEVANT} < set(POTENTIAL)


def test_rows_have_the_pictures_in_the_order_of_their_numbers(flickr):
    source = read_mirflickr25k(flickr)
    assert source.rows["file_name"].to_pylist() == [f"mirflickr/im{number}.jpg" for number in (1, 2, 3, 10)]
    assert (source.pictures, source.multi_label, source.skipped) == (True, True, [])


def test_tags_are_read_a_line_each_once(flickr):
    assert read_mirflickr25k(flickr).rows["tags"].to_pylist() == [["sea", "sun"], ["dog"], [], ["sea", "night sky"]]


def test_labels_are_those_whose_files_have_the_number(flickr):
    expected = [["sea"], ["animals", "dog"], [], ["sea", "sea_r1"]]
    assert read_mirflickr25k(flickr).rows["labels"].to_pylist() == expected


def test_tags_may_be_as_they_were_written(flickr):
    for number in TAGS:
        write_text(flickr / "mirflickr" / "meta" / "tags_raw" / f"tags{number}.txt", "New York\n")
    assert read_mirflickr25k(flickr, tags="raw").rows["tags"].to_pylist() == 4 * [["new york"]]


def test_tags_that_are_not_utf8_are_read_all_the_same(flickr):
    path = flickr / "mirflickr" / "meta" / "tags" / "tags2.txt"
    path.write_bytes("\ufeffköln\n".encode())
    assert column(read_mirflickr25k(flickr), "tags")["mirflickr/im2.jpg"] == ["köln"]
    path.write_bytes("köln\n".encode("latin-1"))
    assert column(read_mirflickr25k(flickr), "tags")["mirflickr/im2.jpg"] == ["köln"]


def test_pictures_of_the_million_have_no_labels(million):
    source = read_mirflickr25k(million)
    assert len(source) == 6
    assert source.rows.to_pylist()[4:] == [
        {"file_name": f"mirflickr1m/images/{name}.jpg", "tags": [tag], "labels": None, "split": None}
        for name, tag in (("2/25000", "tag25000"), ("3/30001", "tag30001"))
    ]


def test_the_million_can_be_left_out(million):
    assert len(read_mirflickr25k(million, unlabelled=False)) == 4


def test_a_missing_file_of_tags_is_named_in_a_warning(flickr):
    (flickr / "mirflickr" / "meta" / "tags" / "tags1.txt").unlink()
    with pytest.warns(UserWarning, match=r"no tags: mirflickr/meta/tags/tags1\.txt \(missing\)$"):
        source = read_mirflickr25k(flickr)
    assert source.rows["tags"].to_pylist()[0] == []


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("mirflickr", r"/mirflickr/im1\.jpg is missing: MIR Flickr's pictures \(mirflickr25k\.zip\); `pictopic"),
        ("mirflickr/meta/tags", r"/mirflickr/meta/tags is missing: MIR Flickr's tags \(mirflickr25k\.zip\); `pictopic"),
        (LABELS, rf"/{LABELS} is missing: MIR Flickr's labels \({LABELS}\.zip\)"),
        (f"{LABELS}/baby_r1.txt", r"baby_r1\.txt is missing: the pictures with the label baby_r1"),
        ("mirflickr1m/tags", r"mirflickr1m/tags is missing: the tags of the pictures without labels \(tags\.zip\)"),
    ],
)
def test_what_is_missing_is_named(million, gone, message):
    path = million / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(ValueError, match=message) as caught:
        read_mirflickr25k(million)
    assert str(caught.value).endswith("; `pictopic reproduce mirflickr --help` shows the layout")


@pytest.mark.parametrize("line", ["im1.jpg", "0", "25001", "-1", "1 2", "²", "9" * 5000])
def test_a_label_file_with_something_else_is_an_error(flickr, line):
    write_text(flickr / LABELS / "sky.txt", f"1\n{line}\n")
    with pytest.raises(ValueError, match=r"sky\.txt, row 2: not the number of a picture"):
        read_mirflickr25k(flickr)


def test_links_that_lead_out_are_not_followed(flickr, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    write_picture(other / "secret.jpg")
    write_text(other / "secret.txt", "secret\n")
    (flickr / "mirflickr" / "im4.jpg").symlink_to(other / "secret.jpg")
    (flickr / "mirflickr" / "meta" / "tags" / "tags1.txt").unlink()
    (flickr / "mirflickr" / "meta" / "tags" / "tags1.txt").symlink_to(other / "secret.txt")
    with pytest.warns(UserWarning, match=r"tags1\.txt \(outside the folder\)"):
        source = read_mirflickr25k(flickr)
    assert source.skipped == [("mirflickr/im4.jpg", "outside the folder")]
    assert source.rows["tags"].to_pylist()[0] == []


def test_an_image_folder_is_read_even_without_pictures(tmp_path):
    text = "file_name,tags,labels\nmirflickr/im1.jpg,smoke;red,female;people\nmirflickr/im2.jpg,,[]\n"
    write_text(tmp_path / "mirflickr_tags" / "metadata.csv", text)
    source = read_mirflickr25k(tmp_path)
    assert (source.pictures, source.multi_label) == (False, True)
    assert source.rows["tags"].to_pylist() == [["smoke", "red"], []]
    assert source.rows["labels"].to_pylist() == [["female", "people"], []]


def _write_arrays(folder):
    (folder / "image" / "labelled").mkdir(parents=True)
    (folder / "text").mkdir()
    (folder / "splits").mkdir()
    np.save(folder / "image" / "labelled" / "combined-00001-of-00100.npy", np.ones((2, 2001), np.float32))
    tags = sparse.csr_array(np.eye(2, dtype=np.int64))
    parts = {"data": tags.data, "indices": tags.indices, "indptr": tags.indptr, "shape": np.array(tags.shape)}
    np.savez(folder / "text" / "text_all_2000_labelled.npz", **parts)
    np.save(folder / "labels.npy", np.eye(2, 3))
    for k, names in {1: ("train", "test"), 2: ("test", "train")}.items():
        for row, name in enumerate(names):
            np.save(folder / "splits" / f"{name}_indices_{k}.npy", np.array([row]))
        np.save(folder / "splits" / f"valid_indices_{k}.npy", np.array([], np.int64))


def test_the_arrays_of_supdocnades_authors_are_read(tmp_path):
    _write_arrays(tmp_path)
    source = read_mirflickr25k(tmp_path)
    assert source.counts.n_words == 2002
    assert source.rows["split"].to_pylist() == ["train", "test"]
    assert read_mirflickr25k(tmp_path, split="2").rows["split"].to_pylist() == ["test", "train"]


def test_only_the_arrays_have_numbered_splits(flickr):
    with pytest.raises(ValueError, match="there is no split '2'"):
        read_mirflickr25k(flickr, split="2")


def test_unknown_tags_are_an_error(flickr):
    with pytest.raises(ValueError, match="tags must be 'clean' or 'raw', got 'all'"):
        read_mirflickr25k(flickr, tags="all")


def test_a_corpus_is_built_from_it(million, tmp_path):
    corpus = Corpus.build(read_mirflickr25k(million), tmp_path / "corpus", n_words=8, n_jobs=1)
    assert corpus.X.shape[0] == len(corpus.file_names) == 6 - len(corpus.skipped)
    assert [name for name in corpus.file_names if name.startswith("mirflickr/")] == [
        f"mirflickr/im{number}.jpg" for number in (1, 2, 3, 10)
    ]
