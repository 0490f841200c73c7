"""Commands in processes of their own, forked from one that has everything loaded: loading takes longer than most do."""

import atexit
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.support.everything"])


def run(*arguments, env=None, timeout=600):
    """Run ``pictopic ARGUMENTS``; the answer is that of `subprocess.run`."""
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("stdout", "stderr")]
        child = FORKS.Process(target=_be_command, args=(arguments, streams, dict(env or os.environ), os.getcwd()))
        child.start()
        child.join(timeout)
        if child.exitcode is None:
            child.kill()
            raise subprocess.TimeoutExpired(arguments, timeout)
        return subprocess.CompletedProcess(arguments, child.exitcode, *(stream.read_text() for stream in streams))


def _be_command(arguments, streams, environment, folder):
    from pictopic.cli import main

    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    for number, stream in enumerate(streams, 1):
        os.dup2(os.open(stream, os.O_WRONLY | os.O_CREAT), number)
    sys.argv = ["pictopic", *arguments]
    code = 1
    try:
        main()
    except SystemExit as exit_:
        code = exit_.code or 0
    except BaseException:
        traceback.print_exc()
    finally:  # as any other process ends: those of multiprocessing wait for all workers that they have started
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
