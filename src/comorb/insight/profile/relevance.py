"""Relevance: which codes characterise a cluster, between most frequent and most specific."""

from __future__ import annotations

import numpy as np

from comorb.errors import InputError
from comorb.model.arrays import Floats

LAMBDA = 0.6
TINY = 1e-12


def relevance(means: Floats, expected: Floats, lam: float = LAMBDA) -> Floats:
    """Return r(i, j) of paper section 5, after Sievert and Shirley's LDAvis, (k, d).

    λ·log μᵢⱼ + (1 − λ)·log(μᵢⱼ / Σₕ μᵢₕ ωₕ), with ``expected`` the sum; NaN where μ is suppressed.
    λ is 0 for the most specific codes first, 1 for the most frequent.
    >>> relevance(np.array([[0.5], [0.1]]), np.array([0.3]), 1.0).round(3).tolist()
    [[-0.693], [-2.303]]
    """
    if not 0 <= lam <= 1:
        raise InputError(f"expected λ from 0 (most specific) to 1 (most frequent), got {lam!r}")
    logs = np.log(np.maximum(means, TINY))
    return logs - (1 - lam) * np.log(np.maximum(expected, TINY))
