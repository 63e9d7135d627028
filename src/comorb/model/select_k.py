"""How many clusters: what each number is worth, which one is recommended, and why."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from comorb.errors import InputError
from comorb.messages import Message
from comorb.model.agglomeration import (
    agglomerate,
    cheapest_merge,
    merge_clusters,
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
    single_threaded,
    take_rows,
)
from comorb.model.diagnostics import adjusted_rand, jaccard, overlap
from comorb.model.em import Expected, Stopping, em, expect
from comorb.model.features import PreparedFeatures
from comorb.model.mixture import Mixture
from comorb.model.moments import moments, prevalence
from comorb.model.prior import FIRST_STRENGTH, Prior, evidence, learn_strength
from comorb.model.start import binarise, gather_rows, max_clusters, transfer_clusters
from comorb.model.subsample import Records, distinct_rows, subsample, unit_records
from comorb.model.tabular import Tabular

# Nats a record: EM stops at this gain, so two fits of one optimum differ by about as much.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Config:
    """Settings of the choice of k: what is recommended, and on how much it is based.

    ``python -m benchmarks.settings select_k`` prints the numbers recommended at other values, on
    data whose number is known and on discharges; ``python -m benchmarks numbers`` how often they
    are right.
    """

    # the least mean overlap (Jaccard) of a cluster with its match in fits of parts: "valid, stable
    # clusters" of Hennig (2007)
    reliable: float = 0.75
    # the share of the records in reliable clusters for a number to be recommended, and the same
    # where the numbers one less and one more both fail
    min_covered: float = 0.8
    min_covered_alone: float = 0.95
    # where no number passes, the fewest clusters with this share of the best gain on new records
    enough_gain: float = 0.9
    # the numbers of the first sweep; the range doubles while its edge is best, up to ``max_range``
    first_range: int = 20
    max_range: int = 80
    # rows of a sweep: a floor, and so many for each cluster of its range
    min_rows: int = 8192
    rows_per_cluster: int = 1500
    # EM at each level
    level_tolerance: float = 1e-5
    level_passes: int = 40
    # of more columns the most common decide: the second moments of 1,536 are 18 MB for each of the
    # four agglomerations; where ties leave fewer than ``min_columns``, ties are cut
    max_columns: int = 1536
    min_columns: int = 256


CONFIG = Config()
MIN_RECORDS = 12  # thirds that are left out in turn then hold four records each


@dataclass(frozen=True)
class Row:
    """What one number of clusters is worth; nats and entropies are per record.

    ``evidence`` is the criterion of the choice: more is better. ``bic`` and ``icl``: less is
    better. ``held_out`` is the log-likelihood of records left out of the fit, ``stability`` the
    mean agreement (ARI) of fits on overlapping parts, ``smallest`` the records in the smallest
    cluster, 0 where one is empty. ``reliability`` is, for each cluster of the model, its mean
    overlap (Jaccard) with its match in the fits of the parts, and ``shares`` its share of the
    records. ``isolated`` says that the number passes narrowly while those one less and one more
    both fail (``mark_isolated``).
    """

    k: int
    evidence: float
    bic: float
    icl: float
    held_out: float
    stability: float
    smallest: float
    reliability: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()
    isolated: bool = False

    @property
    def reliable(self) -> tuple[int, ...]:
        """The places of the clusters that come out again."""
        return tuple(j for j, overlap in enumerate(self.reliability) if overlap >= CONFIG.reliable)

    @property
    def covered(self) -> float:
        """The share of the records that lie in reliable clusters."""
        return float(sum(self.shares[j] for j in self.reliable))

    @property
    def offered(self) -> bool:
        """Whether no cluster is empty."""
        return self.smallest >= 1


@dataclass(frozen=True)
class ClassRow:
    """What a paper on latent classes prints of one number of them: totals over all records.

    ``records`` is N, the sum of the weights. ``sizes`` are the records most probably in each class,
    ``average_posterior`` their mean probability of it (AvePP), and ``odds_correct`` the odds of a
    correct classification over those of chance (OCC; a million at most). ``ratio`` is the
    likelihood ratio against one class fewer, with its bootstrap p-value and draws.
    """

    k: int
    records: float
    log_likelihood: float
    parameters: int
    aic: float
    bic: float
    adjusted_bic: float
    caic: float
    entropy: float
    smallest: float
    smallest_share: float
    sizes: tuple[float, ...]
    average_posterior: tuple[float, ...]
    odds_correct: tuple[float, ...]
    held_out: float
    stability: float
    ratio: float | None = None
    ratio_p: float | None = None
    ratio_draws: int = 0


@dataclass(frozen=True)
class Merge:
    """Two clusters of the level above became one: their places there, and the number left.

    ``reliability`` is that of the one they became, at the place ``first`` of the level ``left``;
    ``splits_reliably`` says whether both of them, at the level above, come out again.
    """

    first: int
    second: int
    left: int
    reliability: float = np.nan
    splits_reliably: bool = False


@dataclass(frozen=True)
class Choice(Tabular):
    """The sweep over k, the number it recommends, why, and the tree of merges below it.

    ``refits`` holds, for each k, the models of the parts that reliability is measured by;
    ``classes`` the figures of latent class analysis, where those were asked for. ``levels`` are the
    models that the places of the tree are those of.
    """

    rows: tuple[Row, ...]
    best: int
    reason: str
    models: dict[int, Mixture]
    tree: tuple[Merge, ...]
    refits: dict[int, tuple[Mixture, ...]] = field(default_factory=dict)
    classes: tuple[ClassRow, ...] = ()
    levels: dict[int, Mixture] = field(default_factory=dict)

    @property
    def row(self) -> Row:
        """The row of the number recommended."""
        return next(row for row in self.rows if row.k == self.best)

    def columns(self) -> dict[str, list[Any]]:
        """Return a row for each number of clusters, by columns: totals of latent classes.

        Without ``lca`` the criteria of the choice, per record.
        """
        rows: tuple[Row, ...] | tuple[ClassRow, ...] = self.classes or self.rows
        return {name: [getattr(row, name) for row in rows] for name in vars(rows[0])}

    def with_reliability(self, reliability: Sequence[float], shares: Sequence[float]) -> Choice:
        """Return the choice with other figures of the clusters recommended; its words follow."""
        row = replace(self.row, reliability=tuple(reliability), shares=tuple(shares))
        rows = tuple(row if other.k == row.k else other for other in self.rows)
        return replace(self, rows=rows, reason=reason(rows, row))

    def without_best(self) -> Choice:
        """Return the choice of another number, as a fit of the best one leaves a cluster empty."""
        empty = replace(self.row, smallest=0.0)
        rows = tuple(empty if row.k == self.best else row for row in self.rows)
        best = recommend(rows)
        return replace(self, rows=rows, best=best.k, reason=reason(rows, best))


def mark_isolated(rows: Sequence[Row]) -> list[Row]:
    """Return rows of consecutive numbers, with those marked that pass alone among neighbours."""
    covered = {row.k: row.covered for row in rows if row.k > 1}

    def isolated(row: Row) -> bool:
        neighbours = [covered[k] for k in (row.k - 1, row.k + 1) if k in covered]
        return (
            CONFIG.min_covered <= row.covered < CONFIG.min_covered_alone
            and len(neighbours) == 2
            and max(neighbours) < CONFIG.min_covered
        )

    return [replace(row, isolated=isolated(row)) for row in rows]


def no_groups(rows: Sequence[Row]) -> bool:
    """Return whether no number beats one group, neither by evidence nor on records left out."""
    one = [row for row in rows if row.k == 1]
    return bool(one) and all(
        row.evidence <= one[0].evidence + ROUNDING and row.held_out <= one[0].held_out + ROUNDING
        for row in rows
    )


def recommend(rows: Sequence[Row]) -> Row:
    """Return the row to recommend.

    A number that leaves a cluster empty is not compared with others. One group where that beats
    all others (``no_groups``); else the most evidence among the
    numbers whose records lie mostly in reliable clusters; and where there is none, the fewest
    groups that reach ``CONFIG.enough_gain`` of the best gain on records left out.
    """
    offered = [row for row in rows if row.offered]
    several = [row for row in offered if row.k > 1]
    if no_groups(offered) or not several:
        return rows[0]
    steady = [row for row in several if row.covered >= CONFIG.min_covered and not row.isolated]
    if steady:
        return max(steady, key=lambda row: row.evidence)
    base = rows[0].held_out if rows[0].k == 1 else min(row.held_out for row in several)
    best = max(several, key=lambda row: row.held_out)
    enough = base + CONFIG.enough_gain * max(best.held_out - base, 0)
    return next((row for row in several if row.held_out >= enough), best)


def reason(rows: Sequence[Row], best: Row) -> str:
    """Return sentences that a manager can read on why this number was recommended.

    Each is derived from the figures of the rows, and there is none that they don't bear out.
    """
    if len(rows) == 1:
        asked = Message("choice.asked", k=best.k, again=describe_reliability(best))
        return asked if best.k > 1 else Message("choice.asked_one")
    if best.k == 1:
        none = no_groups(rows) or any(row.offered for row in rows if row.k > 1)
        return Message("choice.none" if none else "choice.empty")
    if best.covered < CONFIG.min_covered:
        useful = Message("choice.useful", k=best.k, again=describe_reliability(best))
        return Message("text.sentences", parts=[useful, *_gain(rows, best)])
    parts = [
        Message("choice.best", k=best.k, again=describe_reliability(best)),
        *_finer(rows, best),
    ]
    if best.k == max(row.k for row in rows):
        parts.append(Message("choice.largest"))
    return Message("text.sentences", parts=parts)


def _finer(rows: Sequence[Row], best: Row) -> list[Message]:
    finer = [row for row in rows if row.offered and row.evidence > best.evidence]
    lucky = [row.k for row in finer if row.isolated]
    text = [Message("choice.lucky", k=k, less=k - 1, more=k + 1) for k in lucky]
    most = max(finer, key=lambda row: row.evidence, default=best).k
    if most <= best.k or most in lucky:
        return text
    return [*text, Message("choice.other_finer" if lucky else "choice.finer", k=most)]


def _gain(rows: Sequence[Row], best: Row) -> list[Message]:
    if rows[0].k > 1:
        return []
    most = max(row.held_out for row in rows if row.offered) - rows[0].held_out
    share = (best.held_out - rows[0].held_out) / most if most > 0 else 0.0
    return [Message("choice.gain", share=share)] if share >= CONFIG.enough_gain else []


def describe_reliability(row: Row) -> str:
    """Return how many of the groups come out again, and the share of the records in them."""
    found = len(row.reliable)
    if found == row.k:
        return Message("choice.all_again")
    if found == 0:
        return Message("choice.none_again")
    return Message("choice.some_again", n=found, share=row.covered)


@dataclass(frozen=True)
class Level:
    """One level of an agglomeration, after EM.

    ``assigned`` is the weight of the rows that are most probably in each cluster.
    """

    model: Mixture
    expected: Expected
    assigned: Floats
    evidence: float
    merged: tuple[int, int] | None

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


@dataclass(frozen=True)
class Sweep:
    """Agglomerations of the rows, and of them without each third in turn.

    ``scale`` is how many records each of their weight stands for.
    """

    rows: Blocks
    scale: float
    whole: dict[int, Level]
    parts: tuple[dict[int, Level], ...]
    kept: tuple[Blocks, ...]
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


@single_threaded
def choose(
    blocks: Blocks, ks: Sequence[int] | None = None, executor: Executor | None = None
) -> Choice:
    """Return what each k in ``ks`` is worth, and which one is recommended.

    Without ``ks`` it is 1 to 20, and twice as many where the largest is best, to 80. It is the k
    with the most evidence among those whose records lie mostly in clusters that come out again
    (``recommend``): real records have no true k, and evidence alone would split
    them further and further into groups that another sample would not show.

    One agglomeration of all rows gives the models and the tree. Three more, each without a third of
    the records, give the likelihood of the third left out, each cluster's reliability (its mean
    overlap with its match in the three) and the stability: the mean agreement of two of them on
    the third that both have. Identical rows are one row with their weight, whose records are dealt
    to the thirds by a hash (``unit_records``): neither the order of the rows nor how often
    one is written changes anything. Of more than 1,536 columns the most common ones are looked at.

    The agglomerations begin above 20 clusters, above 40 for the numbers from 21 to 40 and so on,
    whatever ``ks`` is, so that the figures of a number don't depend on which others are looked at.
    """
    wanted = _check_numbers(ks, blocks)
    first, bound = prevalence(blocks, executor), _max_clusters(blocks)
    seen: dict[int, Evaluation] = {}
    before, most = 0, max(min(CONFIG.first_range, bound), 1)
    while True:
        sweep = _run_sweep(blocks, first, most, executor)
        every = _evaluate(sweep, executor)
        seen |= {k: one for k, one in every.items() if k > before}
        if max(wanted) <= most:
            found = _make_choice(seen, wanted, sweep, every)
            if ks is not None or found.best < most or most >= min(CONFIG.max_range, bound):
                return found
            wanted = list(range(1, min(2 * most, bound) + 1))
        before, most = most, min(2 * most, bound)


def _run_sweep(blocks: Blocks, first: Floats, most: int, executor: Executor | None) -> Sweep:
    small, count = _sample_rows(
        blocks, first, max(CONFIG.min_rows, CONFIG.rows_per_cluster * most), executor
    )
    columns = _common_columns(first)
    if columns.size < first.size:
        small = distinct_rows(_take_columns(small, columns), first[columns], executor)
    drawn = _thirds(unit_records(small, first[columns], count, executor), small.n_rows)
    thirds = tuple(_reweight(small, own) for own in drawn)
    kept = tuple(_reweight(small, drawn.sum(axis=0) - own) for own in drawn)
    whole, *own = map_tasks(partial(agglomerate_to_one, most=most), [small, *kept], executor)
    parts = map_tasks(lambda at: _better_levels(kept[at], own[at], whole), range(3), executor)
    scale = blocks.weight / small.weight
    return Sweep(small, scale, whole, tuple(parts), kept, thirds, columns, first)


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


def _better_levels(
    blocks: Blocks, own: dict[int, Level], whole: dict[int, Level]
) -> dict[int, Level]:
    """Return the levels of a part, each the better by evidence of its own and the whole's.

    One with fewer empty clusters is better than one with more. What then differs from the whole
    is what the part's records speak for, and not where two agglomerations happened to end.
    """
    first = prevalence(blocks)
    better = {}
    for k, level in own.items():
        started = _fit_level(blocks, whole[k].model, first) if k in whole else level
        better[k] = max(level, started, key=lambda level: level.score)
    return better


def _fit_level(
    blocks: Blocks, model: Mixture, first: Floats, merged: tuple[int, int] | None = None
) -> Level:
    """Return a level: the model after EM, and its evidence at the strength learned from it."""
    weight, variables = blocks.weight, blocks.variables
    result = em(
        blocks,
        model,
        Prior.around(first, FIRST_STRENGTH, weight, variables),
        Stopping(tol=CONFIG.level_tolerance, max_iter=CONFIG.level_passes),
    )
    sums = result.expected.sums
    strength = learn_strength(sums, first, weight, variables)
    learned = Prior.around(first, strength, weight, variables)
    value = evidence(result.model, sums, result.log_likelihood, learned)
    labels, weights = hard_labels(result.model, blocks), gather_rows(blocks).weights
    assigned = np.bincount(labels, weights, sums.shape[1]).astype(np.float64)
    return Level(result.model, result.expected, assigned, value, merged)


@dataclass(frozen=True)
class Evaluation:
    """One number of clusters: its figures, its model and those of the parts, over all columns."""

    row: Row
    model: Mixture
    refits: tuple[Mixture, ...]


def _evaluate(sweep: Sweep, executor: Executor | None) -> dict[int, Evaluation]:
    """Return what each level of a sweep is worth."""
    levels = sorted(sweep.whole)
    rows = mark_isolated(map_tasks(partial(_row, sweep), levels, executor))
    return {
        row.k: Evaluation(
            row, sweep.widen(sweep.whole[row.k].model), tuple(map(sweep.widen, sweep.refits(row.k)))
        )
        for row in rows
    }


def _make_choice(
    seen: dict[int, Evaluation], wanted: list[int], sweep: Sweep, every: dict[int, Evaluation]
) -> Choice:
    """Return the choice among the numbers wanted; the tree is that of the last sweep."""
    numbers = [k for k in wanted if k in seen] or [max(seen)]
    rows = tuple(seen[k].row for k in numbers)
    best = recommend(rows)
    tree = tuple(
        _make_merge(every, level.merged, k)
        for k, level in sorted(sweep.whole.items(), reverse=True)
        if level.merged is not None and k < max(numbers)
    )
    return Choice(
        rows,
        best.k,
        reason(rows, best),
        {k: seen[k].model for k in numbers},
        tree,
        {k: seen[k].refits for k in numbers},
        levels={k: every[k].model for k in numbers if k in every},
    )


def _make_merge(every: dict[int, Evaluation], pair: tuple[int, int], k: int) -> Merge:
    halves = [every[k + 1].row.reliability[place] for place in pair]
    return Merge(*pair, k, every[k].row.reliability[pair[0]], min(halves) >= CONFIG.reliable)


def agglomerate_to_one(blocks: Blocks, most: int) -> dict[int, Level]:
    """Return a settled model for every number of clusters from ``most`` down to 1.

    From twice as many, by joint diagonalisation; below ``most`` each level is settled by EM
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
    level = _fit_level(blocks, stage.model, first)
    levels = {level.model.n_components: level}
    while level.model.n_components > 1:
        pair = cheapest_merge(level.expected.sums, prior, level.empty.tolist())
        level = _fit_level(blocks, merge_clusters(level.expected, pair, prior), first, pair)
        levels[level.model.n_components] = level
    return levels


def _row(sweep: Sweep, k: int) -> Row:
    level = sweep.whole[k]
    n = sweep.rows.weight
    parameters = level.model.n_parameters
    bic = -2 * level.expected.log_likelihood + parameters * np.log(n)
    base, logits = level.model.tables()
    sums = level.expected.sums
    entropy = level.expected.log_likelihood - sums[-1] @ base - np.sum(sums[:-1] * logits)
    models = sweep.refits(k)
    held_out = sum(
        expect(model, third).log_likelihood
        for model, third in zip(models, sweep.thirds, strict=True)
    ) / sum(third.weight for third in sweep.thirds)
    agreements = [
        adjusted_rand(
            hard_labels(models[one], sweep.thirds[both]),
            hard_labels(models[other], sweep.thirds[both]),
            gather_rows(sweep.thirds[both]).weights,
        )
        for both, (one, other) in enumerate(((1, 2), (0, 2), (0, 1)))
    ]
    overlaps = [
        jaccard(
            hard_labels(level.model, part), hard_labels(model, part), k, gather_rows(part).weights
        )
        for model, part in zip(models, sweep.kept, strict=True)
    ]
    return Row(
        k=k,
        evidence=level.evidence / n,
        bic=float(bic) / n,
        icl=float(bic + 2 * entropy) / n,
        held_out=held_out,
        stability=float(np.mean(agreements)),
        smallest=0.0 if level.empty.size else float(sums[-1].min() * sweep.scale),
        reliability=tuple(np.mean(overlaps, axis=0).tolist()),
        shares=tuple((sums[-1] / sums[-1].sum()).tolist()),
    )


def finalise(choice: Choice, model: Mixture, blocks: Blocks, executor: Executor | None) -> Choice:
    """Return the choice with the figures of the final clusters in the row of the best number.

    Their reliability is their mean overlap, over all rows, with their match in the fits of the
    parts; the words follow from it. One pass over the rows.
    """
    models = choice.refits[choice.best]
    tables = map_reduce(partial(_cross_tables, model, models), blocks, executor)
    overlaps = np.mean([overlap(table) for table in tables], axis=0)
    sizes = model.weights * blocks.weight
    empty = empty_clusters(sizes, tables[0].sum(axis=1))
    smallest = 0.0 if empty.size else float(sizes.min())
    rows = tuple(
        replace(row, smallest=smallest) if row.k == choice.best else row for row in choice.rows
    )
    found = replace(choice, rows=rows, models={**choice.models, choice.best: model})
    return found.with_reliability(overlaps.tolist(), model.weights.tolist())


def _cross_tables(model: Mixture, others: tuple[Mixture, ...], rows: Rows) -> Floats:
    k = model.n_components
    own = model.posterior(rows)[0].argmax(axis=1)
    tables = np.zeros((len(others), k, k))
    weights = rows.weights if rows.weights.size else 1.0
    for table, other in zip(tables, others, strict=True):
        np.add.at(table, (own, other.posterior(rows)[0].argmax(axis=1)), weights)
    return tables


def hard_labels(model: Mixture, blocks: Blocks, executor: Executor | None = None) -> Ints:
    """Return the most probable cluster of each row, (n,)."""
    return np.concatenate(list(map_blocks(partial(_hard_labels, model), blocks, executor)))


def _hard_labels(model: Mixture, rows: Rows) -> Ints:
    return np.asarray(model.posterior(rows)[0].argmax(axis=1))


def _max_clusters(blocks: Blocks) -> int:
    return min(int(blocks.records) * 2 // 3, max_clusters(blocks))


def _check_numbers(ks: Sequence[int] | None, blocks: Blocks) -> list[int]:
    bound, count = _max_clusters(blocks), int(blocks.records)
    if count < MIN_RECORDS:
        raise InputError(
            f"expected {MIN_RECORDS} records or more to find out how many clusters they hold, got "
            f"{count}; ask for a number"
        )
    if ks is None:
        return list(range(1, max(min(CONFIG.first_range, bound), 1) + 1))
    wanted = sorted({int(k) for k in ks})
    if not wanted or wanted[0] < 1 or wanted[-1] > bound:
        raise InputError(
            f"expected numbers of clusters from 1 to {bound}, for {count} rows (two "
            f"thirds of which are fitted at a time) and {blocks.n_columns} columns, "
            f"got {list(ks)}"
        )
    return wanted
