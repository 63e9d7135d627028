"""The recommended number of clusters: right, one where there is none, and the same on halves.

``python -m benchmarks numbers`` measures all of it; ``python -m benchmarks.numbers 2 halves``
the halves, two of each set; ``python -m benchmarks.numbers 1 items`` tables of a few items.
"""

from __future__ import annotations

import sys
import time
import warnings
from itertools import product

import numpy as np
from scipy import sparse

from benchmarks.real import SUBSETS, discharges
from benchmarks.table import Figure, show
from comorb import Mixture, choose_k
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


def item_tables():
    """Yield 168 tables of a few items, each with its number of classes."""
    for k, items, n, seed in product((1, 2, 3, 4), (4, 6, 8), (500, 3000), range(7)):
        rng = np.random.default_rng([k, items, n, seed])
        weights = rng.dirichlet(np.full(k, 5.0))
        means = rng.beta(0.7, 0.7, size=(k, items)).clip(0.05, 0.95)
        if k == 1:
            means = rng.uniform(0.1, 0.9, size=(1, items))
        yield k, Mixture(weights, means).sample(n, seed)[0].toarray()


def items_figure():
    right = {"recommended": [], "lowest BIC": []}
    for k, matrix in item_tables():
        patterns, counts = np.unique(matrix, axis=0, return_counts=True)
        ks = range(1, min(matrix.shape[1], 5) + 1)
        choice = choose_k(patterns, ks, sample_weight=counts, lca=True)
        right["recommended"].append(choice.best == k)
        right["lowest BIC"].append(min(choice.classes, key=lambda row: row.bic).k == k)
    for name, hits in right.items():
        print(f"{name}: {np.reshape(hits, (4, -1)).sum(axis=1)} of 42 with 1 to 4 classes")
    gain = sum(right["recommended"]) - sum(right["lowest BIC"])
    return Figure("tables of 4 to 8 items right, more than by BIC, of 168", gain, 0)


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


PARTS = ("right", "none", "items", "halves")


def main(count: int = 10, parts: tuple[str, ...] = PARTS) -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    figures = []
    if "right" in parts:
        figures.append(right_figure(5 * count))
    if "none" in parts:
        figures.append(none_figure(5 * count))
    if "items" in parts:
        figures.append(items_figure())
    if "halves" in parts:
        figures.append(halves_figure(count))
    show("The number of clusters", figures)


if __name__ == "__main__":
    main(int(sys.argv[1]), tuple(sys.argv[2:]) or PARTS)
