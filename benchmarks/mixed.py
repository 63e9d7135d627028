"""Features of several kinds with gaps: against EM from the truth, StepMix, and codes alone.

StepMix is no dependency: it is compared with where it can be imported.
"""

from __future__ import annotations

import time
import warnings
from importlib.util import find_spec

import numpy as np
from scipy import sparse

from benchmarks.table import Figure, show
from comorb import LatentClassModel
from comorb.model import features as traits
from comorb.model.blocks import Blocks, from_csr
from comorb.model.diagnostics import adjusted_rand
from comorb.model.em import Expected, em, expect, maximise
from comorb.model.emissions.base import Feature, FeatureTable
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.prior import Prior, learn_strength
from comorb.model.start import gather_rows
from comorb.model.sweep import hard_labels
from comorb.records.datasets import record_like

CASES = (
    (1000, 3, 10),
    (1000, 8, 10),
    (3000, 5, 10),
    (3000, 12, 5),
    (10_000, 8, 3),
    (100_000, 12, 1),
)
PEER_CASES = ((1000, 3, 3), (3000, 5, 2))
CODES, CATEGORIES, COUNTS, NUMBERS = 60, 6, 4, 6
MISSING = 0.1


def simulated(n, k, seed):
    """Return codes, a table and true clusters; one cell in ten of the table is missing."""
    rng = np.random.default_rng([n, k, seed])
    labels = rng.choice(k, n, p=rng.dirichlet(np.full(k, 5.0)))
    rare = rng.beta(1, 6, CODES)
    odds = np.log(rare / (1 - rare)) + rng.normal(0, 1, (k, CODES))
    codes = rng.random((n, CODES)) < (1 / (1 + np.exp(-odds)))[labels]
    columns, features = [], []
    for at in range(CATEGORIES):
        levels = int(rng.integers(2, 6))
        shares = np.exp(rng.normal(0, 0.7, (k, levels)))
        ends = (shares / shares.sum(axis=1, keepdims=True)).cumsum(axis=1)[labels]
        columns.append((rng.random(n)[:, None] > ends[:, :-1]).sum(axis=1))
        features.append(Feature(f"category {at}", "category", tuple(map(str, range(levels)))))
    for at in range(COUNTS):
        columns.append(rng.poisson(np.exp(rng.normal(0.7, 0.4, k))[labels]))
        features.append(Feature(f"count {at}", "count"))
    for at in range(NUMBERS):
        mean, deviation = rng.normal(0, 0.7, k), np.exp(rng.normal(0, 0.2, k))
        columns.append(10 + 5 * rng.normal(mean[labels], deviation[labels]))
        features.append(Feature(f"number {at}", "number"))
    values = np.column_stack(columns).astype(float)
    values[rng.random(values.shape) < MISSING] = np.nan
    return sparse.csr_array(codes.astype(np.int8)), FeatureTable(tuple(features), values), labels


def blocks_of(matrix, table) -> Blocks:
    return from_csr(matrix.indptr, matrix.indices, matrix.shape[1], features=table)


def from_the_truth(matrix, table, labels) -> float:
    """Return the agreement of EM that starts from the true clusters."""
    blocks = blocks_of(matrix, table)
    ones = np.eye(labels.max() + 1)[labels]
    columns = zip(blocks.variables, gather_rows(blocks).values.T, strict=True)
    parts = [traits.statistics(variable, values).T @ ones for variable, values in columns]
    sums = np.concatenate([matrix.T @ ones, *parts, ones.sum(axis=0)[None]])
    first = prevalence(blocks)
    strength = learn_strength(sums, first, blocks.weight, blocks.variables)
    prior = Prior.around(first, strength, blocks.weight, blocks.variables)
    start = maximise(Expected(sums, 0.0, 0.0, blocks.variables), prior)
    return adjusted_rand(hard_labels(em(blocks, start, prior).model, blocks), labels)


def by_stepmix(matrix, table, k, seed):
    """Return its labels of ten random starts; counts are numbers to it."""
    import pandas as pd
    from stepmix.stepmix import StepMix
    from stepmix.utils import get_mixed_descriptor

    codes = pd.DataFrame(matrix.toarray(), columns=[f"code {at}" for at in range(CODES)])
    names = [feature.name for feature in table.features]
    frame = pd.concat([codes, pd.DataFrame(table.values, columns=names)], axis=1)
    levels = [f.name for f in table.features if f.kind == "category"]
    rest = [f.name for f in table.features if f.kind != "category"]
    data, descriptor = get_mixed_descriptor(
        frame, binary=list(codes), categorical_nan=levels, continuous_nan=rest
    )
    model = StepMix(
        k, measurement=descriptor, n_init=10, random_state=seed, verbose=0, progress_bar=0
    )
    return model.fit(data).predict(data)


def agreement() -> list[Figure]:
    figures = []
    for n, k, seeds in CASES:
        own, truth, seconds = [], [], []
        for seed in range(seeds):
            matrix, table, labels = simulated(n, k, seed)
            started = time.process_time()
            model = LatentClassModel(k).fit((matrix, table))
            seconds.append(time.process_time() - started)
            own.append(adjusted_rand(model.predict((matrix, table)), labels))
            truth.append(from_the_truth(matrix, table, labels))
        lost = float(np.max(np.array(truth) - own))
        name = (
            f"N={n} k={k}, {seeds} seeds: ARI {np.mean(own):.3f}, from the truth "
            f"{np.mean(truth):.3f}, {np.median(seconds):.1f} s of processor time; most lost"
        )
        figures.append(Figure(name, lost, 0.01, at_least=False, unit=""))
    return figures


def against_stepmix() -> list[Figure]:
    figures = []
    LatentClassModel(2).fit(simulated(300, 2, 0)[:2])
    for n, k, seeds in PEER_CASES if find_spec("stepmix") else ():
        scores, ratios = [], []
        for seed in range(seeds):
            matrix, table, labels = simulated(n, k, seed)
            started = time.process_time()
            model = LatentClassModel(k).fit((matrix, table))
            own = time.process_time() - started
            started = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                other = by_stepmix(matrix, table, k, seed)
            ratios.append((time.process_time() - started) / own)
            mine = adjusted_rand(model.predict((matrix, table)), labels)
            scores.append(mine - adjusted_rand(np.asarray(other), labels))
        name = f"N={n} k={k}, {seeds} seeds:"
        figures.append(Figure(f"{name} least ARI above StepMix n_init=10", min(scores), 0, unit=""))
        figures.append(
            Figure(f"{name} StepMix's processor time over ours", float(np.median(ratios)), 20)
        )
    return figures


def beside_codes(n):
    """Return ten features that have nothing to do with the codes."""
    rng = np.random.default_rng(0)
    features = (
        *(Feature(name, "number") for name in ("age", "hba1c", "crp")),
        *(Feature(name, "count") for name in ("stay", "visits", "drugs")),
        Feature("sex", "binary", ("f", "m")),
        Feature("race", "category", tuple("abcde")),
        Feature("smoker", "category", tuple("abc")),
        Feature("admission", "category", tuple("abcd")),
    )
    columns = [rng.normal(60, 15, n), rng.normal(6, 1, n), rng.normal(0, 1, n)]
    columns += [rng.poisson(mean, n) for mean in (6, 2, 5)]
    columns += [rng.integers(0, levels, n) for levels in (2, 5, 3, 4)]
    values = np.column_stack(columns).astype(float)
    values[rng.random(values.shape) < MISSING] = np.nan
    return FeatureTable(features, values)


def a_pass(n=1_000_000, k=8, d=696) -> Figure:
    """One E-step with ten features over one without, by the time of one thread."""
    matrix = record_like(n, k, d).matrix
    rng = np.random.default_rng(1)
    means, weights = rng.uniform(0.001, 0.1, (k, d)), np.full(k, 1 / k)
    alone = from_csr(matrix.indptr, matrix.indices, d)
    both = blocks_of(matrix, beside_codes(n))
    whole = np.tile(traits.population_parameters(both.variables), (k, 1))
    moved = traits.map_parameters(
        both.variables, lambda v, own, _: v.shifted(own, 0.5 * rng.normal(size=own.shape)), whole
    )
    models = (
        (Mixture(weights, means), alone),
        (Mixture(weights, means, both.variables, moved), both),
    )
    least = [np.inf, np.inf]
    for _ in range(6):
        for at, (model, blocks) in enumerate(models):
            started = time.thread_time()
            expect(model, blocks)
            least[at] = min(least[at], time.thread_time() - started)
    name = f"a pass over {n:,} × ({d} codes + 10 features), k={k}, over one of the codes alone"
    return Figure(name, least[1] / least[0], 1.5, at_least=False)


def main():
    """Print the figures of docs/mixed.md."""
    show("Features of several kinds", [*agreement(), *against_stepmix(), a_pass()])
