import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from pictopic import DeepDocNADE, DocNADE, SupDeepDocNADE, SupDocNADE
from pictopic.tasks.curves import training_curves

X = np.array([[3, 1, 0], [0, 1, 3], [2, 1, 0], [0, 2, 2]])


def test_losses_are_those_of_the_history():
    model = SupDocNADE(n_components=4, max_iter=5, random_state=0)
    model.fit(X, ["a", "b", "a", "b"], X_val=X, y_val=["a", "b", "a", "b"])
    classes, words = training_curves(model)
    assert words.series[0].values == model.history_["nll"]
    assert [own.name for own in classes.series] == ["training", "held-out pictures"]
    # The score of a supervised model on the held-out part is minus its mean loss.
    best = -np.mean(np.log(model.predict_proba(X)[np.arange(4), [0, 1, 0, 1]]))
    assert np.isclose(min(classes.series[1].values), best, atol=1e-4)


def test_without_classes_there_are_the_words_only():
    [words] = training_curves(DocNADE(n_components=4, max_iter=5, random_state=0).fit(X))
    assert words.title == "Loss of the words"
    assert len(words.series[0].values) == 5


@pytest.mark.parametrize("kind", [DocNADE, DeepDocNADE])
def test_without_classes_the_held_out_pictures_are_scored_by_their_words(kind):
    model = kind(n_components=4, max_iter=5, random_state=0).fit(X, X_val=X)
    [words] = training_curves(model)
    assert [own.name for own in words.series] == ["training", "held-out pictures"]
    assert min(words.series[1].values) == -model.best_validation_score_ > 0


@pytest.mark.parametrize(
    ("metric", "title"), [("accuracy", "Accuracy of the classes"), ("map", "Mean average precision of the classes")]
)
def test_another_metric_than_the_loss_has_a_chart_of_its_own_upwards(metric, title):
    y = ["a", "b", "a", "b"]
    model = SupDeepDocNADE(n_components=8, max_iter=30, learning_rate=0.05, random_state=0, validation_metric=metric)
    model.fit(X, y, X_val=X, y_val=y)
    score, classes, words = training_curves(model)
    assert score.title == title
    [held_out] = score.series
    assert held_out.name == "held-out pictures"
    truth, p = np.array([[1, 0], [0, 1], [1, 0], [0, 1]]), model.predict_proba(X)
    best = {"accuracy": np.mean(truth.argmax(axis=1) == p.argmax(axis=1)), "map": average_precision_score(truth, p)}
    assert max(held_out.values) == pytest.approx(best[metric])  # the parameters that were kept are the best
    assert min(held_out.values) >= 0
    assert [own.name for own in classes.series] == ["training"]
    assert (classes.title, words.title) == ("Loss of the classes", "Loss of the words")
