"""Agglomeration: more clusters than wanted, merged pair by pair where it costs least evidence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betaln, gammaln

from comorb.model import features, kernels
from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks
from comorb.model.decompose import joint_diagonal, repair_mixture
from comorb.model.em import Expected, expect, maximise
from comorb.model.emissions.base import half_record
from comorb.model.mixture import Mixture
from comorb.model.moments import Moments, third_moments
from comorb.model.prior import Prior


@dataclass(frozen=True)
class Config:
    """``python -m benchmarks.settings agglomeration`` prints the evidence and the time."""

    short_run: int = 4  # EM steps from a decomposition to the first merge


CONFIG = Config()


@dataclass(frozen=True)
class Stage:
    """One model of an agglomeration, its E-step, and the pair that was merged to reach it."""

    model: Mixture
    expected: Expected
    merged: tuple[int, int] | None


def whitened_third(blocks: Blocks, found: Moments, most: int, executor: Executor | None) -> Floats:
    """Return H (d, K, K) for K = ``most`` or the rank; H[:, :k, :k] is that of any k below."""
    whitener = found.whiten(most)
    rank = max(int(np.count_nonzero(whitener.any(axis=0))), 1)
    return third_moments(blocks, np.ascontiguousarray(whitener[:, :rank]), executor)


def overcomplete_start(third: Floats, found: Moments, count: int) -> Mixture:
    """Return ``count`` clusters, or as many as the rank allows, by joint diagonalisation."""
    means = joint_diagonal(np.ascontiguousarray(third[:, :count, :count]))
    return repair_mixture(means, found.first, half_record(found.weight))


def short_run_em(blocks: Blocks, model: Mixture, prior: Prior, executor: Executor | None) -> Stage:
    """Take a few EM steps from a decomposition."""
    for _ in range(CONFIG.short_run):
        model = maximise(expect(model, blocks, executor), prior)
    return Stage(model, expect(model, blocks, executor), None)


def agglomerate(
    blocks: Blocks, stage: Stage, k: int, prior: Prior, executor: Executor | None
) -> Iterator[Stage]:
    """Yield the stage, then one with a cluster less each time, down to k clusters.

    The pair that is merged is the one whose union loses the least evidence; a few EM steps
    follow. Clusters keep their places, the second of the pair's is closed.
    """
    yield stage
    while stage.model.n_components > k:
        pair = cheapest_merge(stage.expected.sums, prior)
        model = merge_clusters(stage.expected, pair, prior)
        stage = Stage(model, expect(model, blocks, executor), pair)
        yield stage


def merge_clusters(expected: Expected, pair: tuple[int, int], prior: Prior) -> Mixture:
    """Return the model in which two clusters of an E-step are one."""
    return maximise(replace(expected, sums=merge_sums(expected.sums, *pair)), prior)


def merge_sums(sums: Floats, first: int, second: int) -> Floats:
    """Return the E-step's sums with two clusters made one, at the place of the first."""
    joined = np.delete(sums, second, axis=1)
    joined[:, first] = sums[:, first] + sums[:, second]
    return joined


def cheapest_merge(sums: Floats, prior: Prior, among: Sequence[int] = ()) -> tuple[int, int]:
    """Return the pair of clusters whose union loses the least evidence.

    f(u) + f(v) − f(u ∪ v), where f is Σ_i log B(c + a, n − c + b) + log Γ(n + 1):
    the cluster's means and label integrated out, less what all pairs share. O(k²·d).
    Where ``among`` names clusters, one of the pair is one of them.
    """
    return _cheapest_pair(*_log_marginals(sums, prior), among)


def merge_losses(sums: Floats, pair: tuple[int, int], prior: Prior) -> Floats:
    """Return the evidence that the union of two clusters loses in each code and feature."""
    d = prior.present.size
    three = np.stack([*sums[:, pair].T, sums[:, pair].sum(axis=1)], axis=1)
    positives, sizes = three[:d], three[-1]
    present, absent = prior.present[:, None], prior.absent[:, None]
    terms = betaln(positives + present, sizes - positives + absent) - betaln(present, absent)
    if prior.variables:
        own = features.log_marginal(prior.variables, three[d:-1], prior.prior_statistics)
        terms = np.concatenate([terms, own])
    return np.asarray(terms[:, 0] + terms[:, 1] - terms[:, 2])


def breadth(losses: Floats) -> float:
    """Return how many codes hold two clusters apart: (Σ L⁺)² / Σ L⁺², 1 where one code does all.

    The participation ratio of the evidence that their union loses in each code.

    >>> breadth(np.array([3.0, 3.0, -1.0]))
    2.0
    """
    positive = np.sort(np.maximum(losses, 0.0))
    squares = float(np.sum(positive**2))
    return float(positive.sum() ** 2 / squares) if squares > 0 else 0.0


def merge_sums_to(sums: Floats, k: int, prior: Prior) -> Floats:
    """Return the sums of k clusters: the cheapest pair is merged again and again, without EM.

    After a merge only the pairs of the new cluster are weighed anew. O(K²·d) for K at first.
    """
    alone, together = _log_marginals(sums, prior)
    while sums.shape[1] > k:
        first, second = _cheapest_pair(alone, together)
        sums = merge_sums(sums, first, second)
        alone = np.delete(alone, second)
        together = np.delete(np.delete(together, second, axis=0), second, axis=1)
        sizes = np.ascontiguousarray(sums[-1])
        positives = np.ascontiguousarray(sums[: prior.present.size].T)
        own = kernels.log_marginals_with(first, positives, sizes, prior.present, prior.absent)
        if prior.variables:
            own += _feature_marginals_with(first, sums, prior)
        alone[first] = own[first] + gammaln(sizes[first] + 1)
        together[first] = together[:, first] = own + gammaln(sizes[first] + sizes + 1)
    return sums


def _log_marginals(sums: Floats, prior: Prior) -> tuple[Floats, Floats]:
    """Return f of each cluster, (k,), and of each pair united, (k, k), its upper triangle."""
    sizes = np.ascontiguousarray(sums[-1])
    positives = np.ascontiguousarray(sums[: prior.present.size].T)
    together = kernels.log_marginals(positives, sizes, prior.present, prior.absent)
    if prior.variables:
        together += _feature_marginals(sums, prior)
    alone = together.diagonal() + gammaln(sizes + 1)
    return alone, together + gammaln(np.add.outer(sizes, sizes) + 1)


def _feature_marginals(sums: Floats, prior: Prior) -> Floats:
    """Return the features' log marginal of each pair united, itself alone, upper triangle."""
    statistics = sums[prior.present.size : -1]
    first, second = np.triu_indices(sums.shape[1])
    both = statistics[:, first] + statistics[:, second] * (first != second)
    found = np.zeros((sums.shape[1], sums.shape[1]))
    terms = features.log_marginal(prior.variables, both, prior.prior_statistics)
    found[first, second] = terms.sum(axis=0)
    return found


def _feature_marginals_with(u: int, sums: Floats, prior: Prior) -> Floats:
    """Return the features' log marginal of cluster u united with each, itself alone, (k,)."""
    statistics = sums[prior.present.size : -1]
    both = statistics + statistics[:, u : u + 1]
    both[:, u] = statistics[:, u]
    return np.asarray(
        features.log_marginal(prior.variables, both, prior.prior_statistics).sum(axis=0)
    )


def _cheapest_pair(alone: Floats, together: Floats, among: Sequence[int] = ()) -> tuple[int, int]:
    loss = np.add.outer(alone, alone) - together
    loss[np.tril_indices(alone.size)] = np.inf
    if among:
        others = np.setdiff1d(np.arange(alone.size), among)
        loss[np.ix_(others, others)] = np.inf
    first, second = np.unravel_index(np.argmin(loss), loss.shape)
    return int(first), int(second)
