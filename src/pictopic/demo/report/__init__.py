"""A report as one HTML file that needs nothing else: no script, no network, no other file."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from pictopic.demo.report.charts import line_chart
from pictopic.demo.report.contents import Report
from pictopic.demo.report.figures import best_values, show
from pictopic.files import write_text

__all__ = ["Report", "render", "write_report"]


def render(report: Report) -> str:
    """The page of a report as HTML; whatever the report's texts contain is shown as text.

    Examples
    --------
    >>> from pictopic.demo.report import Report, render
    >>> "<h1>Cats &amp; dogs</h1>" in render(Report("Cats & dogs"))
    True
    """
    return _environment().get_template("report.html.j2").render(report=report, best=best_values(report))


def write_report(path: str | os.PathLike[str], report: Report) -> None:
    """Write the page of a report to a file."""
    write_text(Path(path), render(report))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("pictopic.demo.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True, keep_trailing_newline=True,
    )  # fmt: skip
    environment.filters["show"] = show
    environment.globals["line_chart"] = line_chart
    return environment
