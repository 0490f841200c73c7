"""A real server, asked by slow, hostile and good clients at once: the good ones must not notice."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from tests.campaigns.builders import build_corpus, fit_model, write_sources
from tests.campaigns.harness import Campaign, expect
from tests.support.serving import serving

_SLOW = 24  # connections that never finish what they began
_HEALTH = 2.0  # seconds within which healthz answers
_GROWTH = 1.10
_WARM_UP = 0.25  # share of the time after which memory is measured first
_DOCUMENTED = (503, 504)


class Soak(Campaign):
    """One trial: so many seconds."""

    name = "soak"
    at_once = False

    def prepare(self) -> None:
        write_sources(self.shared)
        fit_model(build_corpus(self.shared / "p", self.shared / "corpus")).save(self.shared / "model")

    def plan(self) -> list[dict[str, Any]]:
        return [{"seconds": self.sizes.soak}]

    def run(self, trial: dict[str, Any], rng: random.Random, folder: Path) -> dict[str, Any]:
        pictures = sorted((self.shared / "p").glob("*.png"))
        with serving(self.shared / "model", "--no-open", PICTOPIC_CACHE=str(folder)) as (process, address):
            clients = _Clients(address, [path.read_bytes() for path in pictures], rng.random())
            before, after = clients.work(trial["seconds"], process.pid)
            expect(process.poll() is None, "the server has ended")
        expect(not clients.broken, f"{len(clients.broken)} broken promises, the first: {clients.broken[:1]}")
        expect(clients.statuses[200] > trial["seconds"], f"hardly anything was answered: {dict(clients.statuses)}")
        expect(after < _GROWTH * before, f"memory grew from {before >> 20} to {after >> 20} MB")
        return {
            "answers": {str(status): number for status, number in sorted(clients.statuses.items())},
            "healthz": clients.n_health, "slowest_healthz": round(clients.slowest, 3),
            "mb_before": before >> 20, "mb_after": after >> 20,
        }  # fmt: skip


class _Clients:
    """Threads that ask until they are stopped, and what they saw."""

    def __init__(self, address: str, pictures: list[bytes], seed: float):
        self.address, self.pictures, self.seed = address, pictures, seed
        self.stop = threading.Event()
        self.statuses: Counter[int] = Counter()
        self.broken: list[str] = []
        self.n_health, self.slowest = 0, 0.0

    def work(self, seconds: float, process: int) -> tuple[int, int]:
        """The server's memory after warming up and at the end, both at rest."""
        threads = [threading.Thread(target=target, args=(number,), daemon=True) for target, number in (
            *((self._ask, k) for k in range(3)), (self._attack, 0), (self._check_health, 0),
            *((self._dawdle, k) for k in range(_SLOW)),
        )]  # fmt: skip
        for thread in threads:
            thread.start()
        time.sleep(_WARM_UP * seconds)
        before = _memory(process)
        time.sleep((1 - _WARM_UP) * seconds)
        self.stop.set()
        for thread in threads:
            thread.join(60)
        time.sleep(1)
        return before, _memory(process)

    def _note(self, what: str, answer: httpx.Response) -> None:
        self.statuses[answer.status_code] += 1
        if answer.status_code >= 500 and answer.status_code not in _DOCUMENTED:
            self.broken.append(f"{what}: {answer.status_code} {answer.text[:200]}")

    def _ask(self, number: int) -> None:
        rng = random.Random(f"{self.seed}:{number}")  # noqa: S311
        with httpx.Client(base_url=self.address, timeout=60) as client:
            while not self.stop.is_set():
                content = rng.choice(self.pictures)
                kind = rng.choice(["annotate", "classify", "search"])
                try:
                    if kind == "search":
                        answer = client.get("/api/v1/search", params={"tags": "red"})
                    else:
                        answer = client.post(f"/api/v1/{kind}", files={"pictures": ("a.png", content)})
                except httpx.HTTPError as error:
                    self.broken.append(f"{kind}: {error!r}")
                    continue
                self._note(kind, answer)
                if answer.status_code == 429:
                    time.sleep(0.2)

    def _attack(self, number: int) -> None:
        """Uploads that are no pictures, or not whole, and headers that make no sense."""
        rng = random.Random(f"{self.seed}:attack")  # noqa: S311
        with httpx.Client(base_url=self.address, timeout=60) as client:
            while not self.stop.is_set():
                content = bytearray(rng.choice(self.pictures))
                for _ in range(rng.randrange(1, 20)):
                    content[rng.randrange(len(content))] = rng.randrange(256)
                content = content[: rng.randrange(1, len(content))]
                headers = rng.choice([{}, {"Origin": "http://[::1"}, {"Range": "bytes=9-1"}, {"Accept": "\x7f"}])
                try:
                    answer = client.post("/api/v1/look", files={"picture": ("a.png", bytes(content))}, headers=headers)
                    self._note("hostile upload", answer)
                    self._note("session", client.post("/api/v1/session", data={"token": "x" * rng.randrange(99)}))
                except httpx.HTTPError as error:
                    self.broken.append(f"hostile upload: {error!r}")
                time.sleep(0.05)

    def _check_health(self, number: int) -> None:
        while not self.stop.is_set():
            start = time.monotonic()
            try:
                status = httpx.get(f"{self.address}/healthz", timeout=10).status_code
            except httpx.HTTPError as error:
                self.broken.append(f"healthz: {error!r}")
                continue
            seconds = time.monotonic() - start
            self.n_health, self.slowest = self.n_health + 1, max(self.slowest, seconds)
            if status != 200 or seconds > _HEALTH:
                self.broken.append(f"healthz: {status} after {seconds:.1f} s")
            time.sleep(0.2)

    def _dawdle(self, number: int) -> None:
        """Half a head, half a body, or an answer that nobody reads, a byte at a time."""
        place = urlsplit(self.address)
        begun = [
            b"GET /api/v1/collection HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ",
            b"POST /api/v1/session HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\n",
            b"POST /api/v1/annotate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 90000\r\n"
            b"Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\n",
        ][number % 3]
        while not self.stop.is_set():
            try:
                with socket.create_connection((place.hostname, place.port), timeout=5) as connection:
                    connection.sendall(begun)
                    while not self.stop.wait(1.0):
                        connection.sendall(b"a")
            except OSError:  # the server has had enough, as it should
                self.stop.wait(0.5)


def _memory(process: int) -> int:
    """Bytes of a process and its children that are its own."""
    total = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            if int(path.parent.name) == process or int(fields[1]) == process:
                total += int((path.parent / "statm").read_text().split()[1]) * 4096
        except OSError:
            continue
    return total


CAMPAIGN = Soak
