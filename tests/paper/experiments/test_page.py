import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pictopic.paper.experiments import page
from pictopic.paper.experiments.page import captioned, wrap

pytest.importorskip("matplotlib")


@settings(max_examples=60, deadline=None)
@given(st.text(), st.integers(1, 4), st.booleans())
def test_wrapped_text_fits_whatever_it_is(text, lines, bold):
    found = wrap(text, 150, lines, bold)
    assert len(found) <= lines
    assert all(page._length(line, bold) <= 150 for line in found)


def test_text_that_fits_is_whole():
    assert wrap("sky, road, car", 500, lines=1) == ["sky, road, car"]


def test_nothing_is_lost_without_a_sign():
    found = wrap("one two three four five six seven", 150, lines=2)
    assert found[-1].endswith("…")
    assert " ".join(found)[:-1] == "one two three four five six seven"[: len(" ".join(found)) - 1]


def test_extreme_picture_keeps_a_pixel():
    assert captioned(np.zeros((1, 2000), np.uint8), []).picture.size == (320, 1)
