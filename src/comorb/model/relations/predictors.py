"""Predictors of membership, and regressions within clusters, corrected for uncertain membership."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.special import softmax

from comorb.errors import InputError
from comorb.messages import Message
from comorb.model.arrays import Floats, Ints
from comorb.model.exact_sums import Sums, snap_to_grid
from comorb.model.relations.classification import (
    CONFIG,
    Bounds,
    Classification,
    Part,
    Test,
    Z,
    overall,
    wald,
)
from comorb.model.relations.outcomes import Fold
from comorb.model.tabular import Tabular

# Newton steps end at a gain in nats a record that is near float64's rounding, and take about ten;
# a step is halved where it loses, and none is longer than ``MAX_MOVE`` on the scale of log-odds.
MAX_STEPS, MIN_GAIN, MAX_HALVINGS, MAX_MOVE = 60, 1e-11, 30, 4.0
# A log-odds across half of what a predictor spans. Beyond it the odds are 1 to 160,000: the
# predictor separates clusters, and the estimate has no bound (Albert and Anderson 1984).
SEPARATION = 12.0
MIN_EIGENVALUE = 1e-10  # of predictors' correlations: below, one is computed from others


@dataclass(frozen=True, eq=False)
class PredictorRelation(Tabular):
    """A multinomial regression of the cluster on covariates.

    Attributes
    ----------
    coefficients, errors : ndarray of shape (k − 1, 1 + p)
        Log-odds against the reference, the intercept first, and their standard errors.
    clusters : tuple of int
        The place of each row's cluster.
    reference : int
        The place of the cluster that the others are compared with.
    odds_ratios, low, high : ndarray of shape (k − 1, 1 + p)
        exp of the coefficients, and the ends of their 95% intervals.
    naive : ndarray of shape (k − 1, 1 + p)
        The coefficients by the most probable clusters, not corrected.
    tests : tuple of Test
        For each predictor, whether it separates clusters at all.
    marginal : ndarray of shape (p, 2, k)
        The mean probability of each cluster, were the predictor of all records one standard
        deviation below (or 0, of two values) and above its mean (or 1).
    points : ndarray of shape (p, 2)
        The two values of each predictor that ``marginal`` is at.
    records : float
        How many have all predictors.
    """

    coefficients: Floats
    errors: Floats
    naive: Floats
    clusters: tuple[int, ...]
    reference: int
    names: tuple[str, ...]
    tests: tuple[Test, ...]
    marginal: Floats
    points: Floats
    records: float
    covariance: Floats = field(repr=False)
    notes: tuple[str, ...] = ()

    @property
    def odds_ratios(self) -> Floats:
        """By how much one unit multiplies the odds."""
        return np.exp(self.coefficients)

    @property
    def low(self) -> Floats:
        """The lower end of each odds ratio's 95% interval."""
        return np.asarray(np.exp(self.coefficients - Z * self.errors))

    @property
    def high(self) -> Floats:
        """The upper end of each odds ratio's 95% interval."""
        return np.asarray(np.exp(self.coefficients + Z * self.errors))

    def columns(self) -> dict[str, Any]:
        """Return a row for each cluster and predictor, by columns."""
        width = len(self.names) + 1
        columns = {
            "cluster": np.repeat(np.array(self.clusters) + 1, width).tolist(),
            "reference": [self.reference + 1] * (len(self.clusters) * width),
            "predictor": ["intercept", *self.names] * len(self.clusters),
        }
        return columns | self._figures(
            coefficient="coefficients",
            error="errors",
            odds_ratio="odds_ratios",
            low="low",
            high="high",
            naive="naive",
        )


@dataclass(frozen=True, eq=False)
class Step(Sums):
    """Log-likelihood, gradient (k, q), −Hessian and Σ gradient², (kq, kq), over some records."""

    likelihood: float
    gradient: Floats
    curvature: Floats
    outer: Floats


@dataclass(frozen=True)
class Design:
    """The columns that are predictors, with their names."""

    columns: tuple[int, ...]
    names: tuple[str, ...]


def fit_predictors(
    design: Design,
    classification: Classification,
    bounds: Bounds,
    fold: Fold,
    reference: int | None = None,
) -> PredictorRelation:
    """Return the regression of the true cluster on predictors (Vermunt 2010; R3STEP).

    max Σ w log Σ_t π_t(z) D_ts with π the softmax of z·β, by Newton steps on additive gradients
    and Hessians, predictors between −1 and 1; the errors are the sandwich's. A pass over the
    records a step, O(n·k²·q²).
    """
    k = classification.k
    if k < 2:
        raise InputError("relate.one_cluster")
    base = int(np.argmax(classification.sizes)) if reference is None else reference
    if not 0 <= base < k:
        raise InputError("relate.reference_place", limit=k - 1, came=base)
    products = _check_predictors(design, bounds, fold)
    own = list(design.columns)
    centre, scale = bounds.centre[own], bounds.scale[own]
    beta, covariance = _maximise(design, classification.matrix, base, bounds, fold)
    naive, _ = _maximise(design, np.eye(k), base, bounds, fold)
    points = _points(products)
    margins = fold(partial(_sum_margins, design, beta, points, bounds))
    free = [t for t in range(k) if t != base]
    back = unscaling_matrix(centre, scale)
    whole = np.kron(np.eye(k - 1), back)
    covariance = whole @ covariance @ whole.T
    coefficients = beta[free] @ back.T
    records = float(products[0, 0])
    left = bounds.total - records
    return PredictorRelation(
        coefficients,
        np.sqrt(np.maximum(np.diag(covariance), 0)).reshape(coefficients.shape),
        naive[free] @ back.T,
        tuple(free),
        base,
        design.names,
        _tests(coefficients, covariance),
        margins / records,
        points * scale[:, None] + centre[:, None],
        records,
        covariance,
        (Message("relate.incomplete", n=round(left)),) if left > 0.5 else (),
    )


def _check_predictors(design: Design, bounds: Bounds, fold: Fold) -> Floats:
    """Return Σ w·zzᵀ; refuse predictors that are missing, constant or computed from each other."""
    for column, name in zip(design.columns, design.names, strict=True):
        if not bounds.known[column]:
            raise InputError("relate.missing_predictor", name=name)
        if bounds.low[column] == bounds.high[column]:
            raise InputError("relate.constant_predictor", name=name)
    products: Floats = fold(partial(_sum_products, design, bounds))
    records = products[0, 0]
    if records < CONFIG.min_effective:
        raise InputError(
            "relate.few_complete", records=records, names=design.names, least=CONFIG.min_effective
        )
    means = products[0, 1:] / records
    spread = products[1:, 1:] / records - np.outer(means, means)
    roots = np.sqrt(np.maximum(np.diag(spread), 1e-300))
    values, vectors = np.linalg.eigh(spread / np.outer(roots, roots))
    if values.size and values[0] < MIN_EIGENVALUE:
        most = [design.names[i] for i in np.flatnonzero(np.abs(vectors[:, 0]) > 0.1)]
        raise InputError("relate.collinear", names=most)
    return products


def _complete(columns: Sequence[int], bounds: Bounds, part: Part) -> tuple[Floats, Floats, Ints]:
    """Return 1 and the scaled columns, weights and labels of the records that have them all."""
    z = bounds.scaled(part.columns)[:, list(columns)]
    known = np.isfinite(z).all(axis=1)
    ones = np.ones(np.count_nonzero(known))
    return np.column_stack([ones, z[known]]), part.weights[known], part.labels[known]


def _sum_products(design: Design, bounds: Bounds, part: Part) -> Floats:
    """Return Σ w·zzᵀ, (1 + p, 1 + p)."""
    z, weights, _ = _complete(design.columns, bounds, part)
    q = z.shape[1]
    terms = (snap_to_grid(weights[:, None] * z[:, a, None] * z, bounds.total) for a in range(q))
    return np.array([term.sum(axis=0) for term in terms])


def _maximise(
    design: Design, matrix: Floats, base: int, bounds: Bounds, fold: Fold
) -> tuple[Floats, Floats]:
    """Return coefficients (k, q), 0 for the reference, and the covariance of the others."""
    k, q = matrix.shape[0], len(design.columns) + 1
    places = np.array([t * q + c for t in range(k) if t != base for c in range(q)])
    beta = np.zeros((k, q))
    here: Step = fold(partial(_step, design, matrix, beta, bounds))
    for _ in range(MAX_STEPS):
        curvature = here.curvature[np.ix_(places, places)]
        least = np.linalg.eigvalsh(curvature)[0]
        if least <= 0:
            curvature = curvature + np.eye(places.size) * (1e-6 * bounds.total - 2 * least)
        move = np.zeros(k * q)
        move[places] = np.linalg.solve(curvature, here.gradient.ravel()[places])
        length = min(1.0, MAX_MOVE / max(float(np.abs(move).max()), 1e-300))
        there, target = here, beta
        for _ in range(MAX_HALVINGS):
            target = beta + length * move.reshape(k, q)
            there = fold(partial(_step, design, matrix, target, bounds))
            if there.likelihood >= here.likelihood:
                break
            length /= 2
        else:
            break
        gained = there.likelihood - here.likelihood
        beta, here = target, there
        far = np.abs(beta[:, 1:])
        if far.size and far.max() > SEPARATION:
            t, column = np.unravel_index(int(far.argmax()), far.shape)
            raise InputError(
                "relate.separates", name=design.names[int(column)], cluster=t + 1, base=base + 1
            )
        if gained < MIN_GAIN * bounds.total:
            break
    inverse = np.linalg.pinv(here.curvature[np.ix_(places, places)], hermitian=True)
    covariance = inverse @ here.outer[np.ix_(places, places)] @ inverse
    return beta, covariance


def _step(design: Design, matrix: Floats, beta: Floats, bounds: Bounds, part: Part) -> Step:
    """Return one Newton step's sums.

    u_t ∝ π_t D_ts; gradient (u − π) ⊗ z; −Hessian [(diag π − ππᵀ) − (diag u − uuᵀ)] ⊗ zzᵀ.
    """
    z, weights, labels = _complete(design.columns, bounds, part)
    pi = softmax(linear_predictor(z, beta), axis=1)
    joint = np.maximum(pi * matrix[:, labels].T, 1e-300)
    density = joint.sum(axis=1)
    u = joint / density[:, None]
    k, q = beta.shape
    error = u - pi
    bound, squared = bounds.total, bounds.total * bounds.largest
    gradient = np.zeros((k, q))
    curvature, outer = np.zeros((k, q, k, q)), np.zeros((k, q, k, q))
    pairs = [(c, d, z[:, c] * z[:, d]) for c in range(q) for d in range(c, q)]
    for a in range(k):
        gradient[a] = snap_to_grid(weights[:, None] * error[:, a, None] * z, bound).sum(axis=0)
        for b in range(a, k):
            bend = u[:, a] * u[:, b] - pi[:, a] * pi[:, b]
            if a == b:
                bend += pi[:, a] - u[:, a]
            for table, factor, most in (
                (curvature, weights * bend, bound),
                (outer, weights**2 * error[:, a] * error[:, b], squared),
            ):
                for c, d, both in pairs:
                    value = snap_to_grid(factor * both, most).sum()
                    table[a, c, b, d] = table[a, d, b, c] = value
                    table[b, c, a, d] = table[b, d, a, c] = value
    likelihood = float(snap_to_grid(weights * np.log(density), bound * 1024).sum())
    shape = (k * q, k * q)
    return Step(likelihood, gradient, curvature.reshape(shape), outer.reshape(shape))


def _tests(coefficients: Floats, covariance: Floats) -> tuple[Test, ...]:
    """Return for each predictor whether it separates clusters at all."""
    q = coefficients.shape[1]
    return tuple(
        wald(coefficients[:, column], covariance[column::q, column::q]) for column in range(1, q)
    )


def with_covariance(found: PredictorRelation, covariance: Floats) -> PredictorRelation:
    """Return a regression with another covariance, and the errors and tests that follow."""
    errors = np.sqrt(np.maximum(np.diag(covariance), 0)).reshape(found.coefficients.shape)
    tests = _tests(found.coefficients, covariance)
    return replace(found, covariance=covariance, errors=errors, tests=tests)


def _points(products: Floats) -> Floats:
    """Return the two scaled values of each predictor that marginal probabilities are at."""
    means, squares = products[0, 1:] / products[0, 0], np.diag(products)[1:] / products[0, 0]
    roots = np.sqrt(np.maximum(squares - means**2, 0))
    binary = np.abs(squares - 1) < 1e-9  # all at −1 or 1
    low = np.where(binary, -1.0, np.maximum(means - roots, -1))
    high = np.where(binary, 1.0, np.minimum(means + roots, 1))
    return np.column_stack([low, high])


def _sum_margins(
    design: Design, beta: Floats, points: Floats, bounds: Bounds, part: Part
) -> Floats:
    """Return the sum of each cluster's probabilities at each of the points, (p, 2, k)."""
    z, weights, _ = _complete(design.columns, bounds, part)
    table = np.zeros((*points.shape, beta.shape[0]))
    for column, pair in enumerate(points):
        for at, value in enumerate(pair):
            moved = z.copy()
            moved[:, column + 1] = value
            share = softmax(linear_predictor(moved, beta), axis=1)
            table[column, at] = snap_to_grid(weights[:, None] * share, bounds.total).sum(axis=0)
    return table


def linear_predictor(z: Floats, beta: Floats) -> Floats:
    """Return z·βᵀ, (n, k); the bits of a row don't depend on the other rows."""
    terms = (z[:, c, None] * beta[:, c] for c in range(z.shape[1]))
    return np.asarray(sum(terms, np.zeros((z.shape[0], beta.shape[0]))))


def unscaling_matrix(centre: Floats, scale: Floats) -> Any:
    """Return the matrix that takes coefficients on scaled columns to those on the columns."""
    q = centre.size + 1
    back = np.zeros((q, q))
    back[0, 0] = 1.0
    back[0, 1:] = -centre / scale
    back[np.arange(1, q), np.arange(1, q)] = 1 / scale
    return back


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
        return columns | self._figures(
            coefficient="coefficients", error="errors", low="low", high="high", naive="naive"
        )


def fit_regression(
    column: int, design: Design, classification: Classification, bounds: Bounds, fold: Fold
) -> RegressionRelation:
    """Return the regression of a column on others in each cluster.

    (Σ B_st w·zzᵀ)⁻¹ Σ B_st w·zy with B = D⁻¹, and the sandwich over records: two passes.
    """
    k = classification.k
    own = list(design.columns)
    for place, name in zip(own, design.names, strict=True):
        if not bounds.high[place] > bounds.low[place]:
            raise InputError("relate.constant_covariate", name=name)
    products = fold(partial(_products, column, design, bounds))
    inverse = classification.inverse
    breads, beta = _solve(products, inverse)
    _, naive = _solve(products, np.eye(k))
    largest = float((1 + np.abs(beta).sum(axis=1)).max())
    meat = fold(partial(_meat, column, design, beta, largest, bounds))
    q = len(own) + 1
    scale, centre = bounds.scale[column], bounds.centre[column]
    back = unscaling_matrix(bounds.centre[own], bounds.scale[own])
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


def _solve(products: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the inverse of each cluster's zzᵀ (k, q, q), and its coefficients (k, q)."""
    sums = np.einsum("st,sab->tab", weights, products)
    q = sums.shape[1] - 1
    breads, beta = [], []
    for t, table in enumerate(sums):
        if (
            table[0, 0] < CONFIG.min_effective + q
            or np.linalg.eigvalsh(table[:q, :q])[0] <= 1e-9 * table[0, 0]
        ):
            raise InputError("relate.no_regression", cluster=t + 1)
        breads.append(np.linalg.inv(table[:q, :q]))
        beta.append(breads[-1] @ table[:q, q])
    return np.array(breads), np.array(beta)


def _products(column: int, design: Design, bounds: Bounds, part: Part) -> Floats:
    """Return Σ w·zzᵀ, the outcome last in z, over the records taken for each cluster, (k, …)."""
    z, weights, labels = _complete([*design.columns, column], bounds, part)
    k, width = part.posterior.shape[1], z.shape[1]
    table = np.zeros((k, width, width))
    for a in range(width):
        for b in range(a, width):
            terms = snap_to_grid(weights * z[:, a] * z[:, b], bounds.total)
            table[:, a, b] = table[:, b, a] = np.bincount(labels, terms, k)
    return table


def _meat(
    column: int, design: Design, beta: Floats, largest: float, bounds: Bounds, part: Part
) -> Floats:
    """Return Σ w²·e_t·e_u·zzᵀ over the records taken for each s, (s, t, u, q, q)."""
    z, weights, labels = _complete([*design.columns, column], bounds, part)
    k, q = beta.shape
    errors = z[:, -1:] - linear_predictor(z[:, :-1], beta)
    table = np.zeros((k, k, k, q, q))
    bound = bounds.total * bounds.largest * largest**2
    for t in range(k):
        for u in range(t, k):
            factor = weights**2 * errors[:, t] * errors[:, u]
            for a in range(q):
                for b in range(a, q):
                    terms = snap_to_grid(factor * z[:, a] * z[:, b], bound)
                    sums = np.bincount(labels, terms, k)
                    for i, j in {(a, b), (b, a)}:
                        table[:, t, u, i, j] = table[:, u, t, i, j] = sums
    return table
