"""Exact sums: terms on a grid on which no partial sum is rounded, so that order doesn't matter."""

from __future__ import annotations

import numpy as np

from comorb.model.arrays import Floats


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


def rounded(weights: Floats, total: float) -> Floats:
    """Return weights on the grid of ``snap_for``, so that sums of them are exact too."""
    snap = snap_for(total)
    return (weights + snap) - snap


def weighted_sum(values: Floats, weights: Floats | None, total: float) -> float:
    """Return Σ w·v, the same bits in any order; weights that are none are 1, ``total`` is Σ w."""
    terms = values if weights is None else values * weights
    bound = max(float(np.abs(values).max(initial=0.0)) * total, 1e-300)
    return float(rounded(terms, bound).sum())
