import numpy as np
import pytest
from scipy import sparse
from sklearn.model_selection import cross_val_score
from sklearn.svm import SVC

from pictopic.paper.baselines.base import check_indicator, fit_best, root_shares, visual_columns


def test_shares_sum_to_one_before_the_root(rng):
    X = rng.poisson(0.5, (20, 6))
    X[3] = 0
    for given in (X, sparse.csr_array(X)):
        found = root_shares(given)
        np.testing.assert_allclose((found**2).sum(axis=1), (X.sum(axis=1) > 0))
        np.testing.assert_allclose(found[0] ** 2 * X[0].sum(), X[0])


def test_annotations_are_the_last_columns(rng):
    X = sparse.csr_array(rng.poisson(1, (5, 6)))
    np.testing.assert_array_equal(visual_columns(X, 2).toarray(), X.toarray()[:, :4])
    with pytest.raises(ValueError, match="leaves no visual words: X has 6 columns"):
        visual_columns(X, 6)


def test_best_options_are_those_of_a_plain_search(rng):
    from sklearn.model_selection import StratifiedKFold

    X, y = rng.normal(size=(60, 3)), rng.randint(3, size=60)
    X[:, 0] += y
    folds = StratifiedKFold(4, shuffle=True, random_state=1)
    scores = {
        (C, gamma): cross_val_score(SVC(C=C, gamma=gamma), X, y, cv=folds).mean()
        for C in (0.01, 1, 100)
        for gamma in (0.01, 1)
    }
    _, best = fit_best(SVC(), {"C": (0.01, 1, 100), "gamma": [0.01, 1]}, X, y, cv=4, random_state=1)
    assert scores[best["C"], best["gamma"]] == max(scores.values())


@pytest.mark.parametrize("values", [3.0, [3.0], (3.0,)])
def test_one_value_is_taken_as_it_is(rng, values):
    X, y = rng.normal(size=(12, 2)), np.arange(12) % 2
    model, best = fit_best(SVC(), {"C": values}, X, y, cv=5, random_state=0)
    assert best == {"C": 3.0}
    assert model.C == 3.0


def test_a_class_with_one_row_leaves_nothing_to_choose_by(rng):
    X, y = rng.normal(size=(12, 2)), np.arange(12) == 4
    assert fit_best(SVC(), {"C": [7, 1]}, X, y, cv=5, random_state=0)[1] == {"C": 7}


def test_a_class_with_two_rows_is_in_both_of_two_folds(rng):
    X, y = rng.normal(size=(12, 2)), np.arange(12) < 2
    X[y] += 9
    assert fit_best(SVC(), {"C": [1e-4, 1]}, X, y, cv=5, random_state=0)[1] == {"C": 1}


def test_indicator_of_other_numbers_is_refused():
    np.testing.assert_array_equal(check_indicator(sparse.csr_array([[1, 0]])), [[1, 0]])
    with pytest.raises(ValueError, match="0 and 1"):
        check_indicator([[2, 0]])
