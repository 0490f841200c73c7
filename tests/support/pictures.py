"""Pictures for tests: as pixels, as Pillow images, and as files that are whole, odd or hostile."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
from PIL import Image

ORIENTATION = 0x0112  # EXIF's tag


def made_photo(height: int, width: int, seed: int = 0) -> np.ndarray:
    """Pixels with what photographs have: soft shading, edges, texture and flat parts."""
    rng = np.random.RandomState(seed)
    y, x = np.mgrid[:height, :width]
    picture = np.stack([60 + 90 * y / height, 80 + 60 * x / width, 120 - 50 * y / height], axis=2)
    for _ in range(12):
        centre, radius = rng.uniform(0, 1, 2) * (height, width), rng.uniform(0.05, 0.3) * min(height, width)
        inside = (y - centre[0]) ** 2 + (x - centre[1]) ** 2 < radius**2
        wave = 25 * np.sin(x * rng.uniform(0.1, 1.2) + y * rng.uniform(0.1, 1.2))
        picture[inside] = rng.uniform(0, 255, 3) + (wave[inside, None] if rng.uniform() < 0.6 else 0)
    picture += rng.normal(0, 3, (height, width, 1)) * (x[..., None] > width // 3)
    return np.clip(picture, 0, 255).astype(np.uint8)


def synthetic_picture(height: int = 128, width: int = 128) -> np.ndarray:
    """A picture of whole numbers, the same on every machine, for golden values.

    A slow change of colour, a dark disc, slanted stripes and a corner full of small squares.
    """
    y, x = np.mgrid[:height, :width]
    red = x * 255 // width
    green = y * 255 // height
    blue = 60 + 40 * ((x + 2 * y) // 9 % 4)
    picture = np.stack([red, green, blue], axis=2)
    disc = (4 * x - width) ** 2 + (4 * y - height) ** 2 < (min(height, width)) ** 2 // 2
    picture[disc] //= 4
    corner = (2 * x > width) & (2 * y > height)
    picture[corner] = (picture + 120 * ((x // 3 + y // 3) % 2)[:, :, None])[corner] % 256
    return picture.astype(np.uint8)


def photo_of(width=64, height=48, seed=0):
    """Smooth colours with some noise: what a JPEG is made for."""
    rng = np.random.default_rng(seed)
    coarse = Image.fromarray(rng.integers(0, 256, (4, 5, 3), dtype=np.uint8))
    smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC)).astype(int)
    return Image.fromarray(np.clip(smooth + rng.integers(-8, 9, smooth.shape), 0, 255).astype(np.uint8))


def saved(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def oriented(number):
    exif = Image.Exif()
    exif[ORIENTATION] = number
    return exif


def halves(left, right, mode="RGB", size=(8, 4)):
    image = Image.new(mode, size, right)
    image.paste(left, (0, 0, size[0] // 2, size[1]))
    return image


def progressive(n_more_scans):
    """A JPEG whose last scan comes again and again."""
    content = saved(Image.new("L", (640, 480)), "JPEG", progressive=True)
    start, end = content.rindex(b"\xff\xda"), content.rindex(b"\xff\xd9")
    return content[:end] + content[start:end] * n_more_scans + content[end:]


def png(width, height, bits, colours, rows, *more):
    """A PNG by hand, for what Pillow does not write."""
    header = struct.pack(">IIBBBBB", width, height, bits, colours, 0, 0, 0)
    chunks = [(b"IHDR", header), *more, (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    parts = [struct.pack(">I", len(d)) + name + d + struct.pack(">I", zlib.crc32(name + d)) for name, d in chunks]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def png_header(width, height):
    return png(width, height, 8, 2, bytes(99))
