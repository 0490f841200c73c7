import base64
import io

import numpy as np
import pytest
from PIL import Image

from pictopic.demo.report.pictures import thumbnail, word_picture
from pictopic.words.codebook import Patch


def opened(uri):
    kind, _, content = uri.partition(",")
    assert kind == "data:image/jpeg;base64"
    return Image.open(io.BytesIO(base64.b64decode(content)))


def test_thumbnail_is_small_and_keeps_the_shape(photo):
    picture = thumbnail(np.repeat(np.repeat(photo, 4, axis=0), 4, axis=1), "a photo")
    assert opened(picture.uri).size == (160, 120)
    assert picture.alt == "a photo"


def test_picture_that_cannot_be_read_is_grey_and_says_why(tmp_path):
    (tmp_path / "bad.jpg").write_text("no picture")
    picture = thumbnail(tmp_path / "bad.jpg", "coast")
    assert opened(picture.uri).getpixel((5, 5)) == pytest.approx((128, 128, 128), abs=2)
    assert picture.alt.startswith("coast (")


def test_word_is_shown_by_its_patches(tmp_path):
    pixels = np.zeros((64, 64, 3), np.uint8)
    pixels[16:32, 32:48] = (250, 20, 20)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    patches = [Patch("a.png", 40.0, 24.0, 4.0), Patch("a.png", 8.0, 8.0, 4.0), Patch("gone.png", 8.0, 8.0, 4.0)]
    page = opened(word_picture(patches, {"a.png": tmp_path / "a.png"}, None, "a word").uri)
    first, second, third = (page.getpixel((19 + 40 * k, 19)) for k in range(3))
    assert first[0] > 200
    assert max(second) < 40
    assert third == pytest.approx((128, 128, 128), abs=12)
