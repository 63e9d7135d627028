"""Wald tests: whether estimates differ beyond chance, and by how much two of them do."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import chdtrc

from comorb.model.arrays import Floats

Z = 1.959963984540054  # of 95% intervals
NOTHING = 1e-10  # of the largest eigenvalue: a direction that doesn't vary


@dataclass(frozen=True)
class Test:
    """A Wald test: χ² with its degrees of freedom, and how likely chance alone reaches it."""

    statistic: float
    df: int
    p: float


@dataclass(frozen=True)
class Pairwise(Test):
    """Whether two clusters, by their places, differ."""

    first: int
    second: int


def wald(differences: Floats, covariance: Floats) -> Test:
    """Return the test that all differences are nothing: δᵀ V⁻¹ δ over the directions that vary.

    >>> wald(np.array([2.0]), np.array([[1.0]])).statistic
    4.0
    """
    values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
    varies = values > NOTHING * max(float(values.max(initial=0.0)), 1e-300)
    along = vectors[:, varies].T @ differences
    statistic, df = float((along**2 / values[varies]).sum()), int(varies.sum())
    return Test(statistic, df, float(chdtrc(df, statistic)) if df else 1.0)


def overall(means: Floats, covariance: Floats) -> Test:
    """Return the test that all k clusters have the same means, (k, m) with covariance (km, km)."""
    k, m = means.shape
    contrast = np.kron(np.hstack([-np.ones((k - 1, 1)), np.eye(k - 1)]), np.eye(m))
    return wald(contrast @ means.ravel(), contrast @ covariance @ contrast.T)


def pairwise(means: Floats, covariance: Floats) -> tuple[Pairwise, ...]:
    """Return the test of each pair of clusters."""
    k, m = means.shape
    blocks = covariance.reshape(k, m, k, m)
    found = []
    for a, b in combinations(range(k), 2):
        spread = blocks[a, :, a] + blocks[b, :, b] - blocks[a, :, b] - blocks[b, :, a]
        test = wald(means[a] - means[b], spread)
        found.append(Pairwise(test.statistic, test.df, test.p, a, b))
    return tuple(found)
