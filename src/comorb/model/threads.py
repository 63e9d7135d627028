"""Who runs the blocks, and dense linear algebra that does not depend on it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, wraps
from threading import local
from typing import ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

from comorb.errors import InputError

P = ParamSpec("P")
R = TypeVar("R")


_here = local()


class Threads(ThreadPoolExecutor):
    """A pool of threads that holds one block more than it has threads, at most.

    When its context ends by an error or a Ctrl-C, what runs ends at its next block of rows.
    """

    def __init__(self, count: int) -> None:
        super().__init__(count, initializer=self._begin)
        self.window = count + 1
        self.given_up = False

    def _begin(self) -> None:
        _here.pool = self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Wait for what runs, or give it up."""
        self.given_up = kind is not None
        self.shutdown(wait=True, cancel_futures=self.given_up)


def go_on() -> None:
    """Raise KeyboardInterrupt in a thread of a pool that was given up."""
    if getattr(_here, "pool", None) is not None and _here.pool.given_up:
        raise KeyboardInterrupt


@contextmanager
def workers(n_jobs: int | None) -> Iterator[Executor | None]:
    """Yield a pool of ``n_jobs`` threads: all cores for −1 or None, no pool for 1.

    The answer does not depend on the number, so the default is all there are.
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    count = (cores or 1) if n_jobs in (None, -1) else n_jobs
    if not isinstance(count, int) or count < 1:
        raise InputError(f"expected n_jobs to be a positive whole number or -1, got {n_jobs!r}")
    if count == 1:
        yield None
        return
    with Threads(count) as pool:
        yield pool


@cache
def _controller() -> ThreadpoolController:
    return ThreadpoolController()


def single_threaded(function: Callable[P, R]) -> Callable[P, R]:
    """Run dense linear algebra on one thread, so that its rounding is the same everywhere."""

    @wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        with _controller().limit(limits=1):
            return function(*args, **kwargs)

    return run
