import numpy as np
import pytest
from scipy import sparse
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.model_selection import KFold
from sklearn.svm import SVC, LinearSVC
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from pictopic.paper.baselines import AverageKernelSVM, HistogramSVM, MostFrequent, TfidfClassifier
from pictopic.tasks.metrics import mean_average_precision


@parametrize_with_checks([HistogramSVM(), HistogramSVM(C=1.0, gamma=1.0)])
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_it_is_an_svm_on_square_roots_of_shares(rng, topics):
    X, y = topics
    test = rng.poisson(1, (30, 12))
    roots = [np.sqrt(part / np.maximum(part.sum(axis=1, keepdims=True), 1)) for part in (X, test)]
    svm = SVC(C=3, gamma=2).fit(roots[0], y)
    model = HistogramSVM(C=3, gamma=2).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(model.decision_function(test), svm.decision_function(roots[1]))
    np.testing.assert_array_equal(model.predict(test), svm.predict(roots[1]))
    assert model.best_params_ == {"C": 3, "gamma": 2}


def test_options_are_chosen_from_those_given(topics):
    X, y = topics
    model = HistogramSVM(C=10, gamma=(1e6, 1)).fit(X, np.where(y, "sea", "city"))
    assert model.best_params_ == {"C": 10, "gamma": 1}
    assert model.classes_.tolist() == ["city", "sea"]
    assert model.score(X, np.where(y, "sea", "city")) > 0.95


def test_annotation_words_are_not_looked_at(rng, topics):
    X, y = topics
    tagged = np.hstack([X, 50 * y[:, None]])
    model = HistogramSVM(n_annotation_words=1, C=1, gamma=1).fit(tagged, y)
    plain = HistogramSVM(C=1, gamma=1).fit(X, y)
    np.testing.assert_allclose(model.decision_function(tagged * 0 + 3), plain.decision_function(X * 0 + 3))


def test_several_classes_a_row_are_refused(topics):
    X, y = topics
    with pytest.raises(ValueError, match="one class a row"):
        HistogramSVM().fit(X, np.column_stack([y, 1 - y]))


@parametrize_with_checks([TfidfClassifier(), TfidfClassifier(C=1.0)])
def test_tfidf_scikit_learn_check(estimator, check):
    check(estimator)


def tfidf(train, X):
    """Count x (1 + log((1 + n) / (1 + rows with the word))), of length 1."""
    idf = 1 + np.log((1 + len(train)) / (1 + (train > 0).sum(axis=0)))
    weighted = X * idf
    return weighted / np.linalg.norm(weighted, axis=1, keepdims=True)


def test_it_is_a_linear_svm_on_tfidf(rng, topics):
    X, y = topics
    X = X + 1
    test = rng.poisson(1, (30, 12)) + 1
    svm = LinearSVC(C=0.3, random_state=0).fit(tfidf(X, X), y)
    model = TfidfClassifier(C=0.3).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(model.decision_function(test), svm.decision_function(tfidf(X, test)), atol=1e-6)
    np.testing.assert_array_equal(model.predict(test), svm.predict(tfidf(X, test)))


def test_counts_may_have_64_bit_indices(topics):
    X, y = sparse.csr_array(topics[0]), topics[1]
    large = sparse.csr_array((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape)
    np.testing.assert_array_equal(
        TfidfClassifier().fit(large, y).predict(large), TfidfClassifier().fit(X, y).predict(X)
    )


def test_several_classes_a_row_have_an_svm_each(rng):
    X = rng.poisson(1, (80, 10))
    Y = np.column_stack([X[:, 0] > 1, X[:, 1] > 0, X[:, 2] > 0]).astype(int)
    model = TfidfClassifier(C=1.0).fit(X, sparse.csr_array(Y))
    features = TfidfTransformer().fit_transform(X)
    expected = [LinearSVC(random_state=0).fit(features, Y[:, c]).decision_function(features) for c in range(3)]
    np.testing.assert_allclose(model.decision_function(X), np.transpose(expected), atol=1e-6)
    assert model.predict(X).shape == (80, 3)
    assert mean_average_precision(Y, model.decision_function(X)) > 0.9


def test_c_of_several_classes_is_the_best_by_mean_average_precision(rng):
    X = rng.poisson(1, (80, 10))
    Y = (X[:, :4] + rng.poisson(0.6, (80, 4)) > 1).astype(int)
    features = TfidfTransformer().fit_transform(X)
    score = {}
    for C in (1e-4, 0.1, 100.0):
        folds = KFold(5, shuffle=True, random_state=3).split(X)
        score[C] = np.mean([
            mean_average_precision(Y[b], np.transpose([
                LinearSVC(C=C, random_state=3).fit(features[a], Y[a, c]).decision_function(features[b])
                for c in range(4)
            ]))
            for a, b in folds
        ])  # fmt: skip
    model = TfidfClassifier(C=(1e-4, 0.1, 100.0), random_state=3).fit(X, Y)
    assert score[model.best_params_["C"]] == pytest.approx(max(score.values()))


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


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_every_picture_is_of_the_most_frequent_class(rng, kind):
    X = kind(rng.poisson(1, (5, 3)))
    model = MostFrequent().fit(X, ["sea", "city", "sea", "tree", "sea"])
    assert model.predict(X).tolist() == ["sea"] * 5
    assert model.score(X, ["sea", "sea", "tree", "tree", "sea"]) == 0.6
    np.testing.assert_allclose(model.decision_function(X), [[0.2, 0.6, 0.2]] * 5)
    assert model.classes_.tolist() == ["city", "sea", "tree"]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_every_picture_has_the_tags_frequencies(rng, kind):
    Y = rng.randint(2, size=(30, 6)) * [1, 1, 1, 1, 1, 0]
    X = np.zeros((30, 2))
    model = MostFrequent().fit(X, kind(Y))
    np.testing.assert_allclose(model.decision_function(X[:4]), [Y.mean(axis=0)] * 4)
    np.testing.assert_array_equal(model.predict(X[:4]), [Y.mean(axis=0) > 0.5] * 4)
