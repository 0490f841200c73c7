import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

import pictopic
from pictopic import Checkpoint, DeepDocNADE, DocNADE, SupDeepDocNADE, SupDocNADE
from pictopic.models.run import Run


def save(checkpoint, step):
    checkpoint.save(step, epoch=step, tensors={"a": torch.full((3,), float(step))}, state={"step": step})


def loaded_step(checkpoint):
    tensors, state = checkpoint.load()
    assert tensors["a"].tolist() == [state["step"]] * 3
    return state["step"]


def test_newest_checkpoint_is_loaded(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    assert checkpoint.load() is None
    for step in (1, 2, 10):
        save(checkpoint, step)
    assert loaded_step(checkpoint) == 10


def test_only_the_newest_are_kept(tmp_path):
    checkpoint = Checkpoint(tmp_path, keep=2)
    for step in range(5):
        save(checkpoint, step)
    assert [int(path.name[11:20]) for path in checkpoint.files()] == [4, 3]


@pytest.mark.parametrize("damage", ["cut", "changed", "empty"])
def test_the_one_before_a_damaged_checkpoint_is_used(tmp_path, damage):
    checkpoint = Checkpoint(tmp_path)
    save(checkpoint, 1)
    save(checkpoint, 2)
    newest = checkpoint.files()[0]
    content = bytearray(newest.read_bytes())
    if damage == "changed":
        content[-1] ^= 1
    newest.write_bytes({"cut": content[:-5], "changed": content, "empty": b""}[damage])
    with pytest.warns(UserWarning, match="is damaged"):
        assert loaded_step(checkpoint) == 1


def test_a_disk_that_is_full_costs_a_warning_and_keeps_the_one_before(tmp_path, monkeypatch):
    checkpoint = Checkpoint(tmp_path)
    save(checkpoint, 1)

    def full(tensors, path, metadata):
        path.write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pictopic.models.checkpoint.save_file", full)
    with pytest.warns(UserWarning, match="No space left on device"):
        save(checkpoint, 2)
    assert loaded_step(checkpoint) == 1
    assert len(list(tmp_path.iterdir())) == 1


def test_half_written_ones_of_killed_processes_are_swept(tmp_path):
    checkpoint = Checkpoint(tmp_path)
    save(checkpoint, 1)
    (tmp_path / ".checkpoint-99999.tmp").write_bytes(b"half")
    assert loaded_step(checkpoint) == 1
    assert [path.name for path in tmp_path.iterdir()] == [checkpoint.names()[0]]


def test_a_checkpoint_and_its_name_are_on_the_disk_before_older_ones_are_deleted(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("pictopic.models.checkpoint.sync_file", lambda path: synced.append(path.name))
    monkeypatch.setattr(
        "pictopic.models.checkpoint.sync_folder", lambda folder: synced.append(len(list(folder.iterdir())))
    )
    checkpoint = Checkpoint(tmp_path, keep=1)
    save(checkpoint, 1)
    save(checkpoint, 2)
    temporary = f".checkpoint-{os.getpid()}.tmp"
    assert synced == [temporary, 1, temporary, 2]
    assert len(checkpoint.names()) == 1


def test_one_of_the_same_step_takes_the_place_of_the_one_before(tmp_path):
    checkpoint = Checkpoint(tmp_path, keep=5)
    for number in range(8):  # in whatever order their hashes are
        checkpoint.save(3, epoch=1, tensors={"a": torch.full((3,), float(number))}, state={"step": number})
        assert loaded_step(checkpoint) == number
        assert len(checkpoint.names()) == 1


def test_a_checkpoint_is_due_after_minutes_or_epochs(tmp_path, monkeypatch):
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    checkpoint = Checkpoint(tmp_path, minutes=2, epochs=3)
    checkpoint.begin(epoch=0)
    assert not checkpoint.due(2)
    assert checkpoint.due(3)
    now[0] = 121
    assert checkpoint.due(0)


def test_a_checkpoint_needs_to_know_when(tmp_path):
    with pytest.raises(ValueError, match="needs minutes or epochs"):
        Checkpoint(tmp_path, minutes=None)


def test_clearing_leaves_other_files_alone(tmp_path):
    checkpoint = Checkpoint(tmp_path / "run")
    save(checkpoint, 1)
    (tmp_path / "run" / "notes.txt").write_text("precious")
    checkpoint.clear()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["notes.txt"]
    (tmp_path / "run" / "notes.txt").unlink()
    checkpoint.clear()
    assert not (tmp_path / "run").exists()


# ---- training that goes on -------------------------------------------------------------------------------------------

OPTIONS = {"n_components": (6, 5), "max_iter": 6, "random_state": 3, "batch_size": 16}


def same(one, two):
    for name, array in one.parameters_.items():
        np.testing.assert_array_equal(array, two.parameters_[name])
    assert {k: v for k, v in one.history_.items() if k != "seconds"} == {
        k: v for k, v in two.history_.items() if k != "seconds"
    }


def arrays(model):
    return model._get_arrays()


def same_model(one, two):
    assert arrays(one).keys() == arrays(two).keys()
    for name, array in arrays(one).items():
        np.testing.assert_array_equal(array, arrays(two)[name], err_msg=name)
    for name in ("nll", "class_loss", "validation_score"):
        assert one.history_[name] == two.history_[name]
    assert (one.n_iter_, one.best_validation_score_) == (two.n_iter_, two.best_validation_score_)


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("solver", ["adam", "sgd"])
@pytest.mark.parametrize("steps", [1, 7, 13])
def test_a_run_that_was_stopped_ends_with_the_same_model(topics, tmp_path, monkeypatch, steps, solver):
    X, y = topics
    model, run = SupDeepDocNADE(**OPTIONS, solver=solver), Run(Checkpoint(tmp_path, minutes=0))
    uninterrupted = SupDeepDocNADE(**OPTIONS, solver=solver).fit(X, y)
    from pictopic.models.deep_training import DeepTrainer

    learn, done = DeepTrainer.learn, []

    def stopping(self, *minibatch):
        done.append(1)
        if len(done) > steps:
            raise StoppedError
        return learn(self, *minibatch)

    monkeypatch.setattr(DeepTrainer, "learn", stopping)
    with pytest.raises(StoppedError):
        model.fit(X, y, run=run)
    monkeypatch.setattr(DeepTrainer, "learn", lambda self, *minibatch: done.append(1) or learn(self, *minibatch))
    same(model.fit(X, y, run=run), uninterrupted)
    assert len(done) == 1 + 6 * -(-(80 - 8) // 16)


def test_a_finished_run_is_not_repeated(topics, tmp_path):
    model = DeepDocNADE(**OPTIONS).fit(topics[0], run=Run(Checkpoint(tmp_path, epochs=1)))
    again = DeepDocNADE(**OPTIONS).fit(topics[0], run=Run(tmp_path))
    same(again, model)
    assert again.history_ == model.history_


def test_a_run_can_be_made_longer(topics, tmp_path):
    DeepDocNADE(**(OPTIONS | {"max_iter": 2})).fit(topics[0], run=Run(Checkpoint(tmp_path, epochs=1)))
    longer = DeepDocNADE(**OPTIONS).fit(topics[0], run=Run(tmp_path))
    same(longer, DeepDocNADE(**OPTIONS).fit(topics[0]))


def test_a_run_without_a_random_state_goes_on_with_the_numbers_it_began_with(topics, tmp_path):
    options = OPTIONS | {"random_state": None}
    model = DeepDocNADE(**options).fit(topics[0], run=Run(tmp_path))
    same(DeepDocNADE(**options).fit(topics[0], run=Run(tmp_path)), model)


@pytest.mark.parametrize("change", [{"dropout": 0.1}, {"random_state": 4}, "data"])
def test_a_checkpoint_of_another_run_is_refused(topics, tmp_path, change):
    X, _ = topics
    DeepDocNADE(**OPTIONS).fit(X, run=Run(tmp_path))
    other = OPTIONS if change == "data" else OPTIONS | change
    with pytest.raises(ValueError, match="has a checkpoint of another run"):
        DeepDocNADE(**other).fit(X + 1 if change == "data" else X, run=Run(tmp_path))


def test_a_loss_that_is_not_finite_keeps_the_checkpoint_and_names_the_rows(topics, tmp_path):
    X, _ = topics
    model = DeepDocNADE(**(OPTIONS | {"learning_rate": 1e30}))
    with pytest.raises(FloatingPointError, match=r"epoch 1, step \d+, rows \d+, .*last good checkpoint"):
        model.fit(X, run=Run(Checkpoint(tmp_path, minutes=0)))
    tensors, _ = Checkpoint(tmp_path).load()
    assert all(torch.isfinite(tensor).all() for tensor in tensors.values())


SHALLOW = {"n_components": 6, "max_iter": 8, "random_state": 3, "batch_size": 16}


def trainer_class(model):
    from pictopic.models.softmax_output import SoftmaxTrainer
    from pictopic.models.tree_output import TreeTrainer

    return TreeTrainer if model.output == "tree" else SoftmaxTrainer


def stop_after(monkeypatch, kind, steps, error):
    learn, done = kind.learn, []

    def stopping(self, *minibatch):
        done.append(1)
        if len(done) > steps:
            raise error
        return learn(self, *minibatch)

    monkeypatch.setattr(kind, "learn", stopping)


@pytest.mark.parametrize("output", ["tree", "softmax"])
@pytest.mark.parametrize("options", [{}, {"solver": "sgd"}, {"solver": "sgd", "batch_size": 1}, {"averaging": None}])
@pytest.mark.parametrize("kind", [DocNADE, SupDocNADE])
def test_a_shallow_run_that_was_stopped_ends_with_the_same_model(topics, tmp_path, monkeypatch, kind, options, output):
    options = SHALLOW | {"output": output} | options
    uninterrupted = kind(**options).fit(*topics)
    run = Run(Checkpoint(tmp_path, minutes=0))
    for steps in (1, 4, 11):
        with monkeypatch.context() as patch:
            stop_after(patch, trainer_class(kind(**options)), steps, StoppedError)
            with pytest.raises(StoppedError):
                kind(**options).fit(*topics, run=run)
    same_model(kind(**options).fit(*topics, run=run), uninterrupted)


@pytest.mark.parametrize("output", ["tree", "softmax"])
def test_ctrl_c_writes_a_checkpoint_from_which_the_same_model_comes(topics, tmp_path, monkeypatch, output):
    options = SHALLOW | {"output": output}
    run = Run(Checkpoint(tmp_path, minutes=1000), raise_on_interrupt=True)
    with monkeypatch.context() as patch:
        stop_after(patch, trainer_class(SupDocNADE(**options)), 7, KeyboardInterrupt)
        with pytest.raises(KeyboardInterrupt):
            SupDocNADE(**options).fit(*topics, run=run)
    (name,) = run.checkpoint.names()
    assert name.startswith("checkpoint-000000007-")
    same_model(SupDocNADE(**options).fit(*topics, run=run), SupDocNADE(**options).fit(*topics))


def test_ctrl_c_while_the_held_out_part_is_looked_at_loses_no_score(topics, tmp_path, monkeypatch):
    scored, score = [], SupDocNADE._validation_score

    def impatient(self, *arguments):
        scored.append(1)
        if len(scored) == 3:
            raise KeyboardInterrupt
        return score(self, *arguments)

    run = Run(Checkpoint(tmp_path, minutes=1000), raise_on_interrupt=True)
    with monkeypatch.context() as patch:
        patch.setattr(SupDocNADE, "_validation_score", impatient)
        with pytest.raises(KeyboardInterrupt):
            SupDocNADE(**SHALLOW).fit(*topics, run=run)
    same_model(SupDocNADE(**SHALLOW).fit(*topics, run=run), SupDocNADE(**SHALLOW).fit(*topics))


@pytest.mark.parametrize("kind", [DocNADE, SupDocNADE, DeepDocNADE, SupDeepDocNADE])
def test_a_run_that_has_ended_is_not_trained_again(topics, tmp_path, monkeypatch, kind):
    options = {"n_components": 6, "max_iter": 60, "n_iter_no_change": 1, "random_state": 0, "learning_rate": 0.05}
    run = Run(Checkpoint(tmp_path, minutes=1000))
    topics = topics[0], np.random.RandomState(1).permutation(topics[1])  # nothing to learn about classes
    model = kind(**options).fit(*topics, run=run)
    assert model.stop_reason_ == "converged"
    monkeypatch.setattr("pictopic.models.training._minibatches", None)
    again = kind(**options).fit(*topics, run=run)
    same_model(again, model)
    assert again.stop_reason_ == "converged"


def test_a_run_can_be_finished_with_its_best_model(topics, tmp_path, monkeypatch):
    run = Run(Checkpoint(tmp_path, minutes=1000), raise_on_interrupt=True)
    with monkeypatch.context() as patch:
        stop_after(patch, trainer_class(SupDocNADE(**SHALLOW)), 17, KeyboardInterrupt)  # three epochs and two steps
        with pytest.raises(KeyboardInterrupt):
            SupDocNADE(**SHALLOW).fit(*topics, run=run)
    finished = SupDocNADE(**SHALLOW).fit(*topics, run=Run(run.checkpoint, finish=True))
    assert (finished.stop_reason_, finished.n_iter_) == ("interrupted", 3)
    three = SupDocNADE(**SHALLOW | {"max_iter": 3}).fit(*topics)
    for name, array in arrays(finished).items():
        np.testing.assert_array_equal(array, arrays(three)[name])


def test_a_shallow_run_without_a_random_state_goes_on_with_the_numbers_it_began_with(topics, tmp_path):
    options = SHALLOW | {"random_state": None}
    run = Run(Checkpoint(tmp_path))
    same_model(SupDocNADE(**options).fit(*topics, run=run), SupDocNADE(**options).fit(*topics, run=run))


@pytest.mark.parametrize("change", [{"dropout": 0.1}, {"random_state": 4}, "data"])
def test_a_checkpoint_of_another_shallow_run_is_refused(topics, tmp_path, change):
    X, y = topics
    run = Run(Checkpoint(tmp_path))
    SupDocNADE(**SHALLOW).fit(X, y, run=run)
    other = SHALLOW if change == "data" else SHALLOW | change
    with pytest.raises(ValueError, match="has a checkpoint of another run"):
        SupDocNADE(**other).fit(X + 1 if change == "data" else X, y, run=run)


_KILLED = """
import numpy as np, sys
from pictopic import Checkpoint, Run, SupDeepDocNADE
rng = np.random.RandomState(0)
X, y = rng.poisson(1, (200, 15)), np.arange(200) % 3
model = SupDeepDocNADE(n_components=(16, 8), max_iter=20, random_state=0, batch_size=10)
model.fit(X, y, run=Run(Checkpoint(sys.argv[1], minutes=float(sys.argv[2]))))
model.save(sys.argv[1] + "-model")
"""


@pytest.mark.slow
def test_a_run_killed_at_any_moment_ends_with_the_same_model(tmp_path):
    """SIGKILL again and again, in steps and in the writing of checkpoints, until the run comes through."""

    def start(folder, minutes):
        return subprocess.Popen([sys.executable, "-c", _KILLED, str(folder), minutes], env=os.environ)

    assert start(tmp_path / "through", "1000").wait() == 0
    rng = np.random.RandomState(1)
    kills = 0
    while True:
        process = start(tmp_path / "killed", "0")
        before = Checkpoint(tmp_path / "killed").files()
        while process.poll() is None and Checkpoint(tmp_path / "killed").files() == before:
            time.sleep(0.005)
        try:
            assert process.wait(timeout=rng.uniform(0.0, 0.5)) == 0
            break
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
            kills += 1
    assert kills >= 3
    same(pictopic.load(f"{tmp_path}/killed-model"), pictopic.load(f"{tmp_path}/through-model"))
