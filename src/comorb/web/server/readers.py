"""Readers: the processes that answer, shared fairly, and stopped when who asked has left.

Some read records, others what runs found.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from comorb.web.server.refusals import RefusedError
from comorb.web.worker.isolation import Bounds
from comorb.web.worker.messages import Task
from comorb.web.worker.process import StoppedError, TaskError, Worker

THREADS = 200  # of the server, of which those that wait for readers leave the half to others
_READERS = 2
_MOST = 8  # that a user may have under way and waiting
_MOST_OF_ALL = THREADS // 4
_TOGETHER = nullcontext()


class Errand:
    """What one request has a reader do; when its client leaves, the reader is stopped."""

    def __init__(self, user: str, language: str = "en") -> None:
        self.user, self.language = user, language
        self._lock = threading.Lock()
        self._left = False
        self._reader: Worker | None = None

    @contextmanager
    def done_by(self, reader: Worker) -> Iterator[None]:
        """Name the reader that is at it within the block."""
        with self._lock:
            if self._left:
                raise StoppedError("Who asked for this has left.")
            self._reader = reader
        try:
            yield
        finally:
            with self._lock:
                self._reader = None

    def leave(self) -> None:
        """Stop the reader that is at it, and let none begin."""
        with self._lock:
            self._left = True
            if self._reader is not None:
                self._reader.stop()


class Readers:
    """Two processes; a user has one of them at a time, so that nobody's slow file stops others."""

    def __init__(self, bounds: Bounds | None = None, seconds: float = 600) -> None:
        self._seconds = seconds
        self._workers = [Worker(bounds=bounds) for _ in range(_READERS)]
        self._free = list(self._workers)
        self._latest: dict[str, Worker] = {}
        self._lock = threading.Lock()
        self._freed = threading.Condition(self._lock)
        self._asked: Counter[str] = Counter()
        self._turns: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def ask(
        self, task: Task, errand: Errand, alone: AbstractContextManager[Any] | None = None
    ) -> Any:
        """Have a reader do a task, within the time that one may take.

        Of those that are to be done ``alone``, with one lock, one is done after the other.
        """
        with self.reader(errand, alone or _TOGETHER) as reader:
            late = threading.Event()

            def stop() -> None:
                late.set()
                reader.stop()

            timer = threading.Timer(self._seconds, stop)
            timer.start()
            try:
                return reader.ask(task)
            except StoppedError:
                if not late.is_set():
                    raise
                raise TaskError(
                    f"This takes more than {self._seconds / 60:.3g} minutes, which is the most "
                    "here; give fewer records, or ask for more time."
                ) from None
            finally:
                timer.cancel()
                timer.join()

    @contextmanager
    def reader(
        self, errand: Errand, alone: AbstractContextManager[Any] = _TOGETHER
    ) -> Iterator[Worker]:
        """Yield a reader when it is the user's turn and one is free; too many asked are refused."""
        with self._lock:
            if self._asked.total() >= _MOST_OF_ALL:
                raise RefusedError(503, "Too many ask at the moment; try again in a minute.")
            if self._asked[errand.user] >= _MOST:
                raise RefusedError(429, "You have asked for much at once; wait for some of it.")
            self._asked[errand.user] += 1
            turn = self._turns[errand.user]
        try:
            with turn:
                worker = self._take(errand.user)
                try:
                    with alone, errand.done_by(worker):
                        yield worker
                finally:
                    with self._freed:
                        self._free.append(worker)
                        self._freed.notify()
        finally:
            with self._lock:
                self._asked[errand.user] -= 1

    def _take(self, user: str) -> Worker:
        """Wait for a free reader; the user's latest one, if it is free, still holds their data."""
        with self._freed:
            self._freed.wait_for(lambda: self._free)
            latest = self._latest.get(user)
            worker = latest if latest in self._free else self._free[0]
            self._free.remove(worker)
            self._latest[user] = worker
            return worker

    def close(self) -> None:
        """End the processes for good."""
        for worker in self._workers:
            worker.close()


@asynccontextmanager
async def followed(request: Request, errand: Errand) -> AsyncIterator[Errand]:
    """Yield an errand that is given up when the client of a request leaves before the block ends.

    The body of the request was read before, as what comes after it is listened to.
    """

    async def follow() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        await run_in_threadpool(errand.leave)

    following = asyncio.ensure_future(follow())
    try:
        yield errand
    finally:
        following.cancel()
