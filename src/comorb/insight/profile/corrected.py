"""Corrected outcomes: per cluster, but for the records that are taken for another's than theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from comorb.errors import InputError
from comorb.insight.profile.contents import Corrected
from comorb.insight.profile.intervals import Z, wilson
from comorb.model.arrays import Floats, Ints
from comorb.model.relating.classification import Classification, Part, reach_of
from comorb.model.relating.outcome import Named, OutcomeRelation, relate

if TYPE_CHECKING:
    from comorb.insight.profile.profile import Profile

PLACES = 6  # of the classification matrix, as many as the profile's document has


def classification_of(table: Floats) -> Classification:
    """Return the classification of some records, to the digits that are written."""
    sizes = np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
    return Classification(np.round(table / sizes, PLACES) * sizes)


def classification_rows(table: Floats) -> tuple[tuple[float, ...], ...]:
    """Return how often a record of each cluster is taken for one of each; none of empty ones."""
    if (table.sum(axis=1) <= 0).any() or len(table) < 2:
        return ()
    shares = np.round(table / table.sum(axis=1, keepdims=True), PLACES)
    return tuple(tuple(row) for row in shares.tolist())


def correct(
    columns: Floats,
    values: tuple[str, ...],
    labels: Ints,
    weights: Floats,
    classification: Classification | None,
) -> OutcomeRelation | None:
    """Return one outcome, a number or places of ``values``, related to clusters by BCH weights.

    None where nothing can be corrected: one cluster, one value, or a cluster of which too few
    records tell.
    """
    if classification is None or classification.k < 2:
        return None
    nobody = np.broadcast_to(0.0, (labels.size, classification.k))
    part = Part(labels, np.asarray(nobody), weights, columns[:, None])
    reach = reach_of(max(float(weights.sum()), 1e-300), part)
    try:
        return relate(Named(0, values), "bch", classification, reach, lambda sums: sums(part))
    except InputError:
        return None


def corrected_shares(
    relation: OutcomeRelation | None, naive: Floats, shown: int
) -> Corrected | None:
    """Return the shares of the first categories (v, k + 1), with Wilson's intervals.

    They are for as many records as have the error of the share, or of one error where the share
    is nearer to 0 or 1 than that: there few records would seem to have told it. The last column is
    that of all records, which needs no correction: (3, v) as ``naive``.
    """
    if relation is None:
        return None
    share = np.clip(relation.means[:, :shown], 0, 1).T
    error = np.minimum(relation.errors[:, :shown].T, 0.5)
    inside = np.clip(share, error, 1 - error)
    known = np.divide(inside * (1 - inside), error**2, out=np.zeros_like(share), where=error > 0)
    size = np.where(known > 0, known, relation.effective)
    figures = (share, *wilson(share, size))
    return Corrected(
        *(np.round(np.column_stack([own, naive[at]]), 6) for at, own in enumerate(figures))
    )


def corrected_mean(
    relation: OutcomeRelation | None, median: Floats, naive: Floats
) -> Corrected | None:
    """Return the mean with its interval above the median, which is not corrected: (2, k + 1) each.

    ``median`` (3, k + 1) and the mean of all records, ``naive`` (3,), are as they were.
    """
    if relation is None:
        return None
    half = Z * relation.errors
    figures = (relation.means, relation.means - half, relation.means + half)
    return Corrected(
        *(
            np.round(np.vstack([np.append(own, naive[at]), median[at]]), 6)
            for at, own in enumerate(figures)
        )
    )


def corrected_again(
    naive: Floats, half: Floats, known: Floats, shares: Floats, matrix: Floats
) -> tuple[Floats, Floats]:
    """Return corrected estimates (v, k) and half their intervals, from naive ones (v, k) alone.

    m_t = Σ_s B_st n_s m_s / Σ_s B_st n_s with B = D⁻¹ and n the ``shares`` of the records with a
    value; ``known`` counts those. What is told of clusters is all that goes in, so that nothing
    more is told.
    """
    weights = np.linalg.inv(matrix) * shares[:, None]  # (s, t)
    weights = weights / weights.sum(axis=0)
    means = naive @ weights
    apart = (naive[:, :, None] - means[:, None, :]) ** 2 / np.maximum(known, 1)[None, :, None]
    variance = ((half[:, :, None] / Z) ** 2 + apart) * weights**2
    return means, np.asarray(Z * np.sqrt(variance.sum(axis=1)))


def outcome_rows(profile: Profile) -> list[dict[str, Any]]:
    """Return a row for each outcome, value and cluster: corrected, with the naive figure beside."""

    def told(value: float) -> float | None:
        return None if np.isnan(value) else float(value)

    return [
        {
            "cluster": number,
            "outcome": outcome.name,
            "value": value,
            "estimate": told(outcome.shown.estimate[row, place]),
            "low": told(outcome.shown.low[row, place]),
            "high": told(outcome.shown.high[row, place]),
            "naive": told(outcome.estimate[row, place]),
            "corrected": outcome.corrected is not None and value != "median",
            "differs": outcome.differs(row, place),
        }
        for outcome in profile.outcomes
        for row, value in enumerate(outcome.values)
        for place, number in enumerate(profile.numbers)
    ]
