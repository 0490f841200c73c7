import numpy as np
import pytest

from pictopic.models.training import Trainer, train


class Counting(Trainer):
    """A trainer whose parameters are the number of epochs begun."""

    def __init__(self, n_documents=10):
        self.n_documents = n_documents
        self.seen: list[int] = []

    def learn(self, documents, seed):
        self.seen += documents.tolist()
        return float(len(documents)), 0.0

    def parameters(self):
        return len(self.seen) // self.n_documents

    def state(self):
        return {"seen": np.array(self.seen)}

    def resume(self, state):
        self.seen = state["seen"].tolist()


def run(trainer, **options):
    defaults = {"max_iter": 5, "batch_size": 3, "n_iter_no_change": 2, "rng": np.random.RandomState(0)}
    return train(trainer, 10, 10.0, 0, **(defaults | options))


def test_every_document_is_seen_once_an_epoch():
    trainer = Counting()
    run(trainer)
    assert len(trainer.seen) == 50
    for epoch in range(5):
        assert sorted(trainer.seen[10 * epoch : 10 * epoch + 10]) == list(range(10))


def test_order_of_documents_changes_every_epoch():
    trainer = Counting()
    run(trainer)
    assert trainer.seen[:10] != trainer.seen[10:20]


def test_without_validation_the_last_parameters_are_returned():
    outcome = run(Counting())
    assert (outcome.theta, outcome.n_iter, outcome.best_score) == (5, 5, None)


def test_best_epoch_is_returned_and_training_stops_when_nothing_gets_better():
    scores = {1: 0.1, 2: 0.7, 3: 0.3, 4: 0.4, 5: 0.9}
    outcome = run(Counting(), validate=scores.__getitem__)
    assert (outcome.theta, outcome.n_iter, outcome.best_score) == (2, 4, 0.7)
    assert outcome.history["validation_score"] == [0.1, 0.7, 0.3, 0.4]


def test_loss_that_is_not_finite_is_an_error():
    trainer = Counting()
    trainer.learn = lambda documents, seed: (float("nan"), 0.0)
    with pytest.raises(FloatingPointError, match="epoch 1"):
        run(trainer)
