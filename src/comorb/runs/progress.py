"""Progress: what a run is doing, stage by stage, and how far a long fit is."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, log
from typing import Literal

import numpy as np

Stage = Literal["reading", "finding", "repeating", "describing", "writing"]
N_GAINS = 6  # gains that the time left is estimated from


@dataclass(frozen=True)
class Progress:
    """The stage that a run is in, what it is doing there, in words, and the seconds left."""

    stage: Stage
    text: str
    left: float | None = None  # seconds until the clusters are found, where that can be estimated


Reporter = Callable[[Progress], None]


def ignore_progress(_: Progress) -> None:
    """Report nothing."""


class PassProgress:
    """Reports each pass over the records and, once EM is on its way, the time left.

    EM ends when a pass gains less than ``limit``. Gains shrink by about the same factor from one
    pass to the next, so a line through their last logarithms says how many are to come.

    >>> times = iter(range(0, 100, 10))
    >>> pace = PassProgress(1e-6, lambda progress: print(progress.text), lambda: next(times))
    >>> for objective in (-1.0, -0.9, -0.89, -0.889):
    ...     pace.gained(0, objective)
    >>> pace.begin(7)
    Pass 7 over the records; about 40 s left
    """

    def __init__(
        self, limit: float, report: Reporter, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._limit, self._report, self._clock = limit, report, clock
        self._at: float | None = None
        self._objective = float("nan")
        self._gains: deque[float] = deque(maxlen=N_GAINS)
        self._seconds: deque[float] = deque(maxlen=N_GAINS)

    def begin(self, number: int) -> None:
        """Report that a pass begins."""
        left = self._left()
        shown = "" if left is None else f"; about {_format_seconds(left)} left"
        self._report(Progress("finding", f"Pass {number} over the records{shown}", left))

    def gained(self, _: int, objective: float) -> None:
        """Hear what the objective, per record, is after a pass of EM."""
        now = self._clock()
        if self._at is not None:
            self._seconds.append(now - self._at)
        if objective > self._objective:
            self._gains.append(objective - self._objective)
        self._at, self._objective = now, objective

    def _left(self) -> float | None:
        if len(self._gains) < 3:
            return None
        logs = np.log(self._gains)
        slope = float(np.polyfit(np.arange(logs.size), logs, 1)[0])
        if slope >= 0:
            return None
        passes = ceil(max((log(self._limit) - float(logs[-1])) / slope, 0.0)) + 1
        return passes * max(self._seconds)


def _format_seconds(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
