"""Which source a path is; what each gives is tested beside its own module."""

import numpy as np
import pytest
from PIL import Image

from pictopic.corpus.corpus import Corpus
from pictopic.corpus.sources import mirflickr, read_source
from tests.corpus.conftest import WORDS
from tests.corpus.sources.conftest import column, save_picture, write_csv


def _write(path, text=""):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_a_csv_of_numbers_is_counts(tmp_path):
    source = read_source(_write(tmp_path / "words.csv", "label,sea,sky\nx,1,0\n"))
    assert source.counts.annotations == ("sea", "sky")


def test_a_csv_of_counts_may_name_pictures_that_are_elsewhere(tmp_path):
    source = read_source(_write(tmp_path / "words.csv", "file_name,sea\na.jpg,1\n"))
    assert source.counts.annotations == ("sea",)


def test_a_csv_with_tags_is_metadata(tmp_path):
    source = read_source(_write(tmp_path / "words.csv", "tags,year\nsea;sky,1999\n"))
    assert (source.counts, source.rows["tags"].to_pylist()) == (None, [["sea", "sky"]])


def test_numbers_beside_the_names_of_pictures_that_are_there_are_no_counts(tmp_path):
    Image.new("RGB", (8, 8)).save(tmp_path / "a.jpg")
    source = read_source(_write(tmp_path / "list.csv", "file_name,label,width\na.jpg,x,8\n"))
    assert (source.counts, source.pictures) == (None, True)


def test_metadata_csv_is_never_counts(tmp_path):
    with pytest.raises(ValueError, match="there are no tags"):
        read_source(_write(tmp_path / "metadata.csv", "file_name,sea\na.jpg,1\n"))


@pytest.mark.parametrize("name", ["corpus.ldac", "train.dat", "TRAIN.DAT"])
def test_ldac_is_known_by_its_extension(tmp_path, name):
    assert read_source(_write(tmp_path / name, "1 0:2\n")).counts.n_visual_words == 1


def test_the_only_counts_in_a_folder_are_taken(tmp_path):
    _write(tmp_path / "train.ldac", "1 0:2\n")
    _write(tmp_path / "vocab.txt", "sea\n")
    assert read_source(tmp_path).counts.annotations == ("sea",)


def test_a_folder_with_pictures_is_a_folder_of_pictures_in_spite_of_a_csv(tmp_path):
    Image.new("RGB", (8, 8)).save(tmp_path / "a.jpg")
    _write(tmp_path / "notes.csv", "x,y\n1,2\n")
    assert read_source(tmp_path).rows["file_name"].to_pylist() == ["a.jpg"]


def test_mir_flickr_is_recognised_and_its_split_is_the_split_column(tmp_path, monkeypatch):
    np.save(tmp_path / "labels.npy", np.zeros((1, 1)))
    _write(tmp_path / "text" / "text_all_2000_labelled.npz")
    monkeypatch.setattr(mirflickr, "read_mirflickr", lambda folder, split: (folder, split))
    assert read_source(tmp_path, split_column="3") == (tmp_path, "3")


def test_sub_folders_with_metadata_are_splits(tmp_path):
    for part in ("train", "test"):
        save_picture(tmp_path / part / "a.jpg")
        write_csv(tmp_path / part, "file_name,label", f"a.jpg,{part}ed")
    source = read_source(tmp_path)
    assert column(source, "file_name") == ["test/a.jpg", "train/a.jpg"]
    assert column(source, "split") == ["test", "train"]
    assert column(source, "labels") == [["tested"], ["trained"]]


def test_sub_folders_with_other_names_are_no_splits(tmp_path):
    for part in ("one", "two"):
        save_picture(tmp_path / part / "a.jpg")
        write_csv(tmp_path / part, "file_name,tags", "a.jpg,x")
    assert column(read_source(tmp_path), "split") == [None, None]


def test_a_split_without_metadata_is_an_error(tmp_path):
    save_picture(tmp_path / "train" / "a.jpg")
    save_picture(tmp_path / "test" / "a.jpg")
    write_csv(tmp_path / "test", "file_name,tags", "a.jpg,x")
    with pytest.raises(ValueError, match="but train has no metadata file"):
        read_source(tmp_path)


def test_two_metadata_files_are_an_error(tmp_path):
    _write(tmp_path / "metadata.csv", "file_name,tags\na.jpg,x\n")
    _write(tmp_path / "metadata.jsonl", '{"file_name": "a.jpg", "tags": "x"}')
    with pytest.raises(ValueError, match=r"metadata\.csv and metadata\.jsonl: give the path of one"):
        read_source(tmp_path)


def test_a_path_may_be_a_string(tmp_path):
    assert len(read_source(str(_write(tmp_path / "c.ldac", "0\n")))) == 1


def test_a_path_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere does not exist"):
        read_source(tmp_path / "nowhere")


def test_other_files_are_an_error(tmp_path):
    with pytest.raises(ValueError, match=r"extensions \.csv, \.jsonl, \.parquet, \.ldac, \.dat"):
        read_source(_write(tmp_path / "photos.zip"))


def test_without_pictures_metadata_are_needed(tmp_path):
    with pytest.raises(ValueError, match="without pictures one with tags is needed"):
        read_source(tmp_path, pictures="none")


def test_other_ways_with_pictures_are_an_error(tmp_path):
    with pytest.raises(ValueError, match="'auto' or 'none'"):
        read_source(tmp_path, pictures="some")


@pytest.mark.parametrize("given", ["link", "link/metadata.csv"])
def test_a_folder_behind_a_link_is_read_and_its_pictures_are_found_again(photos, tmp_path, given):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "deep" / "er" / "link").symlink_to(photos)
    source = read_source(tmp_path / "deep" / "er" / given)
    assert len(source) == 12
    assert (source.folder / source.rows["file_name"][0].as_py()).samefile(photos / "0.jpg")
    corpus = Corpus.build(source, tmp_path / "corpus", **WORDS)
    assert [path.resolve() for path in corpus.paths] == [photos / name for name in corpus.file_names]
