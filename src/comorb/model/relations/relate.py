"""The public functions that relate outcomes, predictors and survival to clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from comorb.errors import InputError
from comorb.model.arrays import Floats
from comorb.model.blocks import MAX_WEIGHT, MIN_WEIGHT, single_threaded
from comorb.model.relations import outcomes, predictors, survival
from comorb.model.relations.classification import (
    Bounds,
    Classification,
    FirstStep,
    Part,
    bounds_of,
    classify,
    indicators,
    outcome_influence,
    overall,
    pairwise,
    predictor_influence,
)
from comorb.model.relations.outcomes import (
    Fold,
    Method,
    OutcomeColumn,
    OutcomeRelation,
    categories_of,
)
from comorb.model.relations.predictors import Design, PredictorRelation, RegressionRelation
from comorb.model.relations.survival import SurvivalRelation


@single_threaded
def relate_outcome(
    posterior: Any,
    y: Any,
    *,
    method: Method = "bch",
    sample_weight: Any = None,
    first_step: FirstStep | None = None,
) -> OutcomeRelation:
    """Relate an outcome to clusters, corrected for uncertain membership.

    Parameters
    ----------
    posterior : array of shape (n, k)
        The probability of each cluster for each record.
    y : array of shape (n,)
        Numbers, or texts and truth values, which become categories. NaN and None are missing.
    method : {"bch", "ml", "naive"}, default="bch"
        BCH weights from the classification matrix; maximum likelihood with the classification
        errors fixed, for numbers that are about normal in each cluster; or no correction: the
        means of the records assigned to each cluster. Where BCH weights fail, because clusters
        hardly differ or a share leaves 0 to 1, maximum likelihood is used and ``notes`` has why.
    sample_weight : array of shape (n,), optional
        How many records each row stands for.
    first_step : FirstStep, optional
        What `comorb.first_step` returns for the model and its records: errors by BCH weights then
        allow for the estimation of the model, too.

    Returns
    -------
    OutcomeRelation
        Means or shares with errors and intervals, naive ones to compare, and Wald tests.

    Examples
    --------
    >>> posterior = np.repeat([[0.9, 0.1], [0.2, 0.8]], 50, axis=0)
    >>> y = np.tile([1.0, 2.0, 3.0, 4.0, 5.0], 20) + np.repeat([0, 2], 50)
    >>> relate_outcome(posterior, y).means.round(2).tolist()
    [2.71, 5.57]
    """
    column, values = _outcome_column(y)
    part, classification, bounds, fold = _prepare(
        posterior, column[:, None], sample_weight, first_step
    )
    found = outcomes.relate(OutcomeColumn(0, values), method, classification, bounds, fold)
    if first_step is None or found.method != "bch":
        return found
    y = column[:, None]
    if values:
        y = np.where(np.isfinite(y), indicators(0, len(values), bounds, part.columns), np.nan)
    means = found.means.reshape(len(found.means), -1)
    influence = outcome_influence(y, means, classification.matrix, part, first_step.influence)
    covariance = influence.T @ influence
    return replace(
        found,
        covariance=covariance,
        errors=np.sqrt(np.diag(covariance)).reshape(found.means.shape),
        overall=overall(means, covariance),
        pairwise=pairwise(means, covariance),
    )


@single_threaded
def relate_predictors(
    posterior: Any,
    Z: Any,  # noqa: N803 - as the literature has it
    *,
    reference: int | None = None,
    sample_weight: Any = None,
    names: Sequence[str] | None = None,
    first_step: FirstStep | None = None,
) -> PredictorRelation:
    """Regress the cluster on covariates by three-step maximum likelihood.

    Parameters
    ----------
    Z : array or frame of shape (n, p)
        Numbers; records with a missing one are left out.
    reference : int, optional
        The place of the cluster that others are compared with; the largest when left out.
    names : sequence of str, optional
        The names of the predictors; a frame's columns when left out.
    posterior, sample_weight, first_step
        As in `relate_outcome`.

    Returns
    -------
    PredictorRelation
        Coefficients and errors (k − 1, 1 + p), odds ratios with intervals, marginal probabilities.
    """
    columns, own = _numbers(Z)
    part, classification, bounds, fold = _prepare(posterior, columns, sample_weight, first_step)
    design = Design(tuple(range(columns.shape[1])), tuple(names or own))
    found = predictors.fit_predictors(design, classification, bounds, fold, reference)
    if first_step is None:
        return found
    beta = np.zeros((classification.k, columns.shape[1] + 1))
    beta[list(found.clusters)] = found.coefficients
    z = np.column_stack([np.ones(len(columns)), columns])
    influence = predictor_influence(z, beta, classification.matrix, part, first_step.influence)
    return predictors.with_covariance(found, influence.T @ influence)


@single_threaded
def relate_regression(
    posterior: Any,
    y: Any,
    Z: Any,  # noqa: N803 - as the literature has it
    *,
    sample_weight: Any = None,
    names: Sequence[str] | None = None,
) -> RegressionRelation:
    """Regress an outcome on covariates within each cluster, with BCH weights.

    Parameters
    ----------
    y : array of shape (n,)
        Numbers.
    Z : array or frame of shape (n, p)
        Numbers; records with a missing one are left out.
    names : sequence of str, optional
        The names of the covariates; a frame's columns when left out.
    posterior, sample_weight
        As in `relate_outcome`.

    Returns
    -------
    RegressionRelation
        Coefficients and errors (k, 1 + p), the intercept first, and naive ones to compare.
    """
    columns, own = _numbers(Z)
    values, _ = _numbers(y)
    known = np.hstack([columns, values[:, :1]])
    _, classification, bounds, fold = _prepare(posterior, known, sample_weight)
    p = columns.shape[1]
    design = Design(tuple(range(p)), tuple(names or own))
    return predictors.fit_regression(p, design, classification, bounds, fold)


@single_threaded
def relate_survival(
    posterior: Any, time: Any, event: Any, *, sample_weight: Any = None
) -> SurvivalRelation:
    """Return a Kaplan–Meier curve for each cluster, with BCH weights.

    Parameters
    ----------
    time : array of shape (n,)
        How long each record was followed up, not negative.
    event : array of shape (n,)
        Whether it ended with the event (1) or without (0).
    posterior, sample_weight
        As in `relate_outcome`.

    Returns
    -------
    SurvivalRelation
        The times of events and each cluster's curve with errors, naive ones to compare.
    """
    columns = np.hstack([_numbers(time)[0], _numbers(event)[0]])
    _, classification, bounds, fold = _prepare(posterior, columns, sample_weight)
    if np.nanmin(columns[:, 0], initial=0.0) < 0:
        raise InputError("relate.negative_times")
    if not np.isin(columns[np.isfinite(columns[:, 1]), 1], (0.0, 1.0)).all():
        raise InputError("relate.events")
    times = fold(partial(survival.sum_times, 0, 1, bounds.total, bounds.largest))
    return survival.curves(times, classification)


def _prepare(
    posterior: Any, columns: Floats, sample_weight: Any, first_step: FirstStep | None = None
) -> tuple[Part, Classification, Bounds, Fold]:
    """Return the records, their classification and bounds, and how statistics are summed."""
    own = np.asarray(posterior, dtype=np.float64)
    if own.ndim != 2 or not len(own) or not np.isfinite(own).all():
        raise InputError("relate.posterior_shape", shape=str(own.shape))
    if (own < 0).any() or np.abs(own.sum(axis=1) - 1).max() > 1e-6:
        raise InputError("relate.posteriors")
    if len(columns) != len(own):
        raise InputError("relate.values", n=len(own), came=len(columns))
    weights = np.ones(len(own))
    if sample_weight is not None:
        weights = np.asarray(sample_weight, dtype=np.float64)
        if weights.shape != (len(own),) or not np.isfinite(weights).all() or (weights < 0).any():
            raise InputError("relate.weights", n=len(own))
        if not MIN_WEIGHT <= float(weights.sum()) <= MAX_WEIGHT:
            raise InputError("weights.sum", low=MIN_WEIGHT, high=MAX_WEIGHT)
    if first_step is not None and first_step.influence.shape[:2] != own.shape:
        raise InputError(
            "relate.first_step",
            n=len(own),
            k=own.shape[1],
            shape=str(first_step.influence.shape[:2]),
        )
    part = Part(own.argmax(axis=1), own, weights, columns)
    total = float(weights.sum())
    return part, classify(total, part), bounds_of(total, part), lambda statistic: statistic(part)


def _outcome_column(y: Any) -> tuple[Floats, tuple[str, ...]]:
    """Return an outcome as numbers, or as places of its categories, and those."""
    plain = np.asarray(y)
    if plain.ndim != 1:
        raise InputError("relate.one_outcome", shape=str(plain.shape))
    if plain.dtype.kind in "fiu":
        return np.where(np.isfinite(plain), plain, np.nan).astype(np.float64), ()
    texts = [None if one is None or one != one else str(one) for one in plain.tolist()]
    values = categories_of([text for text in texts if text is not None])
    place = {value: float(at) for at, value in enumerate(values)}
    return np.array([np.nan if text is None else place[text] for text in texts]), values


def _numbers(given: Any) -> tuple[Floats, tuple[str, ...]]:
    """Return numbers in columns, and the names of those."""
    try:
        plain = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("relate.numbers") from None
    columns = plain[:, None] if plain.ndim == 1 else plain
    if columns.ndim != 2:
        raise InputError("relate.two_dimensions", shape=str(plain.shape))
    names = getattr(given, "columns", None)
    own = [f"z{place + 1}" for place in range(columns.shape[1])] if names is None else names
    return np.where(np.isfinite(columns), columns, np.nan), tuple(map(str, own))
