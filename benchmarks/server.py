"""How many pictures a second the server answers for, beside the library in batches.

``python -m benchmarks.server`` draws 400 scenes, learns from them, and lets 32 clients ask a server on this machine for
the classes and the tags of one picture after the other, a minute at a time.  The library classifies and annotates the
same pictures in batches, with its defaults: a process a core.  The two take turns.  `cpu_ratio` is the ratio of the CPU
times a picture, which other work on the machine disturbs less; the server's is without the clients', which share the
cores with it.  ``--workers 1 2`` measures servers of one and of two processes.  Linux only: it reads /proc.

It takes minutes, and so is not a part of ``python -m benchmarks``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.timing import report

N_CLIENTS = 32
N_ROUNDS = 3
N_PICTURES = 400
QUESTIONS = ("classify", "annotate")
_STARTING = 120.0  # seconds
_MORE_WARMING = 5  # runs
_BOUNDARY = b"a-picture-ends-here"


# ---- the whole of a process and its children -------------------------------------------------------------------------


def _tree(process: int) -> dict[int, list[str]]:
    """Fields of /proc/PID/stat, from the third on, of a process and of all below it, by PID."""
    every = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            every[int(path.parent.name)] = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
    found, todo = {}, [process]
    while todo:
        own = todo.pop()
        found[own] = every[own]
        todo += [other for other, fields in every.items() if int(fields[1]) == own]
    return found


def cpu_seconds(process: int) -> float:
    """CPU time of a process and all below it, with those that have ended."""
    return sum(int(ticks) for fields in _tree(process).values() for ticks in fields[11:15]) / os.sysconf("SC_CLK_TCK")


class Memory(NamedTuple):
    """Megabytes of a process and all below it."""

    whole: float
    own: float  # without what is mapped from files, which the system takes away and brings back as it likes

    @classmethod
    def of(cls, process: int) -> Memory:
        """As it is now."""
        texts = [Path(f"/proc/{own}/status").read_text() for own in _tree(process)]
        return cls(_sum(texts, "VmRSS") / 1000, _sum(texts, "RssAnon") / 1000)


def _sum(texts: list[str], name: str) -> int:
    """Of a field of some /proc/PID/status, in kB."""
    return sum(int(size) for text in texts for size in re.findall(rf"{name}:\s+(\d+) kB", text))


# ---- the library -----------------------------------------------------------------------------------------------------


def answer_in_batches(model_folder: Path, contents: list[bytes], orders: Connection) -> None:
    """In a process of its own: how many pictures were answered for within as many seconds as each order says."""
    from pictopic import PictureModel

    model = PictureModel.load(model_folder, verbose=0)
    orders.send({"classify": model.classify(contents, 5), "annotate": model.annotate(contents, 5)})
    while seconds := orders.recv():
        n, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            model.classify(contents)
            model.annotate(contents)
            n += 2 * len(contents)
        orders.send((n, time.perf_counter() - begin))


# ---- the server and its clients --------------------------------------------------------------------------------------


class Server(NamedTuple):
    """A server that runs."""

    process: int
    port: int
    n_workers: int


@contextmanager
def serving(model_folder: Path, n_workers: int, log: Path) -> Iterator[Server]:
    """`pictopic serve`, at a port that is free."""
    command = [sys.executable, "-m", "pictopic", "serve", str(model_folder), "--port", "0"]
    with (
        log.open("w") as errors,
        subprocess.Popen([*command, "--workers", str(n_workers)], stderr=errors) as process,
    ):
        try:
            until = time.monotonic() + _STARTING
            while log.read_text().count("Application startup complete") < n_workers:
                if process.poll() is not None or time.monotonic() > until:
                    raise RuntimeError(f"the server did not start: {log.read_text()}")
                time.sleep(0.1)
            port = re.search(r"Serving at http://[^ ]*:(\d+)", log.read_text())
            assert port is not None
            yield Server(process.pid, int(port[1]), n_workers)
        finally:
            process.terminate()


class Found(NamedTuple):
    """What a client got."""

    question: str
    picture: int
    status: int
    seconds: float  # from when it first asked
    body: bytes


def request_for(question: str, content: bytes) -> bytes:
    """A whole request."""
    head = b'Content-Disposition: form-data; name="pictures"; filename="a.jpg"\r\nContent-Type: image/jpeg'
    body = b"--%b\r\n%b\r\n\r\n%b\r\n--%b--\r\n" % (_BOUNDARY, head, content, _BOUNDARY)
    lines = (
        f"POST /api/v1/{question}?k=5 HTTP/1.1",
        "Host: 127.0.0.1",
        f"Content-Type: multipart/form-data; boundary={_BOUNDARY.decode()}",
        f"Content-Length: {len(body)}",
    )
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


class Load:
    """Clients that ask about one picture after the other, each by a connection of its own.

    By hand and not with a library for HTTP, so that they take little of the time that the server could have.
    """

    def __init__(self, contents: list[bytes]):
        self.requests = [{question: request_for(question, own) for question in QUESTIONS} for own in contents]

    def run(self, port: int, seconds: float = 0.0, least: int = 0) -> tuple[list[Found], int]:
        """Ask for so long, and at least so often; the answers, and how often a client was told to come back."""
        return asyncio.run(self._run(port, seconds, least))

    async def _run(self, port: int, seconds: float, least: int) -> tuple[list[Found], int]:
        found: list[Found] = []
        self._numbers, self._until, self._least, self._n_busy = count(), time.perf_counter() + seconds, least, 0
        await asyncio.gather(*(self._client(port, found) for _ in range(N_CLIENTS)))
        return found, self._n_busy

    async def _client(self, port: int, found: list[Found]) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for number in self._numbers:
            if number >= self._least and time.perf_counter() >= self._until:
                break
            picture, question = number // 2 % len(self.requests), QUESTIONS[number % 2]
            begin = time.perf_counter()
            while True:
                writer.write(self.requests[picture][question])
                status, headers, body = await _read(reader)
                if status != 429:
                    break
                self._n_busy += 1
                await asyncio.sleep(float(headers["retry-after"]))
            found.append(Found(question, picture, status, time.perf_counter() - begin, body))
        writer.close()


async def _read(reader: asyncio.StreamReader) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of an answer."""
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split(" ")[1]), headers, await reader.readexactly(int(headers["content-length"]))


def n_other_answers(found: list[Found], expected: dict[str, list[Any]]) -> int:
    """How many answers are not the library's, to the six digits that the server gives."""
    fields = {"classify": "classes", "annotate": "tags"}
    n = 0
    for own in found:
        scored = json.loads(own.body)["pictures"][0].get(fields[own.question], []) if own.status == 200 else []
        wanted = [(name, round(score, 6)) for name, score in expected[own.question][own.picture]]
        n += [(one["name"], one["score"]) for one in scored] != wanted
    return n


# ---- both, in turns --------------------------------------------------------------------------------------------------


class Turn(NamedTuple):
    """What a turn came to."""

    n: int
    seconds: float
    cpu: float

    @property
    def speed(self) -> float:
        """Pictures a second."""
        return self.n / self.seconds


class Measured:
    """What was seen of a server."""

    def __init__(self, server: Server):
        self.server = server
        self.turns: list[Turn] = []
        self.found: list[Found] = []
        self.n_busy, self.client_cpu = 0, 0.0

    def warm_up(self, load: Load, expected: dict[str, list[Any]]) -> None:
        """Every question about every picture, which tells whether the answers are right."""
        found, _ = load.run(self.server.port, least=2 * len(load.requests))
        self.n_other = n_other_answers(found, expected)
        for _ in range(_MORE_WARMING):  # new connections, which are dealt out to the workers anew
            load.run(self.server.port, least=2 * N_CLIENTS)
        self.before = Memory.of(self.server.process)

    def turn(self, load: Load, seconds: float) -> None:
        """Load it."""
        before, own, begin = cpu_seconds(self.server.process), time.process_time(), time.perf_counter()
        found, n_busy = load.run(self.server.port, seconds)
        passed = time.perf_counter() - begin
        self.client_cpu += time.process_time() - own
        self.turns.append(Turn(len(found), passed, cpu_seconds(self.server.process) - before))
        self.found += [own._replace(body=b"") for own in found]
        self.n_busy += n_busy

    def report(self, library: list[Turn]) -> None:
        """Print all figures."""
        n, name = len(self.found), f"server with {self.server.n_workers} worker(s), {N_CLIENTS} clients"
        milliseconds = [1000 * own.seconds for own in self.found]
        before, after = self.before, Memory.of(self.server.process)
        report(
            f"{name}: speed", times_library=_median_speed(self.turns) / _median_speed(library),
            cpu_ratio=_median_cpu(library) / _median_cpu(self.turns), pictures_a_second=_median_speed(self.turns),
            library_pictures_a_second=_median_speed(library), cpu_ms_a_picture=_median_cpu(self.turns),
            library_cpu_ms_a_picture=_median_cpu(library), client_cpu_ms_a_picture=1000 * self.client_cpu / n,
        )  # fmt: skip
        report(
            f"{name}: answers", n=n, errors=sum(own.status != 200 for own in self.found), told_to_come_back=self.n_busy,
            other_than_the_librarys=self.n_other, p50_ms=np.percentile(milliseconds, 50),
            p99_ms=np.percentile(milliseconds, 99), seconds=sum(turn.seconds for turn in self.turns),
        )  # fmt: skip
        report(
            f"{name}: memory, MB", before=before.whole, after=after.whole, growth=after.whole / before.whole - 1,
            own_before=before.own, own_after=after.own, own_growth=after.own / before.own - 1,
        )  # fmt: skip


def _median_speed(turns: list[Turn]) -> float:
    return statistics.median(turn.speed for turn in turns)


def _median_cpu(turns: list[Turn]) -> float:
    """Milliseconds a picture."""
    return statistics.median(1000 * turn.cpu / turn.n for turn in turns)


def measure(
    model_folder: Path, contents: list[bytes], workers: list[int], seconds: float, rounds: int, logs: Path
) -> None:
    """Library and servers in turns."""
    ours, theirs = multiprocessing.Pipe()
    context = multiprocessing.get_context("spawn")
    library = context.Process(target=answer_in_batches, args=(model_folder, contents, theirs))
    library.start()
    assert library.pid is not None
    expected, load, turns = ours.recv(), Load(contents), []
    with ExitStack() as stack:
        servers = [Measured(stack.enter_context(serving(model_folder, n, logs / f"server-{n}.log"))) for n in workers]
        for server in servers:
            server.warm_up(load, expected)
        for _ in range(rounds):
            before = cpu_seconds(library.pid)
            ours.send(seconds / 3)
            n, passed = ours.recv()
            turns.append(Turn(n, passed, cpu_seconds(library.pid) - before))
            for server in servers:
                server.turn(load, seconds)
        for server in servers:
            server.report(turns)
        report("load of the machine in the last 1, 5 and 15 minutes", minutes=os.getloadavg())
    ours.send(0)
    library.join()


def main(arguments: list[str] | None = None) -> None:
    """Print all figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.server", description=__doc__)
    parser.add_argument("--model", type=Path, help="folder of a model; default: one of made-up scenes")
    parser.add_argument("--pictures", type=Path, help="folder of pictures to ask about; default: the scenes")
    parser.add_argument("--workers", type=int, nargs="+", default=[1], help="processes of the server")
    parser.add_argument("--seconds", type=float, default=60.0, help="that a server is under load at a time")
    parser.add_argument("--rounds", type=int, default=N_ROUNDS)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        source, model_folder = options.pictures, options.model
        if source is None or model_folder is None:
            from pictopic import PictureModel
            from pictopic.demo.scenes import write_scenes

            source = source or write_scenes(Path(folder) / "scenes", n=N_PICTURES)
            if model_folder is None:
                model_folder = Path(folder) / "model"
                PictureModel(verbose=0).fit(source).save(model_folder)
        contents = [path.read_bytes() for path in sorted(source.rglob("*.jpg"))]
        measure(model_folder, contents, options.workers, options.seconds, options.rounds, Path(folder))


if __name__ == "__main__":
    main()
