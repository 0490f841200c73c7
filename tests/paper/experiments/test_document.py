import json
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from pictopic.paper.experiments.document import console_table, document, markdown, write_markdown
from pictopic.paper.experiments.figures import draw_curve, render_curve
from pictopic.paper.experiments.results import Curve, Figure, Line, Measure, Results, Row, Table

NOTHING = chr(0x2013)  # a dash
ACCURACY = [[0.8012, 0.8123, 0.8034], [0.8343, 0.8401, 0.8299], [0.7]]
PERPLEXITY = [[512.25, 498.5, 505.0], [401.5, 399.25, 402.0], []]


def made_table():
    measures = [
        Measure("accuracy", "accuracy", percent=True),
        Measure("perplexity", "perplexity", digits=1, larger_is_better=False),
    ]
    rows = [
        Row("SPM | HIK", {}, paper={"accuracy": 80.88}, seconds=12.34, peak_memory_mb=812.6, note="k by `cross`"),
        Row("SupDocNADE", {}, paper={"accuracy": 83.43}, seconds=600.0, peak_memory_mb=99.5, ours=True),
        Row("tf_idf", {}, note="k by `cross`"),
    ]
    for row, accuracy, perplexity in zip(rows, ACCURACY, PERPLEXITY, strict=True):
        row.values = {"accuracy": accuracy, "perplexity": perplexity}
    return Table("comparison", "Right classes.", measures, rows)


def made_curve():
    series = [
        Line("DocNADE", [25, 50], [[0.71, 0.73], [0.75, 0.78]], paper=[None, 0.7742]),
        Line("a|b", [50, 100], [[0.6], [0.65]]),
    ]
    return Curve("Topics", "Accuracy by topics", "topics", "accuracy", series, percent=True)


@pytest.fixture
def results():
    return Results(
        "labelme",
        "Scenes of LabelMe",
        data={"n_pictures": 1600, "splits": 3},
        options={"SupDocNADE": {"n_components": 200, "generative_weight": 0.25}},
        notes=["Tags are those used 3 times.", "Scaled down to 30 minutes.", "No time was left for: sLDA."],
        tables=[made_table()],
        curves=[made_curve()],
        versions={"python": "3.11.2", "numpy": "2.4.0"},
        seconds=5000.0,
    )


def cells(text, first):
    """The table that has this above its first column: a list of cells for each line, without the dashes."""
    lines = text.splitlines()
    start = next(k for k, line in enumerate(lines) if line.startswith(f"| {first} |"))
    found = []
    for line in lines[start:]:
        if not line.startswith("|"):
            break
        found.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return found[:1] + found[2:]


def column(text, first, title):
    header, *rows = cells(text, first)
    return [row[header.index(title)] for row in rows]


def test_cells_are_mean_and_sample_deviation_in_per_cent(results):
    shown = [re.sub(r"\*\*", "", cell) for cell in column(markdown(results), "method", "accuracy (%)")]
    expected = [f"{100 * np.mean(own):.2f} ± {100 * np.std(own, ddof=1):.2f}" for own in ACCURACY[:2]]
    assert shown == [*expected, "70.00"]


def test_best_is_bold_by_the_direction_of_the_measure(results):
    text = markdown(results)
    best = [cell.startswith("**") for cell in column(text, "method", "accuracy (%)")]
    least = [cell.startswith("**") for cell in column(text, "method", "perplexity, less is better")]
    assert best == [False, True, False]
    assert least == [False, True, False]
    results.tables[0].measures[1].larger_is_better = True
    assert column(markdown(results), "method", "perplexity")[0].startswith("**505.2")


def test_figures_that_look_the_same_are_both_bold():
    rows = [Row(str(k), {"a": [value]}) for k, value in enumerate([0.80001, 0.80002, 0.7])]
    text = markdown(Results("x", "X", tables=[Table("t", "", [Measure("a", "a", percent=True)], rows)]))
    assert column(text, "method", "a (%)") == ["**80.00**", "**80.00**", "70.00"]


def test_single_figure_is_not_the_best():
    table = Table("t", "", [Measure("a", "a")], [Row("one", {"a": [0.5]}), Row("two", {})])
    assert column(markdown(Results("x", "X", tables=[table])), "method", "a") == ["0.50", NOTHING]


def test_published_figures_stand_beside_ours_as_published(results):
    header, *rows = cells(markdown(results), "method")
    assert header == [
        "method",
        "accuracy (%)",
        "paper",
        "perplexity, less is better",
        "splits",
        "seconds a split",
        "peak MB",
    ]
    assert [row[2] for row in rows] == ["80.88", "83.43", NOTHING]


def test_what_it_took_is_told(results):
    text = markdown(results)
    assert column(text, "method", "splits") == ["3", "3", "1"]
    assert column(text, "method", "seconds a split") == ["12.3", "600.0", NOTHING]
    assert column(text, "method", "peak MB") == ["813", "100", NOTHING]


def test_number_of_splits_is_a_range_if_measures_differ():
    row = Row("one", {"a": [1.0, 2.0], "b": [1.0, 2.0, 3.0]})
    table = Table("t", "", [Measure("a", "a"), Measure("b", "b")], [row])
    assert column(markdown(Results("x", "X", tables=[table])), "method", "splits") == ["2 to 3"]


def test_figure_that_is_not_a_number_is_a_dash():
    rows = [Row("one", {"a": [float("nan"), 1.0]}), Row("two", {"a": [2.0]}), Row("three", {"a": [1.0]})]
    table = Table("t", "", [Measure("a", "a")], rows)
    assert column(markdown(Results("x", "X", tables=[table])), "method", "a") == [NOTHING, "**2.00**", "1.00"]


def test_ours_are_marked_and_notes_numbered_once(results):
    text = markdown(results)
    names = [row[0] for row in cells(text, "method")[1:]]
    assert names == [r"SPM \| HIK<sup>1</sup>", "SupDocNADE (ours)", r"tf\_idf<sup>1</sup>"]
    assert re.findall(r"^\d+\. .*$", text, re.MULTILINE) == ["1. k by `cross`"]


def test_every_line_of_a_table_has_as_many_cells(results):
    text = markdown(results)
    for first in ("method", "topics"):
        assert len({len(row) for row in cells(text, first)}) == 1


def test_what_was_left_out_comes_before_all_else(results):
    text = markdown(results)
    places = [
        text.index(part)
        for part in ("# Scenes", "Not the whole", "Scaled down", "No time", "n pictures: 1600", "Tags are", "| method")
    ]
    assert places == sorted(places)
    assert "> - Scaled down to 30 minutes." in text.splitlines()
    assert "- Tags are those used 3 times." in text.splitlines()


def test_whole_experiment_has_no_warning(results):
    results.notes = results.notes[:1]
    assert "Not the whole" not in markdown(results)


def test_curve_is_a_table_of_its_figures(results):
    first, second, third = cells(markdown(results), "topics")[1:]
    assert cells(markdown(results), "topics")[0] == ["topics", "DocNADE", "DocNADE (paper)", r"a\|b"]
    assert first == ["25", f"72.00 ± {100 * np.std([0.71, 0.73], ddof=1):.2f}", NOTHING, NOTHING]
    assert second == ["50", f"76.50 ± {100 * np.std([0.75, 0.78], ddof=1):.2f}", "77.42", "60.00"]
    assert third == ["100", NOTHING, NOTHING, "65.00"]


@pytest.mark.parametrize(("value", "shown"), [(0.69123, "0.6912"), (41.2345, "41.23"), (1234.56, "1234.6")])
def test_figures_of_a_curve_have_about_four_digits(value, shown):
    curve = Curve("c", "", "x", "y", [Line("a", [1], [[value]])])
    assert column(markdown(Results("x", "X", curves=[curve])), "x", "a") == [shown]


def test_curve_is_linked_only_if_it_was_drawn(results):
    assert "![" not in markdown(results)
    results.figures = [Figure("topics.png", "Accuracy by topics"), Figure("topics.svg", "Accuracy by topics")]
    assert re.findall(r"!\[.*", markdown(results)) == ["![Accuracy by topics](topics.svg)"]


def test_pictures_are_linked_with_their_captions(results):
    results.figures = [Figure("predicted tags.png", "Tags [in blue]")]
    assert r"![Tags \[in blue\]](out/predicted%20tags.png)" in markdown(results, figures_from="out").splitlines()


def test_versions_and_options_are_told(results):
    text = markdown(results)
    assert "Versions: python 3.11.2, numpy 2.4.0." in text
    block = re.search(r"<details>.*?```json\n(.*?)\n```\n\n</details>", text, re.DOTALL)
    assert json.loads(block[1]) == results.options


def test_options_with_backticks_stay_inside_their_block(results):
    results.options = {"note": "```"}
    assert "````json" in markdown(results)


def test_level_is_that_of_the_heading(results):
    headings = re.findall(r"^#+ .*$", markdown(results, level=2), re.MULTILINE)
    assert headings == ["## Scenes of LabelMe", "### comparison", "### Topics"]


@pytest.mark.parametrize("name", ["a|b", "*a*", "_a_", "<b>", "`a", "[a](b)", "a\nb", r"a\|b", "~a~", "$a$", "&lt;"])
def test_any_name_is_one_cell(name):
    table = Table("t", "", [Measure("m", "m")], [Row(name, {"m": [1.0]})])
    (row,) = cells(markdown(Results("x", "X", tables=[table])).replace("\\\\", "\0"), "method")[1:]
    assert re.sub(r"\\(.)", r"\1", row[0]).replace("\0", "\\") == " ".join(name.split())
    assert re.search(r"(?<!\\)[*_<>`\[\]|~$&]", row[0]) is None


def test_notes_cannot_be_html(results):
    results.notes = ["k < 10, <script>alert(1)</script>"]
    assert "- k < 10, &lt;script>alert(1)&lt;/script>" in markdown(results).splitlines()


def test_empty_results_are_a_heading():
    assert markdown(Results("x", "X")) == "# X\n"


def test_console_table_is_aligned_and_without_markdown():
    caption, blank, *lines = console_table(made_table()).splitlines()
    assert (caption, blank) == ("Right classes.", "")
    assert re.split(r"  +", lines[0])[:3] == ["method", "accuracy (%)", "paper"]
    end = lines[0].index("accuracy (%)") + len("accuracy (%)")
    spread = [f"{100 * np.mean(own):.2f} ± {100 * np.std(own, ddof=1):.2f}" for own in ACCURACY[:2]]
    for line, shown in zip(lines[1:4], [*spread, "70.00"], strict=True):
        assert line[:end].endswith(f" {shown}")
    assert [line[:17].rstrip() for line in lines[1:4]] == ["SPM | HIK [1]", "SupDocNADE (ours)", "tf_idf [1]"]
    assert lines[-1] == "[1] k by `cross`"
    assert "**" not in "".join(lines)


def test_console_table_is_aligned_for_wide_letters():
    table = Table("t", "", [Measure("m", "m")], [Row("日本", {"m": [1.0]}), Row("abcd", {"m": [2.0]})])
    assert console_table(table).splitlines()[-2:] == ["日本    1.00       1", "abcd    2.00       1"]


def test_markdown_is_written_beside_the_results(results, tmp_path):
    path = write_markdown(results, tmp_path)
    assert path == tmp_path / "results.md"
    assert path.read_text(encoding="utf-8") == markdown(results)


def saved(results, folder):
    """Results in a folder, as an experiment leaves them: with its curves and a figure of pictures."""
    folder.mkdir()
    Image.new("RGB", (8, 8)).save(folder / "predictions.png")
    results.figures = [*draw_curve(results.curves[0], folder), Figure("predictions.png", "Predicted classes")]
    return results.save(folder).parent


def test_document_is_the_same_twice(results, tmp_path):
    folder = saved(results, tmp_path / "run")
    first, second = (document([folder], tmp_path / name / "results.md") for name in ("a", "b"))
    assert first.read_bytes() == second.read_bytes()
    name = "labelme-topics.svg"
    assert (tmp_path / "a/results" / name).read_bytes() == (tmp_path / "b/results" / name).read_bytes()


def test_document_has_the_sections_in_the_order_given(results, tmp_path):
    folder = saved(results, tmp_path / "run")
    Results("mirflickr", "Flickr | photographs").save(tmp_path / "other")
    out = document([tmp_path / "other" / "results.json", folder], tmp_path / "docs" / "results.md")
    headings = re.findall(r"^##? .*$", out.read_text(encoding="utf-8"), re.MULTILINE)
    assert headings == ["# Results", r"## Flickr \| photographs", "## Scenes of LabelMe"]


def test_contents_lead_to_the_sections(results, tmp_path):
    folder = saved(results, tmp_path / "run")
    text = document([folder, folder], tmp_path / "docs" / "results.md").read_text(encoding="utf-8")
    targets = re.findall(r"^- \[.*\]\(#(.*)\)$", text, re.MULTILINE)
    assert targets == re.findall(r'<a id="(.*)"></a>', text) == ["labelme", "labelme-2"]


def test_document_says_what_it_is_made_from_and_how(results, tmp_path):
    folder = saved(results, tmp_path / "run")
    text = document([folder], tmp_path / "docs" / "results.md", command="make results").read_text(encoding="utf-8")
    assert "generated from `run/results.json` by `make results`" in text
    assert str(tmp_path) not in text


def test_document_draws_curves_anew_and_links_them(results, tmp_path):
    folder = saved(results, tmp_path / "run")
    (folder / "topics.svg").unlink()
    out = document([folder], tmp_path / "docs" / "results.md")
    (link,) = re.findall(r"!\[.*\]\((.*)\)", out.read_text(encoding="utf-8"))
    assert link == "results/labelme-topics.svg"
    content = (out.parent / link).read_bytes()
    assert content == render_curve(made_curve(), "svg")
    assert ET.fromstring(content).tag.endswith("svg")  # noqa: S314


def test_document_never_gives_pictures_away(results, tmp_path):
    out = document([saved(results, tmp_path / "run")], tmp_path / "docs" / "results.md")
    assert sorted(path.name for path in out.parent.rglob("*")) == ["labelme-topics.svg", "results", "results.md"]
    text = out.read_text(encoding="utf-8")
    assert "predictions" not in text
    assert "photographs are not given away" in text


def test_document_has_what_the_results_have(results, tmp_path):
    out = document([saved(results, tmp_path / "run")], tmp_path / "docs" / "results.md")
    results.figures = []
    assert cells(out.read_text(encoding="utf-8"), "method") == cells(markdown(results), "method")


def test_document_of_nothing_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no results"):
        document([], tmp_path / "results.md")


def test_missing_results_are_an_error_and_write_nothing(results, tmp_path):
    folder = saved(results, tmp_path / "run")
    with pytest.raises(ValueError, match="is missing"):
        document([folder, tmp_path / "gone.json"], tmp_path / "docs" / "results.md")
    assert not (tmp_path / "docs").exists()
