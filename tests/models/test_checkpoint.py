import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch

import pictopic
from pictopic import Checkpoint, DeepDocNADE, SupDeepDocNADE


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


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("solver", ["adam", "sgd"])
@pytest.mark.parametrize("steps", [1, 7, 13])
def test_a_run_that_was_stopped_ends_with_the_same_model(topics, tmp_path, monkeypatch, steps, solver):
    X, y = topics
    model = SupDeepDocNADE(**OPTIONS, solver=solver, checkpoint=Checkpoint(tmp_path, minutes=0))
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
        model.fit(X, y)
    monkeypatch.setattr(DeepTrainer, "learn", lambda self, *minibatch: done.append(1) or learn(self, *minibatch))
    same(model.fit(X, y), uninterrupted)
    assert len(done) == 1 + 6 * -(-(80 - 8) // 16)


def test_a_finished_run_is_not_repeated(topics, tmp_path):
    model = DeepDocNADE(**OPTIONS, checkpoint=Checkpoint(tmp_path, epochs=1)).fit(topics[0])
    again = DeepDocNADE(**OPTIONS, checkpoint=tmp_path).fit(topics[0])
    same(again, model)
    assert again.history_ == model.history_


def test_a_run_can_be_made_longer(topics, tmp_path):
    DeepDocNADE(**(OPTIONS | {"max_iter": 2}), checkpoint=Checkpoint(tmp_path, epochs=1)).fit(topics[0])
    longer = DeepDocNADE(**OPTIONS, checkpoint=tmp_path).fit(topics[0])
    same(longer, DeepDocNADE(**OPTIONS).fit(topics[0]))


def test_a_run_without_a_random_state_goes_on_with_the_numbers_it_began_with(topics, tmp_path):
    options = OPTIONS | {"random_state": None}
    model = DeepDocNADE(**options, checkpoint=tmp_path).fit(topics[0])
    same(DeepDocNADE(**options, checkpoint=tmp_path).fit(topics[0]), model)


@pytest.mark.parametrize("change", [{"dropout": 0.1}, {"random_state": 4}, "data"])
def test_a_checkpoint_of_another_run_is_refused(topics, tmp_path, change):
    X, _ = topics
    DeepDocNADE(**OPTIONS, checkpoint=tmp_path).fit(X)
    other = OPTIONS if change == "data" else OPTIONS | change
    with pytest.raises(ValueError, match="has a checkpoint of another run"):
        DeepDocNADE(**other, checkpoint=tmp_path).fit(X + 1 if change == "data" else X)


def test_a_loss_that_is_not_finite_keeps_the_checkpoint_and_names_the_rows(topics, tmp_path):
    X, _ = topics
    model = DeepDocNADE(**(OPTIONS | {"learning_rate": 1e30}), checkpoint=Checkpoint(tmp_path, minutes=0))
    with pytest.raises(FloatingPointError, match=r"epoch 1, step \d+, rows \d+, .*last good checkpoint"):
        model.fit(X)
    tensors, _ = Checkpoint(tmp_path).load()
    assert all(torch.isfinite(tensor).all() for tensor in tensors.values())


_KILLED = """
import numpy as np, sys
from pictopic import Checkpoint, SupDeepDocNADE
rng = np.random.RandomState(0)
X, y = rng.poisson(1, (200, 15)), np.arange(200) % 3
model = SupDeepDocNADE(n_components=(16, 8), max_iter=10, random_state=0, batch_size=10,
                       checkpoint=Checkpoint(sys.argv[1], minutes=float(sys.argv[2])))
model.fit(X, y)
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
