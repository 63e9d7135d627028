"""Exact sums: terms on a grid on which no partial sum is rounded, so order is irrelevant."""

from __future__ import annotations

from dataclasses import dataclass, fields
from math import ldexp
from operator import add
from typing import Self

import numpy as np

from comorb.model.arrays import Floats, Ints


def snap_for(bound: float) -> float:
    """Return 1.5·2⁵²⁻ˢ: (v + snap) − snap rounds v to 2⁻ˢ, and sums up to ``bound`` are exact.

    s = 51 − ⌈log₂ bound⌉, so that a sum of multiples of 2⁻ˢ never needs more than 53 bits.
    For 1,000 rows s = 41:
    >>> snap_for(1000.0) == 1.5 * 2.0**11
    True
    """
    return 1.5 * 2.0 ** (1 + int(np.ceil(np.log2(bound))))


def exact_sum(terms: Floats, axis: int | None = None) -> Floats:
    """Return the sum of the terms, the same bits in any order of them.

    Each is first rounded to a grid on which no partial sum needs more than 53 bits.
    """
    snap = snap_for(max(float(np.abs(terms).max(initial=0.0)), 1e-300) * max(terms.size, 1))
    return np.asarray(((terms + snap) - snap).sum(axis=axis))


def snap_to_grid(weights: Floats, total: float) -> Floats:
    """Return weights on the grid of ``snap_for``, so that sums of them are exact too."""
    snap = snap_for(total)
    return (weights + snap) - snap


def weighted_sum(values: Floats, weights: Floats | None, total: float) -> float:
    """Return Σ w·v, the same bits in any order; weights that are none are 1, ``total`` is Σ w."""
    terms = values if weights is None else values * weights
    bound = max(float(np.abs(values).max(initial=0.0)) * total, 1e-300)
    return float(snap_to_grid(terms, bound).sum())


@dataclass(frozen=True, eq=False)
class Sums:
    """A statistic that is added up field by field."""

    def __add__(self, other: Self) -> Self:
        names = [one.name for one in fields(self)]
        return type(self)(*(getattr(self, name) + getattr(other, name) for name in names))


_BITS, _HALF = 53, 26
_AT_ONCE = 1 << 20  # numbers; so many halves add up exactly in a double


class GroupSums:
    """The sum of some numbers in each group, rounded only at the end.

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
            at = slice(start, start + _AT_ONCE)
            mantissas, exponents = np.frexp(values[at])
            whole = np.ldexp(mantissas, _BITS).astype(np.int64)
            for exponent in np.unique(exponents).tolist():
                own = exponents == exponent
                places, numbers = groups[at][own], whole[own]
                high = np.bincount(places, numbers >> _HALF, self.groups)
                low = np.bincount(places, numbers & ((1 << _HALF) - 1), self.groups)
                sums = self._sums.setdefault(exponent, [0] * self.groups)
                for place, (upper, lower) in enumerate(zip(high, low, strict=True)):
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
