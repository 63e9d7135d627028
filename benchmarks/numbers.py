"""The recommended number of clusters: right, one where there is none, and the same on halves.

``python -m benchmarks numbers`` measures all of it; ``python -m benchmarks.numbers 2 halves``
the halves, two of each set.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from scipy import sparse

from benchmarks.real import SUBSETS, discharges
from benchmarks.table import Figure, show
from comorb import choose_k
from comorb.records.datasets import paper, record_like

SIZES = (300, 1000, 3000, 10_000, 100_000)


def permuted(matrix, seed):
    """Return the matrix with the rows of each column permuted by themselves: no groups are left."""
    rng = np.random.default_rng(seed)
    by_column = sparse.csc_array(matrix)
    n = matrix.shape[0]
    carriers = np.diff(by_column.indptr)
    by_column.indices = np.concatenate(
        [rng.choice(n, count, replace=False).astype(np.int32) for count in carriers]
    )
    by_column.has_sorted_indices = False
    rows = sparse.csr_array(by_column)
    rows.sort_indices()
    return rows


def right_figure(runs):
    hits = 0
    for run in range(runs):
        k = 2 + run % 11
        found = choose_k(paper(10_000, 99, k, seed=500 + run).matrix).best
        hits += found == k
        print(f"paper's generator, k={k}: {found}", flush=True)
    return Figure(f"k recovered, N=10,000, d=99, k in 2..12, {runs} runs", hits / runs, 0.92)


def none_figure(runs):
    hits = 0
    for run in range(runs):
        n = SIZES[run % len(SIZES)]
        source = record_like(n, 5, seed=run) if run % 2 else paper(n, 60, 5, seed=run)
        found = choose_k(permuted(source.matrix, run)).best
        hits += found == 1
        print(f"permuted columns, N={n}, d={source.matrix.shape[1]}: {found}", flush=True)
    return Figure(f"one group on permuted columns, {runs} runs", hits / runs, 0.96)


def halves_figure(count):
    near = []
    for name in SUBSETS:
        matrix = discharges(name)
        started = time.perf_counter()
        whole = choose_k(matrix)
        seconds = time.perf_counter() - started
        found = []
        for seed in range(count):
            rows = np.random.default_rng(seed).permutation(matrix.shape[0])
            half = matrix[np.sort(rows[: matrix.shape[0] // 2])]
            half = sparse.csr_array(half[:, np.flatnonzero(half.sum(axis=0))])
            found.append(choose_k(half).best)
        near += [abs(k - whole.best) <= 2 for k in found]
        print(f"{name}: {whole.best} ({seconds:.1f} s), on halves {found}", flush=True)
        print(f"    {whole.reason}", flush=True)
    return Figure(f"halves within 2 of the whole, {count} a set", float(np.mean(near)), 0.8)


PARTS = ("right", "none", "halves")


def main(count: int = 10, parts: tuple[str, ...] = PARTS) -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    figures = []
    if "right" in parts:
        figures.append(right_figure(5 * count))
    if "none" in parts:
        figures.append(none_figure(5 * count))
    if "halves" in parts:
        figures.append(halves_figure(count))
    show("The number of clusters", figures)


if __name__ == "__main__":
    main(int(sys.argv[1]), tuple(sys.argv[2:]) or PARTS)
