"""Tables of figures."""

from __future__ import annotations

from collections.abc import Sequence

from pictopic.demo.report.contents import Measure, Method, Report

_NOTHING = "–"  # noqa: RUF001 - a dash, where there is no figure


def show(value: float | None, measure: Measure) -> str:
    """A figure as text.

    Examples
    --------
    >>> from pictopic.demo.report.contents import Measure
    >>> from pictopic.demo.report.tables import show
    >>> show(0.9583, Measure("accuracy", "right class", "right"))
    '95.8 %'
    >>> show(412.34, Measure("perplexity", "perplexity of the words", "perplexity", is_share=False))
    '412'
    """
    if value is None:
        return _NOTHING
    if measure.is_share:
        return f"{100 * value:.1f} %"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def best_values(report: Report) -> dict[str, float]:
    """The best figure of each measure."""
    found = {}
    for measure in report.measures:
        values = [own.figures[measure.key] for own in report.methods if measure.key in own.figures]
        if values:
            found[measure.key] = max(values) if measure.larger_is_better else min(values)
    return found


def text_table(measures: Sequence[Measure], methods: Sequence[Method]) -> str:
    """Figures as lines of text, for a terminal.

    Parameters
    ----------
    measures : sequence of Measure
        Columns.
    methods : sequence of Method
        Rows.

    Returns
    -------
    str

    Examples
    --------
    >>> from pictopic.demo.report.contents import Measure, Method
    >>> from pictopic.demo.report.tables import text_table
    >>> methods = [Method("by chance", "", {"accuracy": 0.125}), Method("model", "", {"accuracy": 0.9})]
    >>> print(text_table([Measure("accuracy", "right class", "accuracy")], methods))
               accuracy
    by chance    12.5 %
    model        90.0 %
    """
    rows = [["", *(measure.short for measure in measures)]]
    for method in methods:
        rows.append([method.name, *(show(method.figures.get(measure.key), measure) for measure in measures)])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for first, *others in rows:
        cells = [f"{cell:>{width}}" for cell, width in zip(others, widths[1:], strict=True)]
        lines.append("  ".join([f"{first:<{widths[0]}}", *cells]).rstrip())
    return "\n".join(lines)
