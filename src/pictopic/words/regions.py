"""Where in a picture a visual word stands: the cells of a grid, or of several grids of different fineness."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Regions:
    """One or several grids over a picture; the same word in another cell is another word.

    Parameters
    ----------
    grids : tuple of (int, int)
        Rows and columns of each grid.

    Examples
    --------
    >>> import numpy as np
    >>> from pictopic.words.regions import Regions
    >>> regions = Regions.parse("2x2")
    >>> centres = np.array([[10, 10], [90, 10], [10, 50]])  # x, y
    >>> len(regions), regions.of(centres, height=60, width=100).tolist()
    (4, [[0, 1, 2]])

    A pyramid counts each word once in every grid:

    >>> pyramid = Regions.parse("1x1+2x2")
    >>> len(pyramid), pyramid.of(centres, height=60, width=100).tolist()
    (5, [[0, 0, 0], [1, 2, 3]])
    """

    grids: tuple[tuple[int, int], ...] = ((1, 1),)

    @classmethod
    def parse(cls, text: str) -> Regions:
        """Read ``"2x2"`` (rows x columns), ``"1x1"`` (no regions), ``"1x1+2x2+4x4"`` (a pyramid)."""
        grids = [re.fullmatch(r"\s*(\d{1,4})\s*[x×X]\s*(\d{1,4})\s*", part) for part in str(text).split("+")]  # noqa: RUF001
        sizes = tuple((int(grid[1]), int(grid[2])) for grid in grids if grid is not None)
        if len(sizes) < len(grids) or min(min(size) for size in sizes) < 1:
            raise ValueError(f"{text!r} is no grid of regions: write rows x columns, as 2x2, or a pyramid, as 1x1+2x2")
        return cls(sizes)

    def __str__(self) -> str:
        return "+".join(f"{rows}x{columns}" for rows, columns in self.grids)

    def __len__(self) -> int:
        """Number of regions, M."""
        return sum(rows * columns for rows, columns in self.grids)

    def of(self, centres: np.ndarray, height: int, width: int) -> np.ndarray:
        """Region of each place in each grid.

        Parameters
        ----------
        centres : array of shape (n, 2 or more)
            x and y, the centre of the first pixel at (0, 0).
        height, width : int
            Of the picture.

        Returns
        -------
        int64 array of shape (n_grids, n)
            Row by row from the top left, one grid after the other.
        """
        across, down = (np.asarray(centres)[:, :2].T + 0.5) / [[width], [height]]
        regions = np.empty((len(self.grids), len(centres)), np.int64)
        first = 0
        for i, (rows, columns) in enumerate(self.grids):
            row = np.clip((down * rows).astype(np.int64), 0, rows - 1)
            column = np.clip((across * columns).astype(np.int64), 0, columns - 1)
            regions[i] = first + row * columns + column
            first += rows * columns
        return regions
