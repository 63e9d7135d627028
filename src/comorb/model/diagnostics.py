"""Diagnostics: how sure a model is of its clusters and means, and how far clusterings agree."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from typing import Self

import numpy as np
from scipy import linalg, sparse
from scipy.optimize import brentq, linear_sum_assignment
from scipy.special import betaincinv, gammaln, rel_entr

from comorb.messages import Message
from comorb.model import features, kernels
from comorb.model.arrays import Floats, Ints
from comorb.model.blocks import (
    Blocks,
    Rows,
    exact_sum,
    map_blocks,
    map_reduce,
    map_tasks,
    single_threaded,
    snap_for,
    snap_to_grid,
    take_rows,
)
from comorb.model.em import Stopping, em, expect
from comorb.model.features import parameter_slices, statistic_slices
from comorb.model.kernels import splitmix64
from comorb.model.mixture import EDGE, Mixture
from comorb.model.moments import Moments, prevalence
from comorb.model.prior import Prior, learn_strength
from comorb.model.subsample import Records, subsample, unit_records

# Squared log-ratios of two clusters, nats² a record, up to which sums of them are exact.
MAX_SQUARED_RATIO = 2.0**20
# A variance of a mean that is smaller, as a share of the complete-data one, is rounding.
MIN_VARIANCE = 1e-12


@dataclass(frozen=True)
class Config:
    """Settings of intervals and temperatures.

    ``python -m benchmarks.settings diagnostics`` prints the widths of the intervals, the
    temperature and the time at half and at twice each value; ``python -m benchmarks sureness``
    prints how often intervals cover, and whether posteriors mean what they say.
    """

    # a cluster differs mostly in the number of codes where more than half of its divergence does
    mostly_length: float = 0.5
    # below this temperature nine in ten become less than 53 in 100: a posterior says nothing
    min_temperature: float = 0.05
    temperature_precision: float = 1e-4
    temperature_rows: int = 20_000
    # positive or negative records: a mean of fewer is at the boundary, 0 or 1, where the likelihood
    # has no curvature; one of none is taken to be of ``boundary_count``
    at_boundary: float = 0.01
    boundary_count: float = 0.25
    boundary_tolerance: float = 1e-9
    # parameters up to which the information matrix is inverted: 50 MB, O(n³)
    max_parameters: int = 2500
    information_rows: int = 50_000
    # fits of the bootstrap: the standard error of a standard error is 1 / √(2·40) = 11%
    bootstrap_repeats: int = 40
    bootstrap_rows: int = 8192
    bootstrap_passes: int = 30
    # fits to bootstrap samples by which a record is judged without it: each is left out of 4 of 12
    # on average, and of none in 4 of 1,000; ``python -m benchmarks.sureness 4 few`` prints the gain
    out_of_bag_fits: int = 12
    # pairs of codes with fewer records than a χ² needs (Cochran 1954) are not shown as misfits
    min_pair_count: float = 5.0
    alike: float = 0.01  # clusters whose means all differ by less have the same profile


CONFIG = Config()


def contingency(one: Ints, other: Ints, weights: Floats | None = None) -> Floats:
    """Return how many records are in cluster a of one and b of the other, (k, l)."""
    k, m = int(one.max(initial=0)) + 1, int(other.max(initial=0)) + 1
    table = np.bincount(one * m + other, weights, minlength=k * m)
    return table.reshape(k, m).astype(np.float64)


def adjusted_rand(one: Ints, other: Ints, weights: Floats | None = None) -> float:
    """Return the Adjusted Rand Index (Hubert and Arabie 1985): 1 for the same partition.

    ``weights`` are how many records each label stands for.

    >>> adjusted_rand(np.array([0, 0, 1, 1]), np.array([1, 1, 0, 0]))
    1.0
    """
    table = contingency(one, other, weights)
    pairs = np.sum(table * (table - 1)) / 2
    rows, columns = (np.sum(t * (t - 1)) / 2 for t in (table.sum(axis=1), table.sum(axis=0)))
    n = table.sum()
    by_chance = rows * columns / max(n * (n - 1) / 2, 1)
    most = (rows + columns) / 2
    return 1.0 if most == by_chance else float((pairs - by_chance) / (most - by_chance))


def overlap(table: Floats) -> Floats:
    """Return the overlap |a ∩ b| / |a ∪ b| of each row's cluster with its match, (k,).

    From their contingency, (k, k); clusters are matched one to one so that the overlaps add up to
    the most.
    """
    union = table.sum(axis=1)[:, None] + table.sum(axis=0)[None, :] - table
    shared = np.divide(table, union, out=np.zeros_like(table), where=union > 0)
    rows, columns = linear_sum_assignment(shared, maximize=True)
    result = np.zeros(table.shape[0])
    result[rows] = shared[rows, columns]
    return result


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
    pairs = zip(parameter_slices(model.variables), statistic_slices(model.variables), strict=True)
    for (variable, own), (_, rows) in pairs:
        parameters = model.parameters[:, own]
        there = variable.n_observed(expected.statistics[rows]).sum() / blocks.weight
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


@dataclass(frozen=True)
class Lengths:
    """The number of codes in a record, by cluster.

    ``explained`` is the share of its variance that lies between clusters, ``means`` (k,) the mean
    in each, ``of_profile`` (k,) the share of the cluster's divergence from the whole population
    that is gone once the prevalences of the whole are scaled to the cluster's mean length.
    ``records`` is Kish's effective number of them, (Σw)² / Σw².
    """

    explained: float
    means: Floats
    overall: float
    of_profile: Floats
    records: float

    @property
    def mostly_length(self) -> tuple[int, ...]:
        """The clusters that differ from the whole mostly in how many codes a record has."""
        return tuple(np.flatnonzero(self.of_profile > CONFIG.mostly_length).tolist())


def lengths(model: Mixture, blocks: Blocks, executor: Executor | None = None) -> Lengths:
    """Return how far clusters explain the number of codes in a record. Two passes, O(nnz·k).

    Σ_j n_j (m_j − m)² / Σ_n (length_n − m)², with memberships by posterior; and for each cluster
    1 − Σ_i KL(μ_ij ‖ p_i m_j / m) / Σ_i KL(μ_ij ‖ p_i).
    """
    expected = expect(model, blocks, executor)
    sizes = np.maximum(expected.sums[-1], 1e-12)
    by_cluster = np.array([float(exact_sum(column)) for column in expected.positive_counts.T])
    overall = by_cluster.sum() / blocks.weight
    bounds = blocks.weight * max(blocks.n_columns, 1) ** 2, blocks.weight**2
    squares, of_weights = map_reduce(partial(_squares, bounds), blocks, executor).tolist()
    variance = squares - blocks.weight * overall**2
    means = by_cluster / sizes
    between = float(np.sum(sizes * (means - overall) ** 2))
    p = expected.positive_counts.sum(axis=1) / blocks.weight
    scaled = p * (means / max(overall, EDGE))[:, None]
    plain = _divergence(model.means, np.broadcast_to(p, scaled.shape))
    left = _divergence(model.means, scaled)
    of_profile = 1 - np.divide(left, plain, out=np.ones_like(left), where=plain > EDGE)
    explained = between / variance if variance > 0 else 0.0
    of_profile, records = np.clip(of_profile, 0, 1), blocks.weight**2 / of_weights
    return Lengths(min(explained, 1.0), means, float(overall), of_profile, records)


def _squares(bounds: tuple[float, float], rows: Rows) -> Floats:
    """Return Σ w·length² and Σ w²."""
    counts = np.diff(rows.indptr).astype(np.float64)
    weights = rows.row_weights
    terms = weights * counts**2, weights**2
    return np.array([snap_to_grid(*one).sum() for one in zip(terms, bounds, strict=True)])


def _divergence(means: Floats, other: Floats) -> Floats:
    mu, nu = (np.clip(values, EDGE, 1 - EDGE) for values in (means, other))
    terms = mu * np.log(mu / nu) + (1 - mu) * np.log((1 - mu) / (1 - nu))
    return np.asarray(exact_sum(terms, axis=1))


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
    rows = subsample(blocks, prevalence(blocks, executor), CONFIG.temperature_rows, executor)

    def excess(tau: float) -> float:
        return _expected_share(model, rows, tau) - tau

    if excess(1.0) >= 0:
        return 1.0
    return (
        CONFIG.min_temperature
        if excess(CONFIG.min_temperature) <= 0
        else float(brentq(excess, CONFIG.min_temperature, 1.0, xtol=CONFIG.temperature_precision))
    )


def temper(posterior: Floats, tau: float) -> Floats:
    """Return posteriors ∝ rᵗ, (n, k): the same labels, and confidences that mean what they say.

    >>> temper(np.array([[0.9, 0.1]]), 0.5).round(2).tolist()
    [[0.75, 0.25]]
    """
    scaled = posterior**tau
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))


def _expected_share(model: Mixture, rows: Blocks, tau: float) -> float:
    """Return the expected over the actual variance, by posteriors tempered with τ.

    The mean over the pairs of clusters, with the weight Σ r_j r_l: the records between the two.
    """
    snap = snap_for(rows.weight * MAX_SQUARED_RATIO)
    sums = map_reduce(partial(_contrasts, model, tau, snap), rows).sums
    between = sums[2] * (1 - np.eye(model.n_components))
    sizes = np.maximum(sums[2].sum(axis=1), 1e-12)[:, None]
    actual = sums[1] / sizes - (sums[0] / sizes) ** 2
    present, absent = model.logs
    logits = present - absent
    spread = model.means * (1 - model.means)
    expected = np.einsum("ji,jli->jl", spread, (logits[:, None] - logits[None]) ** 2)
    if model.variables:
        expected = expected + _feature_variance(model, rows)
    informative = (expected > 0) & (between > 0)
    ratio = np.divide(actual, expected, out=np.ones_like(actual), where=informative)
    varied = float((between * ratio)[informative].sum())
    return float(between[informative].sum()) / varied if varied > 0 else 1.0


def _feature_variance(model: Mixture, rows: Blocks) -> Floats:
    """Return the variance of L_jl that the features add in cluster j, (k, k).

    With a share o of a feature's values there: o·Var(L) + o(1 − o)·E(L)².
    """
    shares = map_reduce(partial(_observed_weights, rows.weight), rows) / rows.weight
    total = np.zeros((model.n_components, model.n_components))
    owned = zip(features.parameter_slices(model.variables), shares, strict=True)
    for (variable, own), share in owned:
        parameters = model.parameters[:, own]
        table = variable.influence * variable.natural(parameters)
        contrast = table[:, :, None] - table[:, None, :]
        mean = np.einsum("sj,sjl->jl", variable.expectation(parameters), contrast)
        spread = variable.contrast_variance(parameters, contrast)
        total += share * spread + share * (1 - share) * mean**2
    return total


def _observed_weights(weight: float, rows: Rows) -> Floats:
    """Return Σ w of the rows that have a value, (p,)."""
    return np.asarray(
        snap_to_grid(rows.row_weights[:, None] * ~np.isnan(rows.values), weight).sum(axis=0)
    )


def _contrasts(model: Mixture, tau: float, snap: float, rows: Rows) -> Contrasts:
    k = model.n_components
    posterior = temper(model.posterior(rows)[0], tau)
    _, logits = model.tables()
    sums = np.zeros((3, k, k))
    totals = np.zeros((rows.indptr.size - 1, k))
    kernels.add_logits(rows.indptr, rows.indices, logits[: model.n_columns], totals)
    if model.variables:
        for (variable, own), values in zip(
            features.statistic_slices(model.variables), rows.values.T, strict=True
        ):
            table = logits[model.n_columns :][own]
            totals += np.einsum("ns,sk->nk", features.statistics(variable, values), table)
    kernels.add_contrasts(totals, rows.weights, posterior, snap, sums)
    return Contrasts(sums)


@dataclass(frozen=True)
class Pairs:
    """Over some rows: Σ w·r_j·r_l and Σ w·r_j of xxᵀ, of x and of 1, for each pair j ≤ l."""

    seconds: Floats
    firsts: Floats
    sizes: Floats

    def __add__(self, other: Self) -> Pairs:
        return Pairs(
            self.seconds + other.seconds, self.firsts + other.firsts, self.sizes + other.sizes
        )


@single_threaded
def information_share(model: Mixture, blocks: Blocks, executor: Executor | None = None) -> Floats:
    """Return the share of a cluster's records that each mean is as well known as from, (k, d).

    1 / (V·n·μ(1 − μ)), where V is the variance of logit μ and n the cluster's size: 1 when all
    labels are certain and codes independent. V is the sandwich I⁻¹ J I⁻¹ of the whole observed
    information I and the scores' J, with weights and means of all clusters; beyond
    ``CONFIG.max_parameters`` it comes from a bootstrap. Where a mean is 0 or 1 the likelihood has a
    boundary and no curvature; V is then that of the nearby model with half a positive and half a
    negative record more of every code in every cluster (Jeffreys' prior).
    """
    if model.n_components == 1:
        return np.ones_like(model.means)
    share = None
    if model.means.size + model.n_components - 1 <= CONFIG.max_parameters:
        rows = subsample(blocks, prevalence(blocks, executor), CONFIG.information_rows, executor)
        edge = _has_boundary_mean(model, rows.weight)
        if edge:
            half = np.full(model.n_columns, 0.5)
            pseudo = features.prior_statistics(model.variables, 0.5, rows.weight)
            prior = Prior(half, half, model.variables, pseudo)
            model = em(rows, model, prior, Stopping(tol=CONFIG.boundary_tolerance), executor).model
        pairs = map_reduce(partial(_pairs, model, rows.weight), rows, executor)
        share = _sandwich_shares(model, pairs)
        if share is None and edge:
            share = _sandwich_shares(model, pairs, added=1.0)
    return _bootstrap_shares(model, blocks, executor) if share is None else share


def _has_boundary_mean(model: Mixture, weight: float) -> bool:
    """Return whether a mean is 0 or 1 of a code that not all records have, or none."""
    fewer = model.weights[:, None] * weight * np.minimum(model.means, 1 - model.means)
    differs = np.ptp(model.means, axis=0) > 0
    return bool((fewer[:, differs] < CONFIG.at_boundary).any())


def _pairs(model: Mixture, total: float, rows: Rows) -> Pairs:
    posterior, _ = model.posterior(rows)
    weights = rows.row_weights
    k, d = model.means.shape
    places = [*combinations_with_replacement(range(k), 2)]
    seconds = np.zeros((len(places) + k, d, d))
    firsts, sizes = np.zeros((len(places) + k, d)), np.zeros(len(places) + k)
    shape = (rows.indptr.size - 1, d)
    ones = np.ones(rows.indices.size)
    matrix = sparse.csr_array((ones, rows.indices, rows.indptr), shape=shape)
    shares = [posterior[:, j] * posterior[:, m] for j, m in places] + [*posterior.T]
    for at, share in enumerate(shares):
        each = snap_to_grid(weights * share, total)
        scaled = sparse.csr_array(
            (np.repeat(each, np.diff(rows.indptr)), rows.indices, rows.indptr), shape=shape
        )
        seconds[at] = (scaled.T @ matrix).toarray()
        firsts[at] = matrix.T @ each
        sizes[at] = each.sum()
    return Pairs(seconds, firsts, sizes)


def _sandwich_shares(model: Mixture, pairs: Pairs, added: float = 0.0) -> Floats | None:
    """Return the shares from I and J, or None where I has no inverse.

    ``added`` counts in I the records that were added to each cluster to find the model, at which
    I then has an inverse.

    The score of logit μ_ij is r_j (x_i − μ_ij), of the weights r_j − ω_j. J is the sum of their
    products; I = D − Σ_j r_j y_j y_jᵀ + J with y_j = x − μ_j, and D the complete information.
    """
    k, d = model.means.shape
    sizes = pairs.sizes[-k:]
    edge = CONFIG.boundary_count / (sizes[:, None] + 1)
    mu = np.clip(
        pairs.firsts[-k:] / np.maximum(sizes[:, None], CONFIG.boundary_count), edge, 1 - edge
    )
    total = sizes.sum()
    omega = sizes / total
    n = k * d
    scores, information = np.zeros((n + k, n + k)), np.zeros((n + k, n + k))
    for at, (j, m) in enumerate(combinations_with_replacement(range(k), 2)):
        block = _centred_products(pairs, at, mu[j], mu[m])
        own, other = slice(j * d, j * d + d), slice(m * d, m * d + d)
        scores[own, other], scores[other, own] = block, block.T
        scores[own, n + m] = pairs.firsts[at] - pairs.sizes[at] * mu[j]
        scores[other, n + j] = pairs.firsts[at] - pairs.sizes[at] * mu[m]
        scores[n + j, n + m] = scores[n + m, n + j] = pairs.sizes[at]
    information[:] = scores
    for j in range(k):
        own = slice(j * d, j * d + d)
        alone = pairs.sizes.size - k + j
        information[own, own] -= _centred_products(pairs, alone, mu[j], mu[j])
        rest = pairs.firsts[alone] - sizes[j] * mu[j]
        information[own, n + j] -= rest
        scores[own, n:] -= np.outer(rest, omega)
    spread = mu * (1 - mu)
    information[np.arange(n), np.arange(n)] += ((sizes[:, None] + added) * spread).ravel()
    for table in (scores, information):
        table[n:, n:] -= total * np.outer(omega, omega)
        table[n:, :n] = table[:n, n:].T
    return _shares(information[:-1, :-1], scores[:-1, :-1], sizes, spread)


def _centred_products(pairs: Pairs, at: int, one: Floats, other: Floats) -> Floats:
    """Return Σ w (x − μ)(x − ν)ᵀ from the sums of xxᵀ, x and 1."""
    first = pairs.firsts[at]
    cross = np.outer(first, other) + np.outer(one, first)
    return np.asarray(pairs.seconds[at] - cross + pairs.sizes[at] * np.outer(one, other))


def _shares(information: Floats, scores: Floats, sizes: Floats, spread: Floats) -> Floats | None:
    try:
        factor = linalg.cho_factor(information)
    except linalg.LinAlgError:
        return None
    inverse = linalg.cho_solve(factor, np.eye(information.shape[0]))
    variance = np.einsum("ij,ij->i", inverse @ scores, inverse)[: spread.size]
    known = np.maximum(variance.reshape(spread.shape) * spread * sizes[:, None], MIN_VARIANCE)
    return np.asarray(np.clip(1 / known, 0, 1))


def _bootstrap_shares(model: Mixture, blocks: Blocks, executor: Executor | None) -> Floats:
    """Return the shares from fits to reweighted rows, each from the model itself.

    Each record that a row stands for gets an exponential weight, a hash of what it holds and of
    the repeat, so that the same data give the same answer in any order of rows.
    """
    first = prevalence(blocks, executor)
    rows = subsample(blocks, first, CONFIG.bootstrap_rows, executor)
    sums = expect(model, rows, executor).sums
    strength = learn_strength(sums, first, rows.weight, rows.variables)
    records = unit_records(rows, first, blocks.records, executor)
    spread = np.sqrt(records.weights)  # one of weight w stands for w records, of variance 1 each
    prior = Prior.around(first, strength, rows.weight, rows.variables)

    def refitted(repeat: int) -> Floats:
        noise = spread * (-np.log(_draw_uniforms(records, repeat)) - 1) if repeat else 0.0
        drawn = np.bincount(records.rows, records.weights + noise, rows.n_rows)
        part = take_rows(rows, np.arange(rows.n_rows), None, np.maximum(drawn, 0.0))
        return em(part, model, prior, Stopping(max_iter=CONFIG.bootstrap_passes)).model.means

    fits = map_tasks(refitted, range(CONFIG.bootstrap_repeats + 1), executor)
    around = np.mean([(means - fits[0]) ** 2 for means in fits[1:]], axis=0)
    mu = fits[0]
    known = np.maximum(around, 1e-300) * sums[-1][:, None] / (mu * (1 - mu))
    return np.asarray(np.clip(1 / np.maximum(known, MIN_VARIANCE), 0, 1))


def _draw_uniforms(records: Records, repeat: int) -> Floats:
    """Return a number in (0, 1) for each record and repeat, by hash."""
    turn = splitmix64(np.array([repeat], dtype=np.uint64))[0]
    keys = (records.uniforms * 2.0**53).astype(np.uint64)
    with np.errstate(over="ignore"):
        return np.asarray((splitmix64(keys + turn) + 1.0) / (2.0**64 + 2.0))


def out_of_bag(
    model: Mixture, blocks: Blocks, tau: float = 1.0, executor: Executor | None = None
) -> Floats:
    """Return posteriors by fits that have not seen the record, (n, k).

    A record of a small group helped to make it, and so is too sure to be in it. Here EM goes on
    from the model on bootstrap samples (Poisson counts by hash, Breiman 1996), and the posteriors,
    tempered by τ, are averaged over the samples without the record. A row that stands for several
    counts as often as it was left out. For some thousand rows, in memory.
    """
    first = prevalence(blocks, executor)
    records = unit_records(blocks, first, blocks.records, executor)
    places, variables = np.arange(blocks.n_rows), blocks.variables
    strength = learn_strength(expect(model, blocks, executor).sums, first, blocks.weight, variables)
    prior = Prior.around(first, strength, blocks.weight, variables)
    chances = np.cumsum(np.exp(-1.0 - gammaln(np.arange(12) + 1)))  # of Poisson counts below 12

    def posterior(fit: Mixture) -> Floats:
        parts = map_blocks(fit.posterior, blocks)
        return temper(np.concatenate([part for part, _ in parts]), tau)

    def refit(repeat: int) -> tuple[Floats, Floats]:
        counts = np.searchsorted(chances, _draw_uniforms(records, repeat))
        part = take_rows(blocks, places, None, records.part(counts, places.size))
        stopping = Stopping(max_iter=CONFIG.bootstrap_passes)
        return records.part(counts == 0, places.size), posterior(
            em(part, model, prior, stopping).model
        )

    # what the model says counts as one record in a thousand: where no sample lacks the row
    weight, total = np.full(places.size, 1e-3), 1e-3 * posterior(model)
    for left_out, found in map_tasks(refit, range(1, CONFIG.out_of_bag_fits + 1), executor):
        weight += left_out
        total += left_out[:, None] * found
    return np.asarray(total / weight[:, None])


def top_and_margin(posterior: Floats) -> tuple[Floats, Floats]:
    """Return each record's highest posterior and its lead over the second, (n,) each."""
    if posterior.shape[1] == 1:
        return posterior[:, 0], posterior[:, 0]
    second, top = np.partition(posterior, -2, axis=1)[:, -2:].T
    return top, top - second


def intervals(
    model: Mixture,
    blocks: Blocks,
    level: float = 0.95,
    executor: Executor | None = None,
    records: float | None = None,
) -> tuple[Floats, Floats]:
    """Return the lower and upper ends of an interval on each mean, (k, d) each.

    Jeffreys' interval, from the Beta(c + ½, n − c + ½) distribution, with the counts scaled by
    the share of information that is left when labels are uncertain and codes depend on each
    other (``information_share``). With less than half a positive record (or half a
    negative one) it is one-sided and begins at 0 (or ends at 1). ``records`` is how many the rows
    are worth, where that isn't their weight.
    """
    expected = expect(model, blocks, executor)
    sums = np.concatenate([expected.positive_counts, expected.sums[-1:]])
    if records is not None:
        sums = sums * (records / blocks.weight)
    positives, sizes = sums[:-1].T, sums[-1][:, None]
    share = information_share(model, blocks, executor)
    a = share * positives + 0.5
    b = share * np.maximum(sizes - positives, 0) + 0.5
    none, all_of_them = a <= 1, b <= 1
    low = betaincinv(a, b, np.where(all_of_them, 1 - level, (1 - level) / 2))
    high = betaincinv(a, b, np.where(none, level, (1 + level) / 2))
    return np.where(none, 0.0, low), np.where(all_of_them, 1.0, high)


@dataclass(frozen=True)
class Residual:
    """A pair of codes whose co-occurrence the clusters do not explain."""

    first: int
    second: int
    observed: float
    expected: float
    z: float


def residuals(model: Mixture, found: Moments, top: int = 20) -> list[Residual]:
    """Return the pairs of codes that the mixture fits worst, by standardised residual.

    Observed co-occurrences o = N·M̃2 against e = N·Σ_j ω_j μ_ij μ_lj: the signed root of the
    binomial deviance 2(o log o/e + (N − o) log (N − o)/(N − e)), in which a few records of a pair
    that is hardly expected don't outweigh thousands. Pairs of fewer than 5 records are passed
    over. O(d²·k).
    """
    n = found.weight
    p = (model.means.T * model.weights) @ model.means
    observed = found.dense_second() * n
    expected = np.clip(p, EDGE, 1 - EDGE) * n
    deviance = rel_entr(observed, expected) + rel_entr(n - observed, n - expected)
    z = np.sign(observed - expected) * np.sqrt(2 * np.maximum(deviance, 0))
    z[(expected < CONFIG.min_pair_count) & (observed < CONFIG.min_pair_count)] = 0
    first, second = np.triu_indices(p.shape[0], 1)
    worst = np.argsort(-np.abs(z[first, second]), kind="stable")[:top]
    return [
        Residual(int(i), int(j), float(observed[i, j]), float(expected[i, j]), float(z[i, j]))
        for i, j in zip(first[worst], second[worst], strict=True)
    ]


def collapse_warning(model: Mixture, weight: float) -> str | None:
    """Return a sentence when two clusters are alike or one is nearly empty, else None."""
    sizes = model.weights * weight
    if model.n_components > 1 and sizes.min() < 1:
        empty = int(sizes.argmin()) + 1
        return Message("model.empty_cluster", cluster=empty, k=model.n_components)
    profiles = np.concatenate([model.means, model.feature_angles], axis=1)
    for i in range(model.n_components):
        for j in range(i + 1, model.n_components):
            if np.abs(profiles[i] - profiles[j]).max(initial=0.0) < CONFIG.alike:
                return Message(
                    "model.alike", cluster=i + 1, other_cluster=j + 1, k=model.n_components
                )
    return None
