"""The two numbers of clusters: right on simulated data, one where there are none, steady on parts.

``python -m benchmarks.numbers 7 items`` measures 168 tables of a few items;
``python -m benchmarks.numbers 3 independent pairs severity none parts`` takes three seeds of
each design; with ``keep=FILE`` what was measured is kept, and not measured again.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit, logit

from benchmarks.real import SETS, UNSEEN
from benchmarks.table import Figure, show
from comorb import BernoulliMixture, Mixture, choose_k
from comorb.records.datasets import paper, record_like

SIZES = (300, 1000, 3000, 10_000, 100_000)
Case = tuple[str, int, Callable[[], Any]]  # its name, the true number, and its rows


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


def simulated(k, seed, pairs=0, severity=0.0, n=10_000, d=80):
    """Return records of k clusters, in which codes may come in pairs and records differ in length.

    Log-odds of the codes scatter over the clusters by 1.2 around those of Beta(1, 5) prevalences.
    The second code of a pair is a copy of the first in 70% of the records; ``severity`` is the
    standard deviation of a normal number that is added to all log-odds of a record.
    """
    rng = np.random.default_rng([33, k, seed, pairs, int(10 * severity)])
    rates = rng.beta(1, 5, size=d).clip(0.01, 0.6)
    odds = logit(rates) + rng.normal(0, 1.2, size=(k, d))
    labels = rng.choice(k, n, p=rng.dirichlet(np.full(k, 5.0)))
    present = rng.random((n, d)) < expit(odds[labels] + severity * rng.normal(size=(n, 1)))
    for first, second in rng.permutation(d)[: 2 * pairs].reshape(-1, 2):
        copied = rng.random(n) < 0.7
        present[copied, second] = present[copied, first]
    return sparse.csr_array(present.astype(np.float64))


def item_table(k, items, n, seed):
    """Return a table of a few items with k classes, some too alike to be told apart."""
    rng = np.random.default_rng([k, items, n, seed])
    weights = rng.dirichlet(np.full(k, 5.0))
    means = rng.beta(0.7, 0.7, size=(k, items)).clip(0.05, 0.95)
    if k == 1:
        means = rng.uniform(0.1, 0.9, size=(1, items))
    return Mixture(weights, means).sample(n, seed)[0].toarray()


def part_of(name, share, seed):
    """Return a random part of a real set, with the codes that occur in it."""
    matrix = SETS[name]()
    rows = np.random.default_rng(seed).permutation(matrix.shape[0])
    part = matrix[np.sort(rows[: int(matrix.shape[0] * share)])]
    return sparse.csr_array(part[:, np.flatnonzero(part.sum(axis=0))])


def without_groups(run):
    n = SIZES[run % len(SIZES)]
    source = record_like(n, 5, seed=run) if run % 2 else paper(n, 60, 5, seed=run)
    return permuted(source.matrix, run)


def cases(part: str, count: int) -> Iterator[Case]:
    """Yield the cases of a part, ``count`` seeds of each design."""
    for seed in range(count):
        if part == "independent":
            for k in (2, 3, 5, 8, 12, 16, 20):
                yield f"independent k={k} seed={seed}", k, partial(simulated, k, seed)
        if part == "pairs":
            for k, pairs in product((1, 3, 6), (8, 20)):
                name = f"pairs={pairs} k={k} seed={seed}"
                yield name, k, partial(simulated, k, seed, pairs)
        if part == "severity":
            for k, deviation in product((1, 3, 6), (0.5, 1.0)):
                name = f"severity={deviation} k={k} seed={seed}"
                yield name, k, partial(simulated, k, seed, 0, deviation)
        if part == "none":
            for run in range(5 * seed, 5 * seed + 5):
                yield f"permuted {run}", 1, partial(without_groups, run)
    if part == "items":
        for seed, k, items, n in product(range(count), (1, 2, 3, 4), (4, 6, 8), (500, 3000)):
            name = f"items={items} k={k} n={n} seed={seed}"
            yield name, k, partial(item_table, k, items, n, seed)
    if part == "parts":
        for name in SETS:
            yield f"{name} whole", 0, SETS[name]
            for share, seed in [(1 / 2, s) for s in range(count)] + [
                (1 / 3, 100 + s) for s in range(count)
            ]:
                label = f"{name} {'half' if share == 1 / 2 else 'third'} {seed}"
                yield label, 0, partial(part_of, name, share, seed)


def lowest_bic(models, patterns, counts):
    """Return the number of classes that BIC takes, of fits by maximum likelihood."""
    fits = [
        BernoulliMixture(k, init=model, smoothing=0, n_jobs=1).fit(patterns, sample_weight=counts)
        for k, model in models.items()
        if k < 6
    ]
    return min(fits, key=lambda fit: fit.bic(patterns, counts)).n_components


def measure(part: str, count: int, kept: dict[str, dict[str, Any]], keep: Path | None):
    """Return what is found in each case of a part, and print it."""
    found = {}
    for name, k, rows in cases(part, count):
        if name not in kept:
            matrix, counts = rows(), None
            if part == "items":
                matrix, counts = np.unique(matrix, axis=0, return_counts=True)
            choice = choose_k(matrix, sample_weight=counts)
            kept[name] = {"true": k, "main": choice.main, "finest": choice.finest}
            kept[name]["bic"] = choice.lowest_bic
            if part == "items":
                kept[name]["bic"] = lowest_bic(choice.models, matrix, counts)
            if keep is not None:
                keep.write_text(json.dumps(kept, indent=0))
        found[name] = kept[name]
        print(f"{name}: {kept[name]}", flush=True)
    return found


def near(found, name: str, within: int) -> float:
    """Return the share of the cases whose number is the true one, or so near."""
    return float(np.mean([abs(one[name] - one["true"]) <= within for one in found.values()]))


def parts_figures(found) -> list[Figure]:
    """Return how often the numbers of parts of a set are those of the whole, or near."""
    figures = []
    for title, sets in (("ten sets", SETS), ("sets not used to choose", UNSEEN)):
        for number in ("main", "finest", "bic"):
            steady = [
                abs(one[number] - found[f"{name} whole"][number]) <= 2
                for name in sets
                for label, one in found.items()
                if label.startswith(f"{name} ") and not label.endswith("whole")
            ]
            target = 0.95 if number == "main" else 0.0
            what = f"{number}: halves and thirds within 2 of the whole, {title}, {len(steady)}"
            figures.append(Figure(what, float(np.mean(steady)), target, True, ""))
    return figures


def figures_of(part: str, found) -> list[Figure]:
    """Return the figures of a part against their targets."""
    many = len(found)
    if part == "parts":
        return parts_figures(found)
    if part == "independent":
        exact = Figure(
            f"finest right, k = 2 to 20, {many}", near(found, "finest", 0), 0.85, True, ""
        )
        return [exact, Figure("main within 2", near(found, "main", 2), 0, True, "")]
    if part in ("pairs", "severity"):
        return [
            Figure(f"{part}: {number} within 1, {many}", near(found, number, 1), least, True, "")
            for number, least in (("finest", 0.7), ("main", 0.0), ("bic", 0.0))
        ]
    if part == "none":
        alone = [one["main"] == one["finest"] == 1 for one in found.values()]
        return [Figure(f"permuted columns: one group, {many}", float(np.mean(alone)), 1, True, "")]
    right = {name: near(found, name, 0) * many for name in ("main", "finest", "bic")}
    bic = right.pop("bic")
    return [
        Figure(f"tables of items: {name} right, of {many}", value, bic, True, "")
        for name, value in right.items()
    ]


PARTS = ("independent", "pairs", "severity", "none", "items", "parts")


def main(count: int = 3, parts: tuple[str, ...] = PARTS, keep: Path | None = None) -> None:
    """Measure and print."""
    warnings.simplefilter("ignore")
    kept = json.loads(keep.read_text()) if keep is not None and keep.exists() else {}
    figures = []
    for part in parts:
        figures += figures_of(part, measure(part, count, kept, keep))
    show("The number of clusters", figures)


if __name__ == "__main__":
    named = [word for word in sys.argv[2:] if not word.startswith("keep=")]
    files = [Path(word[5:]) for word in sys.argv[2:] if word.startswith("keep=")]
    main(int(sys.argv[1]), tuple(named) or PARTS, files[0] if files else None)
