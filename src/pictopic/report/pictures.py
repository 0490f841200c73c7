"""Pictures small enough to be written into a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from pictopic.report.contents import Picture
from pictopic.tasks.exports import cut_patch, data_uri
from pictopic.words.codebook import Patch
from pictopic.words.pictures import PictureError, open_picture

THUMBNAIL = 160  # pixels of the longest side
_QUALITY = 80
_GAP = 2  # pixels between patches
_UNKNOWN = (128, 128, 128)  # in place of a picture that is gone


def thumbnail(source: Any, alt: str, side: int = THUMBNAIL) -> Picture:
    """A small copy of a picture; a grey one if it cannot be read.

    Parameters
    ----------
    source : path, bytes, PIL image or numpy array
    alt : str
        What it shows.
    side : int, default=160
        Longest side in pixels.

    Returns
    -------
    Picture
    """
    try:
        image = open_picture(source, max_side=side)
    except PictureError as error:
        return Picture(data_uri(Image.new("RGB", (side, side), _UNKNOWN), _QUALITY), f"{alt} ({error})")
    return Picture(data_uri(image, _QUALITY), alt)


def mosaic(images: Sequence[Image.Image | None], columns: int = 4, side: int = 38) -> Image.Image:
    """Pictures of any size as the tiles of one; those that are None are grey.

    Parameters
    ----------
    images : sequence of PIL images or None
        Row by row.
    columns : int, default=4
        Tiles in a row; as many rows as columns.
    side : int, default=38
        Of a tile, in pixels.

    Returns
    -------
    PIL image

    Examples
    --------
    >>> from PIL import Image
    >>> from pictopic.report.pictures import mosaic
    >>> mosaic([Image.new("RGB", (16, 16), "red")] * 4, columns=2, side=10).size
    (22, 22)
    """
    whole = columns * side + (columns - 1) * _GAP
    page = Image.new("RGB", (whole, whole), _UNKNOWN)
    for k, image in enumerate(images[: columns**2]):
        if image is not None:
            row, column = divmod(k, columns)
            tile = image.convert("RGB").resize((side, side), Image.Resampling.BICUBIC)
            page.paste(tile, (column * (side + _GAP), row * (side + _GAP)))
    return page


def word_picture(patches: Sequence[Patch], files: dict[str, Path], max_side: int | None, alt: str) -> Picture:
    """A visual word as a grid of the patches it was named after.

    Parameters
    ----------
    patches : sequence of Patch
        `Codebook.examples` of the word.
    files : dict of str to Path
        Where the pictures are, by file name.
    max_side : int or None
        To how many pixels pictures were scaled down before patches were cut.
    alt : str

    Returns
    -------
    Picture
    """
    cut = [cut_patch(own, files[own.file_name], max_side) if own.file_name in files else None for own in patches]
    return Picture(data_uri(mosaic(cut), _QUALITY), alt)
