"""init="best": more clusters than asked, merged by evidence, and the best of a few ways down."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from math import ceil

import numpy as np
from scipy.special import gammaln

from comorb.model import dense
from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks, map_tasks
from comorb.model.decompose import asvtd, diagonals, joint_diagonal, repaired, widest_gap
from comorb.model.em import Expected, Stopping, em, expect, maximise
from comorb.model.mixture import Mixture
from comorb.model.moments import Moments, moments, third
from comorb.model.prior import Prior, evidence, learn_strength
from comorb.model.thinning import thinned
from comorb.model.threads import single_threaded

EXCESS = (1.0, 1.5, 2.0, 3.0)  # of the clusters asked for: where the ways down begin
MOST = 64  # where they begin at most: joint diagonalisation costs its cube
ROWS = 8192
ROWS_A_CLUSTER = 1500
JURY = 8
FIRST_STRENGTH = 1.0
FIRST_STEPS = 4
STEPS_BETWEEN = 1
SHORT, LONG = Stopping(tol=1e-5, max_iter=8), Stopping(tol=1e-5, max_iter=60)
FINALISTS = 3


@dataclass(frozen=True)
class Stage:
    """One model on the way down, its E-step, and the pair that was merged to reach it."""

    model: Mixture
    expected: Expected
    merged: tuple[int, int] | None


@dataclass(frozen=True)
class Candidate:
    """A start for EM: the model, the strength of its prior, and its evidence."""

    model: Mixture
    strength: float
    evidence: float


@single_threaded
def best_start(
    blocks: Blocks,
    k: int,
    first: Floats,
    strength: float | None = None,
    executor: Executor | None = None,
) -> Candidate:
    """Return the start with the most evidence among a few that no random number touches.

    The paper's own start, and the ways down to k from 1, 1.5, 2 and 3 times as many clusters (64
    at most), each decomposed by joint diagonalisation from the same moments, and a few EM steps on
    each: beyond some ten thousand rows all of this is done on a part (``thinning.thinned``).
    The ``FINALISTS`` with the most evidence are judged again on ``JURY`` times as many rows.
    ``first`` is M1, ``strength`` the prior's, None to learn it.
    """
    rows = max(ROWS, ROWS_A_CLUSTER * k)
    jury = thinned(blocks, first, JURY * rows, executor)
    blocks = thinned(jury, first, rows, executor)
    found = moments(blocks, executor)
    most = min(blocks.n_columns, blocks.n_rows, max(k, MOST))
    counts = sorted({min(ceil(k * excess), most) for excess in EXCESS})
    slices = whitened_slices(blocks, found, counts[-1], executor)
    if slices.shape[1] < k:
        return Candidate(asvtd(blocks, k, executor), strength or FIRST_STRENGTH, -np.inf)
    own = slices[:, :k, :k]
    prior = Prior.around(found.first, strength or FIRST_STRENGTH, blocks.weight)

    def descended(count: int) -> Mixture:
        start = (
            overcomplete(slices, found, count)
            if count
            else repaired(diagonals(own, widest_gap(own)), found.first, _least(found))
        )
        stage = settle(blocks, start, prior, None)
        for below in way_down(blocks, stage, k, prior, None):
            stage = below
        return stage.model

    field = map_tasks(descended, [*reversed(counts), 0], executor)
    for court, stopping in ((blocks, SHORT), (jury, LONG)):
        judge = partial(_judged, court, first, strength, stopping)
        judged = map_tasks(judge, field, executor)
        judged.sort(key=lambda candidate: -candidate.evidence)
        field = [candidate.model for candidate in judged[:FINALISTS]]
    return judged[0]


def whitened_slices(blocks: Blocks, found: Moments, most: int, executor: Executor | None) -> Floats:
    """Return H (d, K, K) for K = ``most`` or the rank; H[:, :k, :k] is that of any k below."""
    whitener = found.whiten(most)
    rank = max(int(np.count_nonzero(whitener.any(axis=0))), 1)
    return third(blocks, np.ascontiguousarray(whitener[:, :rank]), executor)


def overcomplete(slices: Floats, found: Moments, count: int) -> Mixture:
    """Return ``count`` clusters, or as many as the rank allows, by joint diagonalisation."""
    means = joint_diagonal(np.ascontiguousarray(slices[:, :count, :count]))
    return repaired(means, found.first, _least(found))


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
        joined = np.delete(sums, second, axis=1)
        joined[:, first] = sums[:, first] + sums[:, second]
        expected = Expected(joined, 0.0, 0.0)
        for _ in range(STEPS_BETWEEN):
            model = maximise(expected, prior)
            expected = expect(model, blocks, executor)
        stage = Stage(model, expected, (first, second))
        yield stage


def cheapest_merge(sums: Floats, prior: Prior) -> tuple[int, int]:
    """Return the pair of clusters whose union loses the least evidence.

    f(u) + f(v) − f(u ∪ v), where f is Σ_i log B(c + a, n − c + b) + log Γ(n + 1):
    the cluster's means and label integrated out, less what all pairs share. O(k²·d).
    """
    sizes = np.ascontiguousarray(sums[-1])
    carriers = np.ascontiguousarray(sums[:-1].T)
    united = dense.log_marginals(carriers, sizes, prior.present, prior.absent)
    united += gammaln(np.add.outer(sizes, sizes) + 1)
    alone = united.diagonal() - gammaln(2 * sizes + 1) + gammaln(sizes + 1)
    loss = np.add.outer(alone, alone) - united
    loss[np.tril_indices(sizes.size)] = np.inf
    first, second = np.unravel_index(np.argmin(loss), loss.shape)
    return int(first), int(second)


def _judged(
    court: Blocks, first: Floats, strength: float | None, stopping: Stopping, model: Mixture
) -> Candidate:
    prior = Prior.around(first, strength or FIRST_STRENGTH, court.weight)
    result = em(court, model, prior, stopping)
    sums = result.expected.sums
    alpha = strength or learn_strength(sums, first, court.weight)
    value = evidence(
        result.model, sums, result.log_likelihood, Prior.around(first, alpha, court.weight)
    )
    return Candidate(result.model, alpha, value)


def _least(found: Moments) -> float:
    return 0.5 / (found.weight + 1)
