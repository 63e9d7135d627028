"""The default start against the best of 20 random starts, by evidence, on data of many kinds.

``python -m benchmarks starts`` measures all of it, 10 parts a set, which takes hours;
``python -m benchmarks.starts 2 subsets tables`` some of it, on 2 parts a set.
"""

from __future__ import annotations

import sys
import time
import warnings

import numpy as np
from scipy import sparse

from benchmarks.accuracy import GRID, Ground, blocks_of
from benchmarks.real import SUBSETS, claims, discharges, small_table
from benchmarks.table import Figure, show
from comorb import BernoulliMixture
from comorb.model.blocks import workers
from comorb.model.em import Stopping, em
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.subsample import distinct_rows
from comorb.records.datasets import paper

NEAR = 0.0005  # nats a record below the best of the random starts
PART = 0.7
PUBLISHED = (
    ("carcinoma", 7, 2, -317.2568),
    ("carcinoma", 7, 3, -293.7050),
    ("carcinoma", 7, 4, -289.2858),
    ("cheating", 4, 2, -440.0271),
)
RANDOM_FITS_OF_A_TABLE = 500


def part_of(matrix, seed):
    """Return 70% of the rows, drawn at random, and the columns that they carry."""
    rng = np.random.default_rng(seed)
    kept = np.sort(rng.permutation(matrix.shape[0])[: int(PART * matrix.shape[0])])
    part = matrix[kept]
    part = sparse.csr_array(part[:, np.flatnonzero(part.sum(axis=0))])
    part.sort_indices()
    return part


def lead(matrix, k, pool):
    """Return our evidence less the best of 20 random starts', a record, and the times of both."""
    ground = Ground(blocks_of(matrix), k, pool)
    ours = ground.evidence(ground.fit(ground.found.model))
    results, seconds = ground.random_fits()
    return ours - max(ground.evidence(result) for result in results), ground.start_seconds, seconds


def compared(title, cases, pool):
    """Print one line a set and k, and return the leads."""
    print(f"\n{title}\n{'':<34}{'lead, nats a record':>44}{'start':>9}{'a random fit':>14}")
    leads = []
    for name, matrices, k in cases:
        rows = np.array([lead(matrix, k, pool) for matrix in matrices])
        leads += rows[:, 0].tolist()
        told = " ".join(f"{value:+.4f}" for value in rows[:, 0])
        print(
            f"{name + f', k={k}':<34}{told:>44}{rows[:, 1].mean():8.1f}s{rows[:, 2].mean():13.2f}s"
        )
        sys.stdout.flush()
    share = float(np.mean(np.array(leads) >= -NEAR))
    return Figure(f"{title}: at least the best of 20 random starts", share, 0.95, True, "")


def parts_of(matrix, count):
    return [part_of(matrix, seed) for seed in range(count)]


def cases_of(part, count):
    """Yield the name, the matrices and k of each case of a part of the benchmark."""
    if part == "subsets":
        for name in SUBSETS:
            for k in (3, 5, 8, 12, 20):
                yield name, parts_of(discharges(name), count), k
    elif part == "short":
        for k in (4, 6, 8, 12):
            yield "first three codes", parts_of(discharges(first=3), count), k
    elif part == "claims":
        for k in (5, 10):
            yield "SynPUF", parts_of(claims(), count), k
    elif part == "all":
        for k in (10, 20, 30):
            yield "all discharges", parts_of(discharges(), count), k
    elif part == "paper":
        for n, d, k in GRID:
            yield f"N={n}, d={d}", [paper(n, d, k, seed=s).matrix for s in range(count)], k


def tables_figures(pool):
    """Return how far we are from published maxima and from the best of 500 random starts."""
    figures = []
    for name, items, k, published in PUBLISHED:
        table = small_table(name, items)
        found = BernoulliMixture(k, smoothing=0).fit(table).log_likelihood_
        title = f"{name}, k={k}: log-likelihood less the published one"
        figures.append(Figure(title, found - published, -1e-4, True, ""))
    for name, items in (("carcinoma", 7), ("cheating", 4)):
        table = small_table(name, items)
        rows = blocks_of(sparse.csr_array(table))
        first = prevalence(rows)
        few = distinct_rows(rows, first, pool)
        for k in range(2, min(5, items) + 1):
            ours = BernoulliMixture(k, smoothing=0).fit(table).log_likelihood_
            best = max(
                em(few, scattered_at(first, k, seed), None, Stopping(tol=1e-9)).log_likelihood
                for seed in range(RANDOM_FITS_OF_A_TABLE)
            )
            title = f"{name}, k={k}: log-likelihood less the best of 500 random starts"
            figures.append(Figure(title, ours - best, -1e-4, True, ""))
    return figures


def scattered_at(first, k, seed):
    noise = np.random.default_rng(seed).gamma(2.0, 0.5, size=(k, first.size))
    return Mixture(np.full(k, 1 / k), np.clip(first * noise, 1e-4, 0.99))


PARTS = ("tables", "subsets", "short", "claims", "all", "paper")


def main(count: int = 10, parts: tuple[str, ...] = PARTS) -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    started = time.perf_counter()
    with workers(-1) as pool:
        if "tables" in parts:
            show("Small tables, smoothing=0", tables_figures(pool))
        figures = [
            compared(part, cases_of(part, count), pool) for part in parts if part != "tables"
        ]
    if figures:
        show(f"Evidence, {count} parts or seeds a set", figures)
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]), tuple(sys.argv[2:]) or PARTS)
