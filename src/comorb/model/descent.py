"""The way down: more clusters than asked for, merged pair by pair where it costs least evidence."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from comorb.model import dense, traits
from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks
from comorb.model.decompose import joint_diagonal, repaired
from comorb.model.em import Expected, expect, maximise
from comorb.model.mixture import Mixture
from comorb.model.moments import Moments, third
from comorb.model.prior import Prior

FIRST_STRENGTH = 1.0
FIRST_STEPS = 4


@dataclass(frozen=True)
class Stage:
    """One model on the way down, its E-step, and the pair that was merged to reach it."""

    model: Mixture
    expected: Expected
    merged: tuple[int, int] | None


def whitened_slices(blocks: Blocks, found: Moments, most: int, executor: Executor | None) -> Floats:
    """Return H (d, K, K) for K = ``most`` or the rank; H[:, :k, :k] is that of any k below."""
    whitener = found.whiten(most)
    rank = max(int(np.count_nonzero(whitener.any(axis=0))), 1)
    return third(blocks, np.ascontiguousarray(whitener[:, :rank]), executor)


def overcomplete(slices: Floats, found: Moments, count: int) -> Mixture:
    """Return ``count`` clusters, or as many as the rank allows, by joint diagonalisation."""
    means = joint_diagonal(np.ascontiguousarray(slices[:, :count, :count]))
    return repaired(means, found.first, least_mean(found))


def settle(blocks: Blocks, model: Mixture, prior: Prior, executor: Executor | None) -> Stage:
    """Take a few EM steps from a decomposition."""
    for _ in range(FIRST_STEPS):
        model = maximise(expect(model, blocks, executor), prior)
    return Stage(model, expect(model, blocks, executor), None)


def way_down(
    blocks: Blocks, stage: Stage, k: int, prior: Prior, executor: Executor | None
) -> Iterator[Stage]:
    """Yield the stage, then one with a cluster less each time, down to k clusters.

    The pair that is merged is the one whose union loses the least evidence; a few EM steps
    follow. Clusters keep their places, the second of the pair's is closed.
    """
    yield stage
    while stage.model.n_components > k:
        sums = stage.expected.sums
        first, second = cheapest_merge(sums, prior)
        joined = Expected(united(sums, first, second), 0.0, 0.0, blocks.variables)
        model = maximise(joined, prior)
        stage = Stage(model, expect(model, blocks, executor), (first, second))
        yield stage


def united(sums: Floats, first: int, second: int) -> Floats:
    """Return the E-step's sums with two clusters made one, at the place of the first."""
    joined = np.delete(sums, second, axis=1)
    joined[:, first] = sums[:, first] + sums[:, second]
    return joined


def cheapest_merge(sums: Floats, prior: Prior) -> tuple[int, int]:
    """Return the pair of clusters whose union loses the least evidence.

    f(u) + f(v) − f(u ∪ v), where f is Σ_i log B(c + a, n − c + b) + log Γ(n + 1):
    the cluster's means and label integrated out, less what all pairs share. O(k²·d).
    """
    return _cheapest(*_alone_and_together(sums, prior))


def merged_down(sums: Floats, k: int, prior: Prior) -> Floats:
    """Return the sums of k clusters: the cheapest pair is merged again and again, without EM.

    After a merge only the pairs of the new cluster are weighed anew. O(K²·d) for K at first.
    """
    alone, together = _alone_and_together(sums, prior)
    while sums.shape[1] > k:
        first, second = _cheapest(alone, together)
        sums = united(sums, first, second)
        alone = np.delete(alone, second)
        together = np.delete(np.delete(together, second, axis=0), second, axis=1)
        sizes = np.ascontiguousarray(sums[-1])
        carriers = np.ascontiguousarray(sums[: prior.present.size].T)
        own = dense.log_marginals_with(first, carriers, sizes, prior.present, prior.absent)
        if prior.variables:
            own += _features_with(first, sums, prior)
        alone[first] = own[first] + gammaln(sizes[first] + 1)
        together[first] = together[:, first] = own + gammaln(sizes[first] + sizes + 1)
    return sums


def _alone_and_together(sums: Floats, prior: Prior) -> tuple[Floats, Floats]:
    """Return f of each cluster, (k,), and of each pair united, (k, k), its upper triangle."""
    sizes = np.ascontiguousarray(sums[-1])
    carriers = np.ascontiguousarray(sums[: prior.present.size].T)
    together = dense.log_marginals(carriers, sizes, prior.present, prior.absent)
    if prior.variables:
        together += _features_together(sums, prior)
    alone = together.diagonal() + gammaln(sizes + 1)
    return alone, together + gammaln(np.add.outer(sizes, sizes) + 1)


def _features_together(sums: Floats, prior: Prior) -> Floats:
    """Return the features' log marginal of each pair united, itself alone, upper triangle."""
    statistics = sums[prior.present.size : -1]
    first, second = np.triu_indices(sums.shape[1])
    both = statistics[:, first] + statistics[:, second] * (first != second)
    found = np.zeros((sums.shape[1], sums.shape[1]))
    terms = traits.log_marginal(prior.variables, both, prior.pseudo)
    found[first, second] = terms.sum(axis=0)
    return found


def _features_with(u: int, sums: Floats, prior: Prior) -> Floats:
    """Return the features' log marginal of cluster u united with each, itself alone, (k,)."""
    statistics = sums[prior.present.size : -1]
    both = statistics + statistics[:, u : u + 1]
    both[:, u] = statistics[:, u]
    return np.asarray(traits.log_marginal(prior.variables, both, prior.pseudo).sum(axis=0))


def _cheapest(alone: Floats, together: Floats) -> tuple[int, int]:
    loss = np.add.outer(alone, alone) - together
    loss[np.tril_indices(alone.size)] = np.inf
    first, second = np.unravel_index(np.argmin(loss), loss.shape)
    return int(first), int(second)


def least_mean(found: Moments) -> float:
    """Return half a record: how far inside (0, 1) the means of a start are kept."""
    return 0.5 / (found.weight + 1)
