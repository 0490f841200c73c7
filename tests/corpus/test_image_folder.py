"""Folders of pictures, with and without metadata."""

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from pictopic.corpus.source import read_source
from pictopic.words.tags import TagRules


def _picture(path, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (8, 8)).save(path, **options)


def _xmp(word):
    return (
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="http://purl.org/dc/elements/1.1/">'
        f"<dc:subject><rdf:Bag><rdf:li>{word}</rdf:li></rdf:Bag></dc:subject></rdf:RDF>"
    ).encode()


@pytest.fixture
def folder(tmp_path):
    for name in ("a.jpg", "b.jpg", "c.jpg"):
        _picture(tmp_path / name)
    return tmp_path


def _csv(folder, *lines):
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


def _column(source, name):
    return source.rows[name].to_pylist()


# With metadata.


def test_csv_metadata_are_read_in_their_order(folder):
    source = read_source(_csv(folder, "file_name,tags,label", "b.jpg,Sea; Sky,Coast", 'a.jpg,"x, y",'))
    assert source.rows.to_pylist() == [
        {"file_name": "b.jpg", "tags": ["sea", "sky"], "labels": ["Coast"], "split": None},
        {"file_name": "a.jpg", "tags": ["x", "y"], "labels": None, "split": None},
    ]
    assert (source.folder, source.pictures, source.multi_label, source.skipped) == (folder, True, False, [])


_ROWS = [{"file_name": "b.jpg", "tags": ["sea", "sky"], "label": 3}, {"file_name": "a.jpg", "tags": [], "label": None}]


def _write_jsonl(folder):
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, _ROWS)))


def _write_parquet(folder):
    pq.write_table(pa.Table.from_pylist(_ROWS), folder / "metadata.parquet")


def _write_csv(folder):
    _csv(folder, "file_name,tags,label", "b.jpg,sea;sky,3", "a.jpg,,")


@pytest.mark.parametrize("write", [_write_csv, _write_jsonl, _write_parquet])
def test_all_kinds_of_metadata_give_the_same(folder, write):
    write(folder)
    source = read_source(folder)
    assert [_column(source, name) for name in ("file_name", "tags", "labels")] == [
        ["b.jpg", "a.jpg"], [["sea", "sky"], []], [["3"], None],
    ]  # fmt: skip
    assert source.fingerprint == read_source(_copy_as_csv(folder)).fingerprint


def _copy_as_csv(folder):
    for path in folder.glob("metadata.*"):
        path.unlink()
    _write_csv(folder)
    return folder


def test_the_fingerprint_is_that_of_the_contents_not_of_the_place(folder, tmp_path_factory):
    _write_csv(folder)
    other = tmp_path_factory.mktemp("other")
    for path in folder.iterdir():
        (other / path.name).write_bytes(path.read_bytes())
        os.utime(other / path.name, (1, 1))
    assert read_source(folder).fingerprint == read_source(other).fingerprint


def test_another_size_of_a_picture_changes_the_fingerprint(folder):
    before = read_source(_csv(folder, "file_name,tags", "a.jpg,x")).fingerprint
    (folder / "a.jpg").write_bytes(b"another")
    assert read_source(folder).fingerprint != before


def test_labels_are_several(folder):
    source = read_source(_csv(folder, "file_name,labels", "a.jpg,Sea;sky;Sea", "b.jpg,", "c.jpg,[]"))
    assert source.multi_label
    assert _column(source, "labels") == [["Sea", "sky"], None, []]


def test_lists_in_the_label_column_are_several(folder):
    (folder / "metadata.jsonl").write_text('{"file_name": "a.jpg", "label": ["x", "y"]}\n{"file_name": "b.jpg"}\n')
    source = read_source(folder)
    assert source.multi_label
    assert _column(source, "labels") == [["x", "y"], None]


def test_label_wins_over_labels(folder):
    source = read_source(_csv(folder, "file_name,labels,label", "a.jpg,x;y,z; w"))
    assert _column(source, "labels") == [["z; w"]]
    assert not source.multi_label


def test_other_columns_can_be_named(folder):
    _csv(folder, "file_name,tags,group,words,part", "a.jpg,no,7,yes,test")
    source = read_source(folder, label_column="group", tags_column="words", split_column="part")
    assert source.rows.to_pylist() == [{"file_name": "a.jpg", "tags": ["yes"], "labels": ["7"], "split": "test"}]


@pytest.mark.parametrize("option", ["label_column", "tags_column", "split_column"])
def test_a_column_that_is_not_there_is_an_error_that_names_those_there_are(folder, option):
    _csv(folder, "file_name,tags,label", "a.jpg,x,y")
    with pytest.raises(ValueError, match=r"\.csv has no column 'group'; its columns are file_name, tags, label"):
        read_source(folder, **{option: "group"})


def test_labels_and_tags_can_be_left_out(folder):
    _csv(folder, "file_name,tags,label", "a.jpg,x,y")
    source = read_source(folder, label_column=None, tags_column=None)
    assert source.rows.to_pylist() == [{"file_name": "a.jpg", "tags": [], "labels": None, "split": None}]


def test_tag_rules_are_applied(folder):
    _csv(folder, "file_name,tags", "a.jpg,NYC;Nikon;night")
    source = read_source(folder, tag_rules=TagRules(frozenset({"nikon"}), {"nyc": "new york"}))
    assert _column(source, "tags") == [["new york", "night"]]


def test_rows_that_cannot_be_used_are_skipped_with_their_reason(folder):
    (folder.parent / "secret.jpg").touch()
    (folder / "link.jpg").symlink_to(folder.parent / "secret.jpg")
    names = ["a.jpg", "../secret.jpg", "none.jpg", "/etc/passwd", "./a.jpg", "link.jpg", "b.jpg"]
    source = read_source(_csv(folder, "file_name,tags", *(f"{name},x" for name in names)))
    assert _column(source, "file_name") == ["a.jpg", "b.jpg"]
    assert source.listed.tolist() == [0, 6]
    assert source.skipped == [
        ("../secret.jpg", "outside the folder"), ("none.jpg", "missing"), ("/etc/passwd", "outside the folder"),
        ("a.jpg", "duplicate row"), ("link.jpg", "outside the folder"),
    ]  # fmt: skip


def test_a_row_without_a_file_name_is_an_error_with_its_row(folder):
    with pytest.raises(ValueError, match=r"metadata\.csv, row 3: there is no file_name"):
        read_source(_csv(folder, "file_name,tags", "a.jpg,x", " ,y"))


def test_the_metadata_file_itself_may_be_given(folder):
    _csv(folder, "file_name,tags", "a.jpg,x").joinpath("metadata.csv").rename(folder / "list.csv")
    source = read_source(folder / "list.csv")
    assert (source.folder, len(source), source.pictures) == (folder, 1, True)


def test_sub_folders_with_metadata_are_splits(tmp_path):
    for part in ("train", "test"):
        _picture(tmp_path / part / "a.jpg")
        _csv(tmp_path / part, "file_name,label", f"a.jpg,{part}ed")
    source = read_source(tmp_path)
    assert _column(source, "file_name") == ["test/a.jpg", "train/a.jpg"]
    assert _column(source, "split") == ["test", "train"]
    assert _column(source, "labels") == [["tested"], ["trained"]]


def test_sub_folders_with_other_names_are_no_splits(tmp_path):
    for part in ("one", "two"):
        _picture(tmp_path / part / "a.jpg")
        _csv(tmp_path / part, "file_name,tags", "a.jpg,x")
    assert _column(read_source(tmp_path), "split") == [None, None]


def test_a_split_without_metadata_is_an_error(tmp_path):
    _picture(tmp_path / "train" / "a.jpg")
    _picture(tmp_path / "test" / "a.jpg")
    _csv(tmp_path / "test", "file_name,tags", "a.jpg,x")
    with pytest.raises(ValueError, match="but train has no metadata file"):
        read_source(tmp_path)


def test_two_metadata_files_are_an_error(folder):
    _write_csv(folder)
    _write_jsonl(folder)
    with pytest.raises(ValueError, match=r"metadata\.csv and metadata\.jsonl: give the path of one"):
        read_source(folder)


def test_metadata_that_are_not_utf8_lose_nothing(folder):
    (folder / "metadata.csv").write_bytes(b"file_name,tags\na.jpg,caf\xe9\nb.jpg,caf\xc3\xa9\n")
    with pytest.warns(UserWarning, match=r"metadata\.csv, row 2: not UTF-8"):
        source = read_source(folder)
    assert _column(source, "tags") == [["café"], ["café"]]


def test_without_a_tags_column_the_keywords_in_the_files_are_tags(folder):
    _picture(folder / "k.jpg", xmp=_xmp("Sea"))
    source = read_source(_csv(folder, "file_name,label", "a.jpg,x", "k.jpg,x"))
    assert _column(source, "tags") == [[], ["sea"]]


def test_with_a_tags_column_the_keywords_in_the_files_are_not_read(folder):
    _picture(folder / "k.jpg", xmp=_xmp("Sea"))
    assert _column(read_source(_csv(folder, "file_name,tags", "k.jpg,")), "tags") == [[]]


# Rows without pictures.


def test_if_no_picture_is_there_the_rows_have_tags_only(tmp_path):
    source = read_source(_csv(tmp_path, "file_name,tags,labels", "im1.jpg,a;b,x", "im2.jpg,c,y", "im1.jpg,d,"))
    assert (source.pictures, _column(source, "file_name")) == (False, ["im1.jpg", "im2.jpg"])
    assert source.skipped == [("im1.jpg", "duplicate row")]


def test_pictures_need_not_be_looked_for(folder):
    source = read_source(_csv(folder, "file_name,tags", "a.jpg,x", "/none.jpg,y"), pictures="none")
    assert (source.pictures, len(source), source.skipped) == (False, 2, [])


def test_rows_without_names_are_called_by_their_numbers(tmp_path):
    source = read_source(_csv(tmp_path, "tags,label", "a;b,x", "c,y"))
    assert (source.pictures, _column(source, "file_name")) == (False, ["1", "2"])


@pytest.mark.parametrize("pictures", ["auto", "none"])
def test_neither_pictures_nor_tags_are_an_error(tmp_path, pictures):
    with pytest.raises(ValueError, match="there are no tags; the columns are file_name, label"):
        read_source(_csv(tmp_path, "file_name,label", "a.jpg,x"), pictures=pictures)


# Without metadata.


def test_classes_are_the_names_of_the_folders(tmp_path):
    for name in ("sea/b.jpg", "sea/a.PNG", "forest/deep/c.tiff", "top.jpg", ".hidden/x.jpg", "sea/.y.jpg"):
        _picture(tmp_path / name)
    (tmp_path / "sea" / "notes.txt").touch()
    source = read_source(tmp_path)
    assert _column(source, "file_name") == ["forest/deep/c.tiff", "sea/a.PNG", "sea/b.jpg", "top.jpg"]
    assert _column(source, "labels") == [["deep"], ["sea"], ["sea"], None]
    assert (source.multi_label, source.pictures) == (False, True)


def test_splits_are_folders_of_the_first_level(tmp_path):
    for name in ("train/sea/a.jpg", "train/sky/b.jpg", "validation/sea/c.jpg"):
        _picture(tmp_path / name)
    source = read_source(tmp_path)
    assert _column(source, "split") == ["train", "train", "validation"]
    assert _column(source, "labels") == [["sea"], ["sky"], ["sea"]]


def test_trains_among_other_classes_are_no_split(tmp_path):
    for name in ("train/a.jpg", "bus/b.jpg"):
        _picture(tmp_path / name)
    source = read_source(tmp_path)
    assert _column(source, "labels") == [["bus"], ["train"]]
    assert _column(source, "split") == [None, None]


@pytest.mark.parametrize("names", [["a.jpg", "b.jpg"], ["images/a.jpg", "images/b.jpg"], ["train/a.jpg", "test/b.jpg"]])
def test_less_than_two_classes_are_none(tmp_path, names):
    for name in names:
        _picture(tmp_path / name)
    assert _column(read_source(tmp_path), "labels") == [None, None]


def test_keywords_in_the_pictures_are_tags(tmp_path):
    _picture(tmp_path / "a.jpg", xmp=_xmp("Night  Sky"))
    _picture(tmp_path / "b.jpg")
    (tmp_path / "b.xmp").write_bytes(_xmp("Sea"))
    assert _column(read_source(tmp_path), "tags") == [["night sky"], ["sea"]]
    assert _column(read_source(tmp_path, tags_column=None), "tags") == [[], []]


def test_broken_pictures_are_listed_all_the_same(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"broken")
    assert _column(read_source(tmp_path), "file_name") == ["a.jpg"]


def test_links_that_lead_out_are_skipped(tmp_path):
    _picture(tmp_path / "in" / "a.jpg")
    _picture(tmp_path / "out" / "b.jpg")
    (tmp_path / "in" / "b.jpg").symlink_to(tmp_path / "out" / "b.jpg")
    (tmp_path / "in" / "more").symlink_to(tmp_path / "out")
    assert sorted(read_source(tmp_path / "in").skipped) == [
        ("b.jpg", "outside the folder"), ("more", "a link to a folder: not followed"),
    ]  # fmt: skip


def test_a_name_that_is_not_utf8_is_skipped(tmp_path):
    _picture(tmp_path / "a.jpg")
    try:
        open(os.fsencode(tmp_path) + b"/caf\xe9.jpg", "wb").close()
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    assert read_source(tmp_path).skipped == [("caf\\udce9.jpg", "its name is not UTF-8")]


@pytest.mark.parametrize("option", ["label_column", "tags_column", "split_column"])
def test_without_metadata_there_are_no_columns_to_name(folder, option):
    with pytest.raises(ValueError, match="no metadata file that could have a column 'group'"):
        read_source(folder, **{option: "group"})


def test_a_folder_without_pictures_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no row that can be used"):
        read_source(tmp_path)
