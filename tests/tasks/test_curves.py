import numpy as np

from pictopic import DocNADE, SupDocNADE
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
