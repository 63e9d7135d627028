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
    (8811, 17)
    """
    if preparation.asked(cohort):
        made = preparation.apply(cohort)
        return len(made), len(made.codes), made.ledger
    counter = Counted.of(cohort)
    preparation.check(counter)
    selected = preparation.select(counter)
    counts = selected.counts()
    kept = counts > 0
    told = selected.told if isinstance(selected, Counted) else selected.ledger
    rules = [("in no record that is left", ~kept)]
    if preparation.drop_codes:
        dropped = selected._matching(preparation.drop_codes)
        rules.append((f"drop {' and '.join(preparation.drop_codes)}", dropped))
    rules.append((f"fewer than {preparation.drop_rare} records", counts < preparation.drop_rare))
    left = np.ones_like(kept)
    for rule, gone in rules:
        told = told.less("features", rule, int((left & gone).sum()))
        left = left & ~gone
    if not (left.any() or cohort.features):
        raise RecordsError("No code is left of those that the records have; leave out fewer.")
    return told.left("records") or 0, int(left.sum()), told
