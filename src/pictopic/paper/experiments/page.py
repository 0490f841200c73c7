"""Pictures with text under them, in rows and columns, as one picture."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFont

from pictopic.files import write_bytes
from pictopic.words.pictures import PictureError, PictureSource, open_picture

BLUE, RED, BLACK, GRAY = "#0050A4", "#C00000", "#000000", "#666666"
SIDE = 320  # pixels of a picture: four of them across a printed page are at 200 dots an inch
_BOX = "#E8E8E8"  # in place of a picture
_SIZE = 26  # of the letters, in pixels
_LINE = 34  # from line to line
_GAP, _MARGIN, _PADDING = 28, 24, 16


class Text(NamedTuple):
    """A few lines in one colour; what takes more lines is cut off."""

    text: str
    colour: str = BLACK
    bold: bool = False
    lines: int = 3


class Tile(NamedTuple):
    """A picture and what stands under it, or text alone; text in a grey box, in place of a picture, if `boxed`."""

    texts: Sequence[Text] = ()
    picture: Image.Image | None = None
    boxed: bool = False
    left: bool = False  # instead of centred


PageRow = Sequence[Tile] | Text  # a heading


def captioned(source: PictureSource | None, texts: Sequence[Text], side: int = SIDE) -> Tile:
    """A picture, its longest side `side` pixels, and the text below it; a grey box if there is no readable picture.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.paper.experiments.page import Text, captioned
    >>> captioned(np.zeros((30, 40), np.uint8), [Text("coast")]).picture.size
    (320, 240)
    >>> captioned(None, [Text("coast")]).boxed
    True
    """
    try:
        image = None if source is None else open_picture(source, max_side=side).convert("RGB")
    except PictureError:
        image = None
    if image is None:
        return Tile(texts, boxed=True)
    scale = side / max(image.size)
    size = (max(1, round(scale * image.width)), max(1, round(scale * image.height)))
    return Tile(texts, image.resize(size, Image.Resampling.LANCZOS))


def compose(rows: Sequence[PageRow], widths: Sequence[int]) -> Image.Image:
    """Put cells into rows and into columns of some widths in pixels; text alone is a heading.

    Pictures of a row stand on one line; text never goes beyond its column.

    Examples
    --------
    >>> from pictopic.paper.experiments.page import Tile, Text, compose
    >>> compose([Text("Scenes"), [Tile([Text("coast")]), Tile([Text("street")])]], [200, 200]).size
    (476, 144)
    """
    laid_out = [_heading(row, sum(widths)) if isinstance(row, Text) else _Row(row, widths) for row in rows]
    width = 2 * _MARGIN + sum(widths) + _GAP * (len(widths) - 1)
    height = 2 * _MARGIN + sum(row.height for row in laid_out) + _GAP * (len(laid_out) - 1)
    page = Image.new("RGB", (width, height), "white")
    top = _MARGIN
    for row in laid_out:
        row.draw(page, top)
        top += row.height + _GAP
    return page


def write_png(page: Image.Image, path: Path) -> None:
    """Write a picture whole or not at all."""
    content = io.BytesIO()
    page.save(content, "PNG", optimize=True)
    write_bytes(path, content.getvalue())


def wrap(text: str, width: float, lines: int, bold: bool = False) -> list[str]:
    """Break text into at most so many lines of a width in pixels; what does not fit is cut off with "…".

    Examples
    --------
    >>> from pictopic.paper.experiments.page import wrap
    >>> wrap("sky, road, car, window, sidewalk", 150, lines=2)
    ['sky, road,', 'car…']
    """
    wrapped, line = [], ""
    for word in "".join(c if c.isprintable() else " " for c in text).split():
        longer = f"{line} {word}".lstrip()
        if line and _length(longer, bold) > width:
            wrapped.append(line)
            line = word
        else:
            line = longer
    wrapped += [line] if line else []
    goes_on = len(wrapped) > lines
    return [_cut(line, width, bold, k == lines - 1 and goes_on) for k, line in enumerate(wrapped[:lines])]


def _cut(line: str, width: float, bold: bool, goes_on: bool) -> str:
    if not goes_on and _length(line, bold) <= width:
        return line
    while " " in line and _length(f"{line}…", bold) > width:  # better a word less than half a word
        line = line.rpartition(" ")[0]
    while line and _length(f"{line}…", bold) > width:
        line = line[:-1]
    return line.rstrip(" ,;") + "…"


class _Row:
    """Cells side by side, with the places of everything."""

    def __init__(self, cells: Sequence[Tile], widths: Sequence[int]):
        self.cells, self.widths = cells, widths
        self.lines = [_lines(cell, width) for cell, width in zip(cells, widths, strict=False)]
        heights = [_LINE * len(lines) for lines in self.lines]
        pictures = [cell.picture.height for cell in cells if cell.picture is not None]
        boxes = [(w, height) for cell, w, height in zip(cells, widths, heights, strict=False) if cell.boxed]
        # A box is as high as the pictures beside it, or has the shape of a photograph; and its text is inside.
        usual = max(pictures, default=max((3 * width // 4 for width, _ in boxes), default=0))
        self.upper = max([usual, *(height + 2 * _PADDING for _, height in boxes)])
        below = [h for cell, h in zip(cells, heights, strict=False) if cell.picture is not None and h]
        beside = [h for cell, h in zip(cells, heights, strict=False) if cell.picture is None]
        self.height = max([self.upper + (_PADDING // 2 + max(below) if below else 0), *beside])

    def draw(self, page: Image.Image, top: int) -> None:
        pen = ImageDraw.Draw(page)
        left = _MARGIN
        for cell, width, lines in zip(self.cells, self.widths, self.lines, strict=False):
            if cell.picture is not None:
                at = (left + (width - cell.picture.width) // 2, top + self.upper - cell.picture.height)
                page.paste(cell.picture, at)
                y = top + self.upper + _PADDING // 2
            else:
                if cell.boxed:
                    pen.rectangle((left, top, left + width - 1, top + self.upper - 1), fill=_BOX)
                y = top + ((self.upper or self.height) - _LINE * len(lines)) // 2
                y = max(y, top)
            for k, (line, text) in enumerate(lines):
                x = left if cell.left else left + (width - _length(line, text.bold)) / 2
                _write(pen, (x, y + k * _LINE), line, text)
            left += width + _GAP


def _heading(text: Text, width: int) -> _Row:
    return _Row([Tile([text._replace(bold=True)], left=True)], [width])


def _lines(cell: Tile, width: int) -> list[tuple[str, Text]]:
    room = width - 2 * _PADDING if cell.boxed else width
    return [(line, text) for text in cell.texts for line in wrap(text.text, room, text.lines, text.bold)]


def _write(pen: ImageDraw.ImageDraw, at: tuple[float, float], line: str, text: Text) -> None:
    x, y = at
    for word in line.split(" "):
        font = _font(frozenset(word), text.bold)
        pen.text((x, y + _SIZE), word, text.colour, font, anchor="ls")  # on one base line, whatever the font
        x += font.getlength(word) + _space(text.bold)


def _length(line: str, bold: bool) -> float:
    words = line.split(" ")
    return sum(_font(frozenset(word), bold).getlength(word) for word in words) + _space(bold) * (len(words) - 1)


def _space(bold: bool) -> float:
    return _font(frozenset(), bold).getlength(" ")


def _font(letters: frozenset[str], bold: bool) -> ImageFont.FreeTypeFont:
    """A font with all the letters: the one that comes with matplotlib, or else any of this machine."""
    return _open_font(_font_file(letters, bold))


@lru_cache(maxsize=64)
def _open_font(file: str) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(file, _SIZE)


@lru_cache(maxsize=4096)
def _font_file(letters: frozenset[str], bold: bool) -> str:
    try:
        from matplotlib import font_manager, get_data_path
    except ImportError:
        raise ImportError("drawing figures needs matplotlib: pip install 'pictopic[reproduce]'") from None
    usual = str(Path(get_data_path()) / "fonts" / "ttf" / f"DejaVuSans{'-Bold' if bold else ''}.ttf")
    if _has(usual, letters):
        return usual
    # "Last Resort" has all letters, but as boxes.
    fonts = (font for font in font_manager.fontManager.ttflist if font.style == "normal")
    files = {font.fname for font in fonts if "Last Resort" not in font.name}
    return next((file for file in sorted(files) if _has(file, letters)), usual)


def _has(file: str, letters: frozenset[str]) -> bool:
    return {ord(letter) for letter in letters} <= _letters_of(file)


@lru_cache(maxsize=1024)
def _letters_of(file: str) -> frozenset[int]:
    from matplotlib.ft2font import FT2Font

    return frozenset(FT2Font(file).get_charmap())
