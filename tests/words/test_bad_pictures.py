"""Pictures that are broken, and what is no picture."""

import io
import os
import struct
import sys
import threading
import tracemalloc
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from pictopic.words import pictures
from pictopic.words.pictures import (
    MAX_PIXELS,
    PictureError,
    check_scans,
    gray,
    open_picture,
    open_with_size,
    picture_header,
    rgb,
)
from tests.support.pictures import photo_of, png_header, progressive, saved


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "empty file"),
        (b"just some text, and rather a lot of it", "not a picture"),
        (b"%PDF-1.7 ...", "not a picture"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n", "not a picture"),
        (b"P6 2 1 255 abcdef", "not a picture"),
        (b"BM too short", "the header of the BMP cannot be read"),
    ],
)
def test_what_is_no_picture_is_refused(tmp_path, content, reason):
    (tmp_path / "a.jpg").write_bytes(content)
    for source in (tmp_path / "a.jpg", content):
        with pytest.raises(PictureError, match=reason):
            open_picture(source)


def test_a_missing_file_is_missing(tmp_path):
    (tmp_path / "file").touch()
    for name in ("nothing.jpg", "file/below.jpg"):
        with pytest.raises(PictureError, match=r"^missing$"):
            open_picture(tmp_path / name)


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(PictureError, match="not a file"):
        open_picture(tmp_path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    with pytest.raises(PictureError, match="not a file"):
        open_picture(tmp_path / "pipe.jpg")


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b.jpg"])
def test_impossible_names_are_refused(name):
    with pytest.raises(PictureError):
        open_picture(name)


_WHOLE = {
    "JPEG": saved(photo_of(), "JPEG"),
    "progressive JPEG": saved(photo_of(), "JPEG", progressive=True),
    "PNG": saved(photo_of(), "PNG"),
    "WEBP": saved(photo_of(), "WEBP"),
    "GIF": saved(photo_of(), "GIF"),
    "BMP": saved(photo_of(), "BMP"),
    "TIFF": saved(photo_of(), "TIFF"),
    "compressed TIFF": saved(photo_of(), "TIFF", compression="tiff_lzw"),
    "16 bits": saved(Image.fromarray(np.arange(600, dtype=np.uint16).reshape(20, 30) * 100), "PNG"),
    "palette": saved(photo_of().convert("P"), "PNG", transparency=3),
    "animation": saved(photo_of(), "GIF", save_all=True, append_images=[photo_of(seed=1)]),
}


@pytest.mark.parametrize("kind", ["JPEG", "progressive JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF", "compressed TIFF"])
def test_truncated_files_are_refused_at_any_length(tmp_path, kind):
    data = _WHOLE[kind]
    for share in np.linspace(0.001, 0.97, 40):
        part = data[: int(len(data) * share)]
        (tmp_path / "part").write_bytes(part)
        for source in (part, tmp_path / "part"):
            with pytest.raises(PictureError) as error:
                open_picture(source)
            assert "\n" not in str(error.value)


def test_the_reason_of_half_a_jpeg_is_truncated():
    for options in ({}, {"colour": False}, {"max_side": 10}):
        with pytest.raises(PictureError, match=r"^truncated$"):
            open_picture(_WHOLE["JPEG"][:-200], **options)


def test_a_bomb_is_refused_from_its_header():
    with pytest.raises(PictureError, match=r"^400 million pixels: above the limit of 100 million$"):
        open_picture(png_header(20_000, 20_000))


def test_pillows_own_limit_is_named_where_it_is_lower():
    with pytest.raises(PictureError, match=r"^400 million pixels: above the limit of 179 million$"):
        open_picture(png_header(20_000, 20_000), max_pixels=10**9)


def test_above_max_pixels_is_refused_below_pillows_limit():
    with pytest.raises(PictureError, match=r"^121 million pixels: above the limit of 100 million$"):
        open_picture(png_header(11_000, 11_000))


@pytest.mark.parametrize("source", [_WHOLE["WEBP"], photo_of(), np.asarray(photo_of())])
def test_max_pixels_holds_for_all_sources(source):
    assert open_picture(source, max_pixels=64 * 48).size == (64, 48)
    with pytest.raises(PictureError, match="above the limit"):
        open_picture(source, max_pixels=64 * 48 - 1)


def test_pillows_settings_stay_as_they_are():
    before = Image.MAX_IMAGE_PIXELS
    open_picture(photo_of(), max_pixels=10 * MAX_PIXELS)
    assert before == Image.MAX_IMAGE_PIXELS


def test_warnings_of_pillow_do_not_leak():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with picture_header(png_header(9_700, 9_700)):
            pass  # Pillow warns of what is above half of its limit ...
        for place in range(8, 130):  # ... and of damaged tags
            assert _is_picture_or_reason(_WHOLE["TIFF"][:place] + b"\xff" + _WHOLE["TIFF"][place + 1 :])
    assert not caught


def test_threads_leave_the_warning_filters_as_they_were():
    before = list(warnings.filters)
    threads = [threading.Thread(target=lambda: [open_picture(_WHOLE["PNG"]) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert warnings.filters == before


def test_heic_without_its_library_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pillow_heif", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(PictureError, match="install pillow-heif"):
        open_picture(b"\0\0\0\x18ftypheic\0\0\0\0mif1heic")


def test_a_real_heic_is_read():
    heif = pytest.importorskip("pillow_heif")
    buffer = io.BytesIO()
    heif.from_pillow(Image.new("RGB", (64, 48), (200, 30, 40))).save(buffer, quality=90)
    found = rgb(open_picture(buffer.getvalue()))
    assert found.shape == (48, 64, 3)
    np.testing.assert_allclose(found.mean(axis=(0, 1)), [200, 30, 40], atol=6)


@pytest.mark.parametrize("kind", sorted(_WHOLE))
def test_the_size_before_scaling_is_that_of_the_whole_picture(kind):
    assert open_with_size(_WHOLE[kind], max_side=7)[1] == open_picture(_WHOLE[kind]).size


def test_a_header_is_read_without_decoding():
    with picture_header(png_header(11_000, 11_000)) as image:
        assert image.size == (11_000, 11_000)


def _is_picture_or_reason(data, **options):
    try:
        image = open_picture(data, max_pixels=1_000_000, **options)
    except PictureError as reason:
        return bool(str(reason))
    return gray(image).dtype == np.uint8 and rgb(image).shape == (*gray(image).shape, 3)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([b"", b"\xff\xd8\xff", b"\x89PNG\r\n\x1a\n", b"GIF89a", b"BM", b"II*\0", b"MM\0*"]), st.binary())
def test_random_bytes_give_a_picture_or_a_reason(start, rest):
    assert _is_picture_or_reason(start + rest)


@settings(max_examples=600, deadline=None)
@given(
    st.sampled_from(sorted(_WHOLE)),
    st.lists(st.tuples(st.floats(0, 1), st.binary(min_size=1, max_size=6)), max_size=5),
    st.floats(0, 1),
    st.booleans(),
    st.sampled_from([None, 20]),
)
def test_damaged_pictures_give_a_picture_or_a_reason(kind, damages, cut, colour, max_side):
    data = bytearray(_WHOLE[kind])
    for place, content in damages:
        start = int(place**3 * len(data))  # headers are where it hurts
        data[start : start + len(content)] = content
    assert _is_picture_or_reason(bytes(data[: int((1 - cut**4) * len(data))]), colour=colour, max_side=max_side)


@pytest.mark.parametrize("beginning", [b"\xff\xd8\xff\xe0", b"\xff\xd8\xff\xdb\0\2"])
def test_a_header_without_an_end_is_given_up(tmp_path, beginning):
    path = tmp_path / "endless.jpg"
    path.write_bytes(beginning)
    os.truncate(path, 16 << 30)  # takes no place on the disk
    with pytest.raises(PictureError, match=r"its header has no end|not a picture|truncated"):
        open_picture(path)


_PNG = saved(Image.new("L", (8, 8)), "PNG")
_HUGE_CHUNK = struct.pack(">I", 2**31 - 1)


@pytest.mark.parametrize(
    "beginning",
    [
        b"RIFF\xf0\xff\xff\x7fWEBPVP8 \0\xff\xff\x7f",
        _PNG[:33] + _HUGE_CHUNK + b"iCCPx\0\0",
        _PNG[:33] + _HUGE_CHUNK + b"eXIf",
        _PNG[:-12] + _HUGE_CHUNK + b"eXIf",  # after the pixels
        b"II*\0\x08\0\0\0\x01\0" + struct.pack("<HHII", 700, 1, 2**31, 200) + bytes(4),
    ],
    ids=["webp", "profile", "exif", "exif at the end", "tiff"],
)
def test_gigabytes_that_are_no_pixels_are_not_read(tmp_path, monkeypatch, beginning):
    monkeypatch.setattr(pictures, "_MAX_HEADER", 1 << 20)
    monkeypatch.setattr(pictures._BoundedReads, "_n_bytes_left", 1 << 20)
    path = tmp_path / "hole.png"
    path.write_bytes(beginning)
    os.truncate(path, 3 << 30)  # takes no place on the disk
    tracemalloc.start()
    try:
        with pytest.raises(PictureError, match=r"^more than 1 MB of it are not pixels$"):
            open_picture(path)
        assert tracemalloc.get_traced_memory()[1] < 10 << 20
    finally:
        tracemalloc.stop()


def test_a_large_picture_is_read_though_its_header_must_be_small(tmp_path, monkeypatch):
    monkeypatch.setattr(pictures, "_MAX_HEADER", 1 << 12)
    monkeypatch.setattr(pictures._BoundedReads, "_n_bytes_left", 1 << 12)
    pixels = np.random.RandomState(0).randint(0, 256, (300, 300, 4), np.uint8)
    for kind in ("PNG", "BMP", "TIFF"):
        assert open_picture(saved(Image.fromarray(pixels), kind)).size == (300, 300)


def test_a_jpeg_of_too_many_scans_is_refused_before_it_is_decoded(tmp_path):
    (tmp_path / "scans.jpg").write_bytes(progressive(100))
    for source in (tmp_path / "scans.jpg", progressive(100)):
        with pytest.raises(PictureError, match="more than 50 scans"):
            open_picture(source)


@pytest.mark.parametrize(
    "content",
    [progressive(0), progressive(20), progressive(0) + b"\xff\xda\0\2" * 1000, saved(photo_of(), "JPEG")],
    ids=["progressive", "more scans", "a video at its end", "baseline"],
)
def test_jpegs_of_a_usual_number_of_scans_are_read(content):
    assert np.asarray(open_picture(content)).shape == np.asarray(Image.open(io.BytesIO(content))).shape


@pytest.mark.parametrize(
    "end", [b"", b"\xff", b"\xff\xe1", b"\xff\xe1\0", b"\xff\xe1\0\0", b"\xff\xe1\xff\xff", b"\xff" * 1_000_000 + b"\0"]
)
def test_scans_are_counted_to_any_end(end):
    check_scans(saved(photo_of(), "JPEG")[:-2] + end)
    check_scans(end)
