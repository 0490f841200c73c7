import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pictopic.kernels.color_structure import count_windows, hmmd_cells
from pictopic.words.pixels import as_rgb


@settings(deadline=None)
@given(
    arrays(np.uint8, st.tuples(st.integers(1, 14), st.integers(1, 14)), elements=st.integers(0, 5)),
    st.integers(1, 9),
)
def test_windows_with_a_color_are_counted_once(cells, window):
    height, width = min(window, cells.shape[0]), min(window, cells.shape[1])
    windows = np.lib.stride_tricks.sliding_window_view(cells, (height, width))
    expected = [(windows == color).any(axis=(2, 3)).sum() for color in range(256)]
    counts = np.zeros(256, np.int64)
    count_windows(cells, window, counts)
    assert counts.tolist() == expected


def test_every_cell_has_a_color(rng):
    levels = np.arange(0, 256, 5)
    every = np.stack(np.meshgrid(levels, levels, levels), axis=-1).reshape(len(levels), -1, 3).astype(np.uint8)
    cells = np.empty(every.shape[:2], np.uint8)
    hmmd_cells(as_rgb(every), 1, cells)
    assert len(np.unique(cells)) > 240  # the corners of the double cone leave some of the 256 empty


def test_greys_are_the_last_32_cells_by_brightness():
    greys = np.arange(256, dtype=np.uint8)[None, :, None].repeat(3, axis=2)
    cells = np.empty((1, 256), np.uint8)
    hmmd_cells(as_rgb(greys), 1, cells)
    assert cells[0, 0] == 224
    assert cells[0, -1] == 255
    assert set(np.diff(cells[0].astype(int))) == {0, 1}


def test_only_every_nth_pixel_is_looked_at(rng):
    picture = rng.randint(0, 256, (13, 10, 3)).astype(np.uint8)
    cells, expected = np.empty((5, 4), np.uint8), np.empty((5, 4), np.uint8)
    hmmd_cells(as_rgb(picture), 3, cells)
    hmmd_cells(as_rgb(picture[::3, ::3]), 1, expected)
    np.testing.assert_array_equal(cells, expected)
