"""How many clusters: what each number is worth, which ones are recommended, and why."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from comorb.errors import InputError
from comorb.messages import Message
from comorb.model.arrays import Floats
from comorb.model.blocks import Blocks, map_tasks, single_threaded
from comorb.model.diagnostics import collapse_warning
from comorb.model.mixture import Mixture
from comorb.model.moments import prevalence
from comorb.model.start import max_clusters
from comorb.model.sweep import (
    Sweep,
    compare_labels,
    empty_clusters,
    mean_overlap,
    reliability,
    run_sweep,
)
from comorb.model.tabular import Tabular

# Nats a record: EM stops at this gain, so two fits of one optimum differ by about as much.
ROUNDING = 1e-6

Goal = Literal["main", "finest"]


@dataclass(frozen=True)
class Config:
    """Settings of the choice of k: what is recommended.

    ``python -m benchmarks.settings select_k`` prints the numbers recommended at other values, on
    data whose number is known and on discharges; ``python -m benchmarks numbers`` how often they
    are right.
    """

    # the numbers of the first sweep, among which the knee of the evidence is looked for; for the
    # finest number the range doubles while its edge is best, up to ``max_range``
    first_range: int = 20
    max_range: int = 80
    # the least mean overlap (Jaccard) of a cluster with its match in fits of parts: "valid, stable
    # clusters" of Hennig (2007)
    reliable: float = 0.75
    # the share of the records in reliable clusters for the finest number, and the same where the
    # numbers one less and one more both fail
    min_covered: float = 0.8
    min_covered_alone: float = 0.95
    # the share of the best gain on new records above which it is reported
    enough_gain: float = 0.9
    # nats a record on new records that a further cluster gains: fits of one optimum differ by less
    # (``start.CONFIG.same_evidence``)
    min_gain: float = 5e-4
    # a split counts where so many codes hold its halves apart, pairs of codes that go together
    # being 2 to 4 (``python -m benchmarks.numbers 3 pairs``), and the smaller one has such a share
    min_breadth: float = 5.0
    min_breadth_share: float = 0.125  # of the columns, where that is less
    min_share: float = 0.005


CONFIG = Config()
MIN_RECORDS = 12  # thirds that are left out in turn then hold four records each


@dataclass(frozen=True)
class Row:
    """What one number of clusters is worth; nats and entropies are per record.

    ``evidence``: more is better. ``bic`` and ``icl``: less is better. ``held_out`` is the
    log-likelihood of records left out of the fit, ``held_out_given_length`` the same given how many
    codes each has, ``stability`` the mean agreement (ARI) of fits on overlapping parts,
    ``smallest`` the records in the smallest cluster, 0 where one is empty; ``doubled`` says that
    two have the same profile. ``reliability`` is, for each cluster of the model, its mean overlap
    (Jaccard) with its match in the fits of the parts, and ``shares`` its share of the records.
    ``breadth`` is how many codes hold the two clusters apart that one fewer has as one, and
    ``smaller`` the share of the records in the smaller of them. ``isolated`` says that the number
    passes narrowly while those one less and one more both fail (``mark_isolated``).
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
    held_out_given_length: float = 0.0
    breadth: float = 0.0
    smaller: float = 0.0
    doubled: bool = False

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
        """Whether no cluster is empty and no two are the same."""
        return self.smallest >= 1 and not self.doubled

    @property
    def steady(self) -> bool:
        """Whether most records lie in clusters that come out again, and that isn't luck."""
        return self.k == 1 or (self.covered >= CONFIG.min_covered and not self.isolated)


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
    ``splits_reliably`` says whether both of them, at the level above, come out again. ``breadth``
    is how many codes hold the two apart.
    """

    first: int
    second: int
    left: int
    reliability: float = np.nan
    splits_reliably: bool = False
    breadth: float = 0.0


@dataclass(frozen=True)
class Choice(Tabular):
    """The sweep over k, the numbers it recommends, why, and the tree of merges below them.

    ``main`` is the number of main groups, ``finest`` the most that the records speak for, whichever
    numbers were looked at, and ``best`` the one recommended among those: for the ``goal``.
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
    main: int = 1
    finest: int = 1
    goal: Goal = "main"
    n_columns: int = 1000

    @property
    def row(self) -> Row:
        """The row of the number recommended."""
        return next(row for row in self.rows if row.k == self.best)

    @property
    def lowest_bic(self) -> int:
        """The number that BIC would take among those offered."""
        return min((row for row in self.rows if row.offered), key=lambda row: row.bic).k

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
        return replace(self, rows=rows, reason=reason(rows, row, self.finest, self.goal))

    def without_best(self) -> Choice:
        """Return the choice of another number, as a fit of the best one leaves a cluster empty."""
        empty = replace(self.row, smallest=0.0)
        rows = tuple(empty if row.k == self.best else row for row in self.rows)
        return _decide(replace(self, rows=rows), rows)


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


def knee(rows: Sequence[Row]) -> dict[int, float]:
    """Return how far each number lies above the even rise of the evidence, from 1 to 20.

    (h(k) − h(1)) / (h(20) − h(1)) − (k − 1) / 19, h the least concave majorant of the running
    maximum of the evidence, which goes on where fewer numbers are possible: further clusters gain
    more than their share up to its peak, and less beyond. Numbers with an empty cluster are passed
    over. None where no number has more evidence than one group.
    """
    span = CONFIG.first_range
    value = {row.k: row.evidence for row in rows if row.offered and row.k <= span}
    numbers = np.arange(1, span + 1)
    if 1 not in value or span == 1:
        return {}
    best = np.maximum.accumulate([value.get(k, -np.inf) for k in numbers.tolist()])
    corners = [0]
    for at in range(1, span):
        while len(corners) > 1 and _is_below(best, corners[-2], corners[-1], at):
            corners.pop()
        corners.append(at)
    rise = np.interp(numbers, numbers[corners], best[corners]) - best[0]
    if rise[-1] <= ROUNDING:
        return {}
    scores = rise / rise[-1] - (numbers - 1) / (span - 1)
    return {k: float(scores[k - 1]) for k in value}


def _is_below(values: Floats, left: int, at: int, right: int) -> bool:
    """Return whether a point lies on or below the line between two others."""
    rise = (values[right] - values[at]) * (at - left)
    return bool(rise >= (values[at] - values[left]) * (right - at))


def main_number(rows: Sequence[Row]) -> int:
    """Return the number of main groups by the evidence alone: the peak of its knee."""
    scores = knee(rows)
    return max(scores, key=lambda k: (scores[k], -k)) if scores else rows[0].k


def count_groups(rows: Sequence[Row], among: Sequence[Row], n_columns: int) -> int:
    """Return how many groups the records speak for, with the number of clusters among some.

    It is taken to be the fewest that explain new records as well as any of them, given how many
    codes these have, so that neither the length of records nor chance passes for groups. Of the
    splits down to it only those count whose halves more than a few codes hold apart, and which
    aren't tiny: codes that go together are no groups. ``rows`` are those of 1, 2, ...
    """
    most = max(row.held_out_given_length for row in among) - CONFIG.min_gain
    top = next(row for row in among if row.held_out_given_length >= most)
    wide = min(CONFIG.min_breadth, CONFIG.min_breadth_share * n_columns)
    broad = [
        row.breadth >= wide and row.smaller >= CONFIG.min_share
        for row in rows
        if 1 < row.k <= top.k
    ]
    return max((row.k for row in rows if row.offered and row.k <= 1 + sum(broad)), default=1)


def find_numbers(rows: Sequence[Row], n_columns: int = 1000) -> tuple[int, int]:
    """Return the number of main groups and the finest number; the rows are those of 1, 2, ...

    The main groups are as many as the knee of the evidence says, and no more than the records speak
    for; the finest number is what they speak for among those whose records lie mostly in clusters
    that come out again. In a table of fewer than 20 items a split can't be broad, and classes may
    differ in how many items they have: there both are the number with the most evidence, which is
    right more often than its knee (``python -m benchmarks.numbers 7 items``).
    """
    offered = [row for row in rows if row.offered]
    if no_groups(offered) or len(offered) < 2:
        return rows[0].k, rows[0].k
    if n_columns < CONFIG.first_range:
        best = max(offered, key=lambda row: row.evidence).k
        return best, best
    main = min(main_number(rows), count_groups(rows, offered, n_columns))
    steady = [row for row in offered if row.steady]
    return main, max(main, count_groups(rows, steady, n_columns)) if steady else main


def _decide(choice: Choice, every: Sequence[Row]) -> Choice:
    """Return the choice with its numbers, from the rows of all numbers up to the largest."""
    main, finest = find_numbers(every, choice.n_columns)
    offered = [row.k for row in choice.rows if row.offered] or [choice.rows[0].k]
    wanted = main if choice.goal == "main" else finest
    best = max((k for k in offered if k <= wanted), default=offered[0])
    found = replace(choice, main=main, finest=finest, best=best)
    return replace(found, reason=reason(choice.rows, found.row, finest, choice.goal))


def reason(rows: Sequence[Row], best: Row, finest: int, goal: Goal = "main") -> str:
    """Return sentences that a manager can read on why this number was recommended.

    Each is derived from the figures of the rows, and there is none that they don't bear out.
    """
    again = describe_reliability(best)
    if len(rows) == 1:
        asked = Message("choice.asked", k=best.k, again=again)
        return asked if best.k > 1 else Message("choice.asked_one")
    offered = [row for row in rows if row.offered]
    if best.k == 1:
        if not any(row.k > 1 for row in offered):
            return Message("choice.empty")
        more = any(row.evidence > best.evidence + ROUNDING for row in offered)
        return Message("choice.dependence" if more else "choice.none")
    if best.covered < CONFIG.min_covered:
        parts = [Message("choice.useful", k=best.k, again=again), *_gain(rows, best)]
    else:
        parts = [Message("choice.main" if goal == "main" else "choice.best", k=best.k, again=again)]
    if goal == "main" and finest > best.k:
        parts.append(Message("choice.finest", k=finest))
    bic = min(offered, key=lambda row: row.bic).k
    if bic != best.k:
        parts.append(Message("choice.bic_fewer" if bic < best.k else "choice.bic_more", k=bic))
    return Message("text.sentences", parts=parts)


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


@single_threaded
def choose(
    blocks: Blocks,
    ks: Sequence[int] | None = None,
    executor: Executor | None = None,
    goal: Goal = "main",
) -> Choice:
    """Return what each k in ``ks`` is worth, and which one is recommended.

    Without ``ks`` it is 1 to 20; for the finest number twice as many where the largest is best, to
    80. The main number is the knee of the evidence (``knee``): real records have no true k, and
    evidence alone would split them further and further. See ``find_numbers`` for the finest.

    One agglomeration of all rows gives the models and the tree. Three more, each without a third of
    the records, give the likelihood of the third left out, each cluster's reliability and the
    stability (``run_sweep``). Of more than 1,536 columns the most common ones are looked at.

    The agglomerations begin above 20 clusters, above 40 for the numbers from 21 to 40 and so on,
    whatever ``ks`` is, so that neither the figures of a number nor the main and the finest one
    depend on which others are looked at.
    """
    wanted = _check_numbers(ks, blocks)
    first, bound = prevalence(blocks, executor), _max_clusters(blocks)
    seen: dict[int, Evaluation] = {}
    before, most = 0, max(min(CONFIG.first_range, bound), 1)
    while True:
        sweep = run_sweep(blocks, first, most, executor)
        every = _evaluate(sweep, executor)
        seen |= {k: one for k, one in every.items() if k > before}
        if max(wanted) <= most:
            found = _make_choice(seen, wanted, sweep, every, goal)
            largest = goal == "finest" and found.best == most < min(CONFIG.max_range, bound)
            if ks is not None or not largest:
                return found
            wanted = list(range(1, min(2 * most, bound) + 1))
        before, most = most, min(2 * most, bound)


@dataclass(frozen=True)
class Evaluation:
    """One number of clusters: its figures, its model and those of the parts, over all columns."""

    row: Row
    model: Mixture
    refits: tuple[Mixture, ...]
    level: Mixture
    level_reliability: tuple[float, ...]


def _evaluate(sweep: Sweep, executor: Executor | None) -> dict[int, Evaluation]:
    """Return what each number of a sweep is worth."""
    found = map_tasks(partial(_evaluate_level, sweep), sorted(sweep.whole), executor)
    rows = mark_isolated([one.row for one in found])
    return {row.k: replace(one, row=row) for row, one in zip(rows, found, strict=True)}


def _evaluate_level(sweep: Sweep, k: int) -> Evaluation:
    level, refits = sweep.whole[k], sweep.refits(k)
    n = sweep.rows.weight
    bic = -2 * level.expected.log_likelihood + level.model.n_parameters * np.log(n)
    base, logits = level.model.tables()
    sums = level.expected.sums
    entropy = level.expected.log_likelihood - sums[-1] @ base - np.sum(sums[:-1] * logits)
    held_out, given_length = sweep.held_out(k)
    split = sweep.tree.splits.get(k)
    smallest = 0.0 if level.empty.size else float(sums[-1].min() * sweep.scale)
    row = Row(
        k=k,
        evidence=level.evidence / n,
        bic=float(bic) / n,
        icl=float(bic + 2 * entropy) / n,
        held_out=held_out,
        stability=sweep.stability(k),
        smallest=smallest,
        reliability=tuple(reliability(level.model, refits, sweep.rows).tolist()),
        shares=tuple((sums[-1] / sums[-1].sum()).tolist()),
        held_out_given_length=given_length,
        breadth=split.breadth if split else 0.0,
        smaller=split.smaller if split else 0.0,
        doubled=smallest > 0 and collapse_warning(level.model, n) is not None,
    )
    tree = sweep.tree.levels[k].model
    return Evaluation(
        row,
        sweep.widen(level.model),
        tuple(map(sweep.widen, refits)),
        sweep.widen(tree),
        tuple(reliability(tree, refits, sweep.rows).tolist()),
    )


def _make_choice(
    seen: dict[int, Evaluation],
    wanted: list[int],
    sweep: Sweep,
    every: dict[int, Evaluation],
    goal: Goal,
) -> Choice:
    """Return the choice among the numbers wanted; the tree is that of the last sweep."""
    numbers = [k for k in wanted if k in seen] or [max(seen)]
    tree = tuple(
        _make_merge(every, k, split.pair, split.breadth)
        for k, split in sorted(sweep.tree.splits.items(), reverse=True)
        if k <= max(numbers)
    )
    choice = Choice(
        tuple(seen[k].row for k in numbers),
        numbers[0],
        "",
        {k: seen[k].model for k in numbers},
        tree,
        {k: seen[k].refits for k in numbers},
        levels={k: every[k].level for k in numbers if k in every},
        goal=goal,
        n_columns=max_clusters(sweep.rows),
    )
    return _decide(choice, [seen[k].row for k in sorted(seen)])


def _make_merge(
    every: dict[int, Evaluation], k: int, pair: tuple[int, int], breadth: float
) -> Merge:
    halves = [every[k].level_reliability[place] for place in pair]
    merged = every[k - 1].level_reliability[pair[0]]
    return Merge(*pair, k - 1, merged, min(halves) >= CONFIG.reliable, breadth)


def finalise(choice: Choice, model: Mixture, blocks: Blocks, executor: Executor | None) -> Choice:
    """Return the choice with the figures of the final clusters in the row of the best number.

    Their reliability is measured over all rows; the words follow from it. One pass.
    """
    tables = compare_labels(model, choice.refits[choice.best], blocks, executor)
    overlaps = mean_overlap(tables)
    sizes = model.weights * blocks.weight
    empty = empty_clusters(sizes, tables[0].sum(axis=1))
    smallest = 0.0 if empty.size else float(sizes.min())
    rows = tuple(
        replace(row, smallest=smallest) if row.k == choice.best else row for row in choice.rows
    )
    found = replace(choice, rows=rows, models={**choice.models, choice.best: model})
    return found.with_reliability(overlaps.tolist(), model.weights.tolist())


def _max_clusters(blocks: Blocks) -> int:
    return min(int(blocks.records) * 2 // 3, max_clusters(blocks))


def _check_numbers(ks: Sequence[int] | None, blocks: Blocks) -> list[int]:
    bound, count = _max_clusters(blocks), int(blocks.records)
    if count < MIN_RECORDS:
        raise InputError("choice.few_records", least=MIN_RECORDS, n=count)
    if ks is None:
        return list(range(1, max(min(CONFIG.first_range, bound), 1) + 1))
    wanted = sorted({int(k) for k in ks})
    if not wanted or wanted[0] < 1 or wanted[-1] > bound:
        columns, came = blocks.n_columns, str(list(ks))
        raise InputError("choice.numbers", limit=bound, n=count, columns=columns, came=came)
    return wanted
