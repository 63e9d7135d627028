"""Users: 50 of them for two minutes on aggregate pages while two fits run; the machine's own alone.

The 99th percentile of the answers must be under ten times the median of an idle server, no answer
an error, and the memory of the server flat.
"""

from __future__ import annotations

import os
import random
import statistics
import tempfile
import threading
import time
from pathlib import Path

import httpx2 as httpx

from torture.commands import write_visits
from torture.processes import comorb, end, environment, start
from torture.server import Server, add_users, settled
from torture.verdict import Verdict

USERS, SECONDS = 50, 120.0
TIMES = 10  # the median of an idle server
GROWTH = 1.15  # of the memory, from the first third to the last
_PAUSE = (0.8, 2.4)  # seconds between the requests of one user
_PAGES = (
    "/",
    "/runs/{run}",
    "/api/v1/runs",
    "/api/v1/runs/{run}",
    "/api/v1/runs/{run}/profile",
    "/api/v1/runs/{run}/relevance?lambda=0.6",
    "/texts.json",
)


def run(share: float) -> Verdict:
    """Measure an idle server, then the same with users and fits."""
    users, seconds = max(int(USERS * share), 3), max(SECONDS * share, 6.0)
    with tempfile.TemporaryDirectory(prefix="torture-") as place:
        folder = Path(place)
        write_visits(folder / "visits.csv", 2000)
        tokens = add_users(folder / "workspace")
        with Server(
            folder / "workspace", environment(folder), (str(folder / "visits.csv"),)
        ) as server:
            crowd = Crowd(server, tokens)
            with server.client(tokens["exporter"]) as client:
                crowd.prepare(client)
            idle = crowd.idle(max(int(200 * share), 30))
            crowd.go(users, seconds, folder)
            if server.dead:
                crowd.errors.append("the server ended")
        return crowd.verdict(idle, users, seconds)


class Crowd:
    """Users who read pages, and what they waited for and were told."""

    def __init__(self, server: Server, tokens: dict[str, str]) -> None:
        self.server, self.tokens = server, tokens
        self.waits: list[float] = []
        self.errors: list[str] = []
        self.memory: list[int] = []
        self.run = ""
        self.fits = 0
        self._over = threading.Event()

    def prepare(self, client: httpx.Client) -> None:
        """Make a run that everyone may read."""
        data = next(
            row["id"] for row in client.get("/api/v1/data").json() if row["kind"] == "mounted"
        )
        self._body = {"data": data, "k": 3, "rules": {"at_least": 1}}
        self.run = client.post("/api/v1/runs", json=self._body).json()["id"]
        settled(client, self.run)
        client.patch(f"/api/v1/runs/{self.run}", json={"shared": True})

    def _ask(self, client: httpx.Client, rng: random.Random) -> float:
        path = rng.choice(_PAGES).replace("{run}", self.run)
        started = time.monotonic()
        try:
            told = client.get(path)
            if told.status_code != 200:
                self.errors.append(f"{path.partition('?')[0]} answered {told.status_code}")
        except httpx.HTTPError as error:
            self.errors.append(f"{type(error).__name__} on a page")
        return time.monotonic() - started

    def idle(self, requests: int) -> float:
        """Return the median of one user's waits while nothing else is done."""
        rng = random.Random(1)
        with self.server.client(self.tokens["viewer"]) as client:
            for _ in range(10):
                self._ask(client, rng)
            return statistics.median(self._ask(client, rng) for _ in range(requests))

    def _user(self, number: int) -> None:
        rng = random.Random(number)
        role = ("viewer", "viewer", "analyst", "exporter")[number % 4]
        self._over.wait(rng.uniform(0, _PAUSE[1]))
        with self.server.client(self.tokens[role]) as client:
            while not self._over.is_set():
                self.waits.append(self._ask(client, rng))
                self._over.wait(rng.uniform(*_PAUSE))

    def _fit_here(self) -> None:
        """Keep a fit of the server running."""
        with self.server.client(self.tokens["exporter"]) as client:
            while not self._over.is_set():
                made = client.post("/api/v1/runs", json={"data": "heart-failure", "k": "auto"})
                key = made.json()["id"]
                while not self._over.wait(0.5):
                    if client.get(f"/api/v1/runs/{key}").json()["state"] not in (
                        "queued",
                        "running",
                    ):
                        self.fits += 1
                        break

    def _fit_beside(self, folder: Path) -> None:
        """Keep a fit of the command line running."""
        while not self._over.is_set():
            words = comorb("demo", "-o", "demo", "--json")
            process = start(words, folder, environment(folder))
            while process.poll() is None:
                if self._over.wait(0.2):
                    end(process)
                    process.wait()
                    return
            self.fits += 1
            for stream in (process.stdout, process.stderr):
                if stream:
                    stream.close()

    def go(self, users: int, seconds: float, folder: Path) -> None:
        """Let everyone in for a while, and watch the memory of the server."""
        threads = [threading.Thread(target=self._user, args=(number,)) for number in range(users)]
        threads += [
            threading.Thread(target=self._fit_here),
            threading.Thread(target=self._fit_beside, args=(folder,)),
        ]
        for thread in threads:
            thread.start()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.memory.append(_resident(self.server.process.pid))
            time.sleep(0.5)
        self._over.set()
        for thread in threads:
            thread.join(150)

    def verdict(self, idle: float, users: int, seconds: float) -> Verdict:
        """Return the figures, and what is not as promised."""
        ordered = sorted(self.waits)
        p99 = ordered[min(int(0.99 * len(ordered)), len(ordered) - 1)]
        third = max(len(self.memory) // 3, 1)
        first, last = (
            statistics.mean(some) for some in (self.memory[:third], self.memory[-third:])
        )
        findings = sorted(set(self.errors))[:10]
        if p99 > TIMES * idle:
            findings.append(f"the 99th percentile is {p99 / idle:.1f} times the idle median")
        if last > GROWTH * first:
            findings.append(f"the server grew from {first / 1e6:.0f} to {last / 1e6:.0f} MB")
        figures = (
            f"{users} users for {seconds:.0f} s with two fits running ({self.fits} ended): "
            f"{len(ordered):,} requests, {len(self.errors)} errors, median "
            f"{1000 * statistics.median(ordered):.0f} ms, p99 {1000 * p99:.0f} ms, idle median "
            f"{1000 * idle:.0f} ms ({p99 / idle:.1f} times), "
            f"memory {first / 1e6:.0f} → {last / 1e6:.0f} MB"
        )
        return Verdict(figures, findings)


def _resident(process: int) -> int:
    """Return the resident bytes of a process; 0 where that can't be told."""
    try:
        pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")
