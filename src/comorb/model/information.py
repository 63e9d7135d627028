"""How much is known of each mean when labels are uncertain: the whole information matrix."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from itertools import combinations_with_replacement
from typing import Self

import numpy as np
from scipy import linalg, sparse

from comorb.model import traits
from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks, Rows, map_reduce, map_tasks, rounded, taken
from comorb.model.em import Stopping, em, expect
from comorb.model.kernels import mixed
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.prior import Prior, learn_strength
from comorb.model.thinning import chances, thinned
from comorb.model.threads import single_threaded

EDGE_COUNT = 0.25  # carriers: a mean of none is taken to be of so many
AT_THE_EDGE = 0.01  # carriers, or non-carriers: a mean of fewer is 0 or 1
LARGEST = 2500  # parameters of a whole information matrix: beyond, its inverse takes too long
REPEATS = 40  # of the bootstrap
AROUND = Stopping(tol=1e-6, max_iter=30)
FROM_THE_EDGE = Stopping(tol=1e-9, max_iter=1000)
ROWS, ROWS_OF_A_MATRIX = 8192, 50_000  # that stand for all, at most about twice as many


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
    information I and the scores' J, with weights and means of all clusters; beyond ``LARGEST``
    parameters it comes from a bootstrap. Where a mean is 0 or 1 the likelihood has an edge and
    no curvature; V is then that of the nearby model with half a carrier and half a non-carrier
    more of every code in every cluster.
    """
    if model.n_components == 1:
        return np.ones_like(model.means)
    share = None
    if model.means.size + model.n_components - 1 <= LARGEST:
        rows = thinned(blocks, prevalence(blocks, executor), ROWS_OF_A_MATRIX, executor)
        edge = _at_the_edge(model, rows.weight)
        if edge:
            half = np.full(model.n_columns, 0.5)
            pseudo = traits.pseudo(model.variables, 0.5, rows.weight)
            prior = Prior(half, half, model.variables, pseudo)
            model = em(rows, model, prior, FROM_THE_EDGE, executor).model
        pairs = map_reduce(partial(_pairs, model, rows.weight), rows, executor)
        share = _sandwiched(model, pairs)
        if share is None and edge:
            share = _sandwiched(model, pairs, added=1.0)
    return _bootstrapped(model, blocks, executor) if share is None else share


def _at_the_edge(model: Mixture, weight: float) -> bool:
    """Tell whether a mean is 0 or 1 of a code that not all records have, or none."""
    fewer = model.weights[:, None] * weight * np.minimum(model.means, 1 - model.means)
    differs = np.ptp(model.means, axis=0) > 0
    return bool((fewer[:, differs] < AT_THE_EDGE).any())


def _pairs(model: Mixture, total: float, rows: Rows) -> Pairs:
    posterior, _ = model.posterior(rows)
    weights = rows.weights if rows.weights.size else np.ones(rows.indptr.size - 1)
    k, d = model.means.shape
    places = [*combinations_with_replacement(range(k), 2)]
    seconds = np.zeros((len(places) + k, d, d))
    firsts, sizes = np.zeros((len(places) + k, d)), np.zeros(len(places) + k)
    shape = (rows.indptr.size - 1, d)
    ones = np.ones(rows.indices.size)
    matrix = sparse.csr_array((ones, rows.indices, rows.indptr), shape=shape)
    shares = [posterior[:, j] * posterior[:, m] for j, m in places] + [*posterior.T]
    for at, share in enumerate(shares):
        each = rounded(weights * share, total)
        scaled = sparse.csr_array(
            (np.repeat(each, np.diff(rows.indptr)), rows.indices, rows.indptr), shape=shape
        )
        seconds[at] = (scaled.T @ matrix).toarray()
        firsts[at] = matrix.T @ each
        sizes[at] = each.sum()
    return Pairs(seconds, firsts, sizes)


def _sandwiched(model: Mixture, pairs: Pairs, added: float = 0.0) -> Floats | None:
    """Return the shares from I and J, or None where I has no inverse.

    ``added`` counts in I the records that were added to each cluster to find the model, at which
    I then has an inverse.

    The score of logit μ_ij is r_j (x_i − μ_ij), of the weights r_j − ω_j. J is the sum of their
    products; I = D − Σ_j r_j y_j y_jᵀ + J with y_j = x − μ_j, and D the complete information.
    """
    k, d = model.means.shape
    sizes = pairs.sizes[-k:]
    edge = EDGE_COUNT / (sizes[:, None] + 1)
    mu = np.clip(pairs.firsts[-k:] / np.maximum(sizes[:, None], EDGE_COUNT), edge, 1 - edge)
    total = sizes.sum()
    omega = sizes / total
    n = k * d
    scores, information = np.zeros((n + k, n + k)), np.zeros((n + k, n + k))
    for at, (j, m) in enumerate(combinations_with_replacement(range(k), 2)):
        block = _centred(pairs, at, mu[j], mu[m])
        own, other = slice(j * d, j * d + d), slice(m * d, m * d + d)
        scores[own, other], scores[other, own] = block, block.T
        scores[own, n + m] = pairs.firsts[at] - pairs.sizes[at] * mu[j]
        scores[other, n + j] = pairs.firsts[at] - pairs.sizes[at] * mu[m]
        scores[n + j, n + m] = scores[n + m, n + j] = pairs.sizes[at]
    information[:] = scores
    for j in range(k):
        own = slice(j * d, j * d + d)
        alone = pairs.sizes.size - k + j
        information[own, own] -= _centred(pairs, alone, mu[j], mu[j])
        rest = pairs.firsts[alone] - sizes[j] * mu[j]
        information[own, n + j] -= rest
        scores[own, n:] -= np.outer(rest, omega)
    spread = mu * (1 - mu)
    information[np.arange(n), np.arange(n)] += ((sizes[:, None] + added) * spread).ravel()
    for table in (scores, information):
        table[n:, n:] -= total * np.outer(omega, omega)
        table[n:, :n] = table[:n, n:].T
    return _shares(information[:-1, :-1], scores[:-1, :-1], sizes, spread)


def _centred(pairs: Pairs, at: int, one: Floats, other: Floats) -> Floats:
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
    known = np.maximum(variance.reshape(spread.shape) * spread * sizes[:, None], 1e-12)
    return np.asarray(np.clip(1 / known, 0, 1))


def _bootstrapped(model: Mixture, blocks: Blocks, executor: Executor | None) -> Floats:
    """Return the shares from fits to reweighted rows, each from the model itself.

    A row that stands for w records gets a weight of mean and variance w, like that of w records
    with exponential ones: a hash of what it holds and of the repeat, so that the same data give
    the same answer in any order of rows.
    """
    first = prevalence(blocks, executor)
    rows = thinned(blocks, first, ROWS, executor)
    sums = expect(model, rows, executor).sums
    strength = learn_strength(sums, first, rows.weight, rows.variables)
    keys = (chances(rows, first, executor) * 2.0**53).astype(np.uint64)
    whole = np.concatenate([_weights(load()) for load in rows.loaders])
    prior = Prior.around(first, strength, rows.weight, rows.variables)

    def refitted(repeat: int) -> Floats:
        turn = mixed(np.array([repeat], dtype=np.uint64))[0]
        with np.errstate(over="ignore"):
            even = (mixed(keys + turn) + 1.0) / (2.0**64 + 2.0)
        noise = np.sqrt(whole) * (-np.log(even) - 1) if repeat else 0.0
        part = _reweighted(rows, np.maximum(whole + noise, 0.0))
        return em(part, model, prior, AROUND).model.means

    fits = map_tasks(refitted, range(REPEATS + 1), executor)
    around = np.mean([(means - fits[0]) ** 2 for means in fits[1:]], axis=0)
    mu = fits[0]
    known = np.maximum(around, 1e-300) * sums[-1][:, None] / (mu * (1 - mu))
    return np.asarray(np.clip(1 / np.maximum(known, 1e-12), 0, 1))


def _weights(rows: Rows) -> Floats:
    return rows.weights if rows.weights.size else np.ones(rows.indptr.size - 1)


def _reweighted(blocks: Blocks, weights: Floats) -> Blocks:
    return taken(blocks, np.arange(blocks.n_rows), None, weights)
