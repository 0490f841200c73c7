import numpy as np
import pytest
from sklearn.metrics import average_precision_score, confusion_matrix, precision_recall_fscore_support

from pictopic import DeepDocNADE, DocNADE, PictureModel, SupDeepDocNADE, SupDocNADE
from pictopic.tasks.quality import confusion, tag_scores, training_curves
from tests.support.patterns import QUICK, SMALL_NETWORK, write_patterns

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


X = np.array([[3, 1, 0], [0, 1, 3], [2, 1, 0], [0, 2, 2]])


def test_losses_are_those_of_the_history():
    estimator = SupDocNADE(n_components=4, max_iter=5, random_state=0)
    estimator.fit(X, ["a", "b", "a", "b"], X_val=X, y_val=["a", "b", "a", "b"])
    classes, words = training_curves(estimator)
    assert words.series[0].values == estimator.history_["nll"]
    assert [line.name for line in classes.series] == ["training", "held-out pictures"]
    # The score of a supervised estimator on the held-out part is minus its mean loss.
    best = -np.mean(np.log(estimator.predict_proba(X)[np.arange(4), [0, 1, 0, 1]]))
    assert np.isclose(min(classes.series[1].values), best, atol=1e-4)


def test_without_classes_there_are_the_words_only():
    [words] = training_curves(DocNADE(n_components=4, max_iter=5, random_state=0).fit(X))
    assert words.title == "Loss of the words"
    assert len(words.series[0].values) == 5


@pytest.mark.parametrize("kind", [DocNADE, DeepDocNADE])
def test_without_classes_the_held_out_pictures_are_scored_by_their_words(kind):
    estimator = kind(n_components=4, max_iter=5, random_state=0).fit(X, X_val=X)
    [words] = training_curves(estimator)
    assert [line.name for line in words.series] == ["training", "held-out pictures"]
    assert min(words.series[1].values) == -estimator.best_validation_score_ > 0


@pytest.mark.parametrize(
    ("metric", "title"), [("accuracy", "Accuracy of the classes"), ("map", "Mean average precision of the classes")]
)
def test_another_metric_than_the_loss_has_a_chart_of_its_own_upwards(metric, title):
    y = ["a", "b", "a", "b"]
    estimator = SupDeepDocNADE(
        n_components=8, max_iter=30, learning_rate=0.05, random_state=0, validation_metric=metric
    )
    estimator.fit(X, y, X_val=X, y_val=y)
    score, classes, words = training_curves(estimator)
    assert score.title == title
    [held_out] = score.series
    assert held_out.name == "held-out pictures"
    truth, p = np.array([[1, 0], [0, 1], [1, 0], [0, 1]]), estimator.predict_proba(X)
    best = {"accuracy": np.mean(truth.argmax(axis=1) == p.argmax(axis=1)), "map": average_precision_score(truth, p)}
    assert max(held_out.values) == pytest.approx(best[metric])  # the parameters that were kept are the best
    assert min(held_out.values) >= 0
    assert [line.name for line in classes.series] == ["training"]
    assert (classes.title, words.title) == ("Loss of the classes", "Loss of the words")


LIKELIHOOD = ["log_likelihood_per_word", "log_likelihood_per_word_baseline"]


def write_counts(path, seed, n):
    """Words of two classes, as counts."""
    rng = np.random.RandomState(seed)
    lines = ["label,sea,sky,tree"]
    for row in range(n):
        first, other = rng.randint(1, 6), rng.randint(1, 4)
        lines.append(f"water,{first},{other},0" if row % 2 else f"land,0,{other},{first}")
    path.write_text("\n".join(lines))
    return path


@pytest.fixture(scope="module")
def of_counts(tmp_path_factory):
    """A model of sixty rows of counts; not to be changed."""
    path = write_counts(tmp_path_factory.mktemp("counts") / "counts.csv", 0, 60)
    return PictureModel(**QUICK, options=SMALL_NETWORK).fit(path)


def test_pictures_with_neither_tags_nor_classes_are_measured_by_their_words(plain_model, tmp_path):
    found = plain_model.evaluate(write_patterns(tmp_path / "more", range(300, 320), tags="", label=""))
    assert list(found) == LIKELIHOOD
    assert found[LIKELIHOOD[0]] > found[LIKELIHOOD[1]]


def test_what_cannot_be_measured_is_an_error(deep_model, tmp_path):
    with pytest.raises(ValueError, match="neither tags nor classes"):
        deep_model.evaluate(write_patterns(tmp_path / "more", range(300, 304), tags="", label=""))


def test_words_without_pictures_are_given_to_the_model(of_counts, tmp_path):
    """It was asked about empty rows before, and right about half of two classes."""
    found = of_counts.evaluate(write_counts(tmp_path / "others.csv", 1, 40))
    assert list(found) == ["accuracy", "precision_at_10", *LIKELIHOOD]
    assert found["accuracy"] == 1


def test_words_that_are_told_apart_by_name_may_come_in_another_order(of_counts, tmp_path):
    (tmp_path / "a.csv").write_text("label,sea,sky,tree\nwater,4,1,0\nland,0,1,5\n")
    (tmp_path / "b.csv").write_text("label,tree,car,sea,sky\nwater,0,9,4,1\nland,5,9,0,1\n")
    assert of_counts.evaluate(tmp_path / "b.csv") == pytest.approx(of_counts.evaluate(tmp_path / "a.csv"))


def test_tags_are_not_predicted_from_themselves(tmp_path):
    lines = ["file_name,tags", *(f"{k}.jpg,{'sea;sky' if k % 2 else 'tree;grass'}" for k in range(40))]
    (tmp_path / "metadata.csv").write_text("\n".join(lines))
    fitted = PictureModel(**QUICK | {"features": ()}).fit(tmp_path, pictures="none")
    assert list(fitted.evaluate(tmp_path, pictures="none")) == LIKELIHOOD
