"""The server as a process of its own."""

import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest

from tests.server.conftest import folder, learnt, picture, scenes  # noqa: F401 - fixtures
from tests.support.commands import run
from tests.support.serving import ENVIRONMENT, get, post, serving


def test_help_teaches_with_an_example():
    found = run("serve", "--help").stdout
    assert "curl -F pictures=@new.jpg" in found
    assert "--insecure" in found


def test_it_answers_and_ends_when_it_is_told_to_after_what_is_under_way(folder):  # noqa: F811
    with serving(folder) as (process, address):
        # The first picture takes long, as the kernels are loaded: the signal comes while it is under way.
        found = []
        asking = threading.Thread(target=lambda: found.append(post(f"{address}/api/v1/annotate?k=2", picture())))
        asking.start()
        while not (under_way := _waiting(address)) and asking.is_alive():
            time.sleep(0.005)
        process.send_signal(signal.SIGTERM)
        asking.join()
        assert under_way
        assert len(found[0]["pictures"][0]["tags"]) == 2
        assert process.wait(20) == 0


def _waiting(address):
    with urllib.request.urlopen(f"{address}/metrics", timeout=20) as answer:  # noqa: S310
        return "pictopic_waiting 1.0" in answer.read().decode()


def test_other_machines_need_a_token(folder):  # noqa: F811
    with serving(folder, "--host", "0.0.0.0", "--token", "a-secret-of-some-length") as (_, address):  # noqa: S104
        with pytest.raises(urllib.error.HTTPError, match="401"):
            get(f"{address}/api/v1/tags")
        assert get(f"{address}/api/v1/tags", Authorization="Bearer a-secret-of-some-length")["tags"]


def test_a_port_that_is_taken_is_misuse(folder):  # noqa: F811
    with socket.create_server(("127.0.0.1", 0)) as other:
        result = run("serve", str(folder), "--port", str(other.getsockname()[1]), env=ENVIRONMENT, timeout=60)
    assert result.returncode == 2
    assert "in use" in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.slow
def test_several_workers_answer_count_together_and_end(folder):  # noqa: F811
    with serving(folder, "--workers", "2") as (process, address):
        for _ in range(20):
            assert get(f"{address}/healthz")["status"] == "ok"
        with urllib.request.urlopen(f"{address}/metrics", timeout=20) as answer:  # noqa: S310
            text = answer.read().decode()
        assert 'pictopic_requests_total{method="GET",route="/healthz",status="200"} 20.0' in text
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["MISSING"], "is not a picture model"),
        (["MODEL", "--host", "0.0.0.0"], "give a --token"),  # noqa: S104
        (["MODEL", "--pictures", "MISSING"], "there is no folder"),
        (["MODEL", "--token", "only-15-letters"], "openssl rand -hex 16"),
    ],
)
def test_misuse_exits_with_2_and_one_line(folder, tmp_path, arguments, message):  # noqa: F811
    places = {"MISSING": str(tmp_path / "missing"), "MODEL": str(folder)}
    result = run("serve", *(places.get(argument, argument) for argument in arguments), env=ENVIRONMENT, timeout=60)
    assert result.returncode == 2, result.stderr
    assert message in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_without_the_extra_it_says_what_to_install(folder):  # noqa: F811
    code = (
        "import sys; sys.modules['uvicorn'] = None; from pictopic.cli import main; "
        f"sys.argv = ['pictopic', 'serve', {str(folder)!r}]; main()"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "pip install 'pictopic[server]'" in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_the_page_is_shown_in_the_browser_if_wanted(folder, tmp_path, monkeypatch):  # noqa: F811
    browser, shown = tmp_path / "browser", tmp_path / "shown"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{shown}.part" && mv "{shown}.part" "{shown}"\n')
    browser.chmod(0o755)
    monkeypatch.setitem(ENVIRONMENT, "BROWSER", f"{browser} %s")
    with serving(folder, "--open") as (_, address):
        for _ in range(100):
            if shown.exists():
                break
            time.sleep(0.1)
        assert shown.read_text().strip() == address
