"""The campaigns, at sizes for every day and always with the same seed."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.slow

SMALL = {
    "crashes": ["--points", "2"],
    "kills": ["--kills", "60"],
    "damaged": ["--damaged", "300"],
    "hostile": ["--files", "2000"],
    "rounds": ["--rounds", "40"],
    "soak": ["--soak", "90"],
}


@pytest.mark.parametrize("name", SMALL)
def test_every_promise_holds_in_the_campaign(name, tmp_path):
    # A process of its own: children are forked from it, and the one of the tests has threads.
    command = [sys.executable, "-m", "tests.campaigns", name, *SMALL[name], "--seed", "1", "--out", str(tmp_path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"TMPDIR": str(tmp_path)}
    )
    assert done.returncode == 0, done.stdout[-10_000:] + done.stderr[-2_000:]
    assert "| 0 |" in done.stdout.splitlines()[-3]
