import os
import signal

import pytest

from pictopic import Checkpoint, DocNADE
from pictopic.models.run import Run, uninterrupted


@pytest.fixture
def usual_ctrl_c():
    """Jobs in the background of a shell are started with Ctrl-C ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_ctrl_c_waits_for_the_end_of_the_block(usual_ctrl_c):
    done = []

    def step():
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGINT)
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        step()
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_sigterm_waits_too_and_the_default_is_left_alone():
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    with uninterrupted():
        assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    calls = []
    signal.signal(signal.SIGTERM, lambda number, frame: calls.append(number))
    try:
        with uninterrupted():
            os.kill(os.getpid(), signal.SIGTERM)
            assert calls == []
        assert calls == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def test_each_training_of_several_has_a_folder_of_its_own(tmp_path):
    from pictopic import Checkpoint

    run = Run(Checkpoint(tmp_path, epochs=3, keep=1), raise_on_interrupt=True).part("trial")
    assert (run.checkpoint, run.stage) == (Checkpoint(f"{tmp_path}/trial", epochs=3, keep=1), "trial")
    assert run.raise_on_interrupt
    assert Run().part("final").checkpoint is None


def test_workers_elsewhere_find_the_checkpoints_from_any_folder(tmp_path, monkeypatch):
    from pictopic import Checkpoint

    monkeypatch.chdir(tmp_path)
    run = Run(Checkpoint("checkpoints"), raise_on_interrupt=True, report=print).for_workers()
    assert run == Run(Checkpoint(tmp_path / "checkpoints"))


def test_a_folder_is_a_checkpoint(tmp_path):
    assert Run(tmp_path).checkpoint == Run(str(tmp_path)).checkpoint == Checkpoint(str(tmp_path))


def test_a_time_limit_must_be_above_zero():
    with pytest.raises(ValueError, match="max_minutes must be more than 0, got 0"):
        Run(max_minutes=0)


def test_a_shallow_model_stops_when_its_time_is_over(topics):
    model = DocNADE(n_components=8, max_iter=10_000, validation_fraction=None).fit(
        topics[0], run=Run(max_minutes=0.005)
    )
    assert model.stop_reason_ == "time"
    assert model.n_iter_ < 10_000
