"""Folders of pictures without metadata, and the keywords in the pictures."""

import io
import json
import os
import socket
import struct
import tempfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from pictopic.corpus.sources import read_source
from pictopic.corpus.sources.picture_folder import keywords, picture_names, write_sidecar, xmp_keywords
from pictopic.files import csv_text
from tests.corpus.sources.conftest import column, save_picture, write_csv, xmp_packet


def test_classes_are_the_names_of_the_folders(tmp_path):
    for name in ("sea/b.jpg", "sea/a.PNG", "forest/deep/c.tiff", "top.jpg", ".hidden/x.jpg", "sea/.y.jpg"):
        save_picture(tmp_path / name)
    (tmp_path / "sea" / "notes.txt").touch()
    source = read_source(tmp_path)
    assert column(source, "file_name") == ["forest/deep/c.tiff", "sea/a.PNG", "sea/b.jpg", "top.jpg"]
    assert column(source, "labels") == [["deep"], ["sea"], ["sea"], None]
    assert (source.multi_label, source.pictures) == (False, True)


def test_splits_are_folders_of_the_first_level(tmp_path):
    for name in ("train/sea/a.jpg", "train/sky/b.jpg", "validation/sea/c.jpg"):
        save_picture(tmp_path / name)
    source = read_source(tmp_path)
    assert column(source, "split") == ["train", "train", "validation"]
    assert column(source, "labels") == [["sea"], ["sky"], ["sea"]]


def test_trains_among_other_classes_are_no_split(tmp_path):
    for name in ("train/a.jpg", "bus/b.jpg"):
        save_picture(tmp_path / name)
    source = read_source(tmp_path)
    assert column(source, "labels") == [["bus"], ["train"]]
    assert column(source, "split") == [None, None]


@pytest.mark.parametrize("names", [["a.jpg", "b.jpg"], ["images/a.jpg", "images/b.jpg"], ["train/a.jpg", "test/b.jpg"]])
def test_less_than_two_classes_are_none(tmp_path, names):
    for name in names:
        save_picture(tmp_path / name)
    assert column(read_source(tmp_path), "labels") == [None, None]


def test_keywords_in_the_pictures_are_tags(tmp_path):
    save_picture(tmp_path / "a.jpg", xmp=xmp_packet("Night  Sky"))
    save_picture(tmp_path / "b.jpg")
    (tmp_path / "b.xmp").write_bytes(xmp_packet("Sea"))
    assert column(read_source(tmp_path), "tags") == [["night sky"], ["sea"]]
    assert column(read_source(tmp_path, tags_column=None), "tags") == [[], []]


def test_broken_pictures_are_listed_all_the_same(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"broken")
    assert column(read_source(tmp_path), "file_name") == ["a.jpg"]


def test_links_that_lead_out_are_skipped(tmp_path):
    save_picture(tmp_path / "in" / "a.jpg")
    save_picture(tmp_path / "out" / "b.jpg")
    (tmp_path / "in" / "b.jpg").symlink_to(tmp_path / "out" / "b.jpg")
    (tmp_path / "in" / "more").symlink_to(tmp_path / "out")
    assert sorted(read_source(tmp_path / "in").skipped) == [
        ("b.jpg", "outside the folder"), ("more", "a link to a folder: not followed"),
    ]  # fmt: skip


def test_a_name_that_is_not_utf8_is_skipped(tmp_path):
    save_picture(tmp_path / "a.jpg")
    try:
        open(os.fsencode(tmp_path) + b"/caf\xe9.jpg", "wb").close()
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    assert read_source(tmp_path).skipped == [("caf\\udce9.jpg", "its name is not UTF-8")]


@pytest.mark.parametrize("name", ["loop", "loop.jpg"])
def test_a_link_to_itself_is_skipped(tmp_path, name):
    save_picture(tmp_path / "a.jpg")
    (tmp_path / name).symlink_to(name)
    source = read_source(tmp_path)
    assert column(source, "file_name") == ["a.jpg"]
    assert source.skipped == [(name, "cannot be opened: Too many levels of symbolic links")]


def test_a_link_to_nothing_is_skipped(tmp_path):
    save_picture(tmp_path / "a.jpg")
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
    save_picture(open_folder / "sub" / "a.jpg")
    save_picture(open_folder / "b.jpg")
    if metadata:
        write_csv(open_folder, "file_name,tags", "b.jpg,sea")
    os.chmod(open_folder / "sub", mode)
    with _without_privileges():
        source = read_source(open_folder)
    os.chmod(open_folder / "sub", 0o700)
    assert column(source, "file_name") == ["b.jpg"]
    expected = {0o000: "sub", 0o444: "sub/a.jpg", 0o311: "sub"}[mode]
    assert source.skipped == ([] if metadata else [(expected, "cannot be opened: Permission denied")])


@pytest.mark.skipif(not hasattr(os, "seteuid"), reason="needs permissions")
def test_a_picture_without_permission_is_listed_and_has_no_keywords(open_folder):
    save_picture(open_folder / "a.jpg", xmp=xmp_packet("Sea"))
    os.chmod(open_folder / "a.jpg", 0)
    with _without_privileges():
        source = read_source(open_folder)
    assert column(source, "tags") == [[]]


def test_a_folder_that_disappears_while_it_is_listed_is_skipped(tmp_path, monkeypatch):
    for name in ("a", "b"):
        save_picture(tmp_path / name / "x.jpg")
    save_picture(tmp_path / "y.jpg")
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
    save_picture(tmp_path / "a.jpg")
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
        save_picture(tmp_path / name)
    if how == "csv":
        (tmp_path / "metadata.csv").write_bytes(csv_text([("file_name",), *((name,) for name in names)]).encode())
    elif how == "jsonl":
        (tmp_path / "metadata.jsonl").write_text("\n".join(json.dumps({"file_name": name}) for name in names))
    source = read_source(tmp_path)
    assert sorted(column(source, "file_name")) == sorted(names)
    assert source.skipped == []


@pytest.mark.parametrize("option", ["label_column", "tags_column", "split_column"])
def test_without_metadata_there_are_no_columns_to_name(folder, option):
    with pytest.raises(ValueError, match="no metadata file that could have a column 'group'"):
        read_source(folder, **{option: "group"})


def test_a_folder_without_pictures_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no row that can be used"):
        read_source(tmp_path)


# ---- keywords -------------------------------------------------------------------------------------------------------

_HEAD = '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">'


def _xmp(*words, prefix="dc", container="Bag"):
    items = "".join(f"<rdf:li>{word}</rdf:li>" for word in words)
    return (
        '<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>' + _HEAD + "<rdf:Description>"
        f'<{prefix}:subject xmlns:{prefix}="http://purl.org/dc/elements/1.1/"><rdf:{container}>{items}</rdf:{container}>'
        f"</{prefix}:subject><rdf:li>elsewhere</rdf:li></rdf:Description></rdf:RDF></x:xmpmeta>"
        '<?xpacket end="w"?>'
    ).encode()


def _iptc_block(*words):
    fields = b"".join(b"\x1c\x02\x19" + struct.pack(">H", len(word)) + word for word in words)
    return b"\x1c\x02\x78\x00\x05title" + fields


def _jpeg_with_iptc(path, *words):
    data = _iptc_block(*words)
    resource = b"8BIM\x04\x04\0\0" + struct.pack(">I", len(data)) + data + b"\0" * (len(data) % 2)
    segment = b"Photoshop 3.0\0" + resource
    file = io.BytesIO()
    Image.new("RGB", (8, 8)).save(file, "JPEG")
    jpeg = file.getvalue()
    path.write_bytes(jpeg[:2] + b"\xff\xed" + struct.pack(">H", len(segment) + 2) + segment + jpeg[2:])


@pytest.mark.parametrize("extension", ["jpg", "webp", "tif"])
def test_xmp_in_a_file_is_read(tmp_path, extension):
    path = tmp_path / f"a.{extension}"
    options = {"tiffinfo": {700: _xmp("Sea", "Night sky")}} if extension == "tif" else {"xmp": _xmp("Sea", "Night sky")}
    Image.new("RGB", (8, 8)).save(path, **options)
    assert keywords(path) == ["Sea", "Night sky"]


def test_xmp_in_a_png_is_read(tmp_path):
    info = PngImagePlugin.PngInfo()
    info.add_itxt("XML:com.adobe.xmp", _xmp("Sea", "Möwe").decode())
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png", pnginfo=info)
    assert keywords(tmp_path / "a.png") == ["Sea", "Möwe"]


@pytest.mark.parametrize("container", ["Bag", "Seq", "Alt"])
@pytest.mark.parametrize("prefix", ["dc", "purl"])
def test_any_prefix_and_container_will_do(prefix, container):
    assert xmp_keywords(_xmp("a", "b", prefix=prefix, container=container)) == ["a", "b"]


def test_entities_of_xml_itself_and_padding_are_understood():
    assert xmp_keywords(b"\n" + _xmp("R&amp;B", " &#228; ", "") + b"  \n\0\0") == ["R&B", "ä"]


def test_utf16_packets_are_read():
    packet = _xmp("Sea").decode().replace("\ufeff", "")
    assert xmp_keywords(packet.encode("utf-16")) == ["Sea"]


def test_declared_entities_are_refused():
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    assert xmp_keywords(bomb + _xmp("&b;")) == []
    assert xmp_keywords(b'<!DOCTYPE x SYSTEM "file:///etc/passwd">' + _xmp("a")) == []


def test_keywords_before_a_mistake_are_kept():
    assert xmp_keywords(_xmp("a", "b", "c<oops>")) == ["a", "b"]


@pytest.mark.parametrize("packet", [b"", "", b"no xml", b"\xff\xfe\x00", "<a/>"])
def test_what_is_no_xmp_has_no_keywords(packet):
    assert xmp_keywords(packet) == []


def test_iptc_keywords_of_a_jpeg_are_read(tmp_path):
    _jpeg_with_iptc(tmp_path / "a.jpg", b"Sea", "Möwe".encode(), "Café".encode("cp1252"))
    assert keywords(tmp_path / "a.jpg") == ["Sea", "Möwe", "Café"]


def test_a_single_iptc_keyword_is_read(tmp_path):
    _jpeg_with_iptc(tmp_path / "a.jpg", b"Sea")
    assert keywords(tmp_path / "a.jpg") == ["Sea"]


def test_iptc_keywords_of_a_tiff_are_read(tmp_path):
    Image.new("RGB", (8, 8)).save(tmp_path / "a.tif", tiffinfo={33723: _iptc_block(b"Sea", b"Sky")})
    assert keywords(tmp_path / "a.tif") == ["Sea", "Sky"]


@pytest.mark.parametrize("name", ["a.xmp", "a.jpg.xmp", "a.XMP"])
def test_sidecars_are_read(tmp_path, name):
    Image.new("RGB", (8, 8)).save(tmp_path / "a.jpg", xmp=_xmp("inside", "both"))
    (tmp_path / name).write_bytes(_xmp("both", "beside"))
    assert keywords(tmp_path / "a.jpg") == ["inside", "both", "beside"]


def test_sidecars_that_are_links_are_not_read(tmp_path):
    (tmp_path / "other").write_bytes(_xmp("secret"))
    (tmp_path / "a.xmp").symlink_to(tmp_path / "other")
    assert keywords(tmp_path / "a.jpg") == []


def test_a_packet_is_read_until_there_are_too_many_keywords():
    assert xmp_keywords(_xmp(*range(180_000))) == [str(k) for k in range(1_001)]


def test_keywords_that_are_repeated_are_one():
    assert xmp_keywords(_xmp(*["sea"] * 5_000, "sky")) == ["sea", "sky"]


def test_of_a_keyword_of_megabytes_only_the_start_is_read():
    (word,) = xmp_keywords(_xmp("x" * 1_000_000))
    assert 200 < len(word) < 10_000


def test_of_many_iptc_keywords_the_first_are_read(tmp_path):
    _jpeg_with_iptc(tmp_path / "a.jpg", *[str(k).encode() for k in range(5_000)])
    assert keywords(tmp_path / "a.jpg") == [str(k) for k in range(1_001)]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_in_place_of_a_sidecar_is_left_alone(tmp_path):
    os.mkfifo(tmp_path / "a.xmp")
    assert keywords(tmp_path / "a.jpg") == []
    with pytest.raises(ValueError, match=r"a\.xmp was written by another program"):
        write_sidecar(tmp_path / "a.jpg", ["sea"])


def test_a_missing_or_broken_picture_has_no_keywords(tmp_path):
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8\xff and no more")
    assert [keywords(path) for path in (tmp_path / "a.jpg", tmp_path / "none.jpg", tmp_path, "/", "a\0.jpg")] == [
        []
    ] * 5


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_damaged_metadata_never_fail(tmp_path_factory, data):
    folder = tmp_path_factory.getbasetemp()
    _jpeg_with_iptc(folder / "damaged.jpg", b"Sea", b"Sky")
    content = np.frombuffer((folder / "damaged.jpg").read_bytes(), np.uint8).copy()
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, 120))] = data.draw(st.integers(0, 255))
    (folder / "damaged.jpg").write_bytes(content.tobytes())
    assert all(isinstance(word, str) for word in keywords(folder / "damaged.jpg"))


@settings(max_examples=100, deadline=None)
@given(st.binary())
def test_random_packets_never_fail(packet):
    assert isinstance(xmp_keywords(packet), list)


@pytest.mark.parametrize("encoding", ["euc-jp", "utf-7", "no-such-encoding"])
def test_a_packet_in_an_encoding_that_cannot_be_read_has_no_keywords(encoding):
    packet = f'<?xml version="1.0" encoding="{encoding}"?><x:xmpmeta xmlns:x="adobe:ns:meta/"/>'
    assert xmp_keywords(packet.encode()) == []


def test_of_a_sidecar_of_megabytes_the_beginning_is_read(tmp_path):
    (tmp_path / "a.xmp").write_bytes(_xmp(*range(300_000)))
    assert (tmp_path / "a.xmp").stat().st_size > 5_000_000
    assert keywords(tmp_path / "a.jpg") == [str(k) for k in range(1_001)]
