"""Clients that keep a server waiting."""

import json
import resource
import subprocess
import sys
import time
import urllib.error
import urllib.request
from contextlib import ExitStack

import pytest

from pictopic.server.run import ConnectionLimits
from tests.server.conftest import connect, picture, read_all, running, send_raw

# What is made once takes long: one process makes it for all.

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
HALF = b"GET /healthz HTTP/1.1\r\nHost: 127"
SLOW_SIGN_IN = (
    b"POST /api/v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{"
)


def is_up(address):
    """Whether the server says so within two seconds."""
    with urllib.request.urlopen(f"{address}/healthz", timeout=2) as answer:  # noqa: S310
        return json.load(answer)["status"] == "ok"


def n_tags(address):
    with urllib.request.urlopen(f"{address}/api/v1/tags", timeout=20) as answer:  # noqa: S310
        return len(json.load(answer)["tags"])


def is_closed_while_trickling(connection):
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            connection.sendall(b"x")
        except OSError:
            return True
        time.sleep(0.05)
    return False


@pytest.fixture(scope="module")
def hasty(folder):
    """The address of a server that takes four connections and does not wait long."""
    with running(folder, ConnectionLimits(max_connections=4, reserve=2, head_seconds=0.5, read_seconds=0.5)) as address:
        yield address


@pytest.mark.parametrize("start", [HALF, b"G", HEALTH.replace(b"close", b"keep-alive") + HALF])
def test_half_a_head_is_refused_when_its_time_is_over(hasty, start):
    answer = send_raw(hasty, start)
    head, _, body = answer[answer.rindex(b"HTTP/1.1") :].partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 408 ")
    assert b"application/problem+json" in head
    assert json.loads(body)["type"] == "/docs#timeout"


def test_a_head_that_trickles_has_no_more_time(hasty):
    with connect(hasty) as connection:
        assert is_closed_while_trickling(connection)


def test_a_connection_without_a_request_is_closed(hasty):
    assert send_raw(hasty, b"") == b""


def test_a_body_that_nobody_reads_does_not_keep_the_connection_open(hasty):
    request = HEALTH.replace(b"Connection: close", b"Content-Length: 1000000")
    with connect(hasty) as connection:
        connection.sendall(request)
        assert is_closed_while_trickling(connection)


def test_who_does_not_read_the_answer_is_cut_off(folder):
    with (
        running(folder, ConnectionLimits(head_seconds=0.5, read_seconds=0.5)) as address,
        connect(address) as connection,
    ):
        # Requests one after the other, none of whose answers is read: more than fits into the buffers of the system.
        request = b"GET /static/vendor/preact-htm.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
        until = time.monotonic() + 30
        try:
            while time.monotonic() < until:
                connection.sendall(request * 100)
        except OSError:
            return
    raise AssertionError("the connection is still open")


MANY = b"GET /api/v1/pictures?limit=1000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 400  # answers: more than buffers hold


def is_answered(address):
    """Whether there is an answer within a while, long before those that do not read are cut off."""
    until = time.monotonic() + 15
    while time.monotonic() < until:
        try:
            return n_tags(address) > 3
        except urllib.error.HTTPError:
            time.sleep(0.2)
    return False


@pytest.mark.parametrize(
    ("limits", "n"),
    [
        (ConnectionLimits(max_unread=2, read_seconds=60), 4),
        (ConnectionLimits(max_connections=2, reserve=1, read_seconds=60), 2),
    ],
    ids=["of requests", "of connections"],
)
def test_who_does_not_read_takes_nobodys_place(folder, limits, n):
    with running(folder, limits, max_requests=4) as address, ExitStack() as stack:
        for _ in range(n):
            stack.enter_context(connect(address)).sendall(MANY)
        time.sleep(3)
        assert is_answered(address)


CHUNKED = (
    b"POST /api/v1/annotate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: multipart/form-data; boundary=x\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
START = b'--x\r\nContent-Disposition: form-data; name="a"; filename="a.png"\r\n\r\n'


def test_a_body_of_many_tiny_chunks_is_refused(folder):
    request = CHUNKED + b"%x\r\n%b\r\n" % (len(START), START) + b"1\r\na\r\n" * 2000  # and more is to come
    with running(folder) as address:
        assert send_raw(address, request).startswith(b"HTTP/1.1 400 ")
        assert is_up(address)


def test_a_body_of_chunks_is_read(folder):
    body = START + picture(kind="PNG", size=(400, 400)) + b"\r\n--x--\r\n"
    few = b"".join(b"1\r\n%c\r\n" % byte for byte in body[:900])
    others = [body[k : k + 256] for k in range(900, len(body), 256)]
    assert len(others) > 1000
    many = b"".join(b"%x\r\n%b\r\n" % (len(own), own) for own in others)
    request = CHUNKED.replace(b"Host:", b"Connection: close\r\nHost:") + few + many + b"0\r\n\r\n"
    with running(folder) as address:
        assert send_raw(address, request).startswith(b"HTTP/1.1 200 ")


def test_what_is_not_http_is_a_problem(hasty):
    head, _, body = send_raw(hasty, b"\0\0\r\n\r\n").partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["type"] == "/docs#bad-request"


def test_more_connections_push_out_those_that_wait_longest(hasty):
    with ExitStack() as stack:
        waiting = [stack.enter_context(connect(hasty)) for _ in range(4)]
        for connection in waiting:
            connection.sendall(HALF)
        time.sleep(0.1)
        assert send_raw(hasty, HEALTH).startswith(b"HTTP/1.1 200 ")
        assert read_all(waiting[0]) == b""  # pushed out
        assert read_all(waiting[3]).startswith(b"HTTP/1.1 408 ")


def test_bodies_that_do_not_arrive_give_way_to_health(hasty):
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(connect(hasty)).sendall(SLOW_SIGN_IN)
            assert is_up(hasty)


def test_the_limits_fit_into_the_files_that_a_process_may_open():
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (160, 160))\n"
        "from pictopic.server.run import ConnectionLimits\n"
        "limits = ConnectionLimits.of_process()\n"
        "print(limits.max_connections, limits.backlog, limits.reserve)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    n, backlog, reserve = map(int, found.stdout.split())
    assert 40 <= n <= 80
    assert n + backlog + reserve < 140


# ---- floods, of a process of its own ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def limited(folder):
    """The address of a server that may open 160 files."""
    from tests.support.serving import serving

    with serving(folder, n_files=160) as (_, address):
        yield address


@pytest.mark.slow
@pytest.mark.parametrize("request_", [b"", HALF, SLOW_SIGN_IN], ids=["nothing", "half", "sign-in"])
def test_floods_of_slow_clients_block_nobody(limited, request_):
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= 600
    with ExitStack() as stack:
        for number in range(400):
            connection = stack.enter_context(connect(limited))
            connection.sendall(request_)
            if number % 20 == 0:
                assert is_up(limited)
                assert n_tags(limited) > 3
        assert is_up(limited)
        assert n_tags(limited) > 3
    assert is_up(limited)
