"""Outcomes of clusters, corrected for uncertain membership: BCH weights and maximum likelihood."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
from scipy.special import softmax

from comorb.errors import InputError
from comorb.messages import Message
from comorb.model.arrays import Floats
from comorb.model.exact_sums import snap_to_grid
from comorb.model.relations.classification import (
    CONFIG,
    Bounds,
    Classification,
    OutcomeSums,
    Pairwise,
    Part,
    Test,
    Z,
    overall,
    pairwise,
    sum_outcome,
)
from comorb.model.tabular import Tabular

# EM for means on a scale of −1 to 1: it ends where a step moves them by less than a reader sees, or
# after so many steps; a standard deviation stays above what squares in float64 resolve.
MAX_STEPS, MIN_STEP, MIN_DEVIATION = 2000, 1e-10, 1e-6

Fold = Callable[[Callable[[Part], Any]], Any]  # the sum of a statistic over all records


def normal_means(
    column: int, matrix: Floats, sizes: Floats, bounds: Bounds, fold: Fold
) -> tuple[Floats, Floats]:
    """Return the mean of a number in each cluster (k, 1) and their sandwich covariance.

    max Σ w log Σ_t π_t D_ts φ(y; m_t, σ_t²), the shares π of the first step and D fixed (Vermunt
    2010), by EM from the overall mean and spread of the records taken for each cluster. One pass
    over the records a step, each O(n·k).
    """
    k = sizes.size
    joint = (sizes / sizes.sum())[:, None] * matrix
    first = fold(partial(_normal_step, column, np.eye(k), np.zeros(k), np.ones(k), bounds))
    means, spreads = _moments(first)
    for _ in range(MAX_STEPS):
        before = means
        means, spreads = _moments(
            fold(partial(_normal_step, column, joint, means, spreads, bounds))
        )
        if np.abs(means - before).max() < MIN_STEP:
            break
    information, scores = fold(partial(_normal_information, column, joint, means, spreads, bounds))
    inverse = np.linalg.pinv(information, hermitian=True)
    covariance = (inverse @ scores @ inverse)[:k, :k]
    scale = bounds.scale[column]
    return (means * scale + bounds.centre[column])[:, None], covariance * scale**2


def _moments(sums: Floats) -> tuple[Floats, Floats]:
    mass = np.maximum(sums[0], 1e-300)
    means = sums[1] / mass
    return means, np.sqrt(np.maximum(sums[2] / mass - means**2, MIN_DEVIATION**2))


def _membership(
    column: int, joint: Floats, means: Floats, s: Floats, bounds: Bounds, part: Part
) -> tuple[Floats, Floats, Floats]:
    """Return the known values, their weights, and P(t | y, s) (n, k) by normal distributions."""
    known = np.isfinite(part.columns[:, column])
    values = (part.columns[known, column] - bounds.centre[column]) / bounds.scale[column]
    far = (values[:, None] - means) / s
    with np.errstate(divide="ignore"):
        logs = np.log(joint)[:, part.labels[known]].T - far**2 / 2 - np.log(s)
    return values, part.weights[known], softmax(logs, axis=1)


def _normal_step(
    column: int, joint: Floats, means: Floats, s: Floats, bounds: Bounds, part: Part
) -> Floats:
    """Return Σ w·u, Σ w·u·y and Σ w·u·y² for each cluster, (3, k)."""
    values, weights, u = _membership(column, joint, means, s, bounds, part)
    mass = weights[:, None] * u
    terms = (mass, mass * values[:, None], mass * values[:, None] ** 2)
    return np.array([snap_to_grid(term, bounds.total).sum(axis=0) for term in terms])


def _normal_information(
    column: int, joint: Floats, means: Floats, s: Floats, bounds: Bounds, part: Part
) -> Floats:
    """Return I and J of the means and log-spreads, (2, 2k, 2k)."""
    values, weights, u = _membership(column, joint, means, s, bounds, part)
    k = means.size
    far = (values[:, None] - means) / s
    own = np.concatenate([far / s, far**2 - 1], axis=1)  # the score of each cluster's density
    scores = np.concatenate([u, u], axis=1) * own
    most = (2 / s.min()) ** 2 * max(1.0, 1 / s.min()) ** 2 + 4
    found = np.zeros((2, 2 * k, 2 * k))
    for a in range(2 * k):
        for b in range(2 * k):
            both = scores[:, a] * scores[:, b]
            curve = both.copy()
            if a % k == b % k:
                curve -= u[:, a % k] * own[:, a] * own[:, b]
                curve += u[:, a % k] * _curvature(a < k, b < k, far[:, a % k], s[a % k])
            squared = bounds.total * bounds.largest * most
            found[0, a, b] = snap_to_grid(weights * curve, bounds.total * most).sum()
            found[1, a, b] = snap_to_grid(weights**2 * both, squared).sum()
    return found


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
    joint = (sizes / sizes.sum())[:, None] * matrix  # (t, s)
    shares = np.tile((counts.sum(axis=0) + 0.5) / (counts.sum() + 0.5 * v), (k, 1))
    belonging = np.zeros((k, k, v))
    for _ in range(MAX_STEPS):
        belonging = joint[:, :, None] * shares[:, None, :]
        belonging /= np.maximum(belonging.sum(axis=0), 1e-300)
        mass = (belonging * counts).sum(axis=1)
        before, shares = shares, mass / np.maximum(mass.sum(axis=1, keepdims=True), 1e-300)
        if np.abs(shares - before).max() < MIN_STEP:
            break
    return shares, _category_covariance(belonging, shares, counts, squares)


def _category_covariance(u: Floats, shares: Floats, counts: Floats, squares: Floats) -> Floats:
    """Return the covariance of shares (kv, kv), from that of their logits: I⁻¹ J I⁻¹."""
    k, v = shares.shape
    information, scores, slope = np.zeros((3, k * v, k * v))
    for t in range(k):
        at = slice(t * v, t * v + v)
        slope[at, at] = np.diag(shares[t]) - np.outer(shares[t], shares[t])
    own = np.eye(v)[None] - shares[:, None, :]  # (t, v, v'): the score of each logit
    for s in range(k):
        for value in range(v):
            score = (u[:, s, value, None] * own[:, value]).ravel()
            outer = np.outer(score, score)
            scores += squares[s, value] * outer
            curve = outer
            for t in range(k):
                at = slice(t * v, t * v + v)
                extra = slope[at, at] - np.outer(own[t, value], own[t, value])
                curve[at, at] += u[t, s, value] * extra
            information += counts[s, value] * curve
    inverse = np.linalg.pinv(information, hermitian=True)
    return np.asarray(slope @ inverse @ scores @ inverse @ slope)


Method = Literal["bch", "ml", "naive"]
METHODS = get_args(Method)
SHARE_ROUNDING = 1e-9  # how far outside 0 to 1 a share may be by rounding


@dataclass(frozen=True, eq=False)
class OutcomeRelation(Tabular):
    """An outcome in each cluster: means of a number (k,), or shares of categories (k, v).

    Attributes
    ----------
    means, errors : ndarray
        Corrected estimates, and their standard errors.
    naive, naive_errors : ndarray
        The same over the records whose most probable cluster it is, not corrected.
    low, high : ndarray
        The ends of 95% intervals, of shares between 0 and 1.
    overall : Test
        Whether the clusters differ at all.
    pairwise : tuple of Pairwise
        Whether two clusters differ, for each pair.
    effective : ndarray of shape (k,)
        How many records with a certain cluster the estimate of each is worth.
    values : tuple
        The categories; none for a number.
    method : str
        "bch", "ml" or "naive".
    notes : tuple of str
        What a reader should know, such as why another method was taken.
    covariance : ndarray
        Of the means, cluster by cluster.
    """

    means: Floats
    errors: Floats
    naive: Floats
    naive_errors: Floats
    overall: Test
    pairwise: tuple[Pairwise, ...]
    effective: Floats
    method: str
    values: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    covariance: Floats = field(default_factory=lambda: np.empty((0, 0)), repr=False)

    @property
    def low(self) -> Floats:
        """The lower end of each 95% interval."""
        ends = self.means - Z * self.errors
        return np.maximum(ends, 0) if self.values else ends

    @property
    def high(self) -> Floats:
        """The upper end of each 95% interval."""
        ends = self.means + Z * self.errors
        return np.minimum(ends, 1) if self.values else ends

    def columns(self) -> dict[str, Any]:
        """Return a row for each cluster and category, by columns."""
        k = len(self.means)
        values = self.values or ("mean",)
        columns = {
            "cluster": np.repeat(np.arange(1, k + 1), len(values)).tolist(),
            "value": list(values) * k,
        }
        return columns | self._figures(
            estimate="means",
            error="errors",
            low="low",
            high="high",
            naive="naive",
            naive_error="naive_errors",
        )


@dataclass(frozen=True)
class OutcomeColumn:
    """An outcome: its column, its categories (none for a number) and its name, for messages."""

    column: int
    values: tuple[str, ...] = ()
    name: str = "the outcome"


def relate(
    outcome: OutcomeColumn,
    method: Method,
    classification: Classification,
    bounds: Bounds,
    fold: Fold,
) -> OutcomeRelation:
    """Return an outcome in each cluster, from sums over all records; O(n·(k + m²)).

    Refuses an outcome without values or variation, and a cluster of too few records.
    """
    check_outcome(outcome, method, bounds)
    sums: OutcomeSums = fold(partial(sum_outcome, outcome.column, len(outcome.values), bounds))
    return relate_sums(outcome, method, classification, bounds, sums, fold)


def check_outcome(outcome: OutcomeColumn, method: Method, bounds: Bounds) -> None:
    """Refuse an outcome without values or variation, and an unknown method."""
    if method not in METHODS:
        raise InputError("relate.method", methods=METHODS, method=method)
    column = outcome.column
    if not bounds.known[column]:
        raise InputError("relate.missing", name=outcome.name)
    if bounds.low[column] == bounds.high[column]:
        raise InputError("relate.constant", name=outcome.name)


def relate_sums(
    outcome: OutcomeColumn,
    method: Method,
    classification: Classification,
    bounds: Bounds,
    sums: OutcomeSums,
    fold: Fold,
) -> OutcomeRelation:
    """Return an outcome in each cluster from sums that are made already."""
    k = classification.k
    naive = weighted_means(sums, np.eye(k), outcome)
    notes: tuple[str, ...] = ()
    effective = naive.effective
    if method == "naive" or k == 1:
        means, covariance = naive.means, naive.covariance
    else:
        why: str | None = Message("relate.why_inseparable")
        if classification.condition <= CONFIG.max_condition:
            bch = weighted_means(sums, classification.inverse, outcome)
            effective, means, covariance = bch.effective, bch.means, bch.covariance
            why, notes = bch.failed, bch.notes
        if why and method == "bch":
            notes = (Message("relate.by_likelihood", name=outcome.name, why=why),)
            method = "ml"
        if method == "ml":
            matrix, sizes = classification.matrix, classification.sizes
            if outcome.values:
                means, covariance = category_shares(sums, matrix, sizes)
            else:
                scaled, covariance = normal_means(outcome.column, matrix, sizes, bounds, fold)
                means = (scaled - bounds.centre[outcome.column]) / bounds.scale[outcome.column]
                covariance = covariance / bounds.scale[outcome.column] ** 2
    scale, shift, own = bounds.scale[outcome.column], bounds.centre[outcome.column], means[:, 0]
    if outcome.values:
        scale, shift, own = 1.0, 0.0, means
    errors, naive_errors = (
        np.sqrt(np.maximum(np.diag(table), 0)).reshape(own.shape) * scale
        for table in (covariance, naive.covariance)
    )
    return OutcomeRelation(
        own * scale + shift,
        errors,
        naive.means.reshape(own.shape) * scale + shift,
        naive_errors,
        overall(means, covariance) if k > 1 else Test(0.0, 0, 1.0),
        pairwise(means, covariance),
        effective,
        method,
        outcome.values,
        notes,
        covariance * scale**2,
    )


@dataclass(frozen=True, eq=False)
class Means:
    """Means (k, m) by weights for each assigned cluster, their covariance, and why they fail."""

    means: Floats
    covariance: Floats
    effective: Floats
    failed: str | None
    notes: tuple[str, ...] = ()


def weighted_means(sums: OutcomeSums, weights: Floats, outcome: OutcomeColumn) -> Means:
    """Return Σ_s B_st Σ w·y / Σ_s B_st Σ w for each cluster t, and the sandwich of it.

    The influence of a record on m_t is B_st·w·(y − m_t) / A_t, so that the covariance of two means
    needs no more than Σ w²·(1, y)(1, y)ᵀ of the records taken for each s. B = D⁻¹ is BCH, B = I
    is naive.
    """
    k, m = sums.squares.shape
    mass = weights.T @ sums.first  # (t, 1 + m)
    square = (weights**2).T @ sums.second[:, 0, 0]
    effective = np.where(mass[:, 0] > 0, mass[:, 0] ** 2 / np.maximum(square, 1e-300), 0.0)
    few = int(np.argmin(effective))
    if effective[few] < CONFIG.min_effective:
        raise InputError(
            "relate.few_records",
            cluster=few + 1,
            effective=effective[few],
            name=outcome.name,
            least=CONFIG.min_effective,
        )
    means = mass[:, 1:] / mass[:, :1]
    covariance = np.zeros((k, m, k, m))
    for t in range(k):
        for u in range(k):
            both = np.einsum("s,sab->ab", weights[:, t] * weights[:, u], sums.second)
            left = np.hstack([-means[t][:, None], np.eye(m)])
            right = np.hstack([-means[u][:, None], np.eye(m)])
            covariance[t, :, u] = left @ both @ right.T / (mass[t, 0] * mass[u, 0])
    failed: str | None = None
    notes: tuple[str, ...] = ()
    if outcome.values and ((means < -SHARE_ROUNDING) | (means > 1 + SHARE_ROUNDING)).any():
        failed = Message("relate.why_shares")
    spread = weights.T @ sums.squares / mass[:, :1] - means**2
    if not outcome.values and (spread <= 0).any():
        worst = np.argmin(spread) + 1
        notes = (Message("relate.negative_variance", name=outcome.name, cluster=worst),)
    return Means(means, covariance.reshape(k * m, k * m), effective, failed, notes)


def categories_of(values: Sequence[str]) -> tuple[str, ...]:
    """Return distinct values in the order of a table: numbers by size, then texts."""

    def place(value: str) -> tuple[float, str]:
        try:
            return float(value), ""
        except ValueError:
            return float("inf"), value

    return tuple(sorted(set(values), key=place))
