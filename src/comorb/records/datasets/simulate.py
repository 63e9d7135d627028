"""Mixtures of independent Bernoulli codes, drawn at random with their truth known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from comorb.errors import RecordsError
from comorb.model.arrays import Floats, Ints
from comorb.model.mixture import Mixture


@dataclass(frozen=True)
class Simulated:
    """A drawn 0/1 matrix with the truth behind it.

    Attributes
    ----------
    matrix
        ``(n, d)`` sparse 0/1 matrix, a record to the row.
    labels
        ``(n,)`` cluster of each record.
    weights
        ``(k,)`` true cluster weights ω, summing to 1.
    means
        ``(k, d)`` true probability of each code in each cluster (the paper's M, transposed).
    """

    matrix: sparse.csr_array
    labels: Ints
    weights: Floats
    means: Floats


def paper(n: int, d: int, k: int, seed: int = 0) -> Simulated:
    """Draw the synthetic data of the paper's appendix E.

    M and ω are exponential random numbers, M divided by its maximum and ω by its sum.

    Parameters
    ----------
    n, d, k
        Records, codes and clusters.
    seed
        The same seed gives the same data.

    Returns
    -------
    Simulated
        The matrix, the labels and the true parameters.

    Examples
    --------
    >>> paper(1000, d=99, k=4).matrix.shape
    (1000, 99)
    """
    _check(n, d, k)
    rng = np.random.default_rng(seed)
    means = rng.exponential(size=(k, d))
    weights = rng.exponential(size=k)
    return _draw(n, weights / weights.sum(), means / means.max(), rng)


def record_like(n: int, k: int, d: int = 696, seed: int = 0) -> Simulated:
    """Draw data as sparse and as long-tailed as hospital records.

    In each cluster the probability of code j is proportional to Gamma(0.4) / j, scaled to
    6 × U(0.7, 1.3) codes a record and capped at 0.9; the weights are Dirichlet(3). Parameters and
    returned value are those of `paper`.

    Examples
    --------
    >>> record_like(1000, k=5).matrix.shape
    (1000, 696)
    """
    _check(n, d, k)
    rng = np.random.default_rng(seed)
    means = rng.gamma(0.4, size=(k, d)) / np.arange(1, d + 1)
    means *= 6 * rng.uniform(0.7, 1.3, size=(k, 1)) / means.sum(axis=1, keepdims=True)
    return _draw(n, rng.dirichlet(np.full(k, 3.0)), np.minimum(means, 0.9), rng)


def _check(n: int, d: int, k: int) -> None:
    if min(n, d, k) < 1:
        raise RecordsError("demo.simulate", n=n, d=d, k=k)


def _draw(n: int, weights: Floats, means: Floats, rng: np.random.Generator) -> Simulated:
    matrix, labels = Mixture(weights, means).sample(n, rng)
    return Simulated(matrix, labels, weights, means)
