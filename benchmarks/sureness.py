"""Do intervals cover, and do posteriors mean what they say? On designs whose truth is known.

``python -m benchmarks sureness`` measures both; ``python -m benchmarks.sureness 5 intervals``
the intervals, on 5 samples a design.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from itertools import pairwise

import numpy as np
from scipy import sparse
from scipy.optimize import linear_sum_assignment
from scipy.special import expit, logit

from benchmarks.accuracy import blocks_of
from benchmarks.real import FEWEST, coded, matrix_of, small_table
from benchmarks.table import Figure, show
from comorb import BernoulliMixture
from comorb.model.diagnostics import contingency, intervals, out_of_bag, temper, temperature
from comorb.model.mixture import Mixture
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


def like_records(seed):
    """Return the matrix and the labels of data like records, whose codes are independent."""
    drawn = record_like(10_000, 5, seed=900 + seed)
    return drawn.matrix, drawn.labels


def in_pairs(pairs, seed):
    """Return records of five clusters, and their labels, in which codes come in pairs.

    Log-odds of 80 codes scatter over the clusters by 1.2 around those of Beta(1, 5) prevalences;
    the second code of a pair is a copy of the first in 70% of the records.
    """
    rng = np.random.default_rng(seed)
    rates = rng.beta(1, 5, size=80).clip(0.01, 0.6)
    means = expit(logit(rates) + rng.normal(0, 1.2, size=(5, 80)))
    labels = rng.choice(5, 20_000, p=rng.dirichlet(np.full(5, 5.0)))
    carried = rng.random((20_000, 80)) < means[labels]
    for first, second in rng.permutation(80)[: 2 * pairs].reshape(-1, 2):
        copied = rng.random(20_000) < 0.7
        carried[copied, second] = carried[copied, first]
    return sparse.csr_array(carried.astype(np.float64)), labels


def known_groups(one, other):
    """Return the discharges with a code of just one of two groups, without these codes."""
    records, labels = [], []
    for record in coded("nhds2010", "dx"):
        held = not one.isdisjoint(record), not other.isdisjoint(record)
        rest = {code for code in record if code not in one | other}
        if sum(held) == 1 and len(rest) >= FEWEST:
            records.append(rest)
            labels.append(held[1])
    return matrix_of(records), np.array(labels, dtype=int)


GROUPS = {
    "delivery": {"V27"},
    "psychosis": {str(code) for code in range(295, 302)},
    "drugs": {"303", "304", "305"},
    "arthrosis": {"715"},
    "injury": {str(code) for code in range(800, 960)},
    "asthma": {"493"},
    "kidney failure": {"585"},
    "coronary disease": {"410", "411", "414"},
    "septicaemia": {"038"},
    "diabetes": {"250"},
    "digestive": {str(code) for code in range(530, 580)},
    "dementia": {"290", "294", "331"},
}
# Of 22 sets of two or three groups that were looked at, those of two whose clusters are the groups
# for 80% of the records.
PAIRS = (
    ("delivery", "psychosis"),
    ("delivery", "arthrosis"),
    ("delivery", "injury"),
    ("delivery", "diabetes"),
    ("delivery", "digestive"),
    ("delivery", "dementia"),
    ("asthma", "kidney failure"),
    ("psychosis", "kidney failure"),
    ("drugs", "kidney failure"),
    ("psychosis", "coronary disease"),
    ("arthrosis", "septicaemia"),
)


def judged(matrix, labels):
    """Return τ, said before and after, whether right, and both log-losses, of a default fit."""
    fit = BernoulliMixture(int(labels.max()) + 1).fit(matrix)
    plain = fit.predict_proba(matrix)
    tau = temperature(fit.mixture_, blocks_of(matrix))
    cooler = temper(plain, tau)
    true = linear_sum_assignment(-contingency(labels, plain.argmax(axis=1)))[1][labels]
    own = [np.maximum(p[np.arange(true.size), true], 1e-300) for p in (plain, cooler)]
    losses = [float(-np.log(p).mean()) for p in own]
    said = [p.max(axis=1) for p in (plain, cooler)]
    return tau, *said, plain.argmax(axis=1) == true, losses


def worst_bin(said, right):
    """Print |said − right| by bins of what is said; return the largest of a bin of 200 records."""
    worst = 0.0
    for low, high in pairwise(np.linspace(0.2, 1, 9)):
        some = (said >= low) & (said < high + (high == 1))
        if (count := int(some.sum())) >= 200:
            gap = said[some].mean() - right[some].mean()
            error = np.sqrt(right[some].mean() * (1 - right[some].mean()) / count)
            print(f"   {low:.1f} to {high:.1f}: {gap:+.3f} ± {error:.3f}, {count} records")
            worst = max(worst, abs(gap))
    return worst


def tempered_figures(samples):
    figures = []
    drawn = {
        "independent, like records": (like_records, 0.95),
        "independent": (partial(in_pairs, 0), 0.95),
        "20 pairs": (partial(in_pairs, 20), None),
    }
    for name, (draw, least) in drawn.items():
        taus, before, after, right, losses = zip(
            *(judged(*draw(seed)) for seed in range(samples)), strict=True
        )
        plain, cooler, hit = map(np.concatenate, (before, after, right))
        print(
            f"{name}: τ {min(taus):.3f} to {max(taus):.3f}, said {plain.mean():.3f} → "
            f"{cooler.mean():.3f}, right {hit.mean():.3f}, log-loss "
            + " → ".join(f"{loss:.4f}" for loss in np.mean(losses, axis=0)),
            flush=True,
        )
        gap = worst_bin(cooler, hit)
        gain = float(-np.diff(np.mean(losses, axis=0))[0])
        figures.append(Figure(f"{name}: |said − right|, worst bin", gap, 0.01, False, ""))
        figures.append(Figure(f"{name}: log-loss gained by tempering", gain, 0, True, ""))
        if least is not None:
            figures.append(Figure(f"{name}: τ, least", min(taus), least, True, ""))
    return figures


def known_figures():
    figures = []
    for one, other in PAIRS:
        name = f"{one} or {other}"
        tau, plain, cooler, right, losses = judged(*known_groups(GROUPS[one], GROUPS[other]))
        print(
            f"{name}: τ {tau:.3f}, said {plain.mean():.3f} → {cooler.mean():.3f}, "
            f"right {right.mean():.3f}, log-loss {losses[0]:.4f} → {losses[1]:.4f}",
            flush=True,
        )
        gain = losses[0] - losses[1]
        figures.append(Figure(f"{name}: log-loss gained by tempering", gain, 0, True, ""))
    return figures


def few_figures(samples):
    """Compare what is said of few records with what is right: tempered, and out of bag."""
    figures = []
    for n, name in ((1000, "a group of 1%, n=1,000"), (1000, "like records, n=1,000")):
        rows = []
        for seed in range(samples):
            rng = np.random.default_rng([5, seed])
            if name.startswith("like"):
                drawn = record_like(n, 5, seed=700 + seed)
                matrix, labels, k = drawn.matrix, drawn.labels, 5
            else:
                means = rng.beta(1, 4, size=(3, 40)).clip(0.02, 0.8)
                model = Mixture(np.array([0.6, 0.39, 0.01]), means)
                (matrix, labels), k = model.sample(n, rng), 3
            blocks = blocks_of(matrix)
            found = BernoulliMixture(k).fit(matrix)
            tau = temperature(found.mixture_, blocks)
            own = found.labels_
            right = contingency(own, labels).argmax(axis=1)[own] == labels
            least = own == np.bincount(own, minlength=k).argmin()
            said = temper(found.predict_proba(matrix), tau)[np.arange(n), own]
            bag = out_of_bag(found.mixture_, blocks, tau)[np.arange(n), own]
            rows += [[one[some].mean() for one in (said, bag, right) for some in (least, own >= 0)]]
        small, every, small_bag, every_bag, small_right, every_right = np.nanmean(rows, axis=0)
        print(
            f"{name}: said {every:.2f}, out of bag {every_bag:.2f}, right {every_right:.2f}; "
            f"smallest cluster {small:.2f}, {small_bag:.2f}, {small_right:.2f}",
            flush=True,
        )
        gap = abs(small - small_right) - abs(small_bag - small_right)
        figures.append(Figure(f"{name}: nearer to right, smallest cluster", gap, 0, True, ""))
    return figures


PARTS = ("intervals", "tempering", "known", "few")


def main(samples: int = 10, parts: tuple[str, ...] = PARTS) -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    if "intervals" in parts:
        lieexam_interval()
        show("Intervals", coverage_figures(samples))
    if "tempering" in parts:
        show("Posteriors", tempered_figures(samples))
    if "few" in parts:
        show("Confidence of few records", few_figures(samples))
    if "known" in parts:
        show("Posteriors of real groups", known_figures())


if __name__ == "__main__":
    main(int(sys.argv[1]), tuple(sys.argv[2:]) or PARTS)
