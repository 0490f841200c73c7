"""Results as text: Markdown for a page, columns for a terminal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rich.cells import cell_len

from pictopic.files import write_bytes, write_text
from pictopic.paper.experiments.columns import Column, curve_columns, notes_of, table_columns
from pictopic.paper.experiments.figures import in_unit, render_curve
from pictopic.paper.experiments.results import FILE, Curve, Figure, Results, Table, plain, slug

MARKDOWN = "results.md"
_FIGURES = "results"  # the folder beside a document
_IS_LESS = re.compile(r"scaled down|no time was left|left out", re.IGNORECASE)


def markdown(results: Results, level: int = 1, figures_from: str | None = None) -> str:
    """All results as Markdown, with headings from a level on.

    `figures_from` is where the figures are, seen from the Markdown file; None: beside it.

    Examples
    --------
    >>> from pictopic.paper.experiments.document import markdown
    >>> from pictopic.paper.experiments.results import Measure, Results, Row, Table
    >>> table = Table("accuracy", "Right classes.", [Measure("accuracy", "accuracy", percent=True)], [
    ...     Row("DocNADE", {"accuracy": [0.81, 0.83]}, paper={"accuracy": 81.97}, ours=True),
    ...     Row("chance", {"accuracy": [0.12, 0.13]}, paper={"accuracy": 12.5})])
    >>> print(markdown(Results("labelme", "Scenes", tables=[table])))
    # Scenes
    <BLANKLINE>
    ## accuracy
    <BLANKLINE>
    Right classes.
    <BLANKLINE>
    | method | accuracy (%) | paper | splits |
    |:---|---:|---:|---:|
    | DocNADE (ours) | **82.00 ± 1.41** | 81.97 | 2 |
    | chance | 12.50 ± 0.71 | 12.5 | 2 |
    <BLANKLINE>
    """
    parts = [_heading(results.title, level), *_about(results)]
    for table in results.tables:
        parts += [_heading(table.name, level + 1), _prose(table.caption), *_table(table)]
    for curve in results.curves:
        parts += [_heading(curve.name, level + 1), *_curve(curve, _figure_of(curve, results), figures_from)]
    pictures = _pictures(results)
    if pictures:
        parts.append(_heading("Pictures", level + 1))
    for figure in pictures:
        parts += [_image(figure, figures_from), _prose(figure.caption)]
    parts += _made_with(results)
    return "\n\n".join(filter(None, parts)) + "\n"


def console_table(table: Table) -> str:
    """A table for the terminal.

    Examples
    --------
    >>> from pictopic.paper.experiments.document import console_table
    >>> from pictopic.paper.experiments.results import Measure, Row, Table
    >>> print(console_table(Table("accuracy", "Right classes", [Measure("accuracy", "accuracy", percent=True)], [
    ...     Row("DocNADE", {"accuracy": [0.81, 0.83]}, seconds=12.34, ours=True),
    ...     Row("chance", {"accuracy": [0.12, 0.13]}, seconds=0.01, note="the most frequent class")])))
    Right classes
    <BLANKLINE>
    method          accuracy (%)  splits  seconds a split
    DocNADE (ours)  82.00 ± 1.41       2             12.3
    chance [1]      12.50 ± 0.71       2              0.0
    <BLANKLINE>
    [1] the most frequent class
    """
    columns = table_columns(table)
    notes, numbers = notes_of(table)
    columns[0].cells = [
        f"{name} [{number}]" if number else name for name, number in zip(columns[0].cells, numbers, strict=True)
    ]
    parts = [table.caption or table.name, aligned([[column.title, *column.cells] for column in columns])]
    parts.append("\n".join(f"[{k}] {note}" for k, note in enumerate(notes, start=1)))
    return "\n\n".join(filter(None, parts))


def write_markdown(results: Results, folder: Path) -> Path:
    """Write ``results.md`` beside ``results.json``, whole or not at all; returns its path."""
    path = folder / MARKDOWN
    write_text(path, markdown(results))
    return path


def document(folders_or_files: Sequence[Path], out: Path, command: str = "pictopic reproduce") -> Path:
    """Write the results of several experiments as one document; returns its path.

    Curves are drawn anew from their figures, into a folder ``results`` beside the document.  Figures that show pictures
    are left out: photographs are not ours to give away.

    Parameters
    ----------
    folders_or_files : sequence of Path
        Each a ``results.json`` or a folder with one; sections come in this order.
    out : Path
        The document.
    command : str, default="pictopic reproduce"
        What the document says that it was written by.

    Raises
    ------
    ValueError
        If there are none, or one cannot be read.
    ImportError
        If there is a curve to draw and matplotlib is missing.
    """
    if not folders_or_files:
        raise ValueError("there are no results to write about")
    all_results = [Results.load(Path(path)) for path in folders_or_files]
    anchors = _unique([slug(results.experiment) for results in all_results])
    contents, sections = [], []
    for results, anchor in zip(all_results, anchors, strict=True):
        contents.append(f"- [{_escape(results.title)}](#{anchor})")
        figures = []
        for curve in results.curves:
            figures.append(Figure(f"{anchor}-{slug(curve.name)}.svg", curve.caption))
            write_bytes(out.parent / _FIGURES / figures[-1].file, render_curve(curve, "svg"))
        shown = replace(results, figures=figures, experiment=anchor)
        sections.append(f'<a id="{anchor}"></a>\n\n{markdown(shown, level=2, figures_from=_FIGURES)}')
    write_text(out, "\n".join([_introduction(folders_or_files, all_results, command), *contents, "", *sections]))
    return out


def _about(results: Results) -> Iterator[str]:
    """What was left out, before anything else; then what it was measured on, and the other notes."""
    notes = [_prose(note) for note in results.notes]
    less = [note for note in notes if _IS_LESS.search(note)]
    if less:
        yield "\n".join(["> **Not the whole experiment:**", ">", *(f"> - {note}" for note in less)])
    if results.data:
        listed = (
            f"- {_escape(key.replace('_', ' '))}: {_escape(_value(value))}" for key, value in results.data.items()
        )
        yield "Measured on:\n\n" + "\n".join(listed)
    others = [note for note in notes if note not in less]
    if others:
        yield "Notes:\n\n" + "\n".join(f"- {note}" for note in others)


def _table(table: Table) -> Iterator[str]:
    columns = table_columns(table)
    notes, numbers = notes_of(table)
    marks = [f"<sup>{number}</sup>" if number else "" for number in numbers]
    yield _markdown_table(columns, marks)
    yield "\n".join(f"{k}. {_prose(note)}" for k, note in enumerate(notes, start=1))


def _curve(curve: Curve, figure: Figure | None, figures_from: str | None) -> Iterator[str]:
    yield _prose(curve.caption)
    if figure is not None:
        yield _image(figure, figures_from)
    columns = curve_columns(curve)
    yield f"{_escape(in_unit(curve.y_title, curve.percent))}, by {_escape(curve.x_title)}:"
    yield _markdown_table(columns, [""] * len(columns[0].cells))


def _made_with(results: Results) -> Iterator[str]:
    if results.seconds:
        yield f"Wall time of all parts: {_duration(results.seconds)}."
    if results.versions:
        versions = ", ".join(f"{_escape(name)} {_escape(number)}" for name, number in results.versions.items())
        yield f"Versions: {versions}."
    if results.options:
        text = json.dumps(results.options, indent=1, ensure_ascii=False, default=plain)
        # Longer than any row of backticks in the options.
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
        yield f"<details><summary>The exact options</summary>\n\n{fence}json\n{text}\n{fence}\n\n</details>"


def _introduction(sources: Sequence[Path], all_results: Sequence[Results], command: str) -> str:
    # Where the files were on a machine says nothing to the reader.
    files = [path / FILE if path.is_dir() else path for path in map(Path, sources)]
    names = ", ".join(f"`{path.resolve().parent.name}/{path.name}`" for path in files)
    text = f"# Results\n\nThis page is generated from {names} by `{command}`: changes by hand would be lost.\n"
    text += (
        "\nFigures are means over the splits ± the standard deviation (of a sample), as are the bars of curves; the "
        'best of a column is in bold; "paper" is what was published.\n'
    )
    if any(table.reference for results in all_results for table in results.tables):
        text += "\nA lead is the mean of the splits' paired differences, in percentage points, ± its standard error.\n"
    if any(map(_pictures, all_results)):
        text += "\nFigures that show photographs are not given away here; they are written beside each results file.\n"
    return text


def _figure_of(curve: Curve, results: Results) -> Figure | None:
    """The figure of a curve; as SVG, if there are several."""
    stems = _stems(curve, results)
    figures = [figure for figure in results.figures if Path(figure.file).stem in stems]
    return min(figures, key=lambda figure: not figure.file.endswith(".svg"), default=None)


def _pictures(results: Results) -> list[Figure]:
    """Figures that are not of a curve."""
    stems = {stem for curve in results.curves for stem in _stems(curve, results)}
    return [figure for figure in results.figures if Path(figure.file).stem not in stems]


def _stems(curve: Curve, results: Results) -> set[str]:
    """What a curve's files are called: beside its results, and in a document."""
    return {slug(curve.name), f"{slug(results.experiment)}-{slug(curve.name)}"}


def _markdown_table(columns: Sequence[Column], marks: Sequence[str]) -> str:
    lines = [[_escape(column.title) for column in columns], [":---", *["---:"] * (len(columns) - 1)]]
    for k, mark in enumerate(marks):
        bold = ["**" if k in column.best else "" for column in columns]
        cells = [f"{mark}{_escape(column.cells[k])}{mark}" for mark, column in zip(bold, columns, strict=True)]
        lines.append([cells[0] + mark, *cells[1:]])
    return "\n".join(f"|{'|'.join(cells)}|" if k == 1 else f"| {' | '.join(cells)} |" for k, cells in enumerate(lines))


def aligned(columns: Sequence[Sequence[str]]) -> str:
    """Columns side by side: the first to the left, the others to the right."""
    widths = [max(map(cell_len, column)) for column in columns]
    lines = []
    for cells in zip(*columns, strict=True):
        gaps = [" " * (width - cell_len(cell)) for cell, width in zip(cells, widths, strict=True)]
        others = [gap + cell for cell, gap in zip(cells[1:], gaps[1:], strict=True)]
        lines.append("  ".join([cells[0] + gaps[0], *others]).rstrip())
    return "\n".join(lines)


def _heading(name: str, level: int) -> str:
    return f"{'#' * min(level, 6)} {_escape(name)}"


def _image(figure: Figure, figures_from: str | None) -> str:
    path = figure.file if figures_from is None else f"{figures_from}/{figure.file}"
    return f"![{_escape(figure.caption or Path(figure.file).stem)}]({quote(path)})"


def _escape(text: str) -> str:
    """A name, so that it is shown as it is: also in a cell of a table."""
    return re.sub(r"([\\`*_\[\]<>|~$]|&(?=#?\w+;))", r"\\\1", " ".join(text.split()))


def _prose(text: str) -> str:
    """A sentence: code in it stays code, but it cannot become HTML or several paragraphs."""
    return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", " ".join(text.split()))


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=plain)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def _unique(names: Sequence[str]) -> list[str]:
    """Names, the second of a kind with a number."""
    unique: list[str] = []
    for name in names:
        spellings = (name, *(f"{name}-{k}" for k in range(2, len(names) + 2)))
        unique.append(next(spelling for spelling in spellings if spelling not in unique))
    return unique
