import subprocess
import sys

import pictopic


def run(*arguments, **options):
    command = [sys.executable, "-m", "pictopic", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_demo_prints_its_findings_and_writes_a_report_and_a_model(tmp_path):
    result = run("demo", "--out", str(tmp_path / "out"))
    assert result.returncode == 0, result.stderr
    report = (tmp_path / "out" / "report.md").read_text()
    assert report in result.stdout
    assert "coast: " in report
    assert pictopic.load(tmp_path / "out" / "model").classes_.size == 8


def test_misuse_exits_with_2():
    result = run("demo", "--wrong")
    assert result.returncode == 2
    assert "No such option" in result.stderr


def test_failure_exits_with_1_and_one_line(tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = run("demo", "--out", str(tmp_path / "file"))
    assert result.returncode == 1
    assert result.stderr.startswith("pictopic: ")
    assert len(result.stderr.splitlines()) == 1


def test_debug_shows_the_stack(tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = run("--debug", "demo", "--out", str(tmp_path / "file"))
    assert result.returncode == 1
    assert "Traceback" in result.stderr


def test_version_is_the_packages():
    assert run("--version").stdout.strip() == f"pictopic {pictopic.__version__}"
