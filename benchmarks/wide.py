"""How long the number of clusters takes to choose where there are very many codes."""

from __future__ import annotations

import time

from benchmarks.table import Figure, show
from comorb import BernoulliMixture
from comorb.records.datasets import record_like


def seconds(records: int, codes: int) -> float:
    """Processor seconds of a fit that chooses k."""
    matrix = record_like(records, k=5, d=codes).matrix
    started = time.process_time()
    BernoulliMixture("auto").fit(matrix)
    return time.process_time() - started


def main() -> None:
    seconds(1000, 200)  # compiles
    figures = [
        Figure(f"k='auto', {n:,} × {d:,}, processor seconds", seconds(n, d), 10, False, " s")
        for n, d in ((2000, 20_000), (10_000, 20_000), (50_000, 20_000), (10_000, 696))
    ]
    show("Very many codes", figures)
