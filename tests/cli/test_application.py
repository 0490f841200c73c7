import subprocess
import sys

import pictopic
from tests.support.commands import run


def test_misuse_exits_with_2():
    result = run("demo", "--wrong")
    assert result.returncode == 2
    assert "No such option" in result.stderr


def test_debug_shows_the_stack(tmp_path):
    (tmp_path / "file").write_text("in the way")
    result = run("--debug", "demo", "--out", str(tmp_path / "file"))
    assert result.returncode == 2
    assert "Traceback" in result.stderr


def test_version_is_the_packages():
    result = subprocess.run([sys.executable, "-m", "pictopic", "--version"], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == f"pictopic {pictopic.__version__}"
