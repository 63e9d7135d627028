"""How many clusters: the way down from many to one, and what each number is worth."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from comorb.errors import InputError
from comorb.model.agreement import adjusted_rand, jaccard, overlap
from comorb.model.arrays import Floats, Ints
from comorb.model.blocks import (
    Blocks,
    Rows,
    from_csr,
    map_blocks,
    map_reduce,
    map_tasks,
    taken,
)
from comorb.model.choice import RELIABLE, Choice, Merge, Row, reason, recommended
from comorb.model.columns import moved_ones
from comorb.model.descent import (
    FIRST_STRENGTH,
    Stage,
    overcomplete,
    settle,
    way_down,
    whitened_slices,
)
from comorb.model.em import Expected, Stopping, em, expect
from comorb.model.mixture import Mixture
from comorb.model.moments import moments, prevalence
from comorb.model.prepared import Prepared
from comorb.model.prior import Prior, evidence, learn_strength
from comorb.model.thinning import chances, thinned
from comorb.model.threads import single_threaded
from comorb.model.views import binarised, carried, most_clusters

__all__ = ["Choice", "Merge", "Row", "choose", "final", "reason"]

MOST = 20  # clusters at first, unless asked for more
FURTHEST = 80  # where the range grows to by itself when its edge is best
ROWS, ROWS_A_CLUSTER = 8192, 1500
AT_EACH = Stopping(tol=1e-5, max_iter=40)
FEWEST = 12  # records of which thirds can be left out in turn
COLUMNS, FEWEST_COLUMNS = 1536, 256  # of more codes, the most common ones decide


@dataclass(frozen=True)
class Level:
    """One level of a way down, settled by EM."""

    model: Mixture
    expected: Expected
    evidence: float
    merged: tuple[int, int] | None


@dataclass(frozen=True)
class Sweep:
    """Ways down over the rows, and over them without each third in turn.

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

    def widened(self, model: Mixture) -> Mixture:
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
    (``choice.recommended``): real records have no true k, and evidence alone would split
    them further and further into groups that another sample would not show.

    One way down over all rows gives the models and the tree. Three more, each without a third of
    the rows, give the likelihood of the third left out, each cluster's reliability (its mean
    overlap with its match in the three) and the stability: the mean agreement of two of them on
    the third that both have. Thirds are drawn by ``thinning.chances``, so that the order of the
    rows changes nothing. Of more than 1,536 columns the most common ones are looked at.
    """
    wanted = _checked(ks, blocks)
    first = prevalence(blocks, executor)
    while True:
        found = _chosen(_swept(blocks, first, max(wanted), executor), wanted, executor)
        bound = min(FURTHEST, _bound(blocks))
        if ks is not None or found.best < max(wanted) or max(wanted) >= bound:
            return found
        wanted = list(range(1, min(2 * max(wanted), bound) + 1))


def _swept(blocks: Blocks, first: Floats, most: int, executor: Executor | None) -> Sweep:
    small = _sampled(blocks, first, max(ROWS, ROWS_A_CLUSTER * most), executor)
    columns = _common(first)
    if columns.size < first.size:
        small = _narrowed(small, columns)
    third = _drawn(chances(small, first[columns], executor))
    thirds = tuple(taken(small, np.flatnonzero(third == place)) for place in range(3))
    kept = tuple(taken(small, np.flatnonzero(third != place)) for place in range(3))
    whole, *own = map_tasks(partial(descend, most=most), [small, *kept], executor)
    parts = map_tasks(lambda at: _better(kept[at], own[at], whole), range(3), executor)
    scale = blocks.weight / small.weight
    return Sweep(small, scale, whole, tuple(parts), kept, thirds, columns, first)


def _common(first: Floats) -> Ints:
    """Return the columns to look at: all, or the most common ones, those alike in that together."""
    if first.size <= COLUMNS:
        return np.arange(first.size)
    found = np.flatnonzero(first > np.sort(first)[-COLUMNS - 1])
    return found if found.size >= FEWEST_COLUMNS else np.arange(COLUMNS)


def _narrowed(blocks: Blocks, columns: Ints) -> Blocks:
    """Return rows in memory with some of their columns."""
    place = np.full(blocks.n_columns, -1, dtype=np.int32)
    place[columns] = np.arange(columns.size)
    parts = [load() for load in blocks.loaders]
    moved = [moved_ones(part.indptr, part.indices, place) for part in parts]
    lengths = np.concatenate([np.diff(ends) for ends, _ in moved])
    weights = np.concatenate([part.weights for part in parts])
    indices = np.concatenate([new for _, new in moved])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    values = np.concatenate([part.values for part in parts])
    heavy = weights if weights.size else None
    seen = Prepared(blocks.variables, values)
    return from_csr(indptr, indices, columns.size, heavy, features=seen)


def _drawn(chance: Floats) -> Floats:
    """Return the third of each row; by the order of their chances where one would be empty."""
    third = np.floor(chance * 3)
    if np.bincount(third.astype(np.int64), minlength=3).min():
        return third
    return np.asarray(np.argsort(np.argsort(chance, kind="stable")) % 3, dtype=np.float64)


def _sampled(blocks: Blocks, first: Floats, rows: int, executor: Executor | None) -> Blocks:
    """Return a part of the rows that weighs no more than it has records.

    Were each row to weigh as many as it stands for, what is chance in the part would pass for
    evidence.
    """
    small = thinned(blocks, first, rows, executor)
    if blocks.n_rows < 2 * rows:
        return small
    weights = np.concatenate([load().weights for load in small.loaders])
    every = np.arange(small.n_rows)
    return taken(small, every, None, weights * (rows / blocks.weight))


def _better(blocks: Blocks, own: dict[int, Level], whole: dict[int, Level]) -> dict[int, Level]:
    """Return the levels of a part, each the better by evidence of its own and the whole's.

    What then differs from the whole is what the part's records speak for, and not where two
    ways down happened to end.
    """
    first = prevalence(blocks)
    better = {}
    for k, level in own.items():
        started = _settled(blocks, whole[k].model, first) if k in whole else level
        better[k] = max(level, started, key=lambda level: level.evidence)
    return better


def _settled(
    blocks: Blocks, model: Mixture, first: Floats, merged: tuple[int, int] | None = None
) -> Level:
    """Return a level: the model after EM, and its evidence at the strength learned from it."""
    weight, variables = blocks.weight, blocks.variables
    result = em(blocks, model, Prior.around(first, FIRST_STRENGTH, weight, variables), AT_EACH)
    sums = result.expected.sums
    strength = learn_strength(sums, first, weight, variables)
    learned = Prior.around(first, strength, weight, variables)
    value = evidence(result.model, sums, result.log_likelihood, learned)
    return Level(result.model, result.expected, value, merged)


def _chosen(sweep: Sweep, wanted: list[int], executor: Executor | None) -> Choice:
    levels = sorted(sweep.whole)
    every = dict(zip(levels, map_tasks(partial(_row, sweep), levels, executor), strict=True))
    rows = tuple(every[k] for k in wanted if k in every) or (every[levels[-1]],)
    best = recommended(rows)
    tree = tuple(
        _merge(every, sweep.whole[k].merged, k)
        for k in reversed(levels)
        if sweep.whole[k].merged is not None
    )
    models = {row.k: sweep.widened(sweep.whole[row.k].model) for row in rows}
    refits = {row.k: tuple(map(sweep.widened, sweep.refits(row.k))) for row in rows}
    return Choice(rows, best.k, reason(rows, best), models, tree, refits)


def _merge(rows: dict[int, Row], merged: tuple[int, int] | None, k: int) -> Merge:
    first, second = merged or (0, 0)
    halves = [rows[k + 1].reliability[place] for place in (first, second)]
    return Merge(first, second, k, rows[k].reliability[first], min(halves) >= RELIABLE)


def descend(blocks: Blocks, most: int) -> dict[int, Level]:
    """Return a settled model for every number of clusters from ``most`` down to 1.

    From twice as many, by joint diagonalisation; below ``most`` each level is settled by EM
    before the next pair is merged.
    """
    view = binarised(blocks) if blocks.variables else blocks
    found = moments(view)
    first = found.first[: blocks.n_columns]
    count = min(2 * most, view.n_columns, view.n_rows)
    slices = whitened_slices(view, found, count, None)
    prior = Prior.around(first, FIRST_STRENGTH, blocks.weight, blocks.variables)
    model = overcomplete(slices, found, count)
    if blocks.variables:
        model = carried(model, view, blocks, prior)
    stage = settle(blocks, model, prior, None)
    for below in way_down(blocks, stage, min(most, stage.model.n_components), prior, None):
        stage = below
    levels: dict[int, Level] = {}
    while True:
        k = stage.model.n_components
        merged = stage.merged if k + 1 in levels else None
        levels[k] = _settled(blocks, stage.model, first, merged)
        if k == 1:
            return levels
        settled = Stage(levels[k].model, levels[k].expected, None)
        *_, stage = way_down(blocks, settled, k - 1, prior, None)


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
        adjusted_rand(*(hard_labels(models[other], sweep.thirds[both]) for other in others))
        for both, others in enumerate(((1, 2), (0, 2), (0, 1)))
    ]
    overlaps = [
        jaccard(hard_labels(level.model, part), hard_labels(model, part), k)
        for model, part in zip(models, sweep.kept, strict=True)
    ]
    return Row(
        k=k,
        evidence=level.evidence / n,
        bic=float(bic) / n,
        icl=float(bic + 2 * entropy) / n,
        held_out=held_out,
        stability=float(np.mean(agreements)),
        smallest=float(sums[-1].min() * sweep.scale),
        reliability=tuple(np.mean(overlaps, axis=0).tolist()),
        shares=tuple((sums[-1] / sums[-1].sum()).tolist()),
    )


def final(choice: Choice, model: Mixture, blocks: Blocks, executor: Executor | None) -> Choice:
    """Return the choice with the figures of the final clusters in the row of the best number.

    Their reliability is their mean overlap, over all rows, with their match in the fits of the
    parts; the words follow from it. One pass over the rows.
    """
    models = choice.refits[choice.best]
    tables = map_reduce(partial(_crossed, model, models), blocks, executor)
    overlaps = np.mean([overlap(table) for table in tables], axis=0)
    smallest = float(model.weights.min() * blocks.weight)
    rows = tuple(
        replace(row, smallest=smallest) if row.k == choice.best else row for row in choice.rows
    )
    merged = choice.levels[choice.best]
    models_of = {**choice.models, choice.best: model}
    found = replace(choice, rows=rows, models=models_of, merged=merged)
    return found.judged(overlaps.tolist(), model.weights.tolist())


def _crossed(model: Mixture, others: tuple[Mixture, ...], rows: Rows) -> Floats:
    k = model.n_components
    own = model.posterior(rows)[0].argmax(axis=1)
    tables = np.zeros((len(others), k, k))
    for table, other in zip(tables, others, strict=True):
        np.add.at(table, (own, other.posterior(rows)[0].argmax(axis=1)), 1)
    return tables


def hard_labels(model: Mixture, blocks: Blocks, executor: Executor | None = None) -> Ints:
    """Return the most probable cluster of each row, (n,)."""
    return np.concatenate(list(map_blocks(partial(_hard, model), blocks, executor)))


def _hard(model: Mixture, rows: Rows) -> Ints:
    return np.asarray(model.posterior(rows)[0].argmax(axis=1))


def _bound(blocks: Blocks) -> int:
    return min(blocks.n_rows * 2 // 3, most_clusters(blocks))


def _checked(ks: Sequence[int] | None, blocks: Blocks) -> list[int]:
    bound = _bound(blocks)
    if blocks.n_rows < FEWEST:
        raise InputError(
            f"expected {FEWEST} records or more to find out how many clusters they hold, got "
            f"{blocks.n_rows}; ask for a number"
        )
    if ks is None:
        return list(range(1, max(min(MOST, bound), 1) + 1))
    wanted = sorted({int(k) for k in ks})
    if not wanted or wanted[0] < 1 or wanted[-1] > bound:
        raise InputError(
            f"expected numbers of clusters from 1 to {bound}, for {blocks.n_rows} rows (two "
            f"thirds of which are fitted at a time) and {blocks.n_columns} columns, "
            f"got {list(ks)}"
        )
    return wanted
