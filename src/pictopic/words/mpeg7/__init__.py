"""The colour and texture descriptors of MPEG-7 (ISO/IEC 15938-3), one file each."""

from __future__ import annotations

import numpy as np

from pictopic.words.mpeg7.color_layout import color_layout
from pictopic.words.mpeg7.color_structure import color_structure
from pictopic.words.mpeg7.edge_histogram import edge_histogram
from pictopic.words.mpeg7.homogeneous_texture import homogeneous_texture
from pictopic.words.mpeg7.scalable_color import scalable_color

__all__ = ["color_layout", "color_structure", "edge_histogram", "homogeneous_texture", "mpeg7", "scalable_color"]


def mpeg7(rgb: np.ndarray) -> np.ndarray:
    """All five descriptors, one after the other.

    Parameters
    ----------
    rgb : ndarray of shape (height, width, 3), uint8

    Returns
    -------
    ndarray of shape (897,), float32
        `color_structure` (256), `scalable_color` (256), `color_layout` (192), `edge_histogram` (150) and
        `homogeneous_texture` (43).

    Notes
    -----
    Manjunath, Ohm, Vasudevan and Yamada, "Color and texture descriptors" (2001), describe them all.  Together with
    GIST these are the 1857 global features of the paper.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.mpeg7 import mpeg7
    >>> mpeg7(np.zeros((48, 64, 3), np.uint8)).shape
    (897,)
    """
    parts = (color_structure, scalable_color, color_layout, edge_histogram, homogeneous_texture)
    return np.concatenate([part(rgb) for part in parts])
