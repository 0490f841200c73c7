import pytest

from pictopic import DeepDocNADE, Run, SupDeepDocNADE, SupDocNADE


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
    monkeypatch.setattr("pictopic.models.progress._EVERY", 0.0)
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
