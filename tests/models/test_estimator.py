import numpy as np
import pytest
from sklearn.base import clone

from pictopic import DeepDocNADE, DocNADE, SupDeepDocNADE, SupDocNADE
from pictopic.models.estimator import split_held_out
from pictopic.models.inputs import Labels, encode_labels, no_labels


def test_held_out_part_has_the_same_share_of_each_class(rng):
    y = np.repeat(["a", "b", "c"], [40, 20, 3])
    labels, _, _ = encode_labels(y, 63)
    rows, held_out = split_held_out(labels, 0.25, rng)
    assert sorted([*rows, *held_out]) == list(range(63))
    found = {name: int((y[held_out] == name).sum()) for name in "abc"}
    assert found == {"a": 10, "b": 5, "c": 0}  # a class too small to be split stays in training


def test_unlabelled_rows_are_never_held_out_to_judge_classes(rng):
    labels, _, _ = encode_labels(np.array(["a", None, "b", None] * 10, dtype=object), 40)
    _, held_out = split_held_out(labels, 0.5, rng)
    assert labels.known[held_out].all()
    assert len(held_out) == 10


def test_row_of_several_classes_counts_for_its_rarest(rng):
    indicator = np.array([[1, 1]] * 4 + [[1, 0]] * 20, dtype=np.uint8)
    _, held_out = split_held_out(Labels(indicator, np.ones(24, bool)), 0.5, rng)
    assert (held_out < 4).sum() == 2
    assert (held_out >= 4).sum() == 10


@pytest.mark.parametrize(("fraction", "expected"), [(None, 0), (0.1, 0), (0.5, 4)])
def test_share_of_documents_without_classes_is_rounded_down(rng, fraction, expected):
    rows, held_out = split_held_out(no_labels(9), fraction, rng)
    assert len(held_out) == expected
    assert len(rows) == 9 - expected


# ---- options ---------------------------------------------------------------------------------------------------------


class Tuned(SupDocNADE):
    def __init__(self, *, dropout=0.1, colour="red", **options):
        super().__init__(dropout=dropout, **options)
        self.colour = colour


def test_a_subclass_has_the_options_of_the_classes_above_it():
    above, options = SupDocNADE().get_params(), Tuned(n_components=3).get_params()
    assert options == above | {"n_components": 3, "dropout": 0.1, "colour": "red"}


def test_only_options_that_were_changed_are_shown():
    assert repr(Tuned(max_iter=3)) == "Tuned(max_iter=3)"
    assert repr(SupDeepDocNADE(word_dropout=0.1)) == "SupDeepDocNADE(word_dropout=0.1)"


def test_a_copy_has_the_same_options():
    assert clone(Tuned(n_jobs=2, colour="blue")).get_params() == Tuned(n_jobs=2, colour="blue").get_params()


def test_an_option_that_does_not_exist_is_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'max_itre'"):
        SupDeepDocNADE(max_itre=3)


def test_no_estimator_has_more_than_25_options():
    assert [len(kind().get_params()) for kind in (DocNADE, SupDocNADE, DeepDocNADE, SupDeepDocNADE)] == [19, 21, 22, 25]
