"""Do intervals cover, and do posteriors mean what they say? On designs whose truth is known.

``python -m benchmarks sureness`` measures both; ``python -m benchmarks.sureness 5 intervals``
the intervals, on 5 samples a design.
"""

from __future__ import annotations

import sys
import warnings
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment

from benchmarks.accuracy import blocks_of
from benchmarks.real import small_table
from benchmarks.table import Figure, show
from comorb import BernoulliMixture
from comorb.model.agreement import contingency
from comorb.model.confidence import intervals
from comorb.model.mixture import Mixture
from comorb.model.tempering import temperature, tempered
from comorb.records.datasets import record_like

BINS = ((50, np.inf), (10, 50), (2, 10), (0, 2))
TRUE_LEAST = 1e-9


def designs():
    """Yield the name, the truth, the number of records, and whether there is a prior."""
    cheating = BernoulliMixture(2, smoothing=0).fit(small_table("cheating", 4)).mixture_
    for n in (319, 3190):
        yield f"two classes, four items, n={n:,}", cheating, n, 0
    rng = np.random.default_rng(8)
    three = Mixture(np.array([0.5, 0.3, 0.2]), rng.uniform(0.1, 0.8, size=(3, 10)))
    yield "three classes, ten items, n=3,000", three, 3000, 0
    drawn = record_like(1000, 5, seed=4)
    means = drawn.means[:, np.argsort(-(drawn.weights @ drawn.means))[:400]]
    yield "k=5, N=5,000, d=400", Mixture(drawn.weights, np.clip(means, 0, 1)), 5000, "auto"


def matched(truth, model):
    """Return the true clusters in the order of the model's."""
    distance = ((truth.means[:, None] - model.means[None]) ** 2).sum(axis=2)
    own, theirs = linear_sum_assignment(distance)
    return own[np.argsort(theirs)]


def coverage_figures(samples):
    figures = []
    for name, truth, n, smoothing in designs():
        inside, carriers = [], []
        for seed in range(samples if n > 1000 else 4 * samples):
            matrix, _ = truth.sample(n, seed)
            fit = BernoulliMixture(truth.n_components, smoothing=smoothing).fit(matrix)
            low, high = intervals(fit.mixture_, blocks_of(matrix))
            true = truth.means[matched(truth, fit.mixture_)]
            inside.append((low <= true + TRUE_LEAST) & (true <= high))
            carriers.append(fit.means_ * fit.weights_[:, None] * n)
        covered, held = np.concatenate(inside).ravel(), np.concatenate(carriers).ravel()
        bins = BINS if truth.n_columns > 100 else ((0, np.inf),)
        for least, most in bins:
            some = (held >= least) & (held < most)
            title = f"{name}, {least:g} to {most:g} carriers" if len(bins) > 1 else name
            share = float(covered[some].mean())
            print(f"{title:<60} covered {share:.3f} of {int(some.sum())}", flush=True)
            away = abs(share - 0.945)
            figures.append(Figure(f"{title}: away from 94.5%", away, 0.025, False, ""))
    return figures


def lieexam_interval():
    """Print the interval of the first item in the small class of the cheating table."""
    table = small_table("cheating", 4)
    fit = BernoulliMixture(2, smoothing=0).fit(table)
    low, high = intervals(fit.mixture_, blocks_of(sparse.csr_array(table)))
    print(f"lieexam in the small class: {low[1, 0]:.2f} to {high[1, 0]:.2f} (0.24 to 0.85)")


def dependent(drawn, pairs, seed):
    """Return the matrix with pairs of codes coupled within each cluster.

    The second code of a pair moves to the records that carry the first, as far as they reach;
    how many carry each in a cluster stays the same. The ten most common codes are left alone.
    """
    rng = np.random.default_rng(seed)
    dense = drawn.matrix.toarray()
    common = np.argsort(-drawn.matrix.mean(axis=0))[10 : 10 + 2 * pairs]
    for one, other in common.reshape(-1, 2):
        for cluster in range(drawn.weights.size):
            rows = rng.permutation(np.flatnonzero(drawn.labels == cluster))
            first = rows[np.argsort(-dense[rows, one], kind="stable")]
            count = int(dense[rows, other].sum())
            dense[rows, other] = 0
            dense[first[:count], other] = 1
    return sparse.csr_array(dense.astype(np.float64))


def tempered_figures(samples):
    figures = []
    for pairs in (0, 20):
        taus, worst, losses = [], 0.0, np.zeros(2)
        said, right = [], []
        for seed in range(samples):
            drawn = record_like(10_000, 5, seed=900 + seed)
            matrix = dependent(drawn, pairs, seed)
            fit = BernoulliMixture(5).fit(matrix)
            plain = fit.predict_proba(matrix)
            tau = temperature(fit.mixture_, blocks_of(matrix))
            cooler = tempered(plain, tau)
            shared = contingency(drawn.labels, plain.argmax(axis=1))
            true = linear_sum_assignment(-shared)[1][drawn.labels]
            taus.append(tau)
            said.append(cooler.max(axis=1))
            right.append(cooler.argmax(axis=1) == true)
            rows = np.arange(true.size)
            losses += [-np.log(np.maximum(p[rows, true], 1e-300)).mean() for p in (plain, cooler)]
            print(
                f"{pairs} pairs, seed {seed}: τ {tau:.3f}, said {plain.max(axis=1).mean():.3f} → "
                f"{cooler.max(axis=1).mean():.3f}, right {right[-1].mean():.3f}",
                flush=True,
            )
        told, hit = np.concatenate(said), np.concatenate(right)
        edges = np.linspace(0.2, 1, 9)
        for low, high in pairwise(edges):
            some = (told >= low) & (told < high + (high == 1))
            if some.sum() >= 200:
                gap = abs(told[some].mean() - hit[some].mean())
                worst = max(worst, gap)
                print(f"   {low:.1f} to {high:.1f}: off by {gap:.3f}, {int(some.sum())} records")
        figures.append(Figure(f"{pairs} pairs: |said − right|, worst bin", worst, 0.01, False, ""))
        gain = (losses[0] - losses[1]) / samples
        figures.append(Figure(f"{pairs} pairs: log-loss gained by tempering", gain, 0, True, ""))
        if not pairs:
            figures.append(Figure("τ of independent data, least", min(taus), 0.95, True, ""))
    return figures


PARTS = ("intervals", "tempering")


def main(samples: int = 10, parts: tuple[str, ...] = PARTS) -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    if "intervals" in parts:
        lieexam_interval()
        show("Intervals", coverage_figures(samples))
    if "tempering" in parts:
        show("Posteriors", tempered_figures(samples))


if __name__ == "__main__":
    main(int(sys.argv[1]), tuple(sys.argv[2:]) or PARTS)
