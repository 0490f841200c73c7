import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from pictopic.tasks import classifiers
from pictopic.tasks.classifiers import LinearClassifier, RbfSvm


def rows_of(rng, n_classes, n=150):
    y = np.arange(n) % n_classes
    # A representation of a network: some units never speak, as they are off for all pictures.
    Z = np.hstack([rng.normal(size=(n, 6)) + 1.5 * np.eye(n_classes, 6)[y], np.zeros((n, 2))])
    return Z, np.array([f"class {k}" for k in y], dtype=object)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("gamma", [0.01, 0.2, 3.0])
def test_svm_has_the_scores_of_scikit_learn(rng, n_classes, gamma):
    Z, y = rows_of(rng, n_classes)
    svm, classes = RbfSvm.fit(Z, y, C=10.0, gamma=gamma)
    reference = make_pipeline(StandardScaler(), SVC(C=10.0, gamma=gamma)).fit(Z, y)
    questions = np.vstack([Z, rng.normal(scale=3, size=(100, 8))])
    expected = reference.decision_function(questions)
    expected = np.stack([np.zeros(len(expected)), expected], axis=1) if n_classes == 2 else expected
    np.testing.assert_allclose(svm.scores(questions), expected, atol=1e-6)
    assert classes.tolist() == reference.classes_.tolist()


def test_svm_compares_block_by_block(rng, monkeypatch):
    Z, y = rows_of(rng, 3)
    svm, _ = RbfSvm.fit(Z, y, C=1.0, gamma=0.1)
    expected = svm.scores(Z)
    monkeypatch.setattr(classifiers, "_ROWS", 7)
    np.testing.assert_allclose(svm.scores(Z), expected, atol=1e-12)
    assert svm.scores(Z[:0]).shape == (0, 3)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_linear_classifier_has_the_probabilities_of_scikit_learn(rng, n_classes):
    Z, y = rows_of(rng, n_classes)
    linear, classes = LinearClassifier.fit(Z, y, C=0.1)
    reference = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=1000)).fit(Z, y)
    e = np.exp(linear.scores(Z))
    np.testing.assert_allclose(e / e.sum(axis=1, keepdims=True), reference.predict_proba(Z), atol=1e-6)
    assert classes.tolist() == reference.classes_.tolist()


def test_linear_classifier_of_several_labels_has_the_probabilities_of_scikit_learn(rng):
    Z = rng.normal(size=(100, 4))
    Y = (Z[:, :3] + rng.normal(size=(100, 3)) > 0).astype(int)
    linear, _ = LinearClassifier.fit(Z, Y, C=0.1)
    reference = OneVsRestClassifier(LogisticRegression(C=0.1, max_iter=1000))
    scaled = StandardScaler().fit_transform(Z)
    np.testing.assert_allclose(
        1 / (1 + np.exp(-linear.scores(Z))), reference.fit(scaled, Y).predict_proba(scaled), atol=1e-6
    )


def test_a_label_that_all_or_no_pictures_have_is_certain(rng):
    Z = rng.normal(size=(20, 4))
    Y = np.stack([np.ones(20, int), np.zeros(20, int), Z[:, 0] > 0], axis=1)
    linear, _ = LinearClassifier.fit(Z, Y, C=0.1)
    np.testing.assert_allclose(1 / (1 + np.exp(-linear.scores(Z)))[:, :2], np.tile([1.0, 0.0], (20, 1)), atol=1e-6)
