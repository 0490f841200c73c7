import math
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from pictopic.demo.report.charts import line_chart, ticks
from pictopic.tasks.quality import Chart, Series
from tests.support.report import HOSTILE


def lines(svg):
    """Points of each line of a chart."""
    found = ElementTree.fromstring(svg).iter("polyline")  # noqa: S314 - our own text
    return [[tuple(map(float, point.split(","))) for point in line.get("points").split()] for line in found]


@pytest.mark.parametrize(("low", "high"), [(0.13, 2.1), (1, 151), (-5, -4.9), (1e-6, 2e-6), (2, 2), (0, 1e9)])
def test_ticks_span_the_range_in_few_equal_steps(low, high):
    found = ticks(low, high)
    assert found[0] <= low
    assert found[-1] >= high
    assert 2 <= len(found) <= 7
    steps = [b - a for a, b in pairwise(found)]
    assert max(steps) == pytest.approx(min(steps))


def test_line_goes_right_and_falls_with_its_values():
    [points] = lines(line_chart(Chart("loss", [Series("training", [3.0, 2.0, 1.5])])))
    x, y = zip(*points, strict=True)
    assert list(x) == sorted(x)
    assert list(y) == sorted(y)  # down is larger


def test_lines_share_one_scale():
    low, high = lines(line_chart(Chart("loss", [Series("a", [1.0, 1.0]), Series("b", [2.0, 2.0])])))
    assert low[0][1] > high[0][1]
    assert low[0][0] == high[0][0]


def test_everything_lies_inside_the_picture():
    svg = line_chart(Chart("loss", [Series("a", [5e3, -2e3, 7.0]), Series("b", [0.0] * 10)]))
    _, _, width, height = map(float, ElementTree.fromstring(svg).get("viewBox").split())  # noqa: S314
    assert all(0 <= x <= width and 0 <= y <= height for line in lines(svg) for x, y in line)


def test_values_that_are_not_finite_are_left_out():
    [points] = lines(line_chart(Chart("loss", [Series("a", [3.0, math.nan, 1.0]), Series("b", [math.inf])])))
    assert len(points) == 2


def test_chart_without_values_is_empty():
    assert line_chart(Chart("loss", [Series("a", [])])) == ""
    assert line_chart(Chart("loss", [])) == ""


def test_long_lines_are_thinned_but_keep_their_end():
    [points] = lines(line_chart(Chart("loss", [Series("a", [float(k) for k in range(5000)])])))
    assert len(points) <= 302
    assert points[-1][0] == pytest.approx(290)  # the right border


def test_names_cannot_break_out():
    svg = line_chart(Chart(HOSTILE, [Series(HOSTILE, [1.0, 2.0])]))
    root = ElementTree.fromstring(svg)  # noqa: S314
    assert root.get("aria-label").startswith(HOSTILE)
    assert not list(root.iter("script"))
