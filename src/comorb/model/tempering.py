"""Posteriors that are as sure as they are right, where codes depend on each other."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Self

import numpy as np
from scipy.optimize import brentq

from comorb.model import kernels, traits
from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks, Rows, map_reduce, rounded, snap_for
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.thinning import thinned

LEAST = 0.05  # of the temperature: below it a posterior would say nothing at all
REACH = 2.0**20  # squares of log-ratios are added exactly up to this many nats² a record
ROWS = 20_000  # that stand for all, at most about twice as many
NEAR = 1e-4  # of the temperature


@dataclass(frozen=True)
class Contrasts:
    """Σ w·r_j·L, Σ w·r_j·L² of the log-ratios L_jl, and Σ w·r_j·r_l: (3, k, k), over some rows."""

    sums: Floats

    def __add__(self, other: Self) -> Contrasts:
        return Contrasts(self.sums + other.sums)


def temperature(model: Mixture, blocks: Blocks, executor: Executor | None = None) -> float:
    """Return τ in (0, 1]: how much evidence the codes of a record hold, of what the model thinks.

    L_jl = log P(x | j) / P(x | l) has the variance Σ_i μ_ij(1 − μ_ij)(logit μ_ij − logit μ_il)²
    in cluster j, and that of the features, when all are independent there; where codes come in
    bundles it is larger, and posteriors are too sure. τ is the expected over the actual variance,
    where the actual one is that by posteriors tempered with τ: those of the model put a record
    that is far out on the other cluster's side, and so hide a part of it. Some ten passes,
    O(N·k²), over a part of the rows.
    """
    if model.n_components == 1:
        return 1.0
    rows = thinned(blocks, prevalence(blocks, executor), ROWS, executor)

    def excess(tau: float) -> float:
        return _expected_share(model, rows, tau) - tau

    if excess(1.0) >= 0:
        return 1.0
    return LEAST if excess(LEAST) <= 0 else float(brentq(excess, LEAST, 1.0, xtol=NEAR))


def tempered(posterior: Floats, tau: float) -> Floats:
    """Return posteriors ∝ rᵗ, (n, k): the same labels, and confidences that mean what they say.

    >>> tempered(np.array([[0.9, 0.1]]), 0.5).round(2).tolist()
    [[0.75, 0.25]]
    """
    scaled = posterior**tau
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))


def _expected_share(model: Mixture, rows: Blocks, tau: float) -> float:
    """Return the expected over the actual variance, by posteriors tempered with τ.

    The mean over the pairs of clusters, with the weight Σ r_j r_l: the records between the two.
    """
    snap = snap_for(rows.weight * REACH)
    sums = map_reduce(partial(_contrasts, model, tau, snap), rows).sums
    between = sums[2] * (1 - np.eye(model.n_components))
    sizes = np.maximum(sums[2].sum(axis=1), 1e-12)[:, None]
    actual = sums[1] / sizes - (sums[0] / sizes) ** 2
    present, absent = model.logs
    logits = present - absent
    spread = model.means * (1 - model.means)
    expected = np.einsum("ji,jli->jl", spread, (logits[:, None] - logits[None]) ** 2)
    if model.variables:
        expected = expected + _of_features(model, rows)
    told = (expected > 0) & (between > 0)
    ratio = np.divide(actual, expected, out=np.ones_like(actual), where=told)
    varied = float((between * ratio)[told].sum())
    return float(between[told].sum()) / varied if varied > 0 else 1.0


def _of_features(model: Mixture, rows: Blocks) -> Floats:
    """Return the variance of L_jl that the features add in cluster j, (k, k).

    With a share o of a feature's values there: o·Var(L) + o(1 − o)·E(L)².
    """
    shares = map_reduce(partial(_observed, rows.weight), rows) / rows.weight
    total = np.zeros((model.n_components, model.n_components))
    owned = zip(traits.by_parameters(model.variables), shares, strict=True)
    for (variable, own), share in owned:
        parameters = model.parameters[:, own]
        table = variable.influence * variable.natural(parameters)
        contrast = table[:, :, None] - table[:, None, :]
        mean = np.einsum("sj,sjl->jl", variable.expectation(parameters), contrast)
        spread = variable.contrast_variance(parameters, contrast)
        total += share * spread + share * (1 - share) * mean**2
    return total


def _observed(weight: float, rows: Rows) -> Floats:
    """Return Σ w of the rows that have a value, (p,)."""
    weights = rows.weights if rows.weights.size else np.ones(rows.indptr.size - 1)
    return np.asarray(rounded(weights[:, None] * ~np.isnan(rows.values), weight).sum(axis=0))


def _contrasts(model: Mixture, tau: float, snap: float, rows: Rows) -> Contrasts:
    k = model.n_components
    posterior = tempered(model.posterior(rows)[0], tau)
    _, logits = model.tables()
    sums = np.zeros((3, k, k))
    totals = np.zeros((rows.indptr.size - 1, k))
    kernels.add_logits(rows.indptr, rows.indices, logits[: model.n_columns], totals)
    if model.variables:
        for (variable, own), values in zip(
            traits.by_sums(model.variables), rows.values.T, strict=True
        ):
            table = logits[model.n_columns :][own]
            totals += np.einsum("ns,sk->nk", traits.statistics(variable, values), table)
    kernels.add_contrasts(totals, rows.weights, posterior, snap, sums)
    return Contrasts(sums)
