import numpy as np

from pictopic.demo.scenes.tags import given_tags, visible_tags


def test_a_tag_is_true_from_a_size_on():
    large = {"sky": 0.4, "grass": 0.3, "tree": 0.2}
    assert "car" in visible_tags({**large, "car": 0.01})
    assert "car" not in visible_tags({**large, "car": 0.0005})


def test_nobody_gives_fewer_than_three_tags():
    rng = np.random.default_rng(0)
    assert min(len(given_tags(rng, ["sky", "sea", "sand", "boat"])) for _ in range(300)) == 3
