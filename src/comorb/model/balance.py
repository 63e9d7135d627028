"""Balance: what separates the clusters, and how much of it is due to codes and to each feature."""

from __future__ import annotations

from concurrent.futures import Executor

import numpy as np

from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks, exact_sum
from comorb.model.em import expect
from comorb.model.mixture import Mixture
from comorb.model.traits import by_parameters, by_sums


def balance(
    model: Mixture, blocks: Blocks, executor: Executor | None = None
) -> tuple[float, tuple[float, ...]]:
    """Return the share of the codes, and that of each feature, in what separates the clusters.

    That is Σ_jl ω_j ω_l (KL(j ‖ l) + KL(l ‖ j)) = 2 Σ_s Cov_ω(η_s, E T_s) over the statistics of
    each: how far the log-ratio of two clusters moves, on average, between their records. A feature
    counts as often as it has a value, and with its influence. All shares are 0 with one cluster.
    One pass.
    """
    expected = expect(model, blocks, executor)
    present, absent = model.logs
    codes = float(exact_sum(_covariance(model.weights, (present - absent).T, model.means.T)))
    found = []
    pairs = zip(by_parameters(model.variables), by_sums(model.variables), strict=True)
    for (variable, own), (_, rows) in pairs:
        parameters = model.parameters[:, own]
        there = variable.observed(expected.statistics[rows]).sum() / blocks.weight
        moved = _covariance(
            model.weights, variable.natural(parameters), variable.expectation(parameters)
        )
        found.append(float(there * variable.influence * exact_sum(moved)))
    total = codes + sum(found)
    if not total > 0:
        return 0.0, (0.0,) * len(found)
    return codes / total, tuple(value / total for value in found)


def _covariance(weights: Floats, one: Floats, other: Floats) -> Floats:
    """Return the covariance, over the clusters, of each row of two tables (s, k)."""
    centred = one - (one @ weights)[:, None]
    return np.asarray((centred * other) @ weights)
