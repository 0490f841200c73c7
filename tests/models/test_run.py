import os
import signal

import pytest

from pictopic import Checkpoint, DeepDocNADE, DocNADE, Run, SupDeepDocNADE, SupDocNADE
from pictopic.models.run import uninterrupted


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


def fit(topics, kind=SupDeepDocNADE, run=None, **options):
    return kind(n_components=3, max_iter=2, random_state=0, **options).fit(*topics, run=run)


def test_nothing_is_shown_by_default(topics, capsys):
    fit(topics)
    assert capsys.readouterr() == ("", "")


def test_a_line_an_epoch_has_losses_and_the_validation_score(topics, capsys):
    fit(topics, verbose=2)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[1].startswith("SupDeepDocNADE: epoch 2  nll/word ")
    assert "class loss" in lines[1]
    assert "validation" in lines[1]


def test_the_bar_shows_loss_and_speed(topics, capsys, monkeypatch):
    monkeypatch.setattr("pictopic.models.run._BAR_SECONDS", 0.0)
    monkeypatch.setenv("COLUMNS", "200")
    fit(topics, DeepDocNADE, verbose=1, batch_size=8)
    shown = capsys.readouterr().err
    assert "DeepDocNADE: epoch 2/2  nll/word" in shown


@pytest.mark.parametrize("kind", [SupDocNADE, SupDeepDocNADE])
def test_curves_go_to_tensorboard(topics, tmp_path, kind):
    pytest.importorskip("tensorboard", reason="the extra [tensorboard] is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    model = fit(topics, kind, run=Run(log_dir=tmp_path / "runs"))
    events = EventAccumulator(str(tmp_path / "runs"))
    events.Reload()
    assert set(events.Tags()["scalars"]) == {"nll", "class_loss", "validation_score", "seconds"}
    for name in ("nll", "class_loss", "validation_score"):
        assert [event.value for event in events.Scalars(name)] == pytest.approx(model.history_[name], rel=1e-5)


def test_without_tensorboard_the_error_says_what_to_install(topics, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ImportError, match=r"pip install 'pictopic\[tensorboard\]'"):
        fit(topics, run=Run(log_dir=tmp_path))
