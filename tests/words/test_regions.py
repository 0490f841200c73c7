import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pictopic.words.regions import Regions


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 60), st.integers(1, 60))
def test_every_pixel_lies_in_the_cell_it_would_be_cut_into(rows, columns, height, width):
    y, x = np.mgrid[:height, :width].reshape(2, -1)
    found = Regions(((rows, columns),)).of(np.stack([x, y], axis=1), height, width)[0]
    expected = [
        int((b + 0.5) * rows / height) * columns + int((a + 0.5) * columns / width) for a, b in zip(x, y, strict=True)
    ]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("text", "n"), [("1x1", 1), ("2x2", 4), (" 3 X 1 ", 3), ("1x1+2x2+4x4", 21)])
def test_number_of_regions(text, n):
    assert len(Regions.parse(text)) == n


def test_text_of_regions_is_read_again():
    assert Regions.parse(str(Regions.parse("1x1+3x1"))) == Regions(((1, 1), (3, 1)))


@pytest.mark.parametrize("text", ["", "2", "2x", "0x2", "2x2+", "axb", "2x2x2", "-1x2"])
def test_what_is_no_grid_is_refused(text):
    with pytest.raises(ValueError, match="is no grid of regions"):
        Regions.parse(text)


def test_places_on_the_border_are_inside():
    found = Regions.parse("2x2").of(np.array([[-1.0, -1.0], [10.0, 10.0]]), 10, 10)
    assert found.tolist() == [[0, 3]]
