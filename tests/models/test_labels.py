import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from pictopic.models.labels import encode_labels


@pytest.mark.parametrize("missing", [None, float("nan"), pd.NA])
def test_missing_labels_are_unlabelled(missing):
    labels, classes, multi_label = encode_labels(np.array(["b", missing, "a"], dtype=object), 3)
    assert classes.tolist() == ["a", "b"]
    assert labels.known.tolist() == [True, False, True]
    assert labels.indicator.tolist() == [[0, 1], [0, 0], [1, 0]]
    assert not multi_label


def test_integers_that_became_float_for_a_nan_are_integers_again():
    _, classes, _ = encode_labels(np.array([3.0, np.nan, 5.0]), 3)
    assert classes.tolist() == [3, 5]
    assert classes.dtype.kind == "i"


@pytest.mark.parametrize("convert", [np.array, sparse.csr_matrix, lambda y: np.array(y, dtype=object)])
def test_indicator_matrix_is_multi_label(convert):
    labels, classes, multi_label = encode_labels(convert([[1, 0, 1], [0, 0, 0]]), 2)
    assert multi_label
    assert classes.tolist() == [0, 1, 2]
    assert labels.indicator.tolist() == [[1, 0, 1], [0, 0, 0]]
    assert labels.known.all()


def test_rows_of_nan_in_a_matrix_are_unlabelled():
    labels, _, _ = encode_labels(np.array([[1.0, 0.0], [np.nan, np.nan]]), 2)
    assert labels.known.tolist() == [True, False]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[1.0, np.nan], [0, 1]], "missing labels in row 0"),
        ([[1, 2], [0, 1]], "0/1 matrix"),
        ([[0.5, 1], [0, 1]], "Unknown label type|0/1 matrix"),
        ([0.5, 1.5], "Unknown label type"),
        ([0, 1, 1], "inconsistent"),
    ],
)
def test_wrong_labels_are_refused(y, message):
    with pytest.raises(ValueError, match=message):
        encode_labels(np.array(y), 2)


def test_class_outside_the_known_ones_is_named_with_its_row():
    with pytest.raises(ValueError, match="row 1: 'z'"):
        encode_labels(np.array(["a", "z"]), 2, np.array(["a", "b"]))
