"""Do corrected effects come out right, and do their intervals cover? On simulated clusters.

``python -m benchmarks relate`` runs the whole table; ``python -m benchmarks.relate 20`` with 20
samples a line.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks.table import Figure, show
from comorb import BernoulliMixture, first_step, relate_outcome, relate_predictors
from comorb.errors import InputError
from comorb.model.mixture import Mixture

SAMPLES = 300
ITEMS = 8
GAPS = {0.5: 0.22, 0.6: 0.25, 0.75: 0.305, 0.9: 0.375}  # by the relative entropy that they give
RECORDS = (500, 1000, 5000)
EFFECT, SLOPE = 1.0, 0.5
KINDS = ("naive", "BCH", "BCH, first step counted", "three-step", "three-step, first step counted")


def truth(gap):
    """Return three clusters: high on all items, low on all, and high on half of them."""
    high, low = 0.5 + gap, 0.5 - gap
    half = np.r_[np.full(ITEMS // 2, high), np.full(ITEMS // 2, low)]
    means = np.array([np.full(ITEMS, high), np.full(ITEMS, low), half])
    return Mixture(np.array([0.45, 0.30, 0.25]), means)


def drawn(model, n, rng):
    """Return items, a predictor and an outcome: 1 more in the second cluster than in the first."""
    z = rng.normal(size=n)
    odds = np.log(model.weights) + np.outer(z, [0, SLOPE, -SLOPE])
    shares = np.exp(odds)
    shares /= shares.sum(axis=1, keepdims=True)
    cluster = (rng.random(n)[:, None] > shares.cumsum(axis=1)).sum(axis=1)
    items = (rng.random((n, ITEMS)) < model.means[cluster]).astype(float)
    return items, z, np.array([0, EFFECT, EFFECT / 2])[cluster] + rng.normal(size=n)


def fitted(items, model):
    """Return the fit with its clusters in the order of the true ones, and posteriors."""
    found = BernoulliMixture(3, init=model, n_jobs=1).fit(items).mixture_
    distance = ((found.means[None] - model.means[:, None]) ** 2).sum(axis=2)
    order = linear_sum_assignment(distance)[1]
    found = Mixture(found.weights[order], found.means[order])
    logs = np.log(found.weights) + items @ np.log(found.means).T
    logs += (1 - items) @ np.log1p(-found.means).T
    return found, np.exp(logs - np.logaddexp.reduce(logs, axis=1)[:, None])


def contrast(relation):
    spread = relation.covariance
    error = np.sqrt(spread[0, 0] + spread[1, 1] - 2 * spread[0, 1])
    return relation.means[1] - relation.means[0], error


def measured(gap, n, samples):
    """Return bias (of the effect), coverage and the entropy, over samples of n records."""
    model, rng = truth(gap), np.random.default_rng([int(1000 * gap), n])
    rows, entropies, refused = {kind: [] for kind in KINDS}, [], 0
    for _ in range(samples):
        items, z, y = drawn(model, n, rng)
        found, posterior = fitted(items, model)
        step = first_step(found, items)
        try:
            naive = relate_outcome(posterior, y, method="naive")
            each = [contrast(naive)]
            each += [contrast(relate_outcome(posterior, y, first_step=s)) for s in (None, step)]
            for counted in (None, step):
                odds = relate_predictors(posterior, z, reference=0, first_step=counted)
                each.append((odds.coefficients[0, 1], odds.errors[0, 1]))
        except InputError:
            refused += 1
            continue
        entropies.append(1 + (posterior * np.log(posterior + 1e-300)).sum() / n / np.log(3))
        for kind, (estimate, error) in zip(KINDS, each, strict=True):
            effect = SLOPE if kind.startswith("three") else EFFECT
            off = estimate - effect
            rows[kind].append((off / effect, abs(off) < 1.959964 * error))
    return {kind: np.mean(row, axis=0) for kind, row in rows.items()}, np.mean(entropies), refused


def main(samples=SAMPLES):
    """Print bias and coverage by entropy, records and method, and the targets."""
    warnings.simplefilter("ignore")
    figures = []
    print("| entropy | records | refused | method | bias | 95% intervals cover |")
    print("|---|---|---|---|---|---|")
    for entropy, gap in GAPS.items():
        for n in RECORDS:
            found, actual, refused = measured(gap, n, samples)
            for kind, (bias, covered) in found.items():
                head = f"| {actual:.2f} | {n:,} | {refused} | {kind} "
                print(f"{head}| {bias:+.1%} | {covered:.1%} |", flush=True)
            name = f"entropy {entropy}, N={n:,}"
            bias = abs(float(found["BCH"][0]))
            figures.append(Figure(f"{name}: bias of BCH", bias, 0.05, False, ""))
            away = abs(float(found["BCH, first step counted"][1]) - 0.95)
            figures.append(Figure(f"{name}: coverage away from 95%", away, 0.02, False, ""))
    show("Relations, corrected", figures)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
