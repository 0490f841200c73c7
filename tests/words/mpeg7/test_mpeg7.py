import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pictopic.words.mpeg7 import (
    color_layout,
    color_structure,
    edge_histogram,
    homogeneous_texture,
    mpeg7,
    scalable_color,
)
from tests.support.pictures import synthetic_picture

SMALL = st.tuples(st.integers(1, 12), st.integers(1, 12), st.just(3))


def test_descriptors_follow_one_another():
    picture = synthetic_picture(50, 70)
    features = mpeg7(picture)
    assert features.dtype == np.float32
    ends = np.cumsum([256, 256, 192, 150, 43])
    parts = (color_structure, scalable_color, color_layout, edge_histogram, homogeneous_texture)
    for part, found in zip(parts, np.split(features, ends[:-1]), strict=True):
        np.testing.assert_array_equal(found, part(picture))


@settings(max_examples=60, deadline=None)
@given(arrays(np.uint8, SMALL))
def test_any_small_picture_has_finite_features(picture):
    assert np.isfinite(mpeg7(picture)).all()


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 400), st.integers(1, 3), st.booleans(), st.integers(0, 255))
def test_any_narrow_or_constant_picture_has_finite_features(length, width, upright, value):
    picture = np.full((length, width, 3) if upright else (width, length, 3), value, np.uint8)
    assert np.isfinite(mpeg7(picture)).all()
