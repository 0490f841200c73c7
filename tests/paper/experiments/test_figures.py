import io
import re
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from pictopic.paper.experiments.figures import COLOURS, draw_curve, points_of, published_of, render_curve
from pictopic.paper.experiments.results import Curve, Line

matplotlib = pytest.importorskip("matplotlib")
SVG = "{http://www.w3.org/2000/svg}"


def made_curve(**options):
    series = [
        Line("SupDocNADE", [25, 50, 100], [[0.5, 0.6], [0.7, 0.8], [0.6, 0.7]], paper=[None, 0.72, float("nan")]),
        Line("sLDA", [25, 50, 100], [[0.4], [0.45], [0.3]]),
    ]
    return Curve("Topics, LabelMe", "Accuracy by topics", "topics", "accuracy", series, **options)


def one_line(values, **options):
    return Curve("one", "", "x", "y", [Line("one", [25, 50, 100], values)], **options)


def texts(content):
    return [element.text for element in ET.fromstring(content).iter(f"{SVG}text")]  # noqa: S314


def paths(content, number=0):
    """The corners of what is drawn in the colour of a line, in the order it is drawn."""
    found = []
    for element in ET.fromstring(content).iter(f"{SVG}path"):  # noqa: S314
        style = element.get("style", "").lower()
        if "fill: none" in style and f"stroke: {COLOURS[number].lower()}" in style:
            corners = re.findall(r"[ML] (\S+) (\S+)", element.get("d"))
            found.append(np.array(corners, dtype=float))
    return found


def line_of(content, number=0):
    return next(path for path in paths(content, number) if len(path) == 3)


def test_writes_an_svg_and_a_png_named_after_the_curve(tmp_path):
    figures = draw_curve(made_curve(), tmp_path)
    assert [figure.file for figure in figures] == ["topics-labelme.svg", "topics-labelme.png"]
    assert {figure.caption for figure in figures} == {"Accuracy by topics"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["topics-labelme.png", "topics-labelme.svg"]


def test_svg_is_well_formed_and_its_text_is_text():
    found = texts(render_curve(made_curve(), "svg"))
    assert {"topics", "accuracy", "SupDocNADE", "sLDA", "SupDocNADE (paper)"} <= set(found)


def test_series_without_published_values_has_no_paper_line():
    assert "sLDA (paper)" not in texts(render_curve(made_curve(), "svg"))


def test_png_has_the_colours_of_the_lines(tmp_path):
    draw_curve(made_curve(), tmp_path)
    with Image.open(tmp_path / "topics-labelme.png") as image:
        assert image.width == 1280
        assert image.height > 700
        colours = {colour[:3] for _, colour in image.convert("RGB").getcolors(1 << 20)}
    wanted = [tuple(bytes.fromhex(colour[1:])) for colour in COLOURS[:3]]
    assert [colour in colours for colour in wanted] == [True, True, False]


def test_line_goes_through_the_means():
    y = line_of(render_curve(one_line([[0.5, 0.6], [0.7, 0.8], [0.6, 0.7]]), "svg"))[:, 1]
    assert (y[1] - y[0]) / (y[2] - y[0]) == pytest.approx(2, rel=1e-3)
    assert y[1] < y[0]  # up on the page


def test_bars_are_a_sample_standard_deviation_up_and_down():
    content = render_curve(one_line([[0.5, 0.6], [0.7, 0.9], [0.6, 0.6]]), "svg")
    line, bars = line_of(content), [path for path in paths(content) if len(path) == 2 and np.ptp(path[:, 0]) == 0]
    unit = (line[0, 1] - line[1, 1]) / (0.8 - 0.55)
    lengths = [np.ptp(path[:, 1]) / unit for path in bars]
    expected = [2 * np.std(values, ddof=1) for values in ([0.5, 0.6], [0.7, 0.9], [0.6, 0.6])]
    assert lengths == pytest.approx(expected, abs=1e-4)


def test_single_split_has_no_bars():
    content = render_curve(one_line([[0.5], [0.7], [0.6]]), "svg")
    assert [path for path in paths(content) if len(path) == 2] == []


def test_log_axis_puts_doubled_values_at_equal_distances():
    x = line_of(render_curve(one_line([[1], [2], [3]], log_x=True), "svg"))[:, 0]
    assert x[2] - x[1] == pytest.approx(x[1] - x[0], rel=1e-3)


def test_linear_axis_puts_doubled_values_at_doubled_distances():
    x = line_of(render_curve(one_line([[1], [2], [3]]), "svg"))[:, 0]
    assert x[2] - x[1] == pytest.approx(2 * (x[1] - x[0]), rel=1e-3)


def test_log_axis_has_room_for_zero():
    curve = Curve("epochs", "", "epochs", "y", [Line("one", [0, 1, 10], [[1], [2], [3]])], log_x=True)
    assert {"0", "1", "10"} <= set(texts(render_curve(curve, "svg")))


def test_values_that_were_tried_are_the_ticks():
    assert {"25", "50", "100"} <= set(texts(render_curve(made_curve(log_x=True), "svg")))


def test_ticks_that_would_overlap_are_round_numbers():
    curve = Curve("weights", "", "weight", "y", [Line("one", [1, 2, 3, 16000], [[1], [2], [3], [4]])])
    found = texts(render_curve(curve, "svg"))
    assert "3" not in found[: found.index("weight")]
    assert "10000" in found


def test_shares_are_shown_in_per_cent():
    found = texts(render_curve(made_curve(percent=True), "svg"))
    assert "accuracy (%)" in found
    assert {"40", "50", "60", "70"} <= set(found)


def test_published_line_is_dashed_and_left_where_nothing_was_published():
    published = published_of(Line("a", [25, 50, 100, 200], [[]] * 4, paper=[0.5, None, float("nan"), 0.7]))
    assert (published.x, published.mean) == ([25, 200], [0.5, 0.7])
    curve = Curve("one", "", "x", "y", [Line("a", [25, 50], [[0.1], [0.2]], paper=[0.3, 0.4])])
    assert render_curve(curve, "svg").count(b"stroke-dasharray") == 2  # the line, and its piece in the legend


def test_points_without_a_split_are_left_out_and_the_others_sorted():
    points = points_of(Line("a", [100, 50, 25], [[0.3, 0.5], [], [0.1]]))
    assert points.x == [25, 100]
    assert points.mean == pytest.approx([0.1, 0.4])
    assert points.std == pytest.approx([0, np.std([0.3, 0.5], ddof=1)])


@pytest.mark.parametrize("series", [[], [Line("none", [1], [[]])], [Line("one", [1], [[0.5]])]])
def test_curve_with_little_or_nothing_is_drawn(series):
    curve = Curve("little", "", "x", "y", series, percent=True, log_x=True)
    assert Image.open(io.BytesIO(render_curve(curve, "png"))).width == 1280


def test_many_lines_differ_in_colour_or_marker(tmp_path):
    curve = Curve("many", "", "x", "y", [Line(f"line {k}", [1, 2], [[k], [k + 1]]) for k in range(12)])
    root = ET.fromstring(render_curve(curve, "svg"))  # noqa: S314
    shapes = {element.get("id"): element.get("d") for element in root.iter(f"{SVG}path") if element.get("id")}
    used = {
        (shapes[element.get("{http://www.w3.org/1999/xlink}href")[1:]], element.get("style"))
        for element in root.iter(f"{SVG}use")
        if "fill: #555555" not in element.get("style")
    }
    assert len(used) == 12


@pytest.mark.filterwarnings("ignore:Glyph")
@pytest.mark.parametrize("name", ["$x", "$a_b$", "_hidden", "a & b <c>", "日本語", "a very long name " * 6])
def test_any_name_is_shown_as_it_is(name):
    curve = Curve("names", "", "x", "y", [Line(name, [1, 2], [[1], [2]])])
    assert name in texts(render_curve(curve, "svg"))


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_same_curve_gives_the_same_bytes_whatever_the_settings(kind):
    content = render_curve(made_curve(), kind)
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "red", "svg.hashsalt": None}):
        assert render_curve(made_curve(), kind) == content
    assert b"Date" not in content
    assert b"Software" not in content


def test_settings_of_matplotlib_stay_as_they_were():
    before = dict(matplotlib.rcParams)
    render_curve(made_curve(), "svg")
    assert dict(matplotlib.rcParams) == before


def test_pyplot_is_never_loaded():
    code = (
        "import sys\n"
        "from pictopic.paper.experiments.figures import *\n"
        "from pictopic.paper.experiments.results import *\n"
        "render_curve(Curve('', '', '', '', [Line('a', [1], [[1]])]), 'png')\n"
        "print('matplotlib.pyplot' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_missing_matplotlib_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"^drawing figures needs matplotlib: pip install 'pictopic\[reproduce\]'$"):
        draw_curve(made_curve(), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_written_if_drawing_fails(tmp_path):
    with pytest.raises(ValueError, match="zip"):
        draw_curve(Curve("bad", "", "x", "y", [Line("a", [1, 2], [[1]])]), tmp_path)
    assert list(tmp_path.iterdir()) == []
