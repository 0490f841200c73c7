"""Curves as figures: SVG for pages, PNG for everything else."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from pictopic.files import write_bytes
from pictopic.paper.experiments.results import Curve, Figure, Line, mean_and_std, slug

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Page
    from matplotlib.lines import Line2D

# Okabe and Ito's colours, which colour-blind readers can tell apart; without their yellow, too light for a line.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
_MARKERS = "os^Dv"  # not as many as colours, so that an eighth line differs from the first
_STYLE: dict[str, Any] = {
    "font.family": ["sans-serif"],  # in an SVG: matplotlib's own font, or else one that the reader has
    "font.size": 10,
    "axes.labelsize": 11,
    "legend.fontsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "axes.edgecolor": "#555555",
    "text.parse_math": False,  # a name with dollars in it is a name
    "svg.fonttype": "none",
    "svg.hashsalt": "pictopic",  # otherwise the names inside are random
}
_WIDTH, _HEIGHT, _LEGEND_LINE = 6.4, 3.7, 0.23  # inches
_DPI = 200
_LONG_NAME = 40  # letters; two such do not fit side by side
_MAX_TICKS = 9
_LEAST_GAP = 0.06  # between two ticks, as a share of the axis


class Points(NamedTuple):
    """Where a line goes: what is known of a series, from left to right."""

    x: list[float]
    mean: list[float]
    std: list[float]


def draw_curve(curve: Curve, folder: Path) -> list[Figure]:
    """Draw a curve, and write it as SVG and as PNG; the name of the files is the curve's, as a slug.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from pictopic.paper.experiments.figures import draw_curve
    >>> from pictopic.paper.experiments.results import Curve, Line
    >>> line = Line("DocNADE", [25, 50, 100], [[0.70, 0.72], [0.75, 0.76], [0.80, 0.79]], paper=[None, 0.77, 0.81])
    >>> curve = Curve("Topics, LabelMe", "Accuracy", "topics", "accuracy", [line], percent=True, log_x=True)
    >>> [figure.file for figure in draw_curve(curve, Path(tempfile.mkdtemp()))]
    ['topics-labelme.svg', 'topics-labelme.png']
    """
    stem = slug(curve.name)
    contents = {f"{stem}.svg": render_curve(curve, "svg"), f"{stem}.png": render_curve(curve, "png")}
    for file, content in contents.items():
        write_bytes(folder / file, content)
    return [Figure(file, curve.caption) for file in contents]


def render_curve(curve: Curve, kind: Literal["svg", "png"]) -> bytes:
    """Draw a curve: the same bytes whenever it is the same curve (and the same matplotlib).

    One line per series: the mean over the splits, its standard deviation as bars.  Published values are hollow, on a
    dashed line of the same colour.

    Examples
    --------
    >>> from pictopic.paper.experiments.figures import render_curve
    >>> from pictopic.paper.experiments.results import Curve, Line
    >>> curve = Curve("topics", "Accuracy", "topics", "accuracy", [Line("DocNADE", [25, 50], [[0.7], [0.8]])])
    >>> b">DocNADE</text>" in render_curve(curve, "svg")
    True
    """
    try:
        from matplotlib import style
    except ImportError:
        raise ImportError("drawing figures needs matplotlib: pip install 'pictopic[reproduce]'") from None
    # Not the user's own settings: the same results are to give the same file everywhere.
    with style.context(["default", _STYLE]):
        page = _page(curve)
        content = io.BytesIO()
        unwanted = ("Date", "Creator") if kind == "svg" else ("Software",)
        page.savefig(content, format=kind, dpi=_DPI, metadata=dict.fromkeys(unwanted))
    return content.getvalue()


def in_unit(title: str, percent: bool) -> str:
    """The title of an axis or a column with its unit, unless that is there already.

    Examples
    --------
    >>> from pictopic.paper.experiments.figures import in_unit
    >>> in_unit("accuracy", percent=True), in_unit("perplexity", percent=False)
    ('accuracy (%)', 'perplexity')
    """
    return f"{title} (%)" if percent and "%" not in title else title


def is_known(value: float | None) -> bool:
    """Whether a figure is there: neither None nor NaN."""
    return value is not None and math.isfinite(value)


def points_of(series: Line) -> Points:
    """Mean and standard deviation over the splits, wherever there is any split.

    Examples
    --------
    >>> from pictopic.paper.experiments.figures import points_of
    >>> from pictopic.paper.experiments.results import Line
    >>> points_of(Line("DocNADE", [50, 25, 100], [[0.5], [0.25, 0.75], []]))
    Points(x=[25, 50], mean=[0.5, 0.5], std=[0.3535533905932738, 0.0])
    """
    points = [(x, *mean_and_std(values)) for x, values in zip(series.x, series.values, strict=True) if values]
    return _points([point for point in points if is_known(point[1])])


def published_of(series: Line) -> Points:
    """The published values of a series, wherever there is one."""
    if series.paper is None:
        return _points([])
    return _points([(x, value, 0.0) for x, value in zip(series.x, series.paper, strict=True) if is_known(value)])


def _points(points: list[tuple[float, float, float]]) -> Points:
    points = sorted(points)
    return Points(*([point[k] for point in points] for k in range(3)))


def _page(curve: Curve) -> Page:
    from matplotlib.figure import Figure as Page

    page = Page(figsize=(_WIDTH, _HEIGHT), layout="constrained")
    axes = page.add_subplot()
    ours, papers = _draw_lines(axes, curve)
    _set_axes(axes, curve)
    _add_legend(page, ours, papers)
    return page


def _draw_lines(axes: Axes, curve: Curve) -> tuple[dict[str, Line2D], dict[str, Line2D]]:
    """Draw the series; what stands for them in the legend, by name: ours, and what was published."""
    ours, papers = {}, {}
    unit = 100 if curve.percent else 1
    for k, series in enumerate(curve.series):
        look: dict[str, Any] = {"color": COLOURS[k % len(COLOURS)], "marker": _MARKERS[k % len(_MARKERS)]}
        points, published = points_of(series), published_of(series)
        if published.x:
            # Larger and below: a ring around our own marker where the two agree.
            (papers[series.name],) = axes.plot(
                published.x, [unit * value for value in published.mean], **look, markersize=8, markerfacecolor="white",
                linewidth=1.2, linestyle=(0, (4, 3)), zorder=2 + 0.01 * k,
            )  # fmt: skip
        (ours[series.name],) = axes.plot(
            points.x, [unit * mean for mean in points.mean], **look, markersize=5.5, linewidth=1.8, zorder=3 + 0.01 * k
        )
        if any(points.std):
            axes.errorbar(
                points.x, [unit * mean for mean in points.mean], [unit * std for std in points.std], fmt="none",
                ecolor=look["color"], elinewidth=1.1, capsize=3, zorder=3 + 0.01 * k,
            )  # fmt: skip
    return ours, papers


def _set_axes(axes: Axes, curve: Curve) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter

    axes.set_xlabel(curve.x_title)
    axes.set_ylabel(in_unit(curve.y_title, curve.percent))
    axes.tick_params(length=3, color="#555555")
    places = sorted({x for series in curve.series for x in series.x})
    if curve.log_x and places:
        # 0 epochs are a place on the axis too.
        smallest = min((x for x in places if x > 0), default=1.0)
        axes.set_xscale("log") if places[0] > 0 else axes.set_xscale("symlog", linthresh=smallest)
        axes.xaxis.set_minor_locator(FixedLocator([]))
    if _have_room(places, axes):
        axes.xaxis.set_major_locator(FixedLocator(places))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:.12g}"))


def _add_legend(page: Page, ours: dict[str, Line2D], papers: dict[str, Line2D]) -> None:
    """Name the lines, below the axes; what was published beside our own figures."""
    from matplotlib.lines import Line2D

    rows = [(line, name, papers.get(name)) for name, line in ours.items()]
    handles, names = [line for line, _, _ in rows], [name for _, name, _ in rows]
    if papers:
        handles += [Line2D([], [], linestyle="") if paper is None else paper for _, _, paper in rows]
        names += ["" if paper is None else f"{name} (paper)" for _, name, paper in rows]
    columns = 1 if max(map(len, names), default=0) > _LONG_NAME else 2
    if columns == 1:
        handles = [handle for handle, name in zip(handles, names, strict=True) if name]
        names = list(filter(None, names))
    if names:
        page.set_figheight(_HEIGHT + _LEGEND_LINE * math.ceil(len(names) / columns))
        page.legend(handles, names, loc="outside lower center", ncols=columns, frameon=False, handlelength=3)


def _have_room(places: list[float], axes: Axes) -> bool:
    """Whether the values that were tried, not round ones, can be the ticks."""
    if not 1 <= len(places) <= _MAX_TICKS:
        return False
    axes.get_xlim()  # matplotlib sets the limits only when they are asked for
    in_pixels = axes.transData.transform([(x, 0) for x in places])
    at = axes.transAxes.inverted().transform(in_pixels)[:, 0]
    return bool((np.diff(at) >= _LEAST_GAP).all())
