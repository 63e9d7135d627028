"""Group sums: numbers of any size added up by group, the same bits in any order and split."""

from __future__ import annotations

from math import ldexp
from operator import add
from typing import Self

import numpy as np

from comorb.model.arrays import Floats, Ints

_BITS, _HALF = 53, 26
_AT_ONCE = 1 << 20  # numbers; so many halves add up exactly in a double


class GroupSums:
    """The sum of some numbers in each group, exact until it is asked for.

    A double is a whole number of 53 bits times a power of two. Those of one power are added up as
    whole numbers, in two halves, so that nothing is rounded before the end.

    >>> sums = GroupSums(2)
    >>> sums.add(np.array([1e16, 1.0, -1e16]), np.array([0, 0, 0]))
    >>> sums.totals()
    array([1., 0.])
    """

    def __init__(self, groups: int) -> None:
        self.groups = groups
        self._sums: dict[int, list[int]] = {}

    def add(self, values: Floats, groups: Ints) -> None:
        """Add finite numbers, each to its group."""
        for start in range(0, values.size, _AT_ONCE):
            self._add(values[start : start + _AT_ONCE], groups[start : start + _AT_ONCE])

    def _add(self, values: Floats, groups: Ints) -> None:
        mantissas, exponents = np.frexp(values)
        whole = np.ldexp(mantissas, _BITS).astype(np.int64)
        high, low = whole >> _HALF, whole & ((1 << _HALF) - 1)
        for exponent in np.unique(exponents).tolist():
            own = exponents == exponent
            sums = self._sums.setdefault(exponent, [0] * self.groups)
            halves = (
                np.bincount(groups[own], half[own].astype(np.float64), self.groups)
                for half in (high, low)
            )
            for place, (upper, lower) in enumerate(zip(*halves, strict=True)):
                sums[place] += (int(upper) << _HALF) + int(lower)

    def __iadd__(self, other: Self) -> Self:
        for exponent, sums in other._sums.items():
            own = self._sums.setdefault(exponent, [0] * self.groups)
            own[:] = map(add, own, sums)
        return self

    def totals(self) -> Floats:
        """Return the sum of each group, rounded once."""
        return np.array(
            [self._rounded([sums[g] for sums in self._sums.values()]) for g in range(self.groups)]
        )

    def total(self) -> float:
        """Return the sum over all groups, rounded once."""
        return self._rounded([sum(sums) for sums in self._sums.values()])

    def _rounded(self, sums: list[int]) -> float:
        least = min(self._sums, default=0)
        whole = sum(one << (e - least) for e, one in zip(self._sums, sums, strict=True))
        return ldexp(float(whole), least - _BITS)
