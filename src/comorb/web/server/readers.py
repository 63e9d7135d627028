"""Readers: the processes that work for requests, shared fairly, stopped when a client leaves."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from comorb.web.server.security import RefusedError
from comorb.web.worker.process import Bounds, StoppedError, TaskError, Worker
from comorb.web.worker.requests import Task

THREADS = 200  # of the server, of which those that wait for readers leave the half to others
_N_READERS = 2
_MAX_PENDING_OF_USER = 8  # tasks of a user, under way or waiting
_MAX_PENDING = THREADS // 4
_NO_LOCK = nullcontext()


class CancelScope:
    """The work of one request; cancelling it, as when the client leaves, stops its reader."""

    def __init__(self, user: str, language: str = "en") -> None:
        self.user, self.language = user, language
        self._lock = threading.Lock()
        self._cancelled = False
        self._reader: Worker | None = None

    @contextmanager
    def run_on(self, reader: Worker) -> Iterator[None]:
        """Hold the reader that works for it within the block; refuse if cancelled already."""
        with self._lock:
            if self._cancelled:
                raise StoppedError("task.left")
            self._reader = reader
        try:
            yield
        finally:
            with self._lock:
                self._reader = None

    def cancel(self) -> None:
        """Stop the reader that works for it, and let none begin."""
        with self._lock:
            self._cancelled = True
            if self._reader is not None:
                self._reader.stop()


class Readers:
    """Two processes; a user has one of them at a time, so that nobody's slow file stops others."""

    def __init__(self, bounds: Bounds | None = None, seconds: float = 600) -> None:
        self._seconds = seconds
        self._workers = [Worker(bounds=bounds) for _ in range(_N_READERS)]
        self._free = list(self._workers)
        self._latest: dict[str, Worker] = {}
        self._lock = threading.Lock()
        self._freed = threading.Condition(self._lock)
        self._pending: Counter[str] = Counter()
        self._user_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def ask(
        self, task: Task, scope: CancelScope, lock: AbstractContextManager[Any] = _NO_LOCK
    ) -> Any:
        """Have a reader do a task, within the time limit, holding the ``lock``."""
        with self.reader(scope, lock) as reader:
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
                raise TaskError("task.too_long", minutes=self._seconds / 60) from None
            finally:
                timer.cancel()
                timer.join()

    @contextmanager
    def reader(
        self, scope: CancelScope, lock: AbstractContextManager[Any] = _NO_LOCK
    ) -> Iterator[Worker]:
        """Yield a reader when it is the user's turn and one is free; refuse too many requests."""
        with self._lock:
            if self._pending.total() >= _MAX_PENDING:
                raise RefusedError(503, "server.busy")
            if self._pending[scope.user] >= _MAX_PENDING_OF_USER:
                raise RefusedError(429, "server.too_much")
            self._pending[scope.user] += 1
            own_turn = self._user_locks[scope.user]
        try:
            with own_turn:
                worker = self._take(scope.user)
                try:
                    with lock, scope.run_on(worker):
                        yield worker
                finally:
                    with self._freed:
                        self._free.append(worker)
                        self._freed.notify()
        finally:
            with self._lock:
                self._pending[scope.user] -= 1

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
async def cancel_on_disconnect(request: Request, scope: CancelScope) -> AsyncIterator[CancelScope]:
    """Yield a scope that is cancelled when the client disconnects before the block ends.

    The body of the request has to be read before.
    """

    async def watch() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        await run_in_threadpool(scope.cancel)

    watching = asyncio.ensure_future(watch())
    try:
        yield scope
    finally:
        watching.cancel()
