"""Folders of pictures, with and without metadata."""

import json
import os
import socket
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from pictopic.corpus.image_folder import picture_names
from pictopic.corpus.source import read_source
from pictopic.files import csv_text
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


# Limits.

_MANY = [f"tag{k}" for k in range(1_500)]


def _many_in_xmp(folder):
    _picture(folder / "a.jpg", xmp=_xmp("</rdf:li><rdf:li>".join(_MANY)))


def _many_in_a_sidecar(folder):
    (folder / "a.xmp").write_bytes(_xmp("</rdf:li><rdf:li>".join(_MANY)))


def _many_in_csv(folder):
    _csv(folder, "file_name,tags", f"a.jpg,{';'.join(_MANY)}", "b.jpg,sea")


def _many_in_jsonl(folder):
    rows = [{"file_name": "a.jpg", "tags": _MANY}, {"file_name": "b.jpg", "tags": "sea"}]
    (folder / "metadata.jsonl").write_text("\n".join(map(json.dumps, rows)))


def _many_in_parquet(folder):
    rows = [{"file_name": "a.jpg", "tags": _MANY}, {"file_name": "b.jpg", "tags": ["sea"]}]
    pq.write_table(pa.Table.from_pylist(rows), folder / "metadata.parquet")


@pytest.mark.parametrize("write", [_many_in_xmp, _many_in_a_sidecar, _many_in_csv, _many_in_jsonl, _many_in_parquet])
def test_a_picture_has_at_most_a_thousand_tags(folder, write):
    write(folder)
    with pytest.warns(UserWarning, match=r"1 picture has more than 1,000 tags.*a\.jpg") as told:
        source = read_source(folder)
    assert _column(source, "tags")[0] == _MANY[:1_000]
    assert len(told) == 1


def test_one_warning_counts_all_pictures_whose_tags_or_labels_were_cut(folder):
    rows = [f"{name}.jpg,{'x' * 300},{'y' * 300}" for name in "abc"]
    with pytest.warns(UserWarning, match=r"3 pictures have .*the first: a\.jpg") as told:
        source = read_source(_csv(folder, "file_name,tags,label", *rows))
    assert _column(source, "tags") == [["x" * 200]] * 3
    assert _column(source, "labels") == [["y" * 200]] * 3
    assert len(told) == 1


def test_a_picture_has_at_most_a_thousand_labels(folder):
    with pytest.warns(UserWarning, match="1 picture has"):
        source = read_source(_csv(folder, "file_name,labels", f"a.jpg,{';'.join(_MANY)}"))
    assert _column(source, "labels") == [_MANY[:1_000]]


def test_a_name_that_no_file_can_have_is_skipped(folder):
    source = read_source(_csv(folder, "file_name,tags", "a" * 10_000 + ",sea", "b,sky"), pictures="none")
    assert _column(source, "file_name") == ["b"]
    ((name, reason),) = source.skipped
    assert set(name) == {"a", "."}
    assert len(name) < 5_000
    assert reason == "its name is longer than 4,096 characters"


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


@pytest.mark.parametrize("name", ["loop", "loop.jpg"])
def test_a_link_to_itself_is_skipped(tmp_path, name):
    _picture(tmp_path / "a.jpg")
    (tmp_path / name).symlink_to(name)
    source = read_source(tmp_path)
    assert _column(source, "file_name") == ["a.jpg"]
    assert source.skipped == [(name, "cannot be opened: Too many levels of symbolic links")]


def test_a_link_to_nothing_is_skipped(tmp_path):
    _picture(tmp_path / "a.jpg")
    (tmp_path / "b.jpg").symlink_to("nothing.jpg")
    assert read_source(tmp_path).skipped == [("b.jpg", "missing")]


@contextmanager
def _without_privileges():
    """Permissions do not hold for root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder():
    """A folder that other users can read, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)  # noqa: S103
        yield Path(name)


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs permissions")
@pytest.mark.parametrize("mode", [0o000, 0o444, 0o311])
@pytest.mark.parametrize("metadata", [True, False])
def test_a_folder_without_permission_is_skipped(open_folder, mode, metadata):
    _picture(open_folder / "sub" / "a.jpg")
    _picture(open_folder / "b.jpg")
    if metadata:
        _csv(open_folder, "file_name,tags", "b.jpg,sea")
    os.chmod(open_folder / "sub", mode)
    with _without_privileges():
        source = read_source(open_folder)
    os.chmod(open_folder / "sub", 0o700)
    assert _column(source, "file_name") == ["b.jpg"]
    expected = {0o000: "sub", 0o444: "sub/a.jpg", 0o311: "sub"}[mode]
    assert source.skipped == ([] if metadata else [(expected, "cannot be opened: Permission denied")])


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs permissions")
def test_a_picture_without_permission_is_listed_and_has_no_keywords(open_folder):
    _picture(open_folder / "a.jpg", xmp=_xmp("Sea"))
    os.chmod(open_folder / "a.jpg", 0)
    with _without_privileges():
        source = read_source(open_folder)
    assert _column(source, "tags") == [[]]


def test_a_folder_that_disappears_while_it_is_listed_is_skipped(tmp_path, monkeypatch):
    for name in ("a", "b"):
        _picture(tmp_path / name / "x.jpg")
    _picture(tmp_path / "y.jpg")
    scandir, gone = os.scandir, []

    def scan(folder):
        entries = scandir(folder)
        if Path(folder) != tmp_path and not gone:
            gone.append("b" if Path(folder).name == "a" else "a")
            (tmp_path / gone[0] / "x.jpg").unlink()
            (tmp_path / gone[0]).rmdir()
        return entries

    monkeypatch.setattr("os.scandir", scan)
    source = read_source(tmp_path)
    assert source.skipped == [(gone[0], "missing")]
    assert len(source) == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_what_is_no_file_is_skipped(tmp_path):
    _picture(tmp_path / "a.jpg")
    os.mkfifo(tmp_path / "pipe.jpg")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket.jpg"))
        assert read_source(tmp_path).skipped == [("pipe.jpg", "not a file"), ("socket.jpg", "not a file")]


def test_folders_can_be_nested_deeply(tmp_path):
    folders = ["d/" * depth for depth in range(1, 1_501)]  # more than Python's functions can be
    for folder in folders:
        (tmp_path / folder).mkdir()
    (tmp_path / folders[-1] / "a.jpg").touch()
    try:
        assert picture_names(tmp_path) == ([folders[-1] + "a.jpg"], [])
    finally:  # pytest cannot remove them
        (tmp_path / folders[-1] / "a.jpg").unlink()
        for folder in reversed(folders):
            (tmp_path / folder).rmdir()


_STRANGE = ["a\rb", "a\nb", 'a"b', "a,b", "a;b", " a ", "'a'", "a\tb", "a\u2028b", "#a", "[a]", "a\\b", "%s", "=1+1"]


@pytest.mark.parametrize("how", ["pictures", "csv", "jsonl"])
def test_names_with_strange_characters_are_listed(tmp_path, how):
    names = [f"x{name}.jpg" for name in _STRANGE]
    for name in names:
        _picture(tmp_path / name)
    if how == "csv":
        (tmp_path / "metadata.csv").write_bytes(csv_text([("file_name",), *((name,) for name in names)]).encode())
    elif how == "jsonl":
        (tmp_path / "metadata.jsonl").write_text("\n".join(json.dumps({"file_name": name}) for name in names))
    source = read_source(tmp_path)
    assert sorted(_column(source, "file_name")) == sorted(names)
    assert source.skipped == []


@pytest.mark.parametrize("option", ["label_column", "tags_column", "split_column"])
def test_without_metadata_there_are_no_columns_to_name(folder, option):
    with pytest.raises(ValueError, match="no metadata file that could have a column 'group'"):
        read_source(folder, **{option: "group"})


def test_a_folder_without_pictures_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no row that can be used"):
        read_source(tmp_path)
