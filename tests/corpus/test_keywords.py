"""Keywords in pictures and beside them."""

import io
import os
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image, PngImagePlugin

from pictopic.corpus.keywords import keywords, write_sidecar, xmp_keywords

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
