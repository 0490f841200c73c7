"""Pictures that are whole."""

import io
import struct

import numpy as np
import pytest
from PIL import Image

from pictopic.words import pixels
from pictopic.words.pictures import PictureError, gray, open_picture, open_with_size, rgb
from tests.support.pictures import halves, oriented, photo_of, png, saved

# What is whole is read right.


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF"])
def test_lossless_formats_give_the_pixels(kind):
    photo = photo_of()
    assert np.array_equal(rgb(open_picture(saved(photo, kind))), np.asarray(photo))


def test_lossless_webp_gives_the_pixels():
    photo = photo_of()
    assert np.array_equal(rgb(open_picture(saved(photo, "WEBP", lossless=True))), np.asarray(photo))


@pytest.mark.parametrize("options", [{}, {"subsampling": 0}, {"progressive": True}, {"quality": 30}])
def test_jpeg_has_the_colours_pillow_gives(options):
    data = saved(photo_of(), "JPEG", **options)
    difference = rgb(open_picture(data)).astype(int) - np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))
    assert np.abs(difference).max() <= 2


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "BMP", "TIFF"])
def test_a_file_with_a_wrong_extension_is_read(tmp_path, kind):
    path = tmp_path / ("picture.png" if kind == "JPEG" else "picture.jpg")
    path.write_bytes(saved(Image.new("L", (5, 3), 9), kind))
    assert open_picture(path).size == (5, 3)


@pytest.mark.parametrize("as_source", [str, lambda path: path, lambda path: path.read_bytes(), Image.open])
def test_path_string_bytes_and_image_give_the_same(tmp_path, as_source):
    photo = photo_of()
    photo.save(tmp_path / "photo.png")
    assert np.array_equal(rgb(open_picture(as_source(tmp_path / "photo.png"))), np.asarray(photo))


@pytest.mark.parametrize("shape", [(4, 6), (4, 6, 1)])
def test_gray_arrays_are_gray_pictures(shape):
    pixels = np.arange(24, dtype=np.uint8).reshape(shape)
    assert np.array_equal(gray(open_picture(pixels)), pixels.reshape(4, 6))


def test_16_bit_arrays_are_divided_by_257():
    pixels = np.array([[0, 257, 65535, 128, 129]], np.uint16)
    assert gray(open_picture(pixels)).tolist() == [[0, 1, 255, 0, 1]]


def test_rgba_array_is_put_on_white():
    pixels = np.array([[[255, 0, 0, 255], [255, 0, 0, 0], [0, 0, 0, 128]]], np.uint8)
    assert rgb(open_picture(pixels)).tolist() == [[[255, 0, 0], [255, 255, 255], [127, 127, 127]]]


@pytest.mark.parametrize("pixels", [np.zeros((4, 4)), np.zeros((4, 4), bool), np.zeros((4, 4), np.int64)])
def test_arrays_of_other_types_are_refused(pixels):
    with pytest.raises(PictureError, match="give uint8"):
        open_picture(pixels)


@pytest.mark.parametrize("shape", [(4,), (4, 4, 2), (0, 4), (4, 4, 3, 1), ()])
def test_arrays_of_other_shapes_are_refused(shape):
    with pytest.raises(PictureError, match=r"give \(height, width\)"):
        open_picture(np.zeros(shape, np.uint8))


def test_the_source_image_is_left_as_it_was():
    photo = photo_of()
    open_picture(photo).paste(0, (0, 0, 10, 10))
    assert np.array_equal(np.asarray(photo), np.asarray(photo_of()))


def test_something_else_is_no_picture():
    with pytest.raises(PictureError, match="a list is no picture"):
        open_picture([1, 2])


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP", "TIFF"])
def test_exif_orientation_is_applied(orientation, kind):
    upright = Image.fromarray(np.kron(np.array([[10, 90, 170], [50, 130, 210]], np.uint8), np.ones((16, 16), np.uint8)))
    # As a camera held in another way stores the scene: the inverse of what a viewer has to do.
    inverse = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}
    stored = upright.transpose(Image.Transpose(inverse[orientation])) if orientation > 1 else upright
    options = {"lossless": True} if kind == "WEBP" else {}
    data = saved(stored, kind, exif=oriented(orientation), **options)
    found = gray(open_picture(data))
    assert found.shape == (32, 48)
    assert np.abs(found.astype(int) - np.asarray(upright)).max() <= 2
    assert open_with_size(data, max_side=12)[1] == (48, 32)


def test_broken_exif_does_not_hide_a_whole_picture():
    data = saved(photo_of(), "JPEG", exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff broken")
    assert open_picture(data).size == open_with_size(data, max_side=12)[1] == (64, 48)


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        (halves((0, 0, 0, 255), (0, 0, 0, 0), "RGBA"), [0, 255]),
        (halves((0, 255), (0, 0), "LA"), [0, 255]),
        (halves((200, 255), (200, 51), "LA"), [200, 244]),
    ],
)
def test_transparency_is_white(image, expected):
    found = gray(open_picture(saved(image, "PNG")))
    assert [found[0, 0], found[0, -1]] == expected


@pytest.mark.parametrize("kind", ["PNG", "GIF"])
def test_palette_transparency_is_white(kind):
    image = halves(1, 2, "P")
    image.putpalette([0, 0, 0, 255, 0, 0, 0, 0, 255])
    found = rgb(open_picture(saved(image, kind, transparency=2)))
    assert found[0, 0].tolist() == [255, 0, 0]
    assert found[0, -1].tolist() == [255, 255, 255]


def test_transparent_colour_of_a_gray_png_is_white():
    found = gray(open_picture(saved(halves(9, 77, "L"), "PNG", transparency=77)))
    assert [found[0, 0], found[0, -1]] == [9, 255]


def test_transparent_value_of_a_16_bit_png_is_white():
    data = png(2, 1, 16, 0, struct.pack(">BHH", 0, 257, 5000), (b"tRNS", struct.pack(">H", 5000)))
    assert gray(open_picture(data)).tolist() == [[1, 255]]


def test_palette_colours_are_read():
    image = halves(1, 2, "P")
    image.putpalette([0, 0, 0, 255, 0, 0, 0, 0, 255])
    found = rgb(open_picture(saved(image, "PNG")))
    assert [found[0, 0].tolist(), found[0, -1].tolist()] == [[255, 0, 0], [0, 0, 255]]


@pytest.mark.parametrize("kind", ["PNG", "TIFF", "BMP", "GIF"])
def test_one_bit_is_black_and_white(kind):
    assert gray(open_picture(saved(halves(0, 1, "1"), kind)))[0].tolist() == [0] * 4 + [255] * 4


@pytest.mark.parametrize("kind", ["JPEG", "TIFF"])
def test_cmyk_colours_are_not_inverted(kind):
    image = halves((0, 255, 255, 0), (0, 0, 0, 0), "CMYK", (32, 16))
    found = rgb(open_picture(saved(image, kind))).astype(int)
    assert np.abs(found[8, 4] - [255, 0, 0]).max() <= 3
    assert np.abs(found[8, 28] - 255).max() <= 3


@pytest.mark.parametrize("kind", ["PNG", "TIFF"])
def test_16_bits_are_scaled_not_clipped(kind):
    image = Image.fromarray(np.array([[0, 257 * 100, 65535]], np.uint16))
    assert gray(open_picture(saved(image, kind))).tolist() == [[0, 100, 255]]


def test_big_endian_16_bit_tiff_is_scaled():
    image = Image.frombytes("I;16B", (3, 1), np.array([0, 25700, 65535], ">u2").tobytes())
    assert gray(open_picture(saved(image, "TIFF"))).tolist() == [[0, 100, 255]]


def test_16_bit_tiff_whose_zero_is_white_is_inverted():
    image = Image.fromarray(np.array([[0, 25700, 65535]], np.uint16))
    assert gray(open_picture(saved(image, "TIFF", tiffinfo={262: 0}))).tolist() == [[255, 155, 0]]


def test_12_bits_are_scaled():
    tags = [(256, 2), (257, 1), (258, 12), (259, 1), (262, 1), (273, 8), (277, 1), (278, 1), (279, 3)]
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    pixels = bytes([0xFF, 0xF6, 0x42])  # 4095 and 1602
    data = b"II*\0" + struct.pack("<I", 12) + pixels + b"\0" + struct.pack("<H", len(tags)) + entries + bytes(4)
    assert gray(open_picture(data)).tolist() == [[255, 100]]


def test_16_bit_colours_are_scaled():
    data = png(1, 1, 16, 2, struct.pack(">BHHH", 0, 0, 0x6464, 0xFFFF))
    assert rgb(open_picture(data)).tolist() == [[[0, 100, 255]]]


@pytest.mark.parametrize("mode", ["RGBA", "LA", "P", "I;16", "F"])
@pytest.mark.parametrize("n_pixels", [1, 100])
def test_converting_in_strips_is_converting_at_once(mode, n_pixels, rng, monkeypatch):
    values = rng.randint(256, size=(31, 17, 4), dtype=np.uint8)
    if mode in ("I;16", "F"):
        image = Image.fromarray(values[..., 0].astype(np.uint16 if mode == "I;16" else np.float32) * 257)
    elif mode == "P":
        image = Image.fromarray(values[..., :3]).quantize(16)
        image.info["transparency"] = bytes(range(0, 256, 16))
    else:
        image = Image.fromarray(values).convert(mode)
    at_once = open_picture(image)
    monkeypatch.setattr(pixels, "_STRIP", n_pixels)
    in_strips = open_picture(image)
    assert in_strips.mode == at_once.mode
    np.testing.assert_array_equal(np.asarray(in_strips), np.asarray(at_once))


def test_32_bit_integers_are_stretched():
    image = Image.fromarray(np.array([[-1000, 0, 1000]], np.int32))
    assert gray(open_picture(saved(image, "TIFF"))).tolist() == [[0, 128, 255]]


def test_floats_are_stretched_by_their_range():
    image = Image.fromarray(np.array([[-1.0, 0.5, 2.0]], np.float32))
    assert gray(open_picture(saved(image, "TIFF"))).tolist() == [[0, 128, 255]]


def test_floats_that_are_no_numbers_are_black():
    image = Image.fromarray(np.array([[np.nan, 0.0, np.inf, 1.0]], np.float32))
    assert gray(open_picture(saved(image, "TIFF"))).tolist() == [[0, 0, 0, 255]]


@pytest.mark.parametrize("values", [np.full((2, 3), 7.5, np.float32), np.full((2, 3), np.nan, np.float32)])
def test_constant_floats_are_black(values):
    assert not gray(open_picture(Image.fromarray(values))).any()


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG", "TIFF"])
def test_of_an_animation_the_first_frame_is_read(kind):
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue", "green")]
    options = {"lossless": True} if kind == "WEBP" else {}
    data = saved(frames[0], kind, save_all=True, append_images=frames[1:], **options)
    assert rgb(open_picture(data))[3, 3].tolist() == [255, 0, 0]


def test_of_a_stereo_jpeg_the_first_picture_is_read():
    data = saved(photo_of(), "MPO", save_all=True, append_images=[Image.new("RGB", (64, 48))])
    assert np.abs(rgb(open_picture(data)).astype(int) - np.asarray(photo_of())).mean() < 8


def test_one_pixel_is_a_picture():
    assert gray(open_picture(saved(Image.new("L", (1, 1), 7), "PNG"), max_side=480)).tolist() == [[7]]


def test_gray_pictures_stay_gray():
    assert [open_picture(saved(Image.new("L", (9, 9)), kind)).mode for kind in ("JPEG", "PNG", "TIFF")] == ["L"] * 3


# Scaling, and gray without colours.


@pytest.mark.parametrize("max_side", [None, 300, 97, 40, 1])
@pytest.mark.parametrize("options", [{}, {"subsampling": 0}, {"progressive": True}, {"keep_rgb": True}])
def test_gray_of_a_jpeg_is_the_same_with_and_without_colours(max_side, options):
    data = saved(photo_of(397, 263), "JPEG", **options)
    with_colours = gray(open_picture(data, max_side=max_side))
    assert np.array_equal(gray(open_picture(data, colour=False, max_side=max_side)), with_colours)


@pytest.mark.parametrize("orientation", [3, 6])
def test_gray_of_a_turned_jpeg_is_the_same_with_and_without_colours(orientation):
    data = saved(photo_of(397, 263), "JPEG", exif=oriented(orientation))
    with_colours = gray(open_picture(data, max_side=50))
    assert np.array_equal(gray(open_picture(data, colour=False, max_side=50)), with_colours)


@pytest.mark.parametrize("kind", ["PNG", "WEBP", "GIF", "TIFF"])
@pytest.mark.parametrize("max_side", [None, 50])
def test_gray_of_other_formats_is_the_same_with_and_without_colours(kind, max_side):
    data = saved(photo_of(130, 90), kind)
    with_colours = gray(open_picture(data, max_side=max_side))
    assert np.array_equal(gray(open_picture(data, colour=False, max_side=max_side)), with_colours)


def test_gray_of_a_cmyk_jpeg_is_the_same_with_and_without_colours():
    data = saved(photo_of(130, 90).convert("CMYK"), "JPEG")
    assert np.array_equal(gray(open_picture(data, colour=False)), gray(open_picture(data)))


def test_gray_of_a_jpeg_is_its_luma():
    data = saved(photo_of(), "JPEG")
    luma = Image.open(io.BytesIO(data))
    luma.draft("L", None)
    assert np.array_equal(gray(open_picture(data)), np.asarray(luma))


@pytest.mark.parametrize("colour", [True, False])
def test_without_colours_the_mode_is_gray(colour):
    assert (open_picture(saved(photo_of(), "PNG"), colour=colour).mode == "L") is not colour


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
@pytest.mark.parametrize(
    ("size", "expected"),
    [
        ((1000, 750), (100, 75)),
        ((750, 1000), (75, 100)),
        ((1001, 3), (100, 1)),
        ((1, 999), (1, 100)),
        ((101, 101), (100, 100)),
    ],
)
def test_longest_side_is_exactly_max_side(kind, size, expected):
    assert open_picture(saved(Image.new("RGB", size), kind), max_side=100).size == expected


@pytest.mark.parametrize("kind", ["JPEG", "PNG"])
def test_small_pictures_are_not_enlarged(kind):
    assert open_picture(saved(photo_of(), kind), max_side=64).size == (64, 48)


def test_scaling_while_decoding_is_close_to_scaling_afterwards():
    data = saved(photo_of(1603, 1201), "JPEG", quality=95)
    whole = Image.open(io.BytesIO(data)).convert("RGB").resize((160, 120), Image.Resampling.BICUBIC)
    difference = np.abs(rgb(open_picture(data, max_side=160)).astype(int) - np.asarray(whole))
    assert difference.mean() < 1
    assert difference.max() < 12


def test_scaling_does_not_alias():
    stripes = np.tile(np.array([0, 255], np.uint8), (400, 200))
    found = gray(open_picture(saved(Image.fromarray(stripes), "PNG"), max_side=100))
    assert np.abs(found.astype(int) - 127)[:, 5:-5].max() <= 1


def test_max_side_must_be_positive():
    with pytest.raises(ValueError, match="max_side must be at least 1"):
        open_picture(np.zeros((3, 3), np.uint8), max_side=0)
