"""Starting other processes in tests."""

import signal
import subprocess


def start(command, **options):
    """Start a process that can be interrupted.

    Where the tests run in the background, a shell has made them, and so their children, deaf to SIGINT.
    """
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL), **options,
    )  # fmt: skip
