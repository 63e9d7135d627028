"""The start against the truth, the paper's start and 20 random ones: ARI, objective, evidence.

``python -m benchmarks accuracy`` runs the whole grid, 10 seeds a point;
``python -m benchmarks.accuracy 3 records`` the part called records with 3 seeds.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np

from benchmarks.table import Figure, show
from comorb import choose_k
from comorb.model.agglomeration import short_run_em
from comorb.model.blocks import from_csr, take_rows, workers
from comorb.model.decompose import asvtd
from comorb.model.diagnostics import adjusted_rand
from comorb.model.em import em, expect
from comorb.model.kernels import splitmix64
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.prior import FIRST_STRENGTH, Prior, evidence, learn_strength
from comorb.model.start import best_start
from comorb.model.sweep import hard_labels
from comorb.records.datasets import paper, record_like

NHDS = Path(__file__).parents[2] / "shared" / "data" / "nhds2010.csv.gz"
RANDOM = 20
SAME = 1e-5  # nats a record: two fits at one optimum, each stopped at a gain of 1e-6
GRID = (
    *((n, 99, 12) for n in (100, 300, 1000, 3000, 10_000)),
    *((10_000, 99, k) for k in (2, 4, 8, 20, 33)),
    *((10_000, d, 4) for d in (12, 24, 36, 60)),
)


class Ground:
    """One data set, its prior, and fits of it from any start."""

    def __init__(self, blocks, k, pool):
        self.blocks, self.k, self.pool = blocks, k, pool
        self.first = prevalence(blocks, pool)
        started = time.perf_counter()
        self.found = best_start(blocks, k, self.first, None, pool)
        self.start_seconds = time.perf_counter() - started
        self.prior = Prior.around(self.first, self.found.strength, self.blocks.weight)

    def fit(self, start):
        return em(self.blocks, start, self.prior, None, self.pool)

    def evidence(self, result):
        sums = result.expected.sums
        return evidence(result.model, sums, result.log_likelihood, self.prior) / self.blocks.weight

    def random(self, seed):
        """Draw a start: even weights, each mean its prevalence times a Gamma(2, ½) number."""
        rng = np.random.default_rng(seed)
        noise = rng.gamma(2.0, 0.5, size=(self.k, self.first.size))
        means = np.clip(self.first * noise, 1e-4, 0.99)
        return Mixture(np.full(self.k, 1 / self.k), means)

    def random_fits(self, count=RANDOM):
        started = time.perf_counter()
        results = [self.fit(self.random(seed)) for seed in range(count)]
        return results, (time.perf_counter() - started) / count


def blocks_of(matrix):
    return from_csr(matrix.indptr, matrix.indices, matrix.shape[1])


def compare(drawn, k, pool):
    """Return ARI of ours, paper's, best random (by objective) and truth, and who wins."""
    ground = Ground(blocks_of(drawn.matrix), k, pool)
    results, seconds = ground.random_fits()
    lucky = max(results, key=lambda result: result.history[-1])
    ours = ground.fit(ground.found.model)
    others = [ground.fit(asvtd(ground.blocks, k, pool)), lucky, ground.fit(truth(drawn))]
    aris = [
        adjusted_rand(drawn.labels, hard_labels(result.model, ground.blocks))
        for result in (ours, *others)
    ]
    best_evidence = max(ground.evidence(result) for result in results)
    return (
        *aris,
        ours.history[-1] - others[2].history[-1],
        ours.history[-1] >= lucky.history[-1] - SAME,
        ground.evidence(ours) >= best_evidence - SAME,
        ground.start_seconds / (5 * seconds),
    )


def truth(drawn):
    return Mixture(drawn.weights, np.clip(drawn.means, 1e-9, 1 - 1e-9))


def header(title):
    print(f"\n{title}\n")
    print(
        f"{'':<26}{'ours':>7}{'paper':>7}{'random':>7}{'truth':>7}{'objective':>11}"
        f"{'≥ random:':>11}{'':>11}{'start /':>10}\n"
        f"{'':<26}{'ARI':>7}{'ARI':>7}{'ARI':>7}{'ARI':>7}{'- truth':>11}"
        f"{'objective':>11}{'evidence':>11}{'5 random':>10}"
    )


def line(name, rows):
    means = np.mean(rows, axis=0)
    print(
        f"{name:<26}{means[0]:7.3f}{means[1]:7.3f}{means[2]:7.3f}{means[3]:7.3f}{means[4]:11.4f}"
        f"{means[5]:11.0%}{means[6]:11.0%}{means[7]:10.2f}",
        flush=True,
    )
    return means


def allowed(n, k):
    """How far below the truth the mean ARI may be, by the target; None where there is none."""
    if n >= 10_000 and k <= 20:
        return 0.005
    if n >= 3000:
        return 0.01
    return 0.04 if n == 1000 else None


def paper_grid(seeds, pool):
    header(f"The paper's generator, {seeds} seeds a point, {RANDOM} random starts")
    figures, every, costs = [], [], []
    for n, d, k in GRID:
        rows = [compare(paper(n, d, k, seed=seed), k, pool) for seed in range(seeds)]
        means = line(f"N={n}, d={d}, k={k}", rows)
        every += rows
        if k <= 20:
            costs.append(means[7])
        if (bound := allowed(n, k)) is not None:
            name = f"ARI below the truth's, N={n}, d={d}, k={k}"
            figures.append(Figure(name, means[3] - means[0], bound, False, ""))
    wins = np.mean(every, axis=0)
    figures.append(Figure("runs with the objective of 20 random starts or more", wins[5], 0.95))
    figures.append(Figure("runs with the evidence of 20 random starts or more", wins[6], 0.95))
    figures.append(Figure("start against 5 random starts, worst k ≤ 20", max(costs), 1, False))
    return figures


def records_grid(seeds, pool):
    header(f"Data like records, N=23,154, d=696, {seeds} seeds, {RANDOM} random starts")
    figures = []
    for k in (5, 8, 12):
        rows = [compare(record_like(23_154, k, seed=seed), k, pool) for seed in range(seeds)]
        means = line(f"k={k}", rows)
        name = f"ARI below the truth's, data like records, k={k}"
        figures.append(Figure(name, means[3] - means[0], 0.005, False, ""))
    return figures


def held_out_parts(blocks, pool):
    out = splitmix64(np.arange(blocks.n_rows, dtype=np.uint64)) % 4 == 0
    return [take_rows(blocks, np.flatnonzero(side), pool) for side in (~out, out)]


def strength_figures(pool):
    """Held-out log-likelihood of the learned strength against the best of a grid."""
    sets = [
        (f"records, N={n:,}", record_like(n * 4 // 3, 5, seed=n).matrix, 5)
        for n in (2000, 5000, 23_154, 100_000)
    ]
    figures = []
    for name, matrix, k in [*sets, *((f"NHDS, k={k}", cohort("428"), k) for k in (5, 8))]:
        kept, tested = held_out_parts(blocks_of(matrix), pool)
        first = prevalence(kept, pool)
        start = best_start(kept, k, first, None, pool).model
        grid = np.geomspace(0.05, 20, 10)

        def held_out(alpha, start=start, kept=kept, tested=tested, first=first):
            prior = Prior.around(first, float(alpha), kept.weight)
            model = em(kept, start, prior, None, pool).model
            return expect(model, tested, pool).log_likelihood / tested.weight

        stage = short_run_em(kept, start, Prior.around(first, FIRST_STRENGTH, kept.weight), pool)
        learned = held_out(learn_strength(stage.expected.sums, first, kept.weight))
        best = max(held_out(alpha) for alpha in grid)
        figures.append(
            Figure(
                f"held-out nats below the best strength, {name}", best - learned, 0.02, False, ""
            )
        )
    return figures


def cohort(code=None):
    from comorb.records.read import read_records

    records = read_records(NHDS)
    return (records.having(code) if code else records).at_least(3).matrix


def real_figures(pool):
    """Real data: objective and held-out log-likelihood against the best of 20 random starts."""
    figures = []
    for name, matrix in (("heart failure", cohort("428")), ("whole NHDS", cohort())):
        kept, tested = held_out_parts(blocks_of(matrix), pool)
        for k in (5, 10, 20):
            ground = Ground(kept, k, pool)
            ours = ground.fit(ground.found.model)
            results, _ = ground.random_fits()
            lucky = max(results, key=lambda result: result.history[-1])

            def fresh(result, tested=tested):
                return expect(result.model, tested, pool).log_likelihood / tested.weight

            title = f"{name}, k={k}: ours less the best of 20 random starts,"
            figures += [
                Figure(f"{title} objective", ours.history[-1] - lucky.history[-1], -SAME, True, ""),
                Figure(f"{title} held out", fresh(ours) - fresh(lucky), -SAME, True, ""),
            ]
    return figures


def choice_figures(runs):
    hits = 0
    for run in range(runs):
        k = 2 + run % 11
        hits += choose_k(paper(10_000, 99, k, seed=500 + run).matrix).finest == k
    return [Figure(f"k recovered, N=10,000, d=99, k in 2..12, {runs} runs", hits / runs, 0.9)]


def main(
    seeds: int = 10, parts: tuple[str, ...] = ("paper", "records", "strength", "real", "k")
) -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    with workers(-1) as pool:
        if "paper" in parts:
            show("Accuracy on the paper's generator", paper_grid(seeds, pool))
        if "records" in parts:
            show("Accuracy on data like records", records_grid(seeds, pool))
        if "strength" in parts:
            show("Shrinkage", strength_figures(pool))
        if "real" in parts:
            show("Real data", real_figures(pool))
    if "k" in parts:
        show("The number of clusters", choice_figures(5 * seeds))


if __name__ == "__main__":
    main(int(sys.argv[1]), tuple(sys.argv[2:]) or ("paper", "records", "strength", "real", "k"))
