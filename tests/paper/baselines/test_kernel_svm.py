import numpy as np
import pytest
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from pictopic.paper.baselines import AverageKernelSVM

NOISE = 150  # columns that say nothing


def made(seed, n=60):
    """Two classes that only the second of two kinds of features tells apart; the first has large numbers."""
    rng = np.random.RandomState(seed)
    y = np.arange(n) % 2
    return np.hstack([1000 * rng.normal(size=(n, NOISE)), 1.5 * y[:, None] + rng.normal(size=(n, 2))]), y


def test_a_kind_with_large_numbers_does_not_drown_another():
    (X, y), (X_test, y_test) = made(0), made(1)
    together = AverageKernelSVM(blocks=(NOISE + 2,)).fit(X, y).score(X_test, y_test)
    apart = AverageKernelSVM(blocks=(NOISE, 2)).fit(X, y).score(X_test, y_test)
    assert apart > 0.8
    assert apart > together + 0.1


def test_it_is_an_svm_on_the_mean_of_both_kernels():
    (X, y), (X_test, _) = made(0), made(1)
    model = AverageKernelSVM(blocks=(NOISE, 2), C=3.0).fit(X, y)
    mean, std = X.mean(axis=0), X.std(axis=0)

    def kernel(A, B):
        found = np.zeros((len(A), len(B)))
        for part in (slice(0, NOISE), slice(NOISE, NOISE + 2)):
            a, b, own = ((Z[:, part] - mean[part]) / std[part] for Z in (A, B, X))
            distances = np.array([[np.sum((p - q) ** 2) for q in b] for p in a])
            width = np.mean([[np.sum((p - q) ** 2) for q in own] for p in own])
            found += np.exp(-distances / width) / 2
        return found

    oracle = SVC(kernel="precomputed", C=3.0).fit(kernel(X, X), y)
    np.testing.assert_allclose(model.decision_function(X_test), oracle.decision_function(kernel(X_test, X)), atol=1e-6)


def test_blocks_that_do_not_add_up_are_refused():
    X, y = made(0)
    with pytest.raises(ValueError, match=r"blocks=\(150, 3\) do not add up to the 152 columns"):
        AverageKernelSVM(blocks=(NOISE, 3)).fit(X, y)


def test_it_passes_scikit_learns_checks():
    check_estimator(AverageKernelSVM(), on_skip=None)
