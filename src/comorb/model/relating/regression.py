"""Regression of an outcome on covariates within clusters, with BCH weights."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, Self

import numpy as np

from comorb.errors import InputError
from comorb.model.arrays import Floats
from comorb.model.blocks import rounded
from comorb.model.frames import Tabular
from comorb.model.relating.classification import FEWEST, Classification, Part, Reach
from comorb.model.relating.likelihood import Fold
from comorb.model.relating.predictors import Design, predicted, unscaled
from comorb.model.relating.wald import Test, Z, overall


@dataclass(frozen=True, eq=False)
class RegressionRelation(Tabular):
    """A linear regression within each cluster.

    Attributes
    ----------
    coefficients, errors : ndarray of shape (k, 1 + p)
        The intercept first, and standard errors (sandwich).
    naive : ndarray of shape (k, 1 + p)
        The coefficients over the records taken for each cluster, not corrected.
    tests : tuple of Test
        For the intercept and each covariate, whether clusters differ in it.
    """

    coefficients: Floats
    errors: Floats
    naive: Floats
    names: tuple[str, ...]
    tests: tuple[Test, ...]
    covariance: Floats = field(repr=False)

    @property
    def low(self) -> Floats:
        """The lower end of each 95% interval."""
        return self.coefficients - Z * self.errors

    @property
    def high(self) -> Floats:
        """The upper end of each 95% interval."""
        return self.coefficients + Z * self.errors

    def columns(self) -> dict[str, Any]:
        """Return a row for each cluster and covariate, by columns."""
        k, width = self.coefficients.shape
        columns = {
            "cluster": np.repeat(np.arange(1, k + 1), width).tolist(),
            "covariate": ["intercept", *self.names] * k,
        }
        parts = ("coefficients", "errors", "low", "high", "naive")
        names = ("coefficient", "error", "low", "high", "naive")
        figures = {
            name: np.ravel(getattr(self, part)).tolist()
            for name, part in zip(names, parts, strict=True)
        }
        return columns | figures


@dataclass(frozen=True, eq=False)
class Products:
    """Sums of products over the records taken for each cluster, (k, …)."""

    table: Floats

    def __add__(self, other: Self) -> Products:
        return Products(self.table + other.table)


def relate(
    column: int, design: Design, classification: Classification, reach: Reach, fold: Fold
) -> RegressionRelation:
    """Return the regression of a column on others in each cluster.

    (Σ B_st w·zzᵀ)⁻¹ Σ B_st w·zy with B = D⁻¹, and the sandwich over records: two passes.
    """
    k = classification.k
    own = list(design.columns)
    constant = [
        name
        for place, name in zip(own, design.names, strict=True)
        if not reach.high[place] > reach.low[place]
    ]
    if constant:
        raise InputError(f"{constant[0]} has the same value in all records; leave it out")
    products = fold(partial(_products, column, design, reach)).table
    inverse = classification.inverse
    breads, beta = _solved(products, inverse)
    _, naive = _solved(products, np.eye(k))
    largest = float((1 + np.abs(beta).sum(axis=1)).max())
    meat = fold(partial(_meat, column, design, beta, largest, reach)).table
    q = len(own) + 1
    scale, centre = reach.scale[column], reach.centre[column]
    back = unscaled(reach.centre[own], reach.scale[own])
    covariance = np.zeros((k, q, k, q))
    for t in range(k):
        for u in range(k):
            inner = np.einsum("s,sab->ab", inverse[:, t] * inverse[:, u], meat[:, t, u])
            covariance[t, :, u] = back @ breads[t] @ inner @ breads[u].T @ back.T * scale**2
    shift = np.zeros(q)
    shift[0] = centre
    coefficients = beta @ back.T * scale + shift
    flat = covariance.reshape(k * q, k * q)
    errors = np.sqrt(np.maximum(np.diag(flat), 0)).reshape(k, q)
    tests = tuple(
        overall(coefficients[:, [c]], covariance[:, c, :, c]) if k > 1 else Test(0.0, 0, 1.0)
        for c in range(q)
    )
    return RegressionRelation(
        coefficients, errors, naive @ back.T * scale + shift, design.names, tests, flat
    )


def _solved(products: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the inverse of each cluster's zzᵀ (k, q, q), and its coefficients (k, q)."""
    sums = np.einsum("st,sab->tab", weights, products)
    q = sums.shape[1] - 1
    breads, beta = [], []
    for t, table in enumerate(sums):
        if table[0, 0] < FEWEST + q or np.linalg.eigvalsh(table[:q, :q])[0] <= 1e-9 * table[0, 0]:
            raise InputError(
                f"cluster {t + 1} has too few records, or the covariates don't vary in it, for a "
                "regression of its own; ask for fewer clusters or covariates"
            )
        breads.append(np.linalg.inv(table[:q, :q]))
        beta.append(breads[-1] @ table[:q, q])
    return np.array(breads), np.array(beta)


def _columns(column: int, design: Design, reach: Reach, part: Part) -> tuple[Floats, Part]:
    """Return 1, the covariates and the outcome of the records that have all, and those."""
    scaled = reach.scaled(part.columns)[:, [*design.columns, column]]
    known = np.isfinite(scaled).all(axis=1)
    kept = Part(part.labels[known], part.posterior[known], part.weights[known], part.columns[known])
    return np.column_stack([np.ones(known.sum()), scaled[known]]), kept


def _products(column: int, design: Design, reach: Reach, part: Part) -> Products:
    z, kept = _columns(column, design, reach, part)
    k, width = part.posterior.shape[1], z.shape[1]
    table = np.zeros((k, width, width))
    for a in range(width):
        for b in range(a, width):
            terms = rounded(kept.weights * z[:, a] * z[:, b], reach.total)
            for label in range(k):
                value = terms[kept.labels == label].sum()
                table[label, a, b] = table[label, b, a] = value
    return Products(table)


def _meat(
    column: int, design: Design, beta: Floats, largest: float, reach: Reach, part: Part
) -> Products:
    """Return Σ w²·e_t·e_u·zzᵀ over the records taken for each s, (s, t, u, q, q)."""
    z, kept = _columns(column, design, reach, part)
    k, q = beta.shape
    errors = z[:, -1:] - predicted(z[:, :-1], beta)
    table = np.zeros((k, k, k, q, q))
    bound = reach.total * reach.largest * largest**2
    for t in range(k):
        for u in range(t, k):
            factor = kept.weights**2 * errors[:, t] * errors[:, u]
            for a in range(q):
                for b in range(a, q):
                    terms = rounded(factor * z[:, a] * z[:, b], bound)
                    sums = np.array([terms[kept.labels == s].sum() for s in range(k)])
                    for i, j in {(a, b), (b, a)}:
                        table[:, t, u, i, j] = table[:, u, t, i, j] = sums
    return Products(table)
