"""Pictures small enough to be written into a page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image

from pictopic.demo.report.contents import Picture
from pictopic.tasks.exports import UNKNOWN, data_uri, patch_mosaic
from pictopic.words.codebook import Patch
from pictopic.words.pictures import PictureError, open_picture

THUMBNAIL = 160  # pixels of the longest side
_QUALITY = 80


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
        return Picture(data_uri(Image.new("RGB", (side, side), UNKNOWN), _QUALITY), f"{alt} ({error})")
    return Picture(data_uri(image, _QUALITY), alt)


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
    return Picture(data_uri(patch_mosaic(patches, files, max_side), _QUALITY), alt)
