"""Pictures from files, bytes or arrays: read right, or refused with a reason a person understands."""

from __future__ import annotations

import errno
import importlib
import importlib.util
import io
import os
import re
import stat
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np

# Imported so that Pillow knows the formats: for an unknown one it would load all of its forty plugins.
from PIL import BmpImagePlugin, GifImagePlugin, Image, JpegImagePlugin, PngImagePlugin, TiffImagePlugin, WebPImagePlugin

from pictopic.words.pixels import FROM_16_BITS, as_plain

MAX_PIXELS = 100_000_000
PICTURE_EXTENSIONS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".tif", ".tiff", ".gif", ".bmp", ".heic", ".heif"})

PictureSource = str | os.PathLike[str] | bytes | Image.Image | np.ndarray

_PLUGINS = (BmpImagePlugin, GifImagePlugin, JpegImagePlugin, PngImagePlugin, TiffImagePlugin, WebPImagePlugin)
_FIRST_BYTES = {
    "JPEG": (b"\xff\xd8\xff",),
    "PNG": (b"\x89PNG\r\n\x1a\n",),
    "GIF": (b"GIF87a", b"GIF89a"),
    "BMP": (b"BM",),
    "TIFF": (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"),
}
_HEIF_BRANDS = (b"heic", b"heix", b"hevc", b"hevx", b"heim", b"heis", b"mif1", b"msf1")

_MAX_READS = 1_000_000  # of a file: a header takes some hundred, pixels one for each 64 KB
_MAX_HEADER = 256 << 20  # bytes; a TIFF can have a program's layers in it, WebP and HEIC are read whole
_MAX_PIXEL_BYTES = 16  # four channels of 32 bits, not compressed
_MAX_SCANS = 50  # of a JPEG: cameras and programs write one to twelve
_MARKER = re.compile(rb"\xff([^\x00\x01\xff\xd0-\xd8])")  # those of a JPEG that have a length, and the end
_ORIENTATION = 0x0112
_TURNS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_270,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_90,
}
_SIDEWAYS = (5, 6, 7, 8)


class PictureError(ValueError):
    """Why a picture cannot be read, in one line: "truncated", "not a picture", "empty file", ..."""


def open_picture(
    source: PictureSource, *, colour: bool = True, max_side: int | None = None, max_pixels: int = MAX_PIXELS
) -> Image.Image:
    """Read a picture: upright, opaque, with 8 bits per channel.

    JPEG, PNG, WebP, TIFF, GIF, BMP and, where pillow-heif is installed, HEIC; the contents decide, not the name.  EXIF
    orientation is applied, transparent parts become white, of an animation the first frame is taken.  16-bit values
    are divided by 257; 32-bit and floating-point ones are stretched from their smallest and largest value to 0..255.
    Colour profiles are not applied.

    Parameters
    ----------
    source : path, bytes, PIL image or numpy array
        Arrays are uint8 or uint16: (height, width) or (height, width, 1, 3 or 4) with grey, RGB or RGBA.
    colour : bool, default=True
        Whether colours are wanted; without them a JPEG is read faster.  `gray` of both is the same.
    max_side : int or None, default=None
        Larger pictures are scaled down so that their longest side has this many pixels; smaller ones stay as they are.
    max_pixels : int, default=100 million
        Refuse pictures with more pixels, before they are decoded.  Pillow itself refuses more than twice its
        ``PIL.Image.MAX_IMAGE_PIXELS`` (together 179 million, unless it was changed).

    Returns
    -------
    PIL.Image.Image
        Of mode "L" for a grey picture or without colour, otherwise "RGB" or, from a JPEG, "YCbCr": `gray` and `rgb`
        take any of them.

    Raises
    ------
    PictureError
        If there is no such file, or it cannot be read as a whole picture.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.pictures import gray, open_picture
    >>> pixels = np.full((30, 40, 3), 200, np.uint8)
    >>> gray(open_picture(pixels, max_side=20)).shape
    (15, 20)
    >>> open_picture(b"GIF89a and no more")
    Traceback (most recent call last):
    pictopic.words.pictures.PictureError: damaged or cut off: the header of the GIF cannot be read
    """
    return open_with_size(source, colour=colour, max_side=max_side, max_pixels=max_pixels)[0]


def open_with_size(
    source: PictureSource, *, colour: bool = True, max_side: int | None = None, max_pixels: int = MAX_PIXELS
) -> tuple[Image.Image, tuple[int, int]]:
    """Read a picture as `open_picture` does; with it, its upright width and height before any scaling.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.pictures import open_with_size
    >>> image, size = open_with_size(np.zeros((30, 40), np.uint8), max_side=20)
    >>> image.size, size
    ((20, 15), (40, 30))
    """
    if max_side is not None and max_side < 1:
        raise ValueError(f"max_side must be at least 1, got {max_side}")
    with picture_header(source, max_pixels) as image:
        original = image.size
        size = _scaled(original, max_side)
        # A picture that the caller opened stays as the caller configured it.
        box = None
        if image is not source:
            _check_file_scans(image)
            box = _decode_less(image, size, colour)
        image.load()
        if box is None:
            original = image.size  # loading a TIFF may have turned it
            size = _scaled(original, max_side)
        orientation = _orientation(image)
        plain = as_plain(image)
        if plain.size != size:
            # Bicubic with antialiasing, as MATLAB's imresize, with which the field's features were made.
            plain = plain.resize(size, Image.Resampling.BICUBIC, box=box, reducing_gap=3.0)
        if not colour:
            plain = plain.convert("L")
        if orientation in _TURNS:
            plain = plain.transpose(_TURNS[orientation])
        upright = original[::-1] if orientation in _SIDEWAYS else original
        return plain.copy() if plain is source else plain, upright


def check_scans(jpeg: bytes) -> None:
    r"""Refuse a progressive JPEG that goes over its pixels again and again, before it is decoded.

    An empty scan of 49 million pixels has 75 bytes and takes 33 ms: a file of 20 MB would keep a thread busy for two
    hours, and a decoder cannot be stopped.

    Examples
    --------
    >>> from pictopic.words.pictures import check_scans
    >>> check_scans(b"\xff\xd8" + b"\xff\xda\x00\x02" * 60)
    Traceback (most recent call last):
    pictopic.words.pictures.PictureError: a JPEG of more than 50 scans
    """
    n_scans, end = 0, 2
    while (marker := _MARKER.search(jpeg, end)) and marker[1] != b"\xd9":
        n_scans += marker[1] == b"\xda"
        if n_scans > _MAX_SCANS:
            raise PictureError(f"a JPEG of more than {_MAX_SCANS} scans")
        # The length counts itself.  One that is shorter ends the decoder, but must not keep us here.
        end = marker.end() + max(2, int.from_bytes(jpeg[marker.end() : marker.end() + 2], "big"))


def _check_file_scans(image: Image.Image) -> None:
    file = image.fp if isinstance(image, JpegImagePlugin.JpegImageFile) else None
    if file is not None:
        position = file.tell()
        file.seek(0)
        check_scans(file.read())
        file.seek(position)


def gray(image: Image.Image) -> np.ndarray:
    """Grey values of a picture.

    Returns
    -------
    array of shape (height, width), uint8

    Examples
    --------
    >>> from PIL import Image
    >>> from pictopic.words.pictures import gray
    >>> gray(Image.new("RGB", (2, 1), "red")).tolist()
    [[76, 76]]
    """
    return np.array(image.getchannel(0) if image.mode == "YCbCr" else image.convert("L"))


def rgb(image: Image.Image) -> np.ndarray:
    """Red, green and blue values of a picture.

    Returns
    -------
    array of shape (height, width, 3), uint8

    Examples
    --------
    >>> from PIL import Image
    >>> from pictopic.words.pictures import rgb
    >>> rgb(Image.new("L", (2, 1), 7)).tolist()
    [[[7, 7, 7], [7, 7, 7]]]
    """
    return np.array(image.convert("RGB"))


@contextmanager
def picture_header(source: PictureSource, max_pixels: int | None = None) -> Iterator[Image.Image]:
    """The picture with only its header read, for its size and its metadata; its file is closed at the end.

    Whatever goes wrong inside the ``with`` statement becomes a `PictureError`, so nothing else should happen there.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.pictures import picture_header
    >>> with picture_header(np.zeros((30, 40), np.uint8)) as image:
    ...     image.info
    {}
    """
    kind = "picture"
    with _no_pillow_warnings:
        try:
            if isinstance(source, Image.Image):
                _check_pixels(source.size, max_pixels)
                yield source
            elif isinstance(source, np.ndarray):
                image = _from_array(source)
                _check_pixels(image.size, max_pixels)
                yield image
            else:
                with _file(source) as file:
                    kind = _kind(file)
                    image = Image.open(file, formats=(kind,))
                    _check_pixels(image.size, max_pixels)
                    file.expect_pixels(image.width * image.height)
                    yield image
        except PictureError:
            raise
        except Image.DecompressionBombError as error:
            raise PictureError(_too_large(error, max_pixels)) from error
        except Exception as error:  # Pillow raises a dozen kinds, and each version others
            raise PictureError(_reason(error, kind)) from error


def _file(source: str | os.PathLike[str] | bytes) -> _BoundedFile | _BoundedBytes:
    if isinstance(source, bytes | bytearray | memoryview):
        if not source:
            raise PictureError("empty file")
        return _BoundedBytes(source)
    if not isinstance(source, str | os.PathLike):
        raise PictureError(f"a {type(source).__name__} is no picture: give a path, bytes, a PIL image or a numpy array")
    try:
        # Without O_NONBLOCK opening a pipe would wait for a writer for ever.
        handle = os.open(source, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except OSError as error:
        missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
        raise PictureError("missing" if missing else f"cannot be opened: {error.strerror}") from error
    about = os.fstat(handle)
    if not stat.S_ISREG(about.st_mode) or not about.st_size:
        os.close(handle)
        raise PictureError("empty file" if stat.S_ISREG(about.st_mode) else "not a file")
    return _BoundedFile(io.FileIO(handle))


class _BoundedReads:
    """Reads of a file, limited in number and in bytes.

    Pillow would read for ever, or into memory without bound, where a JPEG's header is gigabytes of nothing, or where a
    PNG, a TIFF or a WebP claims gigabytes of metadata: a sparse file of that size costs its maker nothing.
    """

    _n_reads = 0
    _n_bytes_left = _MAX_HEADER

    def expect_pixels(self, n_pixels: int) -> None:
        """The header was read: what follows are so many pixels, and perhaps more metadata."""
        self._n_bytes_left = _MAX_HEADER + _MAX_PIXEL_BYTES * n_pixels

    def read(self, size: int | None = -1) -> bytes:
        self._n_reads += 1
        if self._n_reads > _MAX_READS:
            raise PictureError("not a picture: its header has no end")
        most = self._n_bytes_left + 1
        content: bytes = super().read(most if size is None or size < 0 else min(size, most))  # type: ignore[misc]
        self._n_bytes_left -= len(content)
        if self._n_bytes_left < 0:
            raise PictureError(f"more than {_MAX_HEADER >> 20} MB of it are not pixels")
        return content


class _BoundedFile(_BoundedReads, io.BufferedReader):
    pass


class _BoundedBytes(_BoundedReads, io.BytesIO):
    pass


def _kind(file: IO[bytes]) -> str:
    """Pillow's name of the format, from the first bytes; no other format is tried."""
    start = file.read(16)
    file.seek(0)
    for kind, beginnings in _FIRST_BYTES.items():
        if start.startswith(beginnings):
            return kind
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "WEBP"
    if start[4:8] == b"ftyp" and start[8:12] in _HEIF_BRANDS:
        if importlib.util.find_spec("pillow_heif") is None:
            raise PictureError("HEIC: install pillow-heif to read it")
        if "HEIF" not in Image.OPEN:
            importlib.import_module("pillow_heif").register_heif_opener()
        return "HEIF"
    raise PictureError("not a picture")


def _from_array(pixels: np.ndarray) -> Image.Image:
    if pixels.dtype not in (np.uint8, np.uint16):
        raise PictureError(f"an array of {pixels.dtype}: give uint8 (0 to 255) or uint16 (0 to 65535)")
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if not pixels.size or not (pixels.ndim == 2 or (pixels.ndim == 3 and pixels.shape[2] in (3, 4))):
        raise PictureError(f"an array of shape {pixels.shape}: give (height, width) or (height, width, 1, 3 or 4)")
    return Image.fromarray(np.ascontiguousarray(FROM_16_BITS[pixels] if pixels.dtype == np.uint16 else pixels))


def _check_pixels(size: tuple[int, int], max_pixels: int | None) -> None:
    if not size[0] or not size[1]:
        raise PictureError("no pixels")
    if max_pixels is not None and size[0] * size[1] > max_pixels:
        raise PictureError(f"{_millions(size[0] * size[1])} pixels: above the limit of {_millions(max_pixels)}")


def _too_large(error: Image.DecompressionBombError, max_pixels: int | None) -> str:
    """The same reason as from `_check_pixels`, where Pillow's own limit came first."""
    pixels = re.search(r"\((\d+) pixels\)", str(error))
    limit = min(2 * (Image.MAX_IMAGE_PIXELS or 0), max_pixels or sys.maxsize)
    return f"{_millions(int(pixels[1])) if pixels else 'too many'} pixels: above the limit of {_millions(limit)}"


def _millions(number: int) -> str:
    return f"{number / 1e6:,.1f}".removesuffix(".0") + " million" if number >= 1e6 else f"{number:,}"


def _reason(error: Exception, kind: str) -> str:
    text = " ".join(str(error).split())
    if isinstance(error, MemoryError):
        return "not enough memory to decode it"
    if isinstance(error, Image.UnidentifiedImageError):
        return f"damaged or cut off: the header of the {kind} cannot be read"
    if "truncated" in text.lower():
        return "truncated"
    return f"damaged {kind}: {text[:120]}" if text else f"damaged {kind}"


def _scaled(size: tuple[int, int], max_side: int | None) -> tuple[int, int]:
    longest = max(size)
    if max_side is None or longest <= max_side:
        return size
    width, height = (max(1, round(side * max_side / longest)) for side in size)
    return width, height


def _decode_less(image: Image.Image, size: tuple[int, int], colour: bool) -> tuple[float, float, float, float] | None:
    """Let the JPEG decoder do part of the work: no colours if none are wanted, and at least twice the wanted size.

    Returns the part of the decoded picture that is picture, for `resize`.
    """
    if not isinstance(image, JpegImagePlugin.JpegImageFile):
        return None
    mode = None
    # The grey values are the luma channel, with colours or without them: the two must not differ.
    if image.mode == "RGB" and _has_luma(image):
        mode = "YCbCr" if colour else "L"
    drafted = image.draft(mode, (2 * size[0], 2 * size[1]) if size != image.size else None)
    return drafted[1] if drafted else None


def _has_luma(image: JpegImagePlugin.JpegImageFile) -> bool:
    """Whether the three channels of a JPEG are luma and chroma; libjpeg cannot make these from red, green and blue."""
    channels = tuple(layer[0] for layer in image.layer)
    return image.info.get("adobe_transform") != 0 and channels != (82, 71, 66)  # "RGB"


def _orientation(image: Image.Image) -> int:
    """The EXIF orientation, 1 to 8; 1 if there is none that can be read."""
    try:
        orientation = image.getexif().get(_ORIENTATION, 1)
    except Exception:  # whatever is wrong with the metadata: the picture itself may be whole
        return 1
    return orientation if isinstance(orientation, int) else 1


class _PillowWarnings:
    """Ignores Pillow's warnings, while any thread is inside: they are about files that are then read or refused.

    `warnings.catch_warnings` alone is not for threads: the last to leave would bring back what it found when it came.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._caught = warnings.catch_warnings()

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if self._inside == 1:
                self._caught = warnings.catch_warnings()
                self._caught.__enter__()
                warnings.filterwarnings("ignore", module=r"PIL(\.|$)")

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._caught.__exit__(None, None, None)


_no_pillow_warnings = _PillowWarnings()
