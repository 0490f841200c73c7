from typer.testing import CliRunner

import pictopic
from pictopic.cli import app
from tests.support.commands import run


def test_demo_prints_a_table_and_writes_a_report_and_a_model(tmp_path, monkeypatch):
    # In this process, where the network can be made small: the usual one takes most of twenty seconds.
    monkeypatch.setattr("pictopic.tasks.fit._LAYERS", (32, 32))
    result = CliRunner().invoke(app, ["demo", "--out", str(tmp_path / "out"), "--pictures", "40"])
    assert result.exit_code == 0, result.stderr
    assert "most frequent" in result.stdout
    assert "SupDeepDocNADE" in result.stdout
    assert "pictopic fit photos --out photos.model" in result.stdout
    assert "learning: SupDeepDocNADE" in result.stderr
    assert 100_000 < (tmp_path / "out" / "report.html").stat().st_size < 4_000_000
    assert len(pictopic.PictureModel.load(tmp_path / "out" / "model").corpus_.classes) == 8


def test_demo_of_too_few_pictures_is_misuse(tmp_path):
    result = run("demo", "--out", str(tmp_path / "out"), "--pictures", "8")
    assert result.returncode == 2
    assert "--pictures" in result.stderr


def test_a_file_in_the_way_is_misuse_and_said_in_one_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = run("demo", "--out", str(tmp_path / "file"))
    assert result.returncode == 2
    assert result.stderr.startswith("pictopic: ")
    assert len(result.stderr.splitlines()) == 1
