"""One row a figure: what was measured, the target, and whether it is met."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Figure:
    """A measured figure against its target; ``at_least`` says which way is better."""

    name: str
    value: float
    target: float
    at_least: bool = True
    unit: str = "×"

    @property
    def met(self) -> bool:
        """Whether the target is met."""
        return self.value >= self.target if self.at_least else self.value <= self.target


def best_of(function: Callable[[], Any], repeats: int = 5) -> float:
    """Return the shortest of some runs, in seconds, after one that warms up."""
    function()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def show(title: str, figures: list[Figure]) -> None:
    """Print figures as a table."""
    print(f"\n{title} ({os.cpu_count()} cores)\n")
    print(f"{'figure':<74} {'measured':>10} {'target':>10}  met")
    for f in figures:
        sign = "≥" if f.at_least else "≤"
        measured, target = f"{f.value:.3g}{f.unit}", f"{sign} {f.target:g}{f.unit}"
        print(f"{f.name:<74} {measured:>10} {target:>10}  {'yes' if f.met else 'NO'}")
