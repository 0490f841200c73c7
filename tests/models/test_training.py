import numpy as np
import pytest

from pictopic.models.run import Run
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
        return {"tensors": {"seen": np.array(self.seen)}}

    def resume(self, state):
        self.seen = state["tensors"]["seen"].tolist()


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


# ---- why it ended ----------------------------------------------------------------------------------------------------


class Impatient(Counting):
    """Ctrl-C comes after some minibatches."""

    def __init__(self, steps):
        super().__init__()
        self.steps = steps

    def learn(self, documents, seed):
        self.steps -= 1
        if not self.steps:
            raise KeyboardInterrupt
        return super().learn(documents, seed)


def test_a_run_ends_after_max_iter():
    assert run(Counting()).reason == "max_iter"


def test_a_run_ends_when_nothing_gets_better():
    assert run(Counting(), validate=lambda theta: -theta).reason == "converged"


def test_a_time_limit_is_no_interruption():
    assert run(Counting(), run=Run(max_minutes=1e-12)).reason == "time"


def test_ctrl_c_keeps_the_model_so_far_unless_it_is_to_go_on():
    with pytest.warns(UserWarning, match="keeping the model after 1 epochs"):
        outcome = run(Impatient(steps=6))
    assert (outcome.reason, outcome.theta) == ("interrupted", 1)
    with pytest.raises(KeyboardInterrupt):
        run(Impatient(steps=6), run=Run(raise_on_interrupt=True))


def test_progress_is_reported_after_each_minibatch_and_epoch():
    statuses = []
    run(Counting(), max_iter=2, validate=lambda theta: theta / 10,
        run=Run(report=lambda stage, status: statuses.append((stage, status)), stage="trial"))  # fmt: skip
    assert {stage for stage, _ in statuses} == {"trial"}
    found = [status for _, status in statuses]
    assert [status.done for status in found] == [3, 6, 9, 10, 10, 13, 16, 19, 20, 20, 20]
    assert [status.epoch for status in found] == [1] * 4 + [2] * 7
    assert found[3].score is None
    assert found[4].score == found[4].best_score == 0.1
    assert found[0].loss == 1.0
    assert {status.total for status in found} == {20}
