"""init="best": starts of several kinds race by evidence, and the leaders split and merge."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

import numpy as np
from scipy import sparse

from comorb.model import features
from comorb.model.agglomeration import (
    agglomerate,
    merge_sums_to,
    overcomplete_start,
    short_run_em,
    whitened_third,
)
from comorb.model.arrays import Floats, Ints, Keys
from comorb.model.blocks import Blocks, Rows, from_csr, map_tasks, single_threaded
from comorb.model.decompose import asvtd, repair_mixture, rotated_diagonals, widest_gap_rotation
from comorb.model.em import EMResult, Expected, Stopping, em, maximise
from comorb.model.emissions.base import N_QUARTILES, Variable, half_record
from comorb.model.exact_sums import snap_to_grid
from comorb.model.features import statistics
from comorb.model.kernels import splitmix64
from comorb.model.mixture import EDGE, Mixture
from comorb.model.moments import moments
from comorb.model.prior import FIRST_STRENGTH, Prior, evidence, learn_strength
from comorb.model.subsample import column_keys, subsample, thin_rows


@dataclass(frozen=True)
class Config:
    """Settings of the race of starts: what it costs against what it finds.

    Successive halving (Jamieson and Talwalkar 2016) of short EM runs (Biernacki, Celeux and Govaert
    2003), with split and merge moves (SMEM, Ueda et al. 2000). None is fitted to a user's data.
    ``python -m benchmarks.settings start`` prints the evidence and the time at half and at twice
    each value; ``python -m benchmarks starts`` compares the whole with 20 random starts.
    """

    # rows of the first rung: a floor, and so many for each cluster, up to twice as many of both
    # where a record has fewer than ``full_record`` codes and so says less about its cluster
    min_rows: int = 5000
    rows_per_cluster: int = 420
    full_record: int = 10
    # rows of the later rungs and of the final, as multiples of those of the first
    later_rows: int = 3
    final_rows: int = 20
    # agglomeration begins at these multiples of k, and at no more than ``max_components``: joint
    # diagonalisation costs O(K³) a column
    agglomerate_from: tuple[float, ...] = (1.0, 2.0)
    max_components: int = 64
    # random starts: so many and one a cluster; up to ``max_draws`` where ``draw_work`` (ones × k ×
    # passes) allows; ``easy_draws`` where two decompositions converge to one optimum
    min_draws: int = 10
    max_draws: int = 30
    easy_draws: int = 5
    draw_work: float = 1.6e8
    # EM passes of a rung, and the fits that go on from the first and from each later rung
    short_passes: int = 20
    first_survivors: int = 8
    later_survivors: int = 4
    # split and merge: leaders that take part, one round and another for so many clusters, EM passes
    # in which the halves grow apart, and the standard deviation of the log-odds between them
    leaders: int = 3
    clusters_per_round: int = 8
    grow_passes: int = 10
    split_deviation: float = 0.5
    max_reseeds: int = 3
    # the final: the leaders at most, and how far behind the first in nats a record
    max_finalists: int = 3
    finalist_margin: float = 0.005
    final_passes: int = 40
    # two fits at one optimum: evidence in nats a record, and the largest difference of weights
    same_evidence: float = 5e-4
    same_weight: float = 0.01


CONFIG = Config()


def hash_uniforms(keys: Keys, round_number: int, count: int) -> Floats:
    """Return numbers in (0, 1), (count, d), in the place of random ones.

    A hash of each column's key, of the round and of the row: the same data give the same numbers.
    """
    seeds = np.arange(count, dtype=np.uint64) + (np.uint64(round_number) << np.uint64(32))
    with np.errstate(over="ignore"):  # modulo 2⁶⁴
        hashes = splitmix64(np.add.outer(splitmix64(seeds), keys).ravel())
    # 2⁻⁶⁶ keeps a hash of 0 above 0, as its logarithm is taken
    return (hashes / 2.0**64).reshape(count, -1) + 2.0**-66


def random_start(
    first: Floats,
    k: int,
    keys: Keys,
    round_number: int,
    least: float,
    variables: tuple[Variable, ...] = (),
) -> Mixture:
    """Return k clusters of even weight, each mean its prevalence times a Gamma(2, ½) number.

    That is half the sum of two exponential numbers: mean 1, standard deviation 0.7. The features
    are those of the whole population, shifted by the logarithm of such a number.
    """
    draws = hash_uniforms(keys, round_number, 2 * k)
    noise = -np.log(draws[:k] * draws[k:]) / 2
    means = np.clip(first * noise[:, : first.size], least, 1 - least)
    whole = np.tile(features.population_parameters(variables), (k, 1))
    parameters = _shift_features(variables, whole, np.log(noise[:, first.size :]))
    return Mixture(np.full(k, 1 / k), means, variables, parameters)


def split_clusters(model: Mixture, keys: Keys, round_number: int) -> Mixture:
    """Return twice as many clusters: each in two halves, apart by noise on the log-odds.

    Cluster j becomes j and j + k, with half its weight each; the noise is even, with standard
    deviation ``CONFIG.split_deviation``, and of opposite sign in the two halves.
    """
    noise = (
        CONFIG.split_deviation
        * 12**0.5
        * (hash_uniforms(keys, round_number, model.n_components) - 0.5)
    )
    inside = np.clip(model.means, EDGE, 1 - EDGE)
    odds = np.log(inside) - np.log1p(-inside)
    noise, own = noise[:, : model.n_columns], noise[:, model.n_columns :]
    apart = np.concatenate([odds + noise, odds - noise])
    means = np.clip(1 / (1 + np.exp(-apart)), EDGE, 1 - EDGE)
    moved = [_shift_features(model.variables, model.parameters, sign * own) for sign in (1.0, -1.0)]
    return Mixture(np.tile(model.weights / 2, 2), means, model.variables, np.concatenate(moved))


def _shift_features(variables: tuple[Variable, ...], parameters: Floats, noise: Floats) -> Floats:
    """Return the parameters of features moved by noise, (k, m) each."""
    return features.map_parameters(
        variables, lambda v, part, own: v.shift(part, noise[:, own]), parameters
    )


def reseed_empty_clusters(model: Mixture, empty: Ints, keys: Keys, round_number: int) -> Mixture:
    """Return the model with halves of its largest clusters in the places of empty ones."""
    large = np.argsort(-model.weights, kind="stable")[: min(empty.size, model.n_components // 2)]
    empty = empty[: large.size]
    halves = split_clusters(model, keys, round_number)
    weights = model.weights.copy()
    weights[large] = weights[empty] = model.weights[large] / 2
    means, parameters = model.means.copy(), model.parameters.copy()
    for own, half in ((means, halves.means), (parameters, halves.parameters)):
        own[large] = half[large]
        own[empty] = half[large + model.n_components]
    return Mixture(weights / weights.sum(), means, model.variables, parameters)


def join_models(one: Mixture, other: Mixture) -> Mixture:
    """Return the clusters of two models side by side, each with half its weight."""
    weights = np.concatenate([one.weights, other.weights])
    means = np.concatenate([one.means, other.means])
    parameters = np.concatenate([one.parameters, other.parameters])
    return Mixture(weights / 2, means, one.variables, parameters)


def max_clusters(blocks: Blocks) -> int:
    """Return the most clusters that the columns can identify: one a code, more a feature."""
    return blocks.n_columns + sum(
        variable.n_free + 1 if variable.feature.levels else N_QUARTILES
        for variable in blocks.variables
    )


def gather_rows(blocks: Blocks) -> Rows:
    """Return all rows, in memory, as one block."""
    parts = [load() for load in blocks.loaders]
    lengths = np.concatenate([np.diff(part.indptr) for part in parts])
    return Rows(
        np.concatenate([[0], np.cumsum(lengths)]),
        np.concatenate([part.indices for part in parts]),
        np.concatenate([part.weights for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def drop_features(blocks: Blocks) -> Blocks:
    """Return the rows without their features."""
    rows = gather_rows(blocks)
    weights = rows.weights if rows.weights.size else None
    return from_csr(rows.indptr, rows.indices, blocks.n_columns, weights)


def binarise(blocks: Blocks) -> Blocks:
    """Return the rows with 0/1 columns in the place of features: levels, quartiles of numbers."""
    rows = gather_rows(blocks)
    columns = [
        one
        for variable, values in zip(blocks.variables, rows.values.T, strict=True)
        for one in variable.binarise(values)
    ]
    added = sparse.csr_array(np.column_stack(columns))
    matrix = sparse.hstack([_csr_matrix(rows, blocks.n_columns), added], format="csr")
    matrix.sort_indices()
    weights = rows.weights if rows.weights.size else None
    return from_csr(matrix.indptr, matrix.indices, matrix.shape[1], weights)


def _csr_matrix(rows: Rows, d: int) -> sparse.csr_array:
    ones = np.ones(rows.indices.size)
    return sparse.csr_array((ones, rows.indices, rows.indptr), shape=(rows.indptr.size - 1, d))


def transfer_clusters(model: Mixture, view: Blocks, blocks: Blocks, prior: Prior | None) -> Mixture:
    """Return a model of all features from one of a view of them: an M-step by its posteriors."""
    rows, seen = gather_rows(blocks), gather_rows(view)
    posterior = snap_to_grid(rows.row_weights[:, None] * model.posterior(seen)[0], blocks.weight)
    parts = [_csr_matrix(rows, blocks.n_columns).T @ posterior]
    for variable, values in zip(blocks.variables, rows.values.T, strict=True):
        for statistic in statistics(variable, values).T:
            bound = max(float(np.abs(statistic).max(initial=0.0)), 1e-300) * blocks.weight
            parts.append(snap_to_grid(posterior * statistic[:, None], bound).sum(axis=0)[None])
    sums = np.concatenate([*parts, posterior.sum(axis=0)[None]])
    return maximise(Expected(sums, 0.0, 0.0, blocks.variables), prior)


@dataclass(frozen=True)
class Candidate:
    """A start for EM: the model, the strength of its prior, and its evidence."""

    model: Mixture
    strength: float
    evidence: float


@dataclass(frozen=True)
class CandidateRace:
    """One rung of successive halving: the rows on which fits are compared, and by what.

    By evidence under the prior of a ``strength``, by likelihood where that is 0. ``first`` is M1.
    """

    blocks: Blocks
    first: Floats
    strength: float

    @property
    def prior(self) -> Prior | None:
        """The prior of EM; None for plain maximum likelihood."""
        return self.around(self.strength) if self.strength else None

    def around(self, strength: float) -> Prior:
        """Return the prior of a strength."""
        return Prior.around(self.first, strength, self.blocks.weight, self.blocks.variables)

    def run(self, model: Mixture, passes: int) -> EMResult:
        """Return the fit after so many passes of EM at most."""
        return em(self.blocks, model, self.prior, Stopping(max_iter=passes))

    def continue_all(
        self, results: list[EMResult], passes: int, executor: Executor | None
    ) -> list[EMResult]:
        """Return the fits after more passes of EM, in parallel."""
        models = [result.model for result in results]
        return map_tasks(partial(self.run, passes=passes), models, executor)

    def score(self, result: EMResult) -> tuple[int, float]:
        """Return what fits are compared by: fewer empty clusters first, then more evidence."""
        value = result.log_likelihood
        if (prior := self.prior) is not None:
            value = evidence(result.model, result.expected.sums, value, prior)
        return -empty_clusters(result).size, value

    def rank(self, results: list[EMResult], count: int) -> list[EMResult]:
        """Return the best fits, the best first, without those at the optimum of a better one."""
        kept: list[tuple[float, Floats, EMResult]] = []
        margin = CONFIG.same_evidence * self.blocks.weight
        for result in sorted(results, key=self.score, reverse=True):
            value, shares = self.score(result)[1], np.sort(result.model.weights)
            if all(
                abs(value - v) > margin or np.abs(shares - s).max() > CONFIG.same_weight
                for v, s, _ in kept
            ):
                kept.append((value, shares, result))
        return [result for _, _, result in kept[:count]]

    def finalists(self, results: list[EMResult]) -> list[EMResult]:
        """Return those of a ranking that more rows could still put first."""
        empty, best = self.score(results[0])
        least = empty, best - CONFIG.finalist_margin * self.blocks.weight
        return [result for result in results if self.score(result) >= least]

    def split_and_merge(self, result: EMResult, doubled: Mixture) -> EMResult:
        """Return the better of a fit and one merged from twice as many clusters.

        EM lets the ``doubled`` clusters grow apart, the pairs whose union loses the least evidence
        are merged until there are k, and EM follows: all split and merge moves at once.
        """
        refitted = self.merge_to(doubled, result.model.n_components)
        return max(result, refitted, key=self.score)

    def merge_to(self, doubled: Mixture, k: int) -> EMResult:
        """Return a fit of k clusters merged from more, after these grew apart by EM."""
        grown = self.run(doubled, CONFIG.grow_passes)
        around = self.around(self.strength or FIRST_STRENGTH)
        sums = merge_sums_to(grown.expected.sums, k, around)
        merged = Expected(sums, 0.0, 0.0, self.blocks.variables)
        return self.run(maximise(merged, self.prior), CONFIG.short_passes)

    def reseed_empty(self, result: EMResult, keys: Keys) -> EMResult:
        """Return the fit with halves of large clusters in the place of empty ones, after EM."""
        for round_number in range(CONFIG.max_reseeds):
            empty = empty_clusters(result)
            if not empty.size:
                break
            model = reseed_empty_clusters(result.model, empty, keys, round_number)
            result = max(result, self.run(model, CONFIG.short_passes), key=self.score)
        return result

    def with_learned_strength(self, result: EMResult) -> CandidateRace:
        """Return this race with the prior strength that a fit makes most probable."""
        sums, rows = result.expected.sums, self.blocks
        alpha = learn_strength(sums, self.first, rows.weight, rows.variables)
        return replace(self, strength=alpha)


def empty_clusters(result: EMResult) -> Ints:
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
    """Return the start with the most evidence among many that depend on the data alone.

    Candidates are the paper's own start, agglomerations from k and from 2k clusters, and random
    starts by a hash of the data. All run some passes of EM on a weighted subsample. The best go on
    with more rows, and the best of those split and merge clusters; the finalists are compared on
    the most rows. ``first`` is M1, ``strength`` the prior's: None learns it, 0 is no prior, when
    fits are compared by likelihood. O(rows · k) a pass of each candidate.
    """
    codes = first.sum() + len(blocks.variables)
    scale = np.clip(CONFIG.full_record / max(codes, 1), 1, 2)
    rows = int(max(CONFIG.min_rows, CONFIG.rows_per_cluster * k) * scale)
    # nested subsamples: the largest is drawn once, and the others from it, in memory
    final_rows = subsample(blocks, first, CONFIG.final_rows * rows, executor)
    later_rows = thin_rows(final_rows, first, CONFIG.later_rows * rows, executor)
    first_rows = thin_rows(later_rows, first, rows, executor)
    keys = np.concatenate([column_keys(first_rows, first), features.keys(blocks.variables)])
    race = CandidateRace(first_rows, first, FIRST_STRENGTH if strength is None else strength)
    results = run_first_rung(race, k, keys, executor)
    if strength is None:
        race = race.with_learned_strength(race.rank(results, 1)[0])
    results = race.rank(results, CONFIG.first_survivors)
    race = replace(race, blocks=later_rows)
    for _ in range(2):
        results = race.continue_all(results, CONFIG.short_passes, executor)
        results = race.rank(results, CONFIG.later_survivors)
    for round_number in range(1 + k // CONFIG.clusters_per_round):
        results = split_merge_round(race, results, keys, round_number, executor)
    if any(empty_clusters(result).size for result in results):
        results = map_tasks(partial(race.reseed_empty, keys=keys), results, executor)
    finalists = race.finalists(race.rank(results, CONFIG.max_finalists))
    race = replace(race, blocks=final_rows)
    best = race.rank(race.continue_all(finalists, CONFIG.final_passes, executor), 1)[0]
    if strength is None:
        race = race.with_learned_strength(best)
    return Candidate(best.model, race.strength, race.score(best)[1])


def paper_start(blocks: Blocks, k: int, first: Floats, executor: Executor | None) -> Mixture:
    """Return the start of Algorithm 2.

    Features are 0/1 columns there, on a subsample in memory.
    """
    if not blocks.variables:
        return asvtd(blocks, k, executor)
    part = subsample(blocks, first, CONFIG.final_rows * CONFIG.min_rows, executor)
    view = binarise(part)
    prior = CandidateRace(part, first, FIRST_STRENGTH).prior
    return transfer_clusters(asvtd(view, k, executor), view, part, prior)


def run_first_rung(
    race: CandidateRace, k: int, keys: Keys, executor: Executor | None
) -> list[EMResult]:
    """Return all candidates after the EM of the first rung.

    Where two decompositions converge to one optimum, clusters are far apart and few random starts
    are needed.
    """
    short_run = partial(race.run, passes=CONFIG.short_passes)
    found = map_tasks(short_run, decomposition_starts(race, k, executor), executor)
    converged = [result for result in found if result.converged]
    agree = len(converged) > len(race.rank(converged, len(converged)))
    draws = draw_starts(race.blocks, k, race.first, keys)
    return [*found, *map_tasks(short_run, draws[: CONFIG.easy_draws] if agree else draws, executor)]


def split_merge_round(
    race: CandidateRace,
    results: list[EMResult],
    keys: Keys,
    round_number: int,
    executor: Executor | None,
) -> list[EMResult]:
    """Return the fits after the leaders split and merge clusters, the best first.

    In even rounds each leader's clusters are split in two, in odd ones they are joined with those
    of another leader.
    """
    leaders = results[: CONFIG.leaders]
    if round_number % 2 and len(leaders) > 1:
        partners = [*leaders[1:], leaders[0]]
        doubled = [join_models(a.model, b.model) for a, b in zip(leaders, partners, strict=True)]
    else:
        doubled = [split_clusters(result.model, keys, round_number) for result in leaders]
    places = range(len(leaders))
    better = map_tasks(lambda at: race.split_and_merge(leaders[at], doubled[at]), places, executor)
    return race.rank([*better, *results[CONFIG.leaders :]], CONFIG.later_survivors)


def decomposition_starts(race: CandidateRace, k: int, executor: Executor | None) -> list[Mixture]:
    """Return the starts by decomposition: of the codes, and with features as 0/1 columns."""
    blocks = race.blocks
    if not blocks.variables:
        return starts_from_moments(blocks, k, executor) or [asvtd(blocks, k, executor)]
    views = [binarise(blocks)]
    if blocks.n_columns >= k:
        views.append(drop_features(blocks))
    around = race.around(race.strength or FIRST_STRENGTH)
    return [
        transfer_clusters(model, view, blocks, around)
        for view in views
        for model in starts_from_moments(view, k, executor)
    ]


def starts_from_moments(blocks: Blocks, k: int, executor: Executor | None) -> list[Mixture]:
    """Return the paper's start, and the agglomerations from k and from 2k clusters.

    All come from the same moments. There is none where those have a rank below k.
    """
    found = moments(blocks, executor)
    most = min(blocks.n_columns, blocks.n_rows, max(k, CONFIG.max_components))
    counts = sorted({min(ceil(k * excess), most) for excess in CONFIG.agglomerate_from})
    third = whitened_third(blocks, found, counts[-1], executor)
    if third.shape[1] < k:
        return []
    own = third[:, :k, :k]
    prior = Prior.around(found.first, FIRST_STRENGTH, blocks.weight)

    def agglomerated(count: int) -> Mixture:
        stage = short_run_em(blocks, overcomplete_start(third, found, count), prior, None)
        for below in agglomerate(blocks, stage, k, prior, None):
            stage = below
        return stage.model

    paper = repair_mixture(
        rotated_diagonals(own, widest_gap_rotation(own)), found.first, half_record(found.weight)
    )
    return [paper, *map_tasks(agglomerated, counts, executor)]


def draw_starts(blocks: Blocks, k: int, first: Floats, keys: Keys) -> list[Mixture]:
    """Return random starts by hash, more of them where rows are few and EM is fast."""
    ones = max(float(first.sum()) + len(blocks.variables), 1.0) * blocks.n_rows
    fewest, most = CONFIG.min_draws + k, CONFIG.max_draws
    affordable = int(CONFIG.draw_work / (ones * k * 2 * CONFIG.short_passes))
    count = max(fewest, min(most, affordable))
    least = half_record(blocks.weight)
    return [
        random_start(first, k, keys, round_number, least, blocks.variables)
        for round_number in range(count)
    ]
