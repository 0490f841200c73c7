import numpy as np
import pytest
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support

from pictopic import DeepDocNADE, DocNADE
from pictopic.tasks.fitting import Network, Rows
from pictopic.tasks.quality import confusion, log_likelihood_a_word, odd_means, tag_scores

CLASSES = ["a", "b", "c"]


def test_confusion_is_scikit_learns():
    rng = np.random.RandomState(0)
    true, proba = rng.choice(CLASSES, 50).tolist(), rng.dirichlet(np.ones(3), 50)
    found = confusion(true, proba, range(100, 150), CLASSES, CLASSES)
    expected = confusion_matrix(true, np.array(CLASSES)[proba.argmax(axis=1)], labels=CLASSES)
    assert found.counts.tolist() == expected.tolist()


def test_each_cell_names_its_pictures_the_surest_first():
    rng = np.random.RandomState(1)
    true, proba = rng.choice(CLASSES, 50).tolist(), rng.dirichlet(np.ones(3), 50)
    found = confusion(true, proba, range(100, 150), CLASSES, CLASSES)
    for (t, p), pictures in found.pictures.items():
        rows = [row - 100 for row, _ in pictures]
        assert {true[row] for row in rows} == {CLASSES[t]}
        assert set(proba[rows].argmax(axis=1)) == {p}
        assert [value for _, value in pictures] == sorted(proba[rows, p], reverse=True)
        assert len(pictures) == found.counts[t, p]


def test_pictures_without_a_class_are_not_counted():
    found = confusion([None, "b"], np.eye(3)[[0, 1]], [0, 1], CLASSES, CLASSES)
    assert found.counts.sum() == 1


def test_classes_may_be_told_in_another_order_and_be_more():
    found = confusion(["d", "c"], np.eye(3)[[0, 2]], [0, 1], CLASSES, ["d", "c", "b", "a"])
    assert found.counts[0].tolist() == [0, 0, 0, 1]
    assert found.counts[1].tolist() == [0, 1, 0, 0]


def test_tag_scores_are_scikit_learns():
    rng = np.random.RandomState(0)
    has_tag, given = rng.uniform(size=(30, 6)) < 0.3, rng.uniform(size=(30, 6)) < 0.4
    precision, recall, f, count = precision_recall_fscore_support(has_tag, given)
    found = tag_scores(has_tag, given, list("abcdef"))
    assert [own.count for own in found] == sorted(count, reverse=True)
    for own in found:
        k = "abcdef".index(own.name)
        assert (own.precision, own.recall, own.f, own.count) == pytest.approx((precision[k], recall[k], f[k], count[k]))


def test_what_cannot_be_measured_is_none_and_what_nobody_has_is_left_out():
    has_tag, given = np.array([[True, False, False]]), np.array([[False, True, False]])
    [first, second] = tag_scores(has_tag, given, ["never given", "nobody's", "neither"])
    assert (first.precision, first.recall, first.f) == (None, 0.0, 0.0)
    assert (second.precision, second.recall, second.f) == (0.0, None, 0.0)


X = np.array([[3, 1, 0, 1], [0, 1, 3, 1], [2, 1, 0, 1], [0, 2, 2, 0]] * 5)
ONE_WORD = np.vstack([np.eye(4, dtype=int), np.zeros((1, 4), int)])


@pytest.mark.parametrize("kind", [DocNADE, DeepDocNADE])
def test_a_picture_of_one_word_is_as_probable_as_the_word(kind):
    estimator = kind(n_components=4, max_iter=5, random_state=0).fit(X)
    found = log_likelihood_a_word(Network(estimator), Rows(ONE_WORD, None, 0))
    expected = np.log(estimator.next_word_proba(np.zeros((1, 4), int))[0])
    assert np.allclose(found[:4], expected, atol=1e-5)
    assert np.isnan(found[4])


def test_it_is_a_mean_over_the_words_and_always_the_same():
    estimator = DocNADE(n_components=4, max_iter=5, random_state=0).fit(X)
    found = log_likelihood_a_word(Network(estimator), Rows(X, None, 0))
    assert "visual words" in odd_means(Network(estimator))
    assert np.exp(-found).max() < 20  # of four words: not a sum over them
    assert np.array_equal(found, log_likelihood_a_word(Network(estimator), Rows(X, None, 0)))


def test_where_only_tags_are_predicted_it_is_the_mean_over_the_tags():
    options = {"n_annotation_words": 2, "split": "pictures_first", "max_iter": 5, "random_state": 0}
    estimator = DeepDocNADE(n_components=4, **options).fit(X)
    found = log_likelihood_a_word(Network(estimator), Rows(X[:4], None, 2))
    assert "tags, given the picture" in odd_means(Network(estimator))
    pictures = X[:4] * [1, 1, 0, 0]
    p = estimator.next_word_proba(pictures, columns=[2, 3])
    log_p = np.log(p / p.sum(axis=1, keepdims=True))
    expected = [log_p[0, 1], log_p[1].mean(), log_p[2, 1], log_p[3, 0]]
    assert np.allclose(found, expected, atol=1e-5)
