import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from pictopic.processes import LockedError, lock
from tests.support.processes import ended, session, start

_SLEEPING = """
import sys, time
from pathlib import Path
from pictopic.corpus.chunks import in_processes

def sleep(folder, number):
    (Path(folder) / str(number)).touch()
    time.sleep(0.05 if number < 4 else 600)

if __name__ == "__main__":
    for _ in in_processes(sleep, ((sys.argv[1], number) for number in range(9)), 2):
        pass
"""


@pytest.fixture
def sleeping(tmp_path):
    """A process with two workers that would sleep for ten minutes."""
    script = tmp_path / "sleeping.py"
    script.write_text(_SLEEPING)
    (tmp_path / "begun").mkdir()
    process = start([sys.executable, str(script), str(tmp_path / "begun")], start_new_session=True)
    while process.poll() is None and not (tmp_path / "begun" / "5").exists():
        time.sleep(0.05)
    assert len(session(process.pid)) >= 3
    yield process
    if session(process.pid):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_workers_end_with_their_parent(sleeping, number):
    os.kill(sleeping.pid, number)
    sleeping.wait(20)
    assert ended(sleeping.pid)


def test_ctrl_c_in_a_terminal_reaches_workers_and_is_left_to_the_parent(sleeping):
    os.killpg(sleeping.pid, signal.SIGINT)
    _, errors = sleeping.communicate(timeout=20)
    assert ended(sleeping.pid)
    assert errors.count("KeyboardInterrupt") == 1, errors


def test_a_worker_that_is_begun_after_its_parent_was_killed_ends_at_once():
    code = "from pictopic.processes import begin_worker; import time; begin_worker(1 << 22); time.sleep(600)"
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 1


def test_a_worker_that_never_got_a_task_ends_with_its_parent(tmp_path):
    script = tmp_path / "one_task.py"
    script.write_text(
        "import sys, time\n"
        "from pathlib import Path\n"
        "from pictopic.corpus.chunks import in_processes\n"
        "def sleep(path):\n"
        "    Path(path).touch()\n"
        "    time.sleep(600)\n"
        "if __name__ == '__main__':\n"
        "    list(in_processes(sleep, [(sys.argv[1],)], 3))\n"
    )
    process = start([sys.executable, str(script), str(tmp_path / "begun")], start_new_session=True)
    while process.poll() is None and not (tmp_path / "begun").exists():
        time.sleep(0.05)
    time.sleep(2)  # the other two are waiting by now
    os.kill(process.pid, signal.SIGKILL)
    process.wait(20)
    assert ended(process.pid)


def test_names_left_by_a_process_that_was_stopped_are_removed_without_a_word(tmp_path):
    code = (
        "import sys\n"
        "from joblib.externals.loky.backend import resource_tracker\n"
        "from pictopic.processes import worker_options\n"
        "worker_options()\n"
        "resource_tracker.register(sys.argv[1], 'folder')\n"
    )
    (tmp_path / "left").mkdir()
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "left")], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert not (tmp_path / "left").exists()


def test_a_thread_may_take_its_own_lock_again_and_keeps_it_until_the_outer_block_ends(tmp_path):
    seen = []

    def another():
        try:
            with lock(tmp_path / "a.lock", "a", timeout=0.05):
                seen.append("free")
        except LockedError:
            seen.append("locked")

    def ask():
        thread = threading.Thread(target=another)
        thread.start()
        thread.join()

    with lock(tmp_path / "a.lock", "a"):
        with lock(tmp_path / "a.lock", "a", timeout=0.05):
            ask()
        ask()
    ask()
    assert seen == ["locked", "locked", "free"]


def test_another_lock_of_the_same_thread_is_not_its_own(tmp_path):
    with lock(tmp_path / "a.lock", "a"), lock(tmp_path / "b.lock", "b"):
        assert (tmp_path / "b.lock.holder").is_file()
