"""A sweep over numbers of clusters: a fit of each, and fits of parts to hold it against."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from comorb.model.agglomeration import (
    agglomerate,
    breadth,
    cheapest_merge,
    merge_clusters,
    merge_losses,
    overcomplete_start,
    short_run_em,
    whitened_third,
)
from comorb.model.arrays import Floats, Ints
from comorb.model.blocks import (
    Blocks,
    Rows,
    from_csr,
    map_blocks,
    map_reduce,
    map_tasks,
    move_columns,
    take_rows,
)
from comorb.model.diagnostics import adjusted_rand, overlap
from comorb.model.em import Expected, Stopping, em, expect
from comorb.model.features import PreparedFeatures
from comorb.model.features import keys as feature_keys
from comorb.model.length import LengthModel, fit_given_length, longest_record, start_given_length
from comorb.model.mixture import Mixture
from comorb.model.moments import moments, prevalence
from comorb.model.prior import FIRST_STRENGTH, Prior, evidence, learn_strength
from comorb.model.start import (
    CandidateRace,
    binarise,
    gather_rows,
    split_clusters,
    transfer_clusters,
)
from comorb.model.subsample import Records, column_keys, distinct_rows, subsample, unit_records


@dataclass(frozen=True)
class Config:
    """Settings of a sweep: on how much the choice of k is based.

    ``python -m benchmarks.settings sweep`` prints the numbers found at other values.
    """

    # rows of a sweep: a floor, and so many for each cluster of its range
    min_rows: int = 8192
    rows_per_cluster: int = 1500
    # EM at each level, and from a level that is settled
    level_tolerance: float = 1e-5
    level_passes: int = 40
    settle_passes: int = 100
    # of more columns the most common decide: the second moments of 1,536 are 18 MB for each of the
    # four agglomerations; where ties leave fewer than ``min_columns``, ties are cut
    max_columns: int = 1536
    min_columns: int = 256


CONFIG = Config()


@dataclass(frozen=True)
class Level:
    """A model with some number of clusters, after EM, and its evidence.

    ``assigned`` is the weight of the rows that are most probably in each cluster, ``strength`` that
    of the prior which the model makes most probable.
    """

    model: Mixture
    expected: Expected
    assigned: Floats
    evidence: float
    strength: float

    @property
    def empty(self) -> Ints:
        """The places of the clusters that hold nothing."""
        return empty_clusters(self.expected.sums[-1], self.assigned)

    @property
    def score(self) -> tuple[int, float]:
        """What the level is worth: first that few clusters are empty, then the evidence."""
        return -self.empty.size, self.evidence


def empty_clusters(sizes: Floats, assigned: Floats) -> Ints:
    """Return the places of the clusters that are empty.

    Those hold less than one record, or no record is most probably in them, ``assigned``: such a
    cluster is a copy of another, or noise, and nobody would see it.
    """
    return np.flatnonzero(np.minimum(sizes, assigned) < 1)


def fit_level(blocks: Blocks, model: Mixture, first: Floats, passes: int | None = None) -> Level:
    """Return a level: the model after EM, and its evidence at the strength learned from it."""
    weight, variables = blocks.weight, blocks.variables
    prior = Prior.around(first, FIRST_STRENGTH, weight, variables)
    stopping = Stopping(tol=CONFIG.level_tolerance, max_iter=passes or CONFIG.level_passes)
    result = em(blocks, model, prior, stopping)
    sums = result.expected.sums
    strength = learn_strength(sums, first, weight, variables)
    learned = Prior.around(first, strength, weight, variables)
    value = evidence(result.model, sums, result.log_likelihood, learned)
    labels, weights = hard_labels(result.model, blocks), gather_rows(blocks).row_weights
    assigned = np.bincount(labels, weights, sums.shape[1]).astype(np.float64)
    return Level(result.model, result.expected, assigned, value, strength)


def better_refit(blocks: Blocks, own: Level, whole: Mixture) -> Level:
    """Return the fit of a part: the better, by its evidence, of its own and the whole's after EM.

    One with fewer empty clusters is better than one with more. What then differs from the whole
    is what the part's records speak for, and not where two starts happened to end.
    """
    started = fit_level(blocks, whole, prevalence(blocks))
    return max(own, started, key=lambda level: level.score)


def reliability(
    model: Mixture, refits: Sequence[Mixture], blocks: Blocks, executor: Executor | None = None
) -> Floats:
    """Return how well each cluster comes out again, (k,).

    That is its mean overlap (Jaccard), over all records, with its match in fits of parts of them
    (``better_refit``). One pass.
    """
    return mean_overlap(compare_labels(model, refits, blocks, executor))


def mean_overlap(tables: Floats) -> Floats:
    """Return the mean overlap of each cluster with its match in several fits, (k,)."""
    return np.asarray(np.mean([overlap(table) for table in tables], axis=0))


def compare_labels(
    model: Mixture, refits: Sequence[Mixture], blocks: Blocks, executor: Executor | None = None
) -> Floats:
    """Return the weight of the rows in each cluster of a model and of each fit of a part."""
    return map_reduce(partial(_cross_tables, model, tuple(refits)), blocks, executor)


def _cross_tables(model: Mixture, others: tuple[Mixture, ...], rows: Rows) -> Floats:
    k = model.n_components
    own = _hard_labels(model, rows)
    tables = np.zeros((len(others), k, k))
    for table, other in zip(tables, others, strict=True):
        np.add.at(table, (own, _hard_labels(other, rows)), rows.row_weights)
    return tables


def hard_labels(
    model: Mixture | LengthModel, blocks: Blocks, executor: Executor | None = None
) -> Ints:
    """Return the most probable cluster of each row, (n,)."""
    return np.concatenate(list(map_blocks(partial(_hard_labels, model), blocks, executor)))


def _hard_labels(model: Mixture | LengthModel, rows: Rows) -> Ints:
    return np.asarray(model.posterior(rows)[0].argmax(axis=1))


@dataclass(frozen=True)
class Split:
    """Two clusters of a level that are one a level below: their places, and what holds them apart.

    ``breadth`` is how many codes do (``agglomeration.breadth``), ``smaller`` the share of all
    records in the smaller one.
    """

    pair: tuple[int, int]
    breadth: float
    smaller: float


@dataclass(frozen=True)
class Agglomeration:
    """A model for every number of clusters, and how those of each come from one fewer."""

    levels: dict[int, Level]
    splits: dict[int, Split]


def agglomerate_to_one(blocks: Blocks, most: int) -> Agglomeration:
    """Return a model for every number of clusters from ``most`` down to 1.

    From twice as many, by joint diagonalisation; below ``most`` each level is fitted by EM
    before the next pair is merged. Empty clusters go first: their union with another loses no
    evidence, but that of two others may gain some.
    """
    view = binarise(blocks) if blocks.variables else blocks
    found = moments(view)
    first = found.first[: blocks.n_columns]
    count = min(2 * most, view.n_columns, view.n_rows)
    slices = whitened_third(view, found, count, None)
    prior = Prior.around(first, FIRST_STRENGTH, blocks.weight, blocks.variables)
    model = overcomplete_start(slices, found, count)
    if blocks.variables:
        model = transfer_clusters(model, view, blocks, prior)
    stage = short_run_em(blocks, model, prior, None)
    *_, stage = agglomerate(blocks, stage, min(most, stage.model.n_components), prior, None)
    level = fit_level(blocks, stage.model, first)
    levels, splits = {level.model.n_components: level}, {}
    while (k := level.model.n_components) > 1:
        sums = level.expected.sums
        pair = cheapest_merge(sums, prior, level.empty.tolist())
        learned = Prior.around(first, level.strength, blocks.weight, blocks.variables)
        share = float(sums[-1][list(pair)].min() / sums[-1].sum())
        splits[k] = Split(pair, breadth(merge_losses(sums, pair, learned)), share)
        level = fit_level(blocks, merge_clusters(level.expected, pair, prior), first)
        levels[k - 1] = level
    return Agglomeration(levels, splits)


def settle(blocks: Blocks, level: Level) -> Level:
    """Return a level settled as well as a fit of its number of clusters.

    The better of the level and of one after a split and merge of all its clusters (SMEM), after EM.
    """
    first = prevalence(blocks)
    settled = fit_level(blocks, level.model, first, CONFIG.settle_passes)
    if level.model.n_components > 1:
        keys = np.concatenate([column_keys(blocks, first), feature_keys(blocks.variables)])
        race = CandidateRace(blocks, first, FIRST_STRENGTH)
        doubled = split_clusters(settled.model, keys, 0)
        model = race.merge_to(doubled, level.model.n_components).model
        settled = max(settled, fit_level(blocks, model, first), key=lambda one: one.score)
    return max(level, settled, key=lambda one: one.score)


def agglomerate_given_length(blocks: Blocks, top: Level) -> dict[int, LengthModel]:
    """Return clusters given the number of codes, for every number from that of ``top`` down to 1.

    Each starts from the one above with its cheapest pair merged: two clusters of which one has the
    longer records are alike once length is given.
    """
    first, weight, variables = prevalence(blocks), blocks.weight, blocks.variables
    prior = Prior.around(first, top.strength, weight, variables)
    found = start_given_length(top.model, blocks, longest_record(blocks))
    found, expected = fit_given_length(found, blocks, prior, first)
    levels = {found.model.n_components: found}
    while (k := found.model.n_components) > 1:
        empty = np.flatnonzero(expected.sums[-1] < 1).tolist()
        merged = found.merge(*cheapest_merge(expected.sums, prior, empty))
        found, expected = fit_given_length(merged, blocks, prior, first)
        levels[k - 1] = found
    return levels


@dataclass(frozen=True)
class Sweep:
    """Fits of the rows with each number of clusters, and of them without each third in turn.

    ``whole`` are settled, ``tree`` is the agglomeration that they come from, ``parts`` are fits
    of the rows without a third, and ``given_length`` those given the number of codes. ``scale`` is
    how many records each of the rows' weight stands for.
    """

    rows: Blocks
    scale: float
    whole: dict[int, Level]
    tree: Agglomeration
    parts: tuple[dict[int, Level], ...]
    given_length: tuple[dict[int, LengthModel], ...]
    thirds: tuple[Blocks, ...]
    columns: Ints  # those of all that are looked at
    first: Floats  # the prevalence of all

    def refits(self, k: int) -> tuple[Mixture, ...]:
        """Return the models of the parts with k clusters, or as many as they have."""
        return tuple(part[min(k, max(part))].model for part in self.parts)

    def widen(self, model: Mixture) -> Mixture:
        """Return a model over all columns: one that is not looked at is alike in all clusters."""
        if self.columns.size == self.first.size:
            return model
        means = np.tile(self.first, (model.n_components, 1))
        means[:, self.columns] = model.means
        return replace(model, means=means)

    def held_out(self, k: int) -> tuple[float, float]:
        """Return the mean log-likelihood of records left out: plain, and given their length."""
        weight = sum(third.weight for third in self.thirds)
        plain = [expect(m, third) for m, third in zip(self.refits(k), self.thirds, strict=True)]
        given = [
            part[min(k, max(part))].expect(third)
            for part, third in zip(self.given_length, self.thirds, strict=True)
        ]
        sums = [sum(one.log_likelihood for one in some) / weight for some in (plain, given)]
        return sums[0], sums[1]

    def stability(self, k: int) -> float:
        """Return the mean agreement (ARI) of two fits of parts on the third that both have."""
        models = self.refits(k)
        agreements = [
            adjusted_rand(
                hard_labels(models[one], third),
                hard_labels(models[other], third),
                gather_rows(third).row_weights,
            )
            for third, (one, other) in zip(self.thirds, ((1, 2), (0, 2), (0, 1)), strict=True)
        ]
        return float(np.mean(agreements))


def run_sweep(blocks: Blocks, first: Floats, most: int, executor: Executor | None) -> Sweep:
    """Return the fits of every number of clusters up to ``most``, on a part of many rows.

    Identical rows are one row with their weight, whose records are dealt to the thirds by a hash
    (``unit_records``): neither the order of the rows nor how often one is written changes anything.
    """
    small, count = _sample_rows(
        blocks, first, max(CONFIG.min_rows, CONFIG.rows_per_cluster * most), executor
    )
    columns = _common_columns(first)
    if columns.size < first.size:
        small = distinct_rows(_take_columns(small, columns), first[columns], executor)
    drawn = _thirds(unit_records(small, first[columns], count, executor), small.n_rows)
    thirds = tuple(_reweight(small, own) for own in drawn)
    kept = tuple(_reweight(small, drawn.sum(axis=0) - own) for own in drawn)
    tree, *own = map_tasks(partial(agglomerate_to_one, most=most), [small, *kept], executor)
    numbers = sorted(tree.levels)
    settled = map_tasks(lambda k: settle(small, tree.levels[k]), numbers, executor)
    whole = dict(zip(numbers, settled, strict=True))
    places = range(3)
    parts = map_tasks(lambda at: _better_levels(kept[at], own[at].levels, whole), places, executor)
    tops = [part[max(part)] for part in parts]
    lengths = map_tasks(lambda at: agglomerate_given_length(kept[at], tops[at]), places, executor)
    return Sweep(
        small,
        blocks.weight / small.weight,
        whole,
        tree,
        tuple(parts),
        tuple(lengths),
        thirds,
        columns,
        first,
    )


def _better_levels(
    blocks: Blocks, own: dict[int, Level], whole: dict[int, Level]
) -> dict[int, Level]:
    """Return the levels of a part, each the better of its own and the whole's."""
    return {
        k: better_refit(blocks, level, whole[k].model) if k in whole else level
        for k, level in own.items()
    }


def _common_columns(first: Floats) -> Ints:
    """Return the columns to look at: all, or the most common ones, those alike in that together."""
    if first.size <= CONFIG.max_columns:
        return np.arange(first.size)
    found = np.flatnonzero(first > np.sort(first)[-CONFIG.max_columns - 1])
    return found if found.size >= CONFIG.min_columns else np.arange(CONFIG.max_columns)


def _take_columns(blocks: Blocks, columns: Ints) -> Blocks:
    """Return rows in memory with some of their columns."""
    place = np.full(blocks.n_columns, -1, dtype=np.int32)
    place[columns] = np.arange(columns.size)
    rows = gather_rows(blocks)
    indptr, indices = move_columns(rows.indptr, rows.indices, place)
    seen = PreparedFeatures(blocks.variables, rows.values)
    return from_csr(indptr, indices, columns.size, rows.weights, features=seen)


def _thirds(records: Records, n_rows: int) -> Floats:
    """Return what each row weighs in each third of the records, (3, n_rows).

    A third is drawn by chance; by the order of the chances where one would be empty.
    """
    third = np.floor(records.uniforms * 3)
    if not np.bincount(third.astype(np.int64), minlength=3).min():
        third = np.argsort(np.argsort(records.uniforms, kind="stable")) % 3
    return np.array([records.part(third == place, n_rows) for place in range(3)])


def _reweight(blocks: Blocks, weights: Floats) -> Blocks:
    """Return the rows with other weights, without those that then weigh nothing."""
    places = np.flatnonzero(weights > 0)
    return take_rows(blocks, places, None, weights[places])


def _sample_rows(
    blocks: Blocks, first: Floats, rows: int, executor: Executor | None
) -> tuple[Blocks, float]:
    """Return a part of the rows, and how many records it has, which it weighs at most.

    Were each row to weigh as many as it stands for, what is chance in the part would pass for
    evidence.
    """
    small = subsample(blocks, first, rows, executor)
    if blocks.records < 2 * rows:
        return small, blocks.records
    weights = gather_rows(small).weights * (rows / blocks.weight)
    part = take_rows(small, np.arange(small.n_rows), None, weights)
    return part, part.weight
