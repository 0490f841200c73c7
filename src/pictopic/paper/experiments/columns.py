"""Tables and curves as columns of text, for Markdown and for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from pictopic.paper.experiments.figures import in_unit, is_known
from pictopic.paper.experiments.results import Curve, Measure, Row, Table, mean_and_std, paired_difference

NOTHING = "–"  # noqa: RUF001 - a dash, where there is no figure


@dataclass
class Column:
    """What stands in a column, from top to bottom, and which of it is the best."""

    title: str
    cells: list[str]
    best: set[int] = field(default_factory=set)  # numbers of the cells


def show(values: Sequence[float], percent: bool, digits: int) -> str:
    """Mean and standard deviation over splits; of a single one its figure.

    Examples
    --------
    >>> from pictopic.paper.experiments.columns import show
    >>> show([0.81, 0.83], percent=True, digits=2), show([412.34], percent=False, digits=1)
    ('82.00 ± 1.41', '412.3')
    """
    mean, std = mean_and_std(list(values)) if values else (None, None)
    if mean is None or std is None or not is_known(mean):
        return NOTHING
    unit = 100 if percent else 1
    return f"{unit * mean:.{digits}f}" + (f" ± {unit * std:.{digits}f}" if len(values) > 1 else "")


def table_columns(table: Table) -> list[Column]:
    """The columns of a table: methods, measures with what was published beside them, times and memory.

    Published values, differences to the table's reference, times and memory have a column only if any is known.

    Examples
    --------
    >>> from pictopic.paper.experiments.columns import table_columns
    >>> from pictopic.paper.experiments.results import Measure, Row, Table
    >>> table = Table("accuracy", "", [Measure("accuracy", "accuracy", percent=True)], [
    ...     Row("DocNADE", {"accuracy": [0.81, 0.83]}, paper={"accuracy": 81.97})])
    >>> [column.title for column in table_columns(table)]
    ['method', 'accuracy (%)', 'paper', 'splits']
    """
    rows = table.rows
    columns = [Column("method", [f"{row.name} (ours)" if row.ours else row.name for row in rows])]
    for measure in table.measures:
        columns.append(_measured(measure, rows))
        columns += _if_any(f"{table.reference}'s lead", _differences(measure, table))
        columns += _if_any("paper", [_published(row.paper.get(measure.key)) for row in rows])
    columns.append(Column("splits", [_splits(row) for row in rows]))
    columns += _if_any("seconds a split", [_amount(row.seconds, 1) for row in rows])
    columns += _if_any("peak MB", [_amount(row.peak_memory_mb, 0) for row in rows])
    return columns


def notes_of(table: Table) -> tuple[list[str], list[int | None]]:
    """The notes of a table, each once, and for each row the number of its note, from 1 on."""
    notes = list(dict.fromkeys(row.note for row in table.rows if row.note))
    return notes, [notes.index(row.note) + 1 if row.note else None for row in table.rows]


def curve_columns(curve: Curve) -> list[Column]:
    """The columns of a curve: what was varied, and its series with what was published beside them.

    Examples
    --------
    >>> from pictopic.paper.experiments.columns import curve_columns
    >>> from pictopic.paper.experiments.results import Curve, Line
    >>> curve = Curve("topics", "", "topics", "accuracy", [Line("DocNADE", [25, 50], [[0.7], [0.8]])], percent=True)
    >>> [(column.title, column.cells) for column in curve_columns(curve)]
    [('topics', ['25', '50']), ('DocNADE', ['70.00', '80.00'])]
    """
    places = sorted({x for series in curve.series for x in series.x})
    digits = _digits(curve)
    columns = [Column(curve.x_title, [f"{x:.12g}" for x in places])]
    for series in curve.series:
        values = dict(zip(series.x, series.values, strict=True))
        columns.append(Column(series.name, [show(values.get(x, []), curve.percent, digits) for x in places]))
        if any(map(is_known, series.paper or [])):
            published = {x: value for x, value in zip(series.x, series.paper or [], strict=True) if value is not None}
            cells = [show([published[x]] if x in published else [], curve.percent, digits) for x in places]
            columns.append(Column(f"{series.name} (paper)", cells))
    return columns


def _measured(measure: Measure, rows: Sequence[Row]) -> Column:
    title = in_unit(measure.title, measure.percent)
    values = [row.values.get(measure.key, []) for row in rows]
    cells = [show(figures, measure.percent, measure.digits) for figures in values]
    # Rounded as they are shown: of two that look the same, one must not seem better.
    unit = 100 if measure.percent else 1
    shown = [k for k, cell in enumerate(cells) if cell != NOTHING]
    means = {k: round(unit * mean_and_std(values[k])[0], measure.digits) for k in shown}
    best: set[int] = set()
    if len(means) > 1:  # a figure that has nothing beside it is not the best of anything
        first = max(means.values()) if measure.larger_is_better else min(means.values())
        best = {k for k, mean in means.items() if mean == first}
    return Column(title if measure.larger_is_better else f"{title}, less is better", cells, best)


def _differences(measure: Measure, table: Table) -> list[str]:
    """The reference row's figures minus each row's, paired by split: mean and standard error."""
    reference = next((row for row in table.rows if row.name == table.reference), None)
    unit = 100 if measure.percent else 1
    cells = []
    for row in table.rows:
        difference = None
        if reference is not None and row is not reference:
            difference = paired_difference(reference.values.get(measure.key, []), row.values.get(measure.key, []))
        if difference is None:
            cells.append(NOTHING)
        else:
            mean, error = unit * difference[0], unit * difference[1]
            cells.append(f"{mean:+.{measure.digits}f} ± {error:.{measure.digits}f}")
    return cells


def _if_any(title: str, cells: list[str]) -> list[Column]:
    return [Column(title, cells)] if set(cells) - {NOTHING} else []


def _published(value: float | None) -> str:
    """With as many digits as were published."""
    return f"{value:.12g}" if is_known(value) else NOTHING


def _splits(row: Row) -> str:
    numbers = sorted({len(values) for values in row.values.values() if values})
    return " to ".join(map(str, dict.fromkeys([numbers[0], numbers[-1]]))) if numbers else NOTHING


def _amount(value: float | None, digits: int) -> str:
    return NOTHING if value is None or not is_known(value) else f"{value:.{digits}f}"


def _digits(curve: Curve) -> int:
    """Decimal places of a curve's figures: about four digits that matter."""
    if curve.percent:
        return 2
    values = (value for series in curve.series for of_splits in series.values for value in of_splits)
    largest = max((abs(value) for value in values if is_known(value)), default=0.0)
    return 1 if largest >= 1000 else 2 if largest >= 10 else 4
