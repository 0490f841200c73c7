import copy
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from pictopic import Checkpoint, DeepDocNADE, Run, SupDeepDocNADE
from pictopic.models.training import Peers, current, together
from tests.support.small_deep import small


class Threads(Peers):
    """Threads of this process that train together: an oracle without any network."""

    def __init__(self, rank, size, shared):
        self.rank, self.size, self.shared = rank, size, shared

    def add(self, tensors):
        self.shared["tensors"][self.rank] = [tensor.clone() for tensor in tensors]
        self.shared["barrier"].wait()
        for k, tensor in enumerate(tensors):
            tensor.copy_(sum(own[k] for own in self.shared["tensors"]))
        self.shared["barrier"].wait()

    def agree(self, decide):
        if self.rank == 0:
            self.shared["decided"] = decide()
        self.shared["barrier"].wait()
        decided = copy.deepcopy(self.shared["decided"])
        self.shared["barrier"].wait()
        return decided


def fit_together(size, make, *data, **arguments):
    """Fit a model in each of several threads that train together; all of them."""
    shared = {"tensors": [None] * size, "barrier": threading.Barrier(size, timeout=60)}

    def fit(rank):
        with together(Threads(rank, size, shared)):
            return make().fit(*data, **arguments)

    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(fit, range(size)))


def near(one, two):
    for name, array in one.parameters_.items():
        np.testing.assert_allclose(array, two.parameters_[name], atol=2e-5, err_msg=name)
    for name in ("nll", "class_loss", "validation_score"):
        np.testing.assert_allclose(one.history_[name], two.history_[name], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 7])
@pytest.mark.parametrize("n", [0, 1, 10])
def test_each_document_is_of_one_process(size, n):
    shared = {}
    parts = [np.arange(n)[Threads(rank, size, shared).part(n)] for rank in range(size)]
    np.testing.assert_array_equal(np.concatenate(parts), np.arange(n))


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("split", ["ordering", "per_word"])
def test_several_processes_come_to_the_model_of_one(topics, size, split):
    options = {"split": split, "batch_size": 16, "random_state": 0, "solver": "sgd", "learning_rate": 0.1}
    features = np.random.RandomState(1).normal(size=(80, 3))
    alone = small(**options).fit(topics[0], global_features=features)
    for model in fit_together(size, lambda: small(**options), topics[0], global_features=features):
        near(model, alone)


@pytest.mark.parametrize("output", ["softmax", "tree"])
@pytest.mark.parametrize("size", [2, 5])
def test_classes_and_tags_are_learnt_alike_by_several_processes(topics, size, output):
    X, y = topics
    y = np.where(np.arange(80) % 5 == 0, np.nan, y.astype(float))  # some without a class
    options = {
        "split": "pictures_first", "n_annotation_words": 4, "batch_size": 13, "output": output, "solver": "sgd",
        "learning_rate": 0.1,
    }  # fmt: skip
    alone = small(SupDeepDocNADE, **options).fit(X, y)
    for model in fit_together(size, lambda: small(SupDeepDocNADE, **options), X, y):
        near(model, alone)


def test_tags_are_learnt_alike_without_classes(topics):
    options = {
        "split": "pictures_first",
        "n_annotation_words": 4,
        "batch_size": 13,
        "solver": "sgd",
        "learning_rate": 0.1,
    }
    alone = small(**options).fit(topics[0])
    near(fit_together(2, lambda: small(**options), topics[0])[1], alone)


def test_a_minibatch_may_have_fewer_documents_than_there_are_processes(topics):
    options = {"batch_size": 2, "max_iter": 1, "solver": "sgd", "learning_rate": 0.1}
    alone = small(**options).fit(topics[0][:9])
    near(fit_together(3, lambda: small(**options), topics[0][:9])[1], alone)


def test_without_a_seed_the_first_process_draws_it(topics):
    one, two = fit_together(2, lambda: small(random_state=None), topics[0])
    for name, array in one.parameters_.items():
        np.testing.assert_array_equal(array, two.parameters_[name])


def test_one_process_writes_checkpoints_and_any_number_goes_on_from_them(topics, tmp_path):
    def make(epochs):
        return small(max_iter=epochs, solver="sgd", learning_rate=0.1)

    run = Run(Checkpoint(tmp_path, epochs=1))
    fit_together(2, lambda: make(2), topics[0], run=run)
    assert len(Checkpoint(tmp_path).files()) == 2
    three = fit_together(3, lambda: make(4), topics[0], run=run)
    near(three[2], make(4).fit(topics[0]))


def test_a_process_is_alone_outside(topics):
    assert (current().rank, current().size) == (0, 1)
    with together(Threads(1, 2, {})):
        assert current().rank == 1
    assert current().size == 1


def test_training_stops_when_its_time_is_over_and_goes_on_when_there_is_more(topics, tmp_path):
    options = {"max_iter": 40, "batch_size": 4, "random_state": 0}
    checkpoint = Checkpoint(tmp_path, minutes=100)
    short = DeepDocNADE(n_components=8, **options).fit(topics[0], run=Run(checkpoint, max_minutes=1e-4))
    assert short.n_iter_ < 40
    longer = DeepDocNADE(n_components=8, **options).fit(topics[0], run=Run(checkpoint, max_minutes=60))
    whole = DeepDocNADE(n_components=8, **options).fit(topics[0])
    assert longer.history_["nll"] == whole.history_["nll"]
    np.testing.assert_array_equal(longer.components_, whole.components_)


def test_all_processes_stop_at_the_same_step(topics):
    models = fit_together(2, lambda: small(max_iter=500, batch_size=4), topics[0], run=Run(max_minutes=0.005))
    assert models[0].n_iter_ == models[1].n_iter_ < 500
    np.testing.assert_array_equal(models[0].components_, models[1].components_)
