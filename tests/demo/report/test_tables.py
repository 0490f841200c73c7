from pictopic.demo.report.tables import best_values, show, text_table
from tests.support.report import made_report


def test_best_is_the_largest_or_the_smallest_as_the_measure_says():
    assert best_values(made_report()) == {"accuracy": 0.9, "perplexity": 400.0}


def test_measure_without_figures_has_no_best():
    report = made_report()
    for method in report.methods:
        del method.figures["perplexity"]
    assert best_values(report) == {"accuracy": 0.9}


def test_figure_that_is_not_there_is_a_dash():
    assert show(None, made_report().measures[0]) == "–"  # noqa: RUF001


def test_columns_of_a_text_table_are_aligned():
    report = made_report()
    head, *rows = text_table(report.measures, report.methods).splitlines()
    ends = [head.index("accuracy") + len("accuracy"), len(head)]
    assert all(row[: ends[0]].endswith("%") and len(row) == ends[1] for row in rows)
