import numpy as np

from pictopic import SupDocNADE
from pictopic.tasks.explore import class_words


def test_words_of_the_strongest_units_go_with_the_class():
    model = SupDocNADE(n_components=4)
    model.classes_ = np.array(["sea", "city"])
    model.coef_ = np.array([[3.0, 2.0, 1.0, -9.0], [-9.0, 0.0, 0.0, 5.0]])
    model.components_ = np.array([[0.0, 6, 0, 0, 0], [0, 0, 5, 0, 0], [0, 0, 0, 4, 0], [9, 0, 0, 0, 9]])
    words = class_words(model, n_units=3, n_words=3)
    assert words["sea"].tolist() == [1, 2, 3]
    assert class_words(model, n_units=1, n_words=2)["city"].tolist() == [0, 4]
