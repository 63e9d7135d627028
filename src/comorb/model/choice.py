"""What each number of clusters is worth, which one is recommended, and the words for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from comorb.model.frames import Tabular
from comorb.model.mixture import Mixture

RELIABLE = 0.75  # the least mean overlap of a cluster with its match in fits of parts
MOSTLY = 0.8  # of the records, in reliable clusters, for a number to be recommended for it
CLEARLY = 0.95  # the same, where the numbers one less and one more both fail
ROUNDING = 1e-6  # nats a record: a cluster that is empty changes the likelihood by no more
ENOUGH = 0.9  # of the best gain on new records, for the fewest groups that are a description


@dataclass(frozen=True)
class Row:
    """What one number of clusters is worth; nats and entropies are per record.

    ``evidence`` is the criterion of the choice: more is better. ``bic`` and ``icl``: less is
    better. ``held_out`` is the log-likelihood of records left out of the fit, ``stability`` the
    mean agreement (ARI) of fits on overlapping parts, ``smallest`` the records in the smallest
    cluster. ``reliability`` is, for each cluster of the model, its mean overlap (Jaccard) with
    its match in the fits of the parts, and ``shares`` its share of the records.
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

    @property
    def reliable(self) -> tuple[int, ...]:
        """The places of the clusters that come out again."""
        return tuple(j for j, overlap in enumerate(self.reliability) if overlap >= RELIABLE)

    @property
    def covered(self) -> float:
        """The share of the records that lie in reliable clusters."""
        return float(sum(self.shares[j] for j in self.reliable))

    @property
    def offered(self) -> bool:
        """Whether every cluster holds a record at least."""
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
    ``classes`` the figures of latent class analysis, where those were asked for. ``merged`` is the
    tree's own model of the best number, where the final clusters stand in its place in ``models``.
    """

    rows: tuple[Row, ...]
    best: int
    reason: str
    models: dict[int, Mixture]
    tree: tuple[Merge, ...]
    refits: dict[int, tuple[Mixture, ...]] = field(default_factory=dict)
    classes: tuple[ClassRow, ...] = ()
    merged: Mixture | None = None

    @property
    def levels(self) -> dict[int, Mixture]:
        """The models that the places of the tree are those of."""
        return self.models if self.merged is None else {**self.models, self.best: self.merged}

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

    def judged(self, reliability: Sequence[float], shares: Sequence[float]) -> Choice:
        """Return the choice with other figures of the clusters recommended; its words follow."""
        row = replace(self.row, reliability=tuple(reliability), shares=tuple(shares))
        rows = tuple(row if other.k == row.k else other for other in self.rows)
        return replace(self, rows=rows, reason=reason(rows, row))


def no_groups(rows: Sequence[Row]) -> bool:
    """Return whether no number beats one group, neither by evidence nor on records left out."""
    one = [row for row in rows if row.k == 1]
    return bool(one) and all(
        row.evidence <= one[0].evidence + ROUNDING and row.held_out <= one[0].held_out + ROUNDING
        for row in rows
    )


def recommended(rows: Sequence[Row]) -> Row:
    """Return the row to recommend.

    One group where that beats all others (``no_groups``); else the most evidence among the
    numbers whose records lie mostly in reliable clusters; and where there is none, the fewest
    groups that reach ``ENOUGH`` of the best gain on records left out.
    """
    if no_groups(rows):
        return next(row for row in rows if row.k == 1)
    several = [row for row in rows if row.k > 1 and row.offered]
    if not several:
        return rows[0]
    steady = [row for row in several if row.covered >= MOSTLY and not _by_chance(row, rows)]
    if steady:
        return max(steady, key=lambda row: row.evidence)
    base = rows[0].held_out if rows[0].k == 1 else min(row.held_out for row in several)
    best = max(several, key=lambda row: row.held_out)
    enough = base + ENOUGH * max(best.held_out - base, 0)
    return next((row for row in several if row.held_out >= enough), best)


def _by_chance(row: Row, rows: Sequence[Row]) -> bool:
    """Return whether a number passes narrowly, alone between neighbours that both fail."""
    beside = [other.covered for other in rows if abs(other.k - row.k) == 1 and other.k > 1]
    return row.covered < CLEARLY and len(beside) == 2 and max(beside) < MOSTLY


def reason(rows: Sequence[Row], best: Row) -> str:
    """Return sentences that a manager can read on why this number was recommended.

    Each is derived from the figures of the rows, and none is said that they don't bear out.
    """
    if len(rows) == 1:
        asked = f"{best.k} groups were asked for" if best.k > 1 else "One group was asked for"
        return f"{asked}{'; ' + again(best) if best.k > 1 else ''}."
    if best.k == 1:
        if no_groups(rows):
            return (
                "One group is recommended: the data show no groups of records that differ in "
                "their codes beyond chance; no other number that was looked at explains them, or "
                "new records, better."
            )
        return "One group is recommended: any other number that was looked at leaves a group empty."
    if best.covered < MOSTLY:
        return (
            f"{best.k} groups are offered as a useful description: {again(best)}, so that some "
            f"would come out differently in another sample.{_gain(rows, best)}"
        )
    sentence = (
        f"{best.k} groups are recommended: of the numbers whose groups come out again they "
        f"explain the records best once the complexity of the model is counted; {again(best)}."
    )
    sentence += _finer(rows, best)
    if best.k == max(row.k for row in rows):
        sentence += " It is the largest number that was looked at."
    return sentence


def _finer(rows: Sequence[Row], best: Row) -> str:
    finer = [row for row in rows if row.offered and row.evidence > best.evidence]
    lucky = [row.k for row in finer if row.covered >= MOSTLY and _by_chance(row, rows)]
    told = "".join(
        f" {k} groups come out again too, but neither {k - 1} nor {k + 1} do, which may be chance."
        for k in lucky
    )
    most = max(finer, key=lambda row: row.evidence, default=best).k
    if most <= best.k or most in lucky:
        return told
    return (
        f"{told} {'Other finer' if lucky else 'Finer'} groups, up to {most}, describe the records "
        "more closely but come out less reliably."
    )


def _gain(rows: Sequence[Row], best: Row) -> str:
    if rows[0].k > 1:
        return ""
    most = max(row.held_out for row in rows if row.offered) - rows[0].held_out
    share = (best.held_out - rows[0].held_out) / most if most > 0 else 0.0
    if share < ENOUGH:
        return ""
    return f" They reach {share:.0%} of what any number that was looked at gains on new records."


def again(row: Row) -> str:
    """Return how many of the groups come out again, and the share of the records in them."""
    found = len(row.reliable)
    if found == row.k:
        return "all of them come out again when a third of the records is left out"
    if found == 0:
        return "none of them comes out again reliably when a third of the records is left out"
    verb = "comes" if found == 1 else "come"
    return (
        f"{found} of them, with {row.covered:.0%} of the records, {verb} out again when a third of "
        "the records is left out"
    )
