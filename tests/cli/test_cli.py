import pytest

from pictopic.cli import application


@pytest.mark.parametrize(
    ("error", "line"), [
        (FloatingPointError("the loss became inf in epoch 1"), "pictopic: the loss became inf in epoch 1\n"),
        (MemoryError(), "pictopic: not enough memory: give it fewer or smaller pictures, or fewer --jobs\n"),
    ],
)  # fmt: skip
def test_a_computation_that_fails_is_said_in_one_line(monkeypatch, capsys, error, line):
    def fail(**_):
        raise error

    monkeypatch.setattr(application, "app", fail)
    with pytest.raises(SystemExit) as exit:
        application.main()
    assert exit.value.code == 1
    assert capsys.readouterr().err == line
