"""Three-step maximum likelihood of an outcome: where BCH weights fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np

from comorb.model.arrays import Floats
from comorb.model.blocks import rounded
from comorb.model.relating.classification import Part, Reach
from comorb.model.relating.sums import OutcomeSums

STEPS = 2000
STILL = 1e-10  # of a mean between −1 and 1
LEAST_SPREAD = 1e-6  # of a standard deviation, on the same scale

Fold = Callable[[Callable[[Part], Any]], Any]  # the sum of a statistic over all records


@dataclass(frozen=True, eq=False)
class NormalSums:
    """Of numbers with a normal distribution in each cluster: an EM step's sums, or I and J."""

    table: Floats

    def __add__(self, other: Self) -> NormalSums:
        return NormalSums(self.table + other.table)


def normal_means(
    column: int, matrix: Floats, sizes: Floats, reach: Reach, fold: Fold
) -> tuple[Floats, Floats]:
    """Return the mean of a number in each cluster (k, 1) and their sandwich covariance.

    max Σ w log Σ_t π_t D_ts φ(y; m_t, σ_t²), the shares π of the first step and D fixed (Vermunt
    2010), by EM from the overall mean and spread of the records taken for each cluster. One pass
    over the records a step, each O(n·k).
    """
    k = sizes.size
    chances = (sizes / sizes.sum())[:, None] * matrix
    sure = np.eye(k)
    sums = fold(partial(_normal_step, column, sure, np.zeros(k), np.ones(k), reach)).table
    means, spreads = _moments(sums)
    for _ in range(STEPS):
        sums = fold(partial(_normal_step, column, chances, means, spreads, reach)).table
        before = means
        means, spreads = _moments(sums)
        if np.abs(means - before).max() < STILL:
            break
    found = fold(partial(_normal_information, column, chances, means, spreads, reach)).table
    inverse = np.linalg.pinv(found[0], hermitian=True)
    covariance = (inverse @ found[1] @ inverse)[:k, :k]
    scale = reach.scale[column]
    return (means * scale + reach.centre[column])[:, None], covariance * scale**2


def _moments(sums: Floats) -> tuple[Floats, Floats]:
    mass = np.maximum(sums[0], 1e-300)
    means = sums[1] / mass
    return means, np.sqrt(np.maximum(sums[2] / mass - means**2, LEAST_SPREAD**2))


def _known(column: int, reach: Reach, part: Part) -> tuple[Floats, Any, Floats]:
    known = np.isfinite(part.columns[:, column])
    own = (part.columns[known, column] - reach.centre[column]) / reach.scale[column]
    return own, part.labels[known], part.weights[known]


def _belonging(values: Floats, labels: Any, chances: Floats, means: Floats, s: Floats) -> Floats:
    """Return P(t | y, s) (n, k) by normal distributions."""
    far = (values[:, None] - means) / s
    with np.errstate(divide="ignore"):
        logs = np.log(chances)[:, labels].T - far**2 / 2 - np.log(s)
    logs -= logs.max(axis=1, keepdims=True)
    dense = np.exp(logs)
    return np.asarray(dense / dense.sum(axis=1, keepdims=True))


def _normal_step(
    column: int, chances: Floats, means: Floats, s: Floats, reach: Reach, part: Part
) -> NormalSums:
    """Return Σ w·u, Σ w·u·y and Σ w·u·y² for each cluster, (3, k)."""
    values, labels, weights = _known(column, reach, part)
    mass = weights[:, None] * _belonging(values, labels, chances, means, s)
    terms = (mass, mass * values[:, None], mass * values[:, None] ** 2)
    return NormalSums(np.array([rounded(term, reach.total).sum(axis=0) for term in terms]))


def _normal_information(
    column: int, chances: Floats, means: Floats, s: Floats, reach: Reach, part: Part
) -> NormalSums:
    """Return I and J of the means and log-spreads, (2, 2k, 2k)."""
    values, labels, weights = _known(column, reach, part)
    u = _belonging(values, labels, chances, means, s)
    k = means.size
    far = (values[:, None] - means) / s
    own = np.concatenate([far / s, far**2 - 1], axis=1)  # the score of each cluster's density
    u2 = np.concatenate([u, u], axis=1)
    scores = u2 * own
    most = (2 / s.min()) ** 2 * max(1.0, 1 / s.min()) ** 2 + 4
    found = np.zeros((2, 2 * k, 2 * k))
    for a in range(2 * k):
        for b in range(2 * k):
            both = scores[:, a] * scores[:, b]
            curve = both.copy()
            if a % k == b % k:
                curve -= u[:, a % k] * own[:, a] * own[:, b]
                curve += u[:, a % k] * _curvature(a < k, b < k, far[:, a % k], s[a % k])
            found[0, a, b] = rounded(weights * curve, reach.total * most).sum()
            found[1, a, b] = rounded(weights**2 * both, reach.total * reach.largest * most).sum()
    return NormalSums(found)


def _curvature(mean: bool, other: bool, far: Floats, s: float) -> Floats:
    """Return minus the second derivative of a normal log-density by its mean or log-spread."""
    if mean and other:
        return np.full_like(far, 1 / s**2)
    return np.asarray(2 * far / s) if mean or other else np.asarray(2 * far**2)


def category_shares(sums: OutcomeSums, matrix: Floats, sizes: Floats) -> tuple[Floats, Floats]:
    """Return the share of each category in each cluster (k, v) and their sandwich covariance.

    max Σ_sv n_sv log Σ_t π_t D_ts ρ_tv by EM on the table of counts; no pass over the records.
    """
    counts, squares = sums.first[:, 1:], np.einsum("svv->sv", sums.second[:, 1:, 1:])
    k, v = counts.shape
    chances = (sizes / sizes.sum())[:, None] * matrix  # (t, s)
    shares = np.tile((counts.sum(axis=0) + 0.5) / (counts.sum() + 0.5 * v), (k, 1))
    belonging = np.zeros((k, k, v))
    for _ in range(STEPS):
        belonging = chances[:, :, None] * shares[:, None, :]
        belonging /= np.maximum(belonging.sum(axis=0), 1e-300)
        mass = (belonging * counts).sum(axis=1)
        before, shares = shares, mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-300)
        if np.abs(shares - before).max() < STILL:
            break
    return shares, _category_covariance(belonging, shares, counts, squares)


def _category_covariance(u: Floats, shares: Floats, counts: Floats, squares: Floats) -> Floats:
    """Return the covariance of shares (kv, kv), from that of their logits: I⁻¹ J I⁻¹."""
    k, v = shares.shape
    information, scores = np.zeros((k * v, k * v)), np.zeros((k * v, k * v))
    own = np.eye(v)[None] - shares[:, None, :]  # (t, v, v'): the score of each logit
    for s in range(k):
        for value in range(v):
            score = (u[:, s, value, None] * own[:, value]).ravel()
            outer = np.outer(score, score)
            scores += squares[s, value] * outer
            curve = outer
            for t in range(k):
                at = slice(t * v, t * v + v)
                spread = np.diag(shares[t]) - np.outer(shares[t], shares[t])
                extra = spread - np.outer(own[t, value], own[t, value])
                curve[at, at] += u[t, s, value] * extra
            information += counts[s, value] * curve
    inverse = np.linalg.pinv(information, hermitian=True)
    slope = np.zeros((k * v, k * v))
    for t in range(k):
        at = slice(t * v, t * v + v)
        slope[at, at] = np.diag(shares[t]) - np.outer(shares[t], shares[t])
    return np.asarray(slope @ inverse @ scores @ inverse @ slope)
