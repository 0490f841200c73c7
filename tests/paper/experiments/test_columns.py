import math

import pytest

from pictopic.paper.experiments.columns import NOTHING, curve_columns, notes_of, show, table_columns
from pictopic.paper.experiments.results import Curve, Line, Measure, Row, Table


def test_a_figure_that_is_not_known_is_a_dash():
    assert show([], percent=True, digits=2) == NOTHING
    assert show([math.nan, 0.5], percent=True, digits=2) == NOTHING


@pytest.mark.parametrize(("larger_is_better", "best"), [(True, {1, 2}), (False, {0})])
def test_figures_that_look_the_same_are_equally_good(larger_is_better, best):
    measure = Measure("loss", "loss", digits=1, larger_is_better=larger_is_better)
    rows = [Row(name, {"loss": [value]}) for name, value in (("a", 1.0), ("b", 2.04), ("c", 2.01))]
    assert table_columns(Table("t", "", [measure], rows))[1].best == best


def test_a_single_figure_is_not_the_best_of_anything():
    rows = [Row("a", {"loss": [1.0]}), Row("b", {})]
    assert table_columns(Table("t", "", [Measure("loss", "loss")], rows))[1].best == set()


def test_times_and_memory_have_a_column_if_they_are_known():
    rows = [Row("a", {"loss": [1.0]}, seconds=2.0), Row("b", {"loss": [1.0, 2.0]}, peak_memory_mb=300.4)]
    columns = table_columns(Table("t", "", [Measure("loss", "loss")], rows))
    assert [(column.title, column.cells) for column in columns[2:]] == [
        ("splits", ["1", "2"]), ("seconds a split", ["2.0", NOTHING]), ("peak MB", [NOTHING, "300"]),
    ]  # fmt: skip


def test_leads_are_paired_by_split():
    rows = [Row("a", {"acc": [0.8, 0.9, 0.7]}), Row("b", {"acc": [0.7, 0.7, 0.7]}), Row("c", {"acc": [0.1]})]
    table = Table("t", "", [Measure("acc", "accuracy", percent=True)], rows, reference="a")
    lead = table_columns(table)[2]
    # Differences of 10, 20 and 0 points: standard deviation 10, standard error 10 / sqrt(3).
    assert (lead.title, lead.cells) == ("a's lead", [NOTHING, "+10.00 ± 5.77", NOTHING])


def test_each_note_stands_once_under_its_number():
    rows = [Row("a", {}, note="slow"), Row("b", {}), Row("c", {}, note="quick"), Row("d", {}, note="slow")]
    assert notes_of(Table("t", "", [], rows)) == (["slow", "quick"], [1, None, 2, 1])


def test_lines_of_a_curve_share_their_places_and_have_what_was_published_beside_them():
    lines = [Line("a", [2, 1], [[0.5], []], paper=[None, 0.25]), Line("b", [3], [[1.0]])]
    columns = curve_columns(Curve("c", "", "topics", "loss", lines))
    assert [(column.title, column.cells) for column in columns] == [
        ("topics", ["1", "2", "3"]), ("a", [NOTHING, "0.5000", NOTHING]), ("a (paper)", ["0.2500", NOTHING, NOTHING]),
        ("b", [NOTHING, NOTHING, "1.0000"]),
    ]  # fmt: skip
