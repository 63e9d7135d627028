"""Outcomes: the mean or the shares of what follows in each cluster, corrected for chance labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import numpy as np

from comorb.errors import InputError
from comorb.model.arrays import Floats
from comorb.model.frames import Tabular
from comorb.model.relating.classification import (
    FEWEST,
    SINGULAR,
    Classification,
    Reach,
)
from comorb.model.relating.likelihood import Fold, category_shares, normal_means
from comorb.model.relating.sums import OutcomeSums, sum_outcome
from comorb.model.relating.wald import Pairwise, Test, Z, overall, pairwise

Method = Literal["bch", "ml", "naive"]
METHODS = ("bch", "ml", "naive")
WITHIN = 1e-9  # how far outside 0 to 1 a share may be by rounding


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
        plain: dict[str, Any] = {
            "cluster": np.repeat(np.arange(1, k + 1), len(values)).tolist(),
            "value": list(values) * k,
        }
        columns = ("means", "errors", "low", "high", "naive", "naive_errors")
        names = ("estimate", "error", "low", "high", "naive", "naive_error")
        figures = {
            name: np.ravel(getattr(self, column)).tolist()
            for name, column in zip(names, columns, strict=True)
        }
        return plain | figures


@dataclass(frozen=True)
class Named:
    """An outcome: its column, its categories (none for a number) and its name, for messages."""

    column: int
    values: tuple[str, ...] = ()
    name: str = "the outcome"


def relate(
    named: Named, method: Method, classification: Classification, reach: Reach, fold: Fold
) -> OutcomeRelation:
    """Return an outcome in each cluster, from sums over all records; O(n·(k + m²)).

    Refuses an outcome without values or variation, and a cluster of which too few records tell.
    """
    check_outcome(named, method, reach)
    sums: OutcomeSums = fold(partial(sum_outcome, named.column, len(named.values), reach))
    return related(named, method, classification, reach, sums, fold)


def check_outcome(named: Named, method: Method, reach: Reach) -> None:
    """Refuse an outcome without values or variation, and a method that there is not."""
    if method not in METHODS:
        raise InputError(f"expected a method out of {', '.join(METHODS)}, got {method!r}")
    column = named.column
    if not reach.known[column]:
        raise InputError(
            f"{named.name} is missing in all records; give values of it, or leave it out"
        )
    if reach.low[column] == reach.high[column]:
        raise InputError(
            f"{named.name} has the same value in all records that have one, so that clusters "
            "can't differ in it; leave it out"
        )


def related(
    named: Named,
    method: Method,
    classification: Classification,
    reach: Reach,
    sums: OutcomeSums,
    fold: Fold,
) -> OutcomeRelation:
    """Return the same from the sums, where those are made already."""
    k = classification.k
    naive = weighted_means(sums, np.eye(k), named)
    notes: tuple[str, ...] = ()
    effective = naive.effective
    if method == "naive" or k == 1:
        means, covariance = naive.means, naive.covariance
    else:
        why: str | None = "the clusters can hardly be told apart"
        if classification.condition <= SINGULAR:
            bch = weighted_means(sums, classification.inverse, named)
            effective, means, covariance = bch.effective, bch.means, bch.covariance
            why, notes = bch.failed, bch.notes
        if why and method == "bch":
            notes = (f"{named.name} is estimated by maximum likelihood, as {why}",)
            method = "ml"
        if method == "ml":
            matrix, sizes = classification.matrix, classification.sizes
            if named.values:
                means, covariance = category_shares(sums, matrix, sizes)
            else:
                scaled, covariance = normal_means(named.column, matrix, sizes, reach, fold)
                means = (scaled - reach.centre[named.column]) / reach.scale[named.column]
                covariance = covariance / reach.scale[named.column] ** 2
    scale = 1.0 if named.values else reach.scale[named.column]
    shift = 0.0 if named.values else reach.centre[named.column]
    drop = slice(None) if named.values else 0
    errors = _roots(covariance).reshape(means.shape)
    many = k > 1
    return OutcomeRelation(
        (means * scale + shift)[:, drop],
        (errors * scale)[:, drop],
        (naive.means * scale + shift)[:, drop],
        (_roots(naive.covariance).reshape(means.shape) * scale)[:, drop],
        overall(means, covariance) if many else Test(0.0, 0, 1.0),
        pairwise(means, covariance) if many else (),
        effective,
        method,
        named.values,
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


def weighted_means(sums: OutcomeSums, weights: Floats, named: Named) -> Means:
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
    if effective[few] < FEWEST:
        raise InputError(
            f"cluster {few + 1} has {effective[few]:.1f} effective records with a value of "
            f"{named.name}, and {FEWEST:g} are needed; ask for fewer clusters, or leave it out"
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
    if named.values and ((means < -WITHIN) | (means > 1 + WITHIN)).any():
        failed = "its BCH weights give a share below 0 or above 1"
    spread = weights.T @ sums.squares / mass[:, :1] - means**2
    if not named.values and (spread <= 0).any():
        notes = (
            f"the BCH weights of {named.name} give a negative variance in cluster "
            f"{int(np.argmin(spread)) + 1}: its mean stands, but is of a few large values; look "
            'at method "ml" where it is about normal in each cluster',
        )
    return Means(means, covariance.reshape(k * m, k * m), effective, failed, notes)


def _roots(covariance: Floats) -> Floats:
    return np.asarray(np.sqrt(np.maximum(np.diag(covariance), 0)))


def categories_of(values: Sequence[str]) -> tuple[str, ...]:
    """Return distinct values in the order of a table: numbers by size, then words."""

    def place(value: str) -> tuple[float, str]:
        try:
            return float(value), ""
        except ValueError:
            return float("inf"), value

    return tuple(sorted(set(values), key=place))
