"""`pictopic serve` as a process of its own, and requests to it."""

import json
import os
import re
import resource
import subprocess
import sys
import threading
import urllib.request
from contextlib import contextmanager

ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PICTOPIC_TOKEN"}


@contextmanager
def serving(model, *options, n_files=None, **environment):
    """A server's process and its address; `n_files` limits how many files it may open."""

    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (n_files, n_files))

    command = [sys.executable, "-m", "pictopic", "serve", str(model), "--port", "0", *options]
    process = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT | environment,
        start_new_session=True,
        preexec_fn=limit if n_files else None,
    )
    lines: list[str] = []
    try:
        for line in process.stderr:
            lines.append(line)
            match = re.search(r"Serving at (http://\S+)", line)
            if match:
                break
        else:
            raise AssertionError("".join(lines))
        # Somebody must read on, or the process would wait when the pipe is full.
        threading.Thread(target=lambda: lines.extend(process.stderr), daemon=True).start()
        yield process, match[1].replace("0.0.0.0", "127.0.0.1")  # noqa: S104
    finally:
        process.terminate()
        process.wait(30)


def get(address, **headers):
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=60) as answer:  # noqa: S310
        return json.load(answer)


def post(address, content):
    body = (
        b'--x\r\nContent-Disposition: form-data; name="pictures"; filename="a.jpg"\r\n\r\n' + content + b"\r\n--x--\r\n"
    )
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    request = urllib.request.Request(address, data=body, headers=headers)  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
        return json.load(answer)
