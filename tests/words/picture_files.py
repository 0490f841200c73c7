"""Picture files for tests."""

import io
import struct
import zlib

import numpy as np
from PIL import Image

ORIENTATION = 0x0112


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
