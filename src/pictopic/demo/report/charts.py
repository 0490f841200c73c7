"""Line charts as SVG text: no script, and colours from the page, so that they follow its light and dark."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from markupsafe import Markup

from pictopic.tasks.quality import Chart, Series

_WIDTH, _HEIGHT = 300, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 38, 10, 10, 34
_MAX_POINTS = 300  # of a line


def ticks(low: float, high: float, n: int = 4) -> list[float]:
    """About n round numbers that span a range.

    Examples
    --------
    >>> from pictopic.demo.report.charts import ticks
    >>> ticks(0.13, 2.1), ticks(1, 151)
    ([0.0, 0.5, 1.0, 1.5, 2.0, 2.5], [0.0, 50.0, 100.0, 150.0, 200.0])
    """
    if not high > low:
        low, high = low - 0.5, low + 0.5
    rough = (high - low) / n
    power = 10 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(float(k * step), 12) for k in range(first, last + 1)]


def line_chart(chart: Chart) -> Markup:
    """A chart of one value per pass, as an ``<svg>`` element; values that are not finite are left out.

    Its lines are of the classes ``line-0``, ``line-1``, ... in the order of the series.

    Examples
    --------
    >>> from pictopic.demo.report.charts import line_chart
    >>> from pictopic.tasks.quality import Chart, Series
    >>> svg = line_chart(Chart("Loss <of words>", [Series("training", [3.0, 2.0, 1.5])]))
    >>> "training: from 3 to 1.5 in 3 passes" in svg, "Loss &lt;of words&gt;" in svg
    (True, True)
    """
    lines = [series for series in chart.series if np.isfinite(series.values).any()]
    if not lines:
        return Markup("")
    values = [value for series in lines for value in series.values if math.isfinite(value)]
    y_ticks = ticks(float(min(values)), float(max(values)))
    n_passes = max(len(series.values) for series in lines)
    x_ticks = [tick for tick in ticks(0, n_passes) if tick <= n_passes and tick == int(tick)]
    parts = [_grid(x_ticks, y_ticks, n_passes)]
    parts += [_line(series, number, n_passes, y_ticks) for number, series in enumerate(lines)]
    parts.append(_text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 4, "passes over the pictures"))
    return Markup('<svg viewBox="0 0 {} {}" role="img" aria-label="{}" class="chart">{}</svg>').format(
        _WIDTH, _HEIGHT, f"{chart.title}; {'; '.join(map(_in_words, lines))}", Markup("").join(parts)
    )


def _x(number: float, n_passes: int) -> float:
    """Where a pass is, in pixels; 0 is the axis."""
    return _LEFT + (_WIDTH - _LEFT - _RIGHT) * number / n_passes


def _y(value: float, y_ticks: Sequence[float]) -> float:
    share = (value - y_ticks[0]) / (y_ticks[-1] - y_ticks[0])
    return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * share


def _grid(x_ticks: Sequence[float], y_ticks: Sequence[float], n_passes: int) -> Markup:
    parts = []
    for tick in y_ticks:
        y = f"{_y(tick, y_ticks):.1f}"
        line = Markup('<line class="grid" x1="{}" x2="{}" y1="{}" y2="{}"/>').format(_LEFT, _WIDTH - _RIGHT, y, y)
        parts += [line, _text(_LEFT - 5, f"{_y(tick, y_ticks) + 4:.1f}", f"{tick:g}", "end")]
    for tick in x_ticks:
        parts.append(_text(f"{_x(tick, n_passes):.1f}", _HEIGHT - _BOTTOM + 14, f"{tick:g}"))
    return Markup("").join(parts)


def _text(x: float | str, y: float | str, text: str, anchor: str = "middle") -> Markup:
    return Markup('<text class="axis" x="{}" y="{}" text-anchor="{}">{}</text>').format(x, y, anchor, text)


def _line(series: Series, number: int, n_passes: int, y_ticks: Sequence[float]) -> Markup:
    every = max(1, math.ceil(len(series.values) / _MAX_POINTS))
    shown = [(k, series.values[k]) for k in sorted({*range(0, len(series.values), every), len(series.values) - 1})]
    points = [f"{_x(k + 1, n_passes):.1f},{_y(value, y_ticks):.1f}" for k, value in shown if math.isfinite(value)]
    last = points[-1].split(",")
    return Markup(
        '<polyline class="line line-{n}" points="{points}"/><circle class="dot line-{n}" cx="{x}" cy="{y}" r="3"/>'
    ).format(n=number, points=" ".join(points), x=last[0], y=last[1])


def _in_words(series: Series) -> str:
    finite = [value for value in series.values if math.isfinite(value)]
    return f"{series.name}: from {finite[0]:.3g} to {finite[-1]:.3g} in {len(series.values)} passes"
