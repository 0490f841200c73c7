"""What a data set looks like on disk, for people who have to put it there."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class LayoutError(ValueError):
    """A data set is not where it should be, or looks different."""


@dataclass(frozen=True)
class Layout:
    """Where a data set comes from, and how its folder must look.

    Parameters
    ----------
    name : str
        As in ``pictopic reproduce NAME``.
    title : str
    url : str
        Of the page that offers it; only shown, never opened.
    steps : tuple of str
        What to download and where to unpack it.
    tree : str
        How the folder looks then.
    places : tuple of str
        Sub-folders in which the data set may lie instead, so that one folder can hold several of them.

    Examples
    --------
    >>> from pathlib import Path
    >>> from pictopic.paper.datasets.layout import Layout
    >>> layout = Layout("sun", "Suns", "https://example.org", ("Download suns.zip and unpack it in DIR.",), "DIR/suns")
    >>> print(layout.help_text())
    Suns
    <BLANKLINE>
    From https://example.org
      1. Download suns.zip and unpack it in DIR.
    <BLANKLINE>
    The folder then looks like this:
      DIR/suns
    >>> layout.missing(Path("DIR/suns"), "the pictures (suns.zip)")
    LayoutError('DIR/suns is missing: the pictures (suns.zip); `pictopic reproduce sun --help` shows the layout')
    """

    name: str
    title: str
    url: str
    steps: tuple[str, ...]
    tree: str
    places: tuple[str, ...] = ()

    def help_text(self) -> str:
        """All of it as text, for ``--help``."""
        steps = [f"  {number}. {step}" for number, step in enumerate(self.steps, 1)]
        tree = [f"  {line}".rstrip() for line in self.tree.strip("\n").splitlines()]
        return "\n".join([self.title, "", f"From {self.url}", *steps, "", "The folder then looks like this:", *tree])

    def missing(self, path: Path, what: str) -> LayoutError:
        """The error for a file or folder that is not there; `what` says what is in it."""
        return LayoutError(f"{path} is missing: {what}; `pictopic reproduce {self.name} --help` shows the layout")

    def inside(self, folder: Path) -> Path:
        """The folder of the data set: the first of the `places` that is there, or the folder itself."""
        if not folder.is_dir():
            raise self.missing(folder, f"the folder of {self.title}")
        return next((folder / place for place in self.places if (folder / place).is_dir()), folder)
