import numpy as np

from pictopic.corpus.sample import load_sample


def test_sample_is_the_same_every_time():
    first, second = load_sample(50), load_sample(50)
    assert (first.X != second.X).nnz == 0
    assert np.array_equal(first.y, second.y)
    assert first.vocabulary == second.vocabulary


def test_every_picture_has_three_to_nine_tags():
    lengths = load_sample(300).X.sum(axis=1)
    assert lengths.min() >= 3
    assert lengths.max() <= 9
