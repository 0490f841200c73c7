import sys

import numpy as np
import pytest
from PIL import Image

from pictopic.paper.experiments import page
from pictopic.paper.experiments.page import BLUE, RED, Text, Tile, compose
from pictopic.paper.experiments.pictures import (
    Association,
    Captioned,
    Failures,
    Generated,
    Neighbors,
    Prediction,
    draw_associations,
    draw_failures,
    draw_generated,
    draw_neighbors,
    draw_predictions,
)

pytest.importorskip("matplotlib")
GREEN, ORANGE, BOX = (10, 200, 30), (240, 140, 20), (0xE8, 0xE8, 0xE8)
LEFT, SIDE, GAP = 24, 320, 28  # pixels: the margin, a picture, between two


@pytest.fixture
def green(tmp_path):
    """A picture of one colour, half as high as wide."""
    path = tmp_path / "green.png"
    Image.new("RGB", (100, 50), GREEN).save(path)
    return path


@pytest.fixture
def orange(tmp_path):
    path = tmp_path / "orange.png"
    Image.new("RGB", (64, 64), ORANGE).save(path)
    return path


def pixels(folder, figure):
    with Image.open(folder / figure.file) as image:
        assert image.format == "PNG"
        return np.array(image.convert("RGB"))


def where(page, colour):
    """Left, top, right and bottom of all that has a colour; None if nothing has."""
    if isinstance(colour, str):
        colour = tuple(bytes.fromhex(colour[1:]))
    y, x = np.nonzero((page == colour).all(axis=2))
    return (x.min(), y.min(), x.max() + 1, y.max() + 1) if len(x) else None


def test_right_predictions_stand_above_wrong_ones(tmp_path, green, orange):
    figure = draw_predictions([Prediction(green, "a", "a")], [Prediction(orange, "b", "c")], tmp_path)
    assert figure.file == "predictions.png"
    shown = pixels(tmp_path, figure)
    above, below = where(shown, GREEN), where(shown, ORANGE)
    assert above[3] < below[1]
    assert (above[2] - above[0], above[3] - above[1]) == (320, 160)
    assert (below[2] - below[0], below[3] - below[1]) == (320, 320)


def test_prediction_is_blue_and_the_truth_below_it_black(tmp_path, green):
    figure = draw_predictions([Prediction(green, "coast", "street", ["sea"], ["car"])], [], tmp_path)
    shown = pixels(tmp_path, figure)
    picture, blue = where(shown, GREEN), where(shown, BLUE)
    assert picture[3] < blue[1]
    below = shown[blue[3] + 4 :]
    assert where(below, (0, 0, 0)) is not None
    assert where(below, BLUE) is None


def test_data_set_without_tags_shows_classes_only(tmp_path, green):
    without = pixels(tmp_path, draw_predictions([Prediction(green, "coast", "coast")], [], tmp_path))
    tagged = Prediction(green, "coast", "coast", ["sea"], ["sea"])
    assert len(pixels(tmp_path, draw_predictions([tagged], [], tmp_path))) == len(without) + 2 * 34


def test_item_without_picture_is_a_caption_in_a_grey_box(tmp_path, green):
    items = [Prediction(green, "coast", "coast"), Prediction(None, "street", "street")]
    shown = pixels(tmp_path, draw_predictions(items, [], tmp_path))
    picture, second = where(shown, GREEN), shown[:, LEFT + SIDE + GAP :]
    box = where(second, BOX)
    assert box == (0, picture[1], SIDE, picture[3])
    inside, below = second[box[1] : box[3]], second[box[3] :]
    assert where(inside, BLUE) is not None
    assert (below == 255).all()


def test_picture_that_cannot_be_read_is_a_grey_box(tmp_path):
    (tmp_path / "bad.png").write_text("no picture")
    shown = pixels(tmp_path, draw_predictions([Prediction(tmp_path / "bad.png", "a", "b")], [], tmp_path))
    assert where(shown, BOX) is not None


def test_long_text_stays_in_its_column(tmp_path, green):
    tags = ["a" * 200, "long tag " * 50, "Straßenbahnhaltestelle", "日本語" * 40]
    items = [Prediction(green, "class " * 30, "x" * 90, tags, tags), Prediction(None, "y" * 90, "z " * 90, tags, tags)]
    shown = pixels(tmp_path, draw_predictions(items * 2, items, tmp_path))
    headings = shown[:70]
    assert not (headings == 255).all()
    for column in range(3):
        gap = LEFT + SIDE + column * (SIDE + GAP)
        assert (shown[70:, gap + 1 : gap + GAP - 1] == 255).all()
    assert (shown[:, -LEFT + 1 :] == 255).all()


def test_text_below_is_at_most_eight_lines(tmp_path, green):
    item = Prediction(green, "class " * 30, "x " * 90, ["tag"] * 90, ["tag"] * 90)
    short = pixels(tmp_path, draw_predictions([Prediction(green, "a", "b")], [], tmp_path))
    assert len(pixels(tmp_path, draw_predictions([item], [], tmp_path))) == len(short) + 6 * 34


def test_nothing_to_draw_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="nothing to draw as 'predictions'"):
        draw_predictions([], [], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_association_is_a_class_in_red_with_mosaics_of_its_words(tmp_path):
    words = [[Image.new("RGB", (8, 8), colour)] * 16 for colour in (GREEN, ORANGE, (1, 2, 3), (9, 8, 7))]
    shown = pixels(tmp_path, draw_associations([Association("forest", words, ["tree", "path"])], tmp_path))
    places = [where(shown, colour) for colour in (GREEN, ORANGE, (1, 2, 3), (9, 8, 7))]
    assert [(right - left, bottom - top) for left, top, right, bottom in places] == [(4 * 56 + 3 * 2,) * 2] * 4
    assert sorted(places) == places
    assert where(shown, RED)[2] < places[0][0]


def test_tags_stand_below_the_class(tmp_path):
    shown = pixels(tmp_path, draw_associations([Association("forest", [], ["tree", "path"])], tmp_path))
    assert where(shown, RED)[3] < where(shown, (0, 0, 0))[1] + 1


def test_missing_patches_leave_a_gap(tmp_path):
    word = [Image.new("RGB", (8, 8), GREEN), None]
    shown = pixels(tmp_path, draw_associations([Association("forest", [word], [])], tmp_path))
    left, top, right, bottom = where(shown, GREEN)
    assert (right - left, bottom - top) == (56, 56)
    assert tuple(shown[top + 20, right + 20]) == (128, 128, 128)


def test_query_comes_first_and_the_most_similar_next(tmp_path, green, orange):
    found = [Captioned(orange, "sky"), Captioned(None, "sea"), Captioned(None, ""), Captioned(None, "rock")]
    figure = draw_neighbors([Neighbors(Captioned(green, "sky, sea"), found)], tmp_path)
    assert figure.file == "retrieval.png"
    shown = pixels(tmp_path, figure)
    assert shown.shape[1] == 2 * LEFT + 5 * SIDE + 4 * GAP
    assert where(shown, GREEN)[0] == LEFT
    assert where(shown, ORANGE)[0] == LEFT + SIDE + GAP


def test_pictures_of_a_row_stand_on_one_line(tmp_path, green, orange):
    shown = pixels(tmp_path, draw_neighbors([Neighbors(Captioned(green, ""), [Captioned(orange, "")])], tmp_path))
    assert where(shown, GREEN)[3] == where(shown, ORANGE)[3]


def test_generated_tags_stand_right_of_the_true_ones(tmp_path, green):
    shown = pixels(tmp_path, draw_generated([Generated(green, ["sea", "sky"], ["sea", "boat"])], tmp_path))
    picture, generated = where(shown, GREEN), where(shown, BLUE)
    truth = where(shown[picture[1] :, : generated[0]], (0, 0, 0))
    assert picture[2] < truth[0] < truth[2] < generated[0]


def test_picture_without_true_tags_has_a_blank(tmp_path, green):
    shown = pixels(tmp_path, draw_generated([Generated(green, [], ["sea", "boat"])], tmp_path))
    assert where(shown, (0, 0, 0)) is None


def test_kind_of_failure_stands_at_the_left(tmp_path, green):
    items = [Captioned(green, "sky: 0.995")] * 3
    shown = pixels(tmp_path, draw_failures([Failures("misleading", items), Failures("too small", items[:1])], tmp_path))
    left, top, right, _ = where(shown, GREEN)
    assert right - left == 3 * SIDE + 2 * GAP
    beside = where(shown[:, :left], (0, 0, 0))
    assert LEFT <= beside[0] < beside[2] < left
    assert top < beside[1]


@pytest.mark.parametrize("draw", [draw_associations, draw_neighbors, draw_generated, draw_failures])
def test_no_items_are_an_error(draw, tmp_path):
    with pytest.raises(ValueError, match="nothing to draw"):
        draw([], tmp_path)


def test_name_is_that_of_the_file(tmp_path):
    assert draw_generated([Generated(None, [], [])], tmp_path).file == "generated-tags.png"
    assert (tmp_path / "generated-tags.png").is_file()


def test_same_items_give_the_same_file(tmp_path, green):
    for name in ("first", "second"):
        draw_generated([Generated(green, ["sea"], ["日本", "köln"])], tmp_path / name)
    first, second = ((tmp_path / name / "generated-tags.png").read_bytes() for name in ("first", "second"))
    assert first == second


def test_grey_box_has_room_for_its_text():
    shown = np.array(compose([[Tile([Text("a " * 500, lines=20)], boxed=True)]], [200]))
    left, top, right, bottom = where(shown, BOX)
    assert (left, right) == (LEFT, LEFT + 200)
    text = where(shown, (0, 0, 0))
    assert left < text[0] < text[2] < right
    assert top < text[1] < text[3] < bottom


def test_missing_matplotlib_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page._font_file.cache_clear()
    with pytest.raises(ImportError, match=r"^drawing figures needs matplotlib: pip install 'pictopic\[reproduce\]'$"):
        draw_generated([Generated(None, [], ["sea"])], tmp_path)
