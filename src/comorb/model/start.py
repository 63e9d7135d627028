"""init="best": starts of several kinds race by evidence, and the leaders split and merge."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

import numpy as np

from comorb.model import traits
from comorb.model.arrays import Floats, Ints, Keys
from comorb.model.blocks import Blocks, map_tasks
from comorb.model.decompose import asvtd, diagonals, repaired, widest_gap
from comorb.model.descent import (
    FIRST_STRENGTH,
    least_mean,
    merged_down,
    overcomplete,
    settle,
    way_down,
    whitened_slices,
)
from comorb.model.draws import halved, joined, refilled, scattered
from comorb.model.em import EMResult, Expected, Stopping, em, maximise
from comorb.model.mixture import Mixture
from comorb.model.moments import moments
from comorb.model.prior import Prior, evidence, learn_strength
from comorb.model.thinning import column_keys, distinct, thinned
from comorb.model.threads import single_threaded
from comorb.model.views import binarised, carried, codes_alone

EXCESS = (1.0, 2.0)  # of the clusters asked for: where the ways down begin
MOST = 64  # where they begin at most: joint diagonalisation costs its cube
ROWS = 5000  # of the first heat; those after it see three, the last twenty times as many
ROWS_A_CLUSTER = 420
CODES = 10  # a record: of records with fewer, more are needed
LATER, JURY = 3, 20
DRAWN = (10, 30)  # starts drawn by hash: so many and one a cluster, more where rows are few
FEW = 5  # of them, where decompositions agree
WORK = 1.6e8  # ones times clusters times passes that are spent on them with few rows
HEAT = Stopping(tol=1e-6, max_iter=20)  # after 8 passes the evidence doesn't tell who will win
KEPT = (8, 4)  # after the first heat, and after the later ones
MOVERS = 3  # leaders that split and merge, in one round and another for so many clusters:
CLUSTERS_A_ROUND = 8
GROW = Stopping(tol=1e-6, max_iter=10)
FILLS = 3  # times that halves of large clusters take the places of empty ones, at most
FINALISTS, NEAR = 3, 0.005  # leaders at most, and nats a record behind the first
FINAL = Stopping(tol=1e-6, max_iter=40)
SAME_VALUE, SAME_SHARE = 5e-4, 0.01  # nats a record, and of all: two fits on the way to one end


@dataclass(frozen=True)
class Candidate:
    """A start for EM: the model, the strength of its prior, and its evidence."""

    model: Mixture
    strength: float
    evidence: float


@dataclass(frozen=True)
class Court:
    """The rows on which starts are judged, and by what: evidence, or likelihood at strength 0."""

    blocks: Blocks
    first: Floats
    strength: float

    @property
    def prior(self) -> Prior | None:
        """The prior of EM; None for plain maximum likelihood."""
        if self.strength == 0:
            return None
        return self.around(self.strength)

    def around(self, strength: float) -> Prior:
        """Return the prior of a strength."""
        return Prior.around(self.first, strength, self.blocks.weight, self.blocks.variables)

    def run(self, model: Mixture, stopping: Stopping) -> EMResult:
        """Take EM steps."""
        return em(self.blocks, model, self.prior, stopping)

    def further(
        self, results: list[EMResult], stopping: Stopping, executor: Executor | None
    ) -> list[EMResult]:
        """Take EM steps from where other fits arrived, side by side."""
        models = [result.model for result in results]
        return map_tasks(partial(self.run, stopping=stopping), models, executor)

    def value(self, result: EMResult) -> tuple[int, float]:
        """Return what a fit is worth: first that few clusters are empty, then the evidence."""
        value = result.log_likelihood
        if (prior := self.prior) is not None:
            value = evidence(result.model, result.expected.sums, value, prior)
        return -empty_places(result).size, value

    def ranked(self, results: list[EMResult], count: int) -> list[EMResult]:
        """Return the best few that differ, the best first."""
        kept: list[tuple[float, Floats, EMResult]] = []
        near = SAME_VALUE * self.blocks.weight
        for result in sorted(results, key=self.value, reverse=True):
            value, shares = self.value(result)[1], np.sort(result.model.weights)
            if all(
                abs(value - v) > near or np.abs(shares - s).max() > SAME_SHARE for v, s, _ in kept
            ):
                kept.append((value, shares, result))
        return [result for _, _, result in kept[:count]]

    def near(self, results: list[EMResult]) -> list[EMResult]:
        """Return those of a ranking that more rows could still put first."""
        empty, best = self.value(results[0])
        least = empty, best - NEAR * self.blocks.weight
        return [result for result in results if self.value(result) >= least]

    def reshaped(self, result: EMResult, doubled: Mixture) -> EMResult:
        """Return the better of a fit and one merged down from twice as many clusters.

        EM lets the clusters grow apart, and the pairs whose union loses the least evidence are
        merged until there are as many as before. EM follows.
        """
        grown = self.run(doubled, GROW)
        around = self.around(self.strength or FIRST_STRENGTH)
        sums = merged_down(grown.expected.sums, result.model.n_components, around)
        merged = Expected(sums, 0.0, 0.0, self.blocks.variables)
        moved = self.run(maximise(merged, self.prior), HEAT)
        return max(result, moved, key=self.value)

    def filled(self, result: EMResult, keys: Keys) -> EMResult:
        """Return the fit with its empty clusters made of halves of large ones. EM follows."""
        for turn in range(FILLS):
            empty = empty_places(result)
            if not empty.size:
                break
            model = refilled(result.model, empty, keys, turn)
            result = max(result, self.run(model, HEAT), key=self.value)
        return result

    def learned(self, result: EMResult) -> Court:
        """Return this court with the strength that a fit makes most probable."""
        sums, rows = result.expected.sums, self.blocks
        alpha = learn_strength(sums, self.first, rows.weight, rows.variables)
        return replace(self, strength=alpha)


def empty_places(result: EMResult) -> Ints:
    """Return the places of the clusters that hold less than one record."""
    return np.flatnonzero(result.expected.sums[-1] < 1)


@single_threaded
def best_start(
    blocks: Blocks,
    k: int,
    first: Floats,
    strength: float | None = None,
    executor: Executor | None = None,
) -> Candidate:
    """Return the start with the most evidence among many that no random number touches.

    The paper's own start, ways down from k and 2k clusters, and starts drawn by a hash of the
    data (``draws``) run some EM steps on a part of the rows (``thinning``). The leaders go on
    with twice as many rows, the best of them split and merge clusters, and the finalists are
    judged on ``JURY`` times as many. A start with an empty cluster loses to any without.
    ``first`` is M1, ``strength`` the prior's: None to learn it, 0 for none, when the likelihood
    is the judge.
    """
    codes = first.sum() + len(blocks.variables)
    rows = int(max(ROWS, ROWS_A_CLUSTER * k) * np.clip(CODES / max(codes, 1), 1, 2))
    jury = distinct(thinned(blocks, first, JURY * rows, executor), first, executor)
    middle = thinned(jury, first, LATER * rows, executor)
    small = thinned(middle, first, rows, executor)
    keys = np.concatenate([column_keys(small, first), traits.keys(blocks.variables)])
    court = Court(small, first, FIRST_STRENGTH if strength is None else strength)
    results = qualified(court, k, keys, executor)
    if strength is None:
        court = court.learned(court.ranked(results, 1)[0])
    results = court.ranked(results, KEPT[0])
    court = replace(court, blocks=middle)
    for _ in range(2):
        results = court.ranked(court.further(results, HEAT, executor), KEPT[1])
    for turn in range(1 + k // CLUSTERS_A_ROUND):
        results = moved(court, results, keys, turn, executor)
    if any(empty_places(result).size for result in results):
        results = map_tasks(partial(court.filled, keys=keys), results, executor)
    finalists = court.near(court.ranked(results, FINALISTS))
    court = replace(court, blocks=jury)
    best = court.ranked(court.further(finalists, FINAL, executor), 1)[0]
    if strength is None:
        court = court.learned(best)
    return Candidate(best.model, court.strength, court.value(best)[1])


def paper_start(blocks: Blocks, k: int, first: Floats, executor: Executor | None) -> Mixture:
    """Return Algorithm 2's start; with features that of zeros and ones in their place.

    The latter on a part of the rows, in memory.
    """
    if not blocks.variables:
        return asvtd(blocks, k, executor)
    part = distinct(thinned(blocks, first, JURY * ROWS, executor), first, executor)
    view = binarised(part)
    return carried(asvtd(view, k, executor), view, part, Court(part, first, 1.0).prior)


def qualified(court: Court, k: int, keys: Keys, executor: Executor | None) -> list[EMResult]:
    """Return the starts after the first heat.

    Where two decompositions arrive at one end, clusters lie far apart and a few draws will do.
    """
    heat = partial(court.run, stopping=HEAT)
    found = map_tasks(heat, placed(court, k, executor), executor)
    arrived = [result for result in found if result.converged]
    agreed = len(arrived) > len(court.ranked(arrived, len(arrived)))
    draws = drawn(court.blocks, k, court.first, keys)
    return [*found, *map_tasks(heat, draws[:FEW] if agreed else draws, executor)]


def moved(
    court: Court, results: list[EMResult], keys: Keys, turn: int, executor: Executor | None
) -> list[EMResult]:
    """Return the leaders after a round of splits and merges, the best first.

    In one round each leader's clusters are halved and merged down again: all split-and-merge
    moves at once. In the next they are joined with those of another leader and merged down.
    """
    movers = results[:MOVERS]
    if turn % 2 and len(movers) > 1:
        partners = [*movers[1:], movers[0]]
        doubled = [joined(a.model, b.model) for a, b in zip(movers, partners, strict=True)]
    else:
        doubled = [halved(result.model, keys, turn) for result in movers]
    places = range(len(movers))
    better = map_tasks(lambda at: court.reshaped(movers[at], doubled[at]), places, executor)
    return court.ranked([*better, *results[MOVERS:]], KEPT[1])


def placed(court: Court, k: int, executor: Executor | None) -> list[Mixture]:
    """Return the starts by decomposition: of the codes, and of features as zeros and ones too."""
    blocks = court.blocks
    if not blocks.variables:
        return decomposed(blocks, k, executor) or [asvtd(blocks, k, executor)]
    views = [binarised(blocks)]
    if blocks.n_columns >= k:
        views.append(codes_alone(blocks))
    around = court.around(court.strength or FIRST_STRENGTH)
    return [
        carried(model, view, blocks, around)
        for view in views
        for model in decomposed(view, k, executor)
    ]


def decomposed(blocks: Blocks, k: int, executor: Executor | None) -> list[Mixture]:
    """Return the paper's start, and the ends of the ways down from k and 2k clusters.

    All come from the same moments. With less rank than clusters there is none.
    """
    found = moments(blocks, executor)
    most = min(blocks.n_columns, blocks.n_rows, max(k, MOST))
    counts = sorted({min(ceil(k * excess), most) for excess in EXCESS})
    slices = whitened_slices(blocks, found, counts[-1], executor)
    if slices.shape[1] < k:
        return []
    own = slices[:, :k, :k]
    prior = Prior.around(found.first, FIRST_STRENGTH, blocks.weight)

    def descended(count: int) -> Mixture:
        stage = settle(blocks, overcomplete(slices, found, count), prior, None)
        for below in way_down(blocks, stage, k, prior, None):
            stage = below
        return stage.model

    paper = repaired(diagonals(own, widest_gap(own)), found.first, least_mean(found))
    return [paper, *map_tasks(descended, counts, executor)]


def drawn(blocks: Blocks, k: int, first: Floats, keys: Keys) -> list[Mixture]:
    """Return starts drawn by hash, more of them where the rows are few."""
    ones = max(float(first.sum()) + len(blocks.variables), 1.0) * blocks.n_rows
    fewest, most = DRAWN[0] + k, DRAWN[1]
    count = max(fewest, min(most, int(WORK / (ones * k * 2 * HEAT.max_iter))))
    least = 0.5 / (blocks.weight + 1)
    return [scattered(first, k, keys, turn, least, blocks.variables) for turn in range(count)]
