"""Counting: how many records and codes rules leave, without making the cohort that they leave."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from comorb.errors import EmptyCohortError, RecordsError
from comorb.model.arrays import Ints, Mask
from comorb.records.cohort import Cohort
from comorb.records.ledger import Ledger
from comorb.records.preparation import Preparation

FIRST = 1 << 17  # records among which most codes are met


@dataclass(frozen=True, eq=False)
class Counted(Cohort):
    """A cohort of which rules mark the records that they leave, and take none."""

    left: Mask | None = None  # which records are; all where it is None
    told: Ledger = field(default_factory=Ledger)  # what each rule left out

    @classmethod
    def of(cls, cohort: Cohort) -> Counted:
        """Return a cohort to count in."""
        fields: dict[str, Any] = {name: getattr(cohort, name) for name in vars(cohort)}
        return cls(**fields, told=cohort.ledger)

    @property
    def marked(self) -> Mask:
        """Which records are left."""
        return np.ones(len(self), dtype=bool) if self.left is None else self.left

    def counts(self) -> Ints:
        """Return how many of the records that are left have each code."""
        if self.left is None:
            return super().counts()
        own = self.matrix.indices[np.repeat(self.left, np.diff(self.matrix.indptr))]
        return np.bincount(own, minlength=len(self.codes))

    def carried(self) -> Mask:
        """Return which codes any of the records that are left has.

        Most are met among the first records; the others are looked for in all.
        """
        if self.left is None:
            return self.counts() > 0
        matrix, width = self.matrix, len(self.codes)
        first = int(matrix.indptr[min(FIRST, len(self))])
        early = np.repeat(self.left[:FIRST], np.diff(matrix.indptr[: FIRST + 1]))
        met = np.bincount(matrix.indices[:first][early], minlength=width) > 0
        places = np.flatnonzero(~met[matrix.indices])
        rows = np.searchsorted(matrix.indptr, places, side="right") - 1
        met[matrix.indices[places[self.left[rows]]]] = True
        return met

    def _keep(self, mask: Mask, rule: str) -> Cohort:
        before = len(self) if self.left is None else int(self.left.sum())
        both = mask if self.left is None else self.left & mask
        if not both.any():
            raise EmptyCohortError(f"No record is left after the rule '{rule}'.")
        told = self.told.add("records", rule, before, int(both.sum()))
        return replace(self, left=both, told=told)


def count_left(cohort: Cohort, preparation: Preparation) -> tuple[int, int, Ledger]:
    """Return how many records and codes the rules leave, and what each rule left out.

    >>> from comorb.records.datasets import heart_failure
    >>> count_left(heart_failure(), Preparation(having=("250",), drop_rare=2000))[:2]
    (8777, 8)
    """
    if preparation.asked(cohort):
        made = preparation.apply(cohort)
        return len(made), len(made.codes), made.ledger
    counter = Counted.of(cohort)
    counter.check_codes(*preparation.having, *preparation.without, *preparation.drop_codes)
    selected = preparation.select(counter)
    assert isinstance(selected, Counted)  # noqa: S101 - no rule makes another cohort of it
    told, rules = selected.told, [("in no record that is left", ~selected.carried())]
    if preparation.drop_codes:
        dropped = selected._matching(preparation.drop_codes)
        rules.append((f"drop {' and '.join(preparation.drop_codes)}", dropped))
    if preparation.drop_rare > 1:
        rare = selected.counts() < preparation.drop_rare
        rules.append((f"fewer than {preparation.drop_rare} records", rare))
    left = np.ones(len(cohort.codes), dtype=bool)
    for rule, gone in rules:
        told = told.less("features", rule, int((left & gone).sum()))
        left = left & ~gone
    if not (left.any() or cohort.features):
        raise RecordsError("No code is left of those that the records have; leave out fewer.")
    return told.left("records") or 0, int(left.sum()), told
