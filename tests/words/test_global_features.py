import subprocess
import sys

import numpy as np
import pytest

from pictopic.words.gist import gist
from pictopic.words.global_features import KINDS, feature_names, global_features, n_features
from pictopic.words.mpeg7 import edge_histogram, mpeg7
from tests.support.pictures import synthetic_picture

WITHOUT_NETWORK = [kind for kind in KINDS if kind != "semantic"]


def test_default_is_the_papers_1857():
    features = global_features(synthetic_picture(90, 120))
    assert features.shape == (1857,) == (n_features(),)
    assert features.dtype == np.float32


@pytest.mark.parametrize("kind", WITHOUT_NETWORK)
def test_every_kind_has_as_many_features_as_it_says(kind):
    features = global_features(synthetic_picture(90, 120), kind)
    assert features.shape == (KINDS[kind],)
    assert features.dtype == np.float32


def test_kinds_come_in_the_order_asked_for():
    picture = synthetic_picture(90, 120)
    expected = np.concatenate([edge_histogram(picture), gist(picture), mpeg7(picture)])
    np.testing.assert_array_equal(global_features(picture, ["ehd", "gist", "mpeg7"]), expected)


def test_no_kind_is_no_feature():
    assert global_features(synthetic_picture(), ()).shape == (0,) == (n_features(()),)


@pytest.mark.parametrize("call", [n_features, feature_names, lambda kinds: global_features(synthetic_picture(), kinds)])
def test_unknown_kind_is_refused_with_a_list_of_the_known(call):
    with pytest.raises(ValueError, match=r"unknown kind of features 'sift'; known are gist, .*semantic"):
        call(("gist", "sift"))


def test_kind_given_twice_is_refused():
    with pytest.raises(ValueError, match="'ehd' is there twice"):
        n_features(("ehd", "gist", "ehd"))


def test_names_are_unique_and_as_many_as_features():
    names = feature_names(list(KINDS))
    assert len(names) == len(set(names)) == n_features(list(KINDS))
    assert names[960] == "mpeg7_csd_0"
    assert names[1857] == "csd_0"


def test_same_pixels_give_the_same_bytes(rng):
    picture = rng.randint(0, 256, (70, 90, 3)).astype(np.uint8)
    once = global_features(picture).tobytes()
    assert global_features(picture).tobytes() == once
    mirrored = np.ascontiguousarray(picture[:, ::-1])
    assert global_features(mirrored[:, ::-1]).tobytes() == once


def test_picture_stays_as_it_is():
    picture = synthetic_picture(40, 30)
    before = picture.copy()
    global_features(picture)
    np.testing.assert_array_equal(picture, before)


def test_grey_picture_of_two_dimensions_is_refused():
    with pytest.raises(ValueError, match=r"shape \(height, width, 3\), got uint8 of shape \(20, 30\)"):
        global_features(np.zeros((20, 30), np.uint8))


def test_torch_is_not_loaded_for_other_kinds_than_semantic():
    code = (
        "import sys, numpy as np; from pictopic.words.global_features import global_features, n_features; "
        "assert 'numba' not in sys.modules; "
        "global_features(np.zeros((20, 20, 3), np.uint8)); n_features('semantic'); assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
