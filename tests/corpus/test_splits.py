import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pictopic.corpus.splits import split_rows


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=60), st.floats(0.05, 0.95), st.integers(0, 99))
def test_every_class_has_its_share(labels, share, seed):
    test = split_rows(share, labels, [None] * len(labels), seed)
    for name in set(labels):
        own = np.array(labels) == name
        assert test[own].sum() == round(share * own.sum())


def test_another_seed_gives_another_split():
    splits = {tuple(split_rows(0.5, None, [None] * 20, seed)) for seed in range(5)}
    assert len(splits) == 5


def test_large_groups_do_not_swell_the_test_part():
    hashes = [0] * 30 + [None] * 70
    tests = [split_rows(0.1, None, hashes, seed) for seed in range(5)]
    assert [test.sum() for test in tests] == [10] * 5
    assert not any(test[:30].any() for test in tests)


@pytest.mark.parametrize("share", [0, 1, -0.5])
def test_a_share_outside_zero_and_one_is_refused(share):
    with pytest.raises(ValueError, match="between 0 and 1"):
        split_rows(share, None, [None], 0)
