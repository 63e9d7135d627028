"""Outcomes and covariates of each cluster, as counted and corrected for uncertain membership."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import InputError
from comorb.model.arrays import Floats, Ints, Keys, Mask
from comorb.model.relations.classification import Classification, Part, bounds_of
from comorb.model.relations.outcomes import OutcomeColumn, OutcomeRelation, relate
from comorb.profiles.burden import NON_NEGATIVE, RATES
from comorb.profiles.contents import CorrectedFigures, Outcome, OutcomeCells
from comorb.profiles.intervals import (
    Z,
    effective_size,
    mean_interval,
    median_interval,
    wilson_interval,
)
from comorb.records.layouts.columns import MAX_VALUES
from comorb.records.layouts.names import (
    WEIGHT_NAME,
    find_role,
    is_amount,
    is_label,
    normalise_name,
    resolve_name,
)
from comorb.records.values import yes_no

if TYPE_CHECKING:
    from comorb.profiles.profile import Profile

DECIMALS = 6  # of the classification matrix, as many as the profile's document has


def classification_of(table: Floats) -> Classification:
    """Return the classification of some records, to the digits that are written."""
    sizes = np.maximum(table.sum(axis=1, keepdims=True), 1e-300)
    return Classification(np.round(table / sizes, DECIMALS) * sizes)


def classification_rows(table: Floats) -> tuple[tuple[float, ...], ...]:
    """Return how often a record of each cluster is taken for one of each; none of empty ones."""
    if (table.sum(axis=1) <= 0).any() or len(table) < 2:
        return ()
    shares = np.round(table / table.sum(axis=1, keepdims=True), DECIMALS)
    return tuple(tuple(row) for row in shares.tolist())


def relate_by_bch(
    columns: Floats,
    values: tuple[str, ...],
    labels: Ints,
    weights: Floats,
    classification: Classification | None,
) -> OutcomeRelation | None:
    """Return one outcome, a number or places of ``values``, related to clusters by BCH weights.

    None where nothing can be corrected: one cluster, one value, or a cluster of which too few
    records have a value.
    """
    if classification is None or classification.k < 2:
        return None
    nobody = np.broadcast_to(0.0, (labels.size, classification.k))
    part = Part(labels, np.asarray(nobody), weights, columns[:, None])
    bounds = bounds_of(max(float(weights.sum()), 1e-300), part)
    column = OutcomeColumn(0, values)
    try:
        return relate(column, "bch", classification, bounds, lambda sums: sums(part))
    except InputError:
        return None


def correct_shares(
    relation: OutcomeRelation | None, naive: Floats, shown: int
) -> CorrectedFigures | None:
    """Return the shares of the first categories (v, k + 1), with Wilson's intervals.

    They are for as many records as have the error of the share, or of one error where the share
    is nearer to 0 or 1 than that: there it would seem to be that of few records. The last column
    is that of all records, which needs no correction: (3, v) as ``naive``.
    """
    if relation is None:
        return None
    share = np.clip(relation.means[:, :shown], 0, 1).T
    error = np.minimum(relation.errors[:, :shown].T, 0.5)
    inside = np.clip(share, error, 1 - error)
    known = np.divide(inside * (1 - inside), error**2, out=np.zeros_like(share), where=error > 0)
    size = np.where(known > 0, known, relation.effective)
    figures = zip((share, *wilson_interval(share, size)), naive, strict=True)
    return CorrectedFigures(*(np.round(np.column_stack(pair), 6) for pair in figures))


def correct_mean(
    relation: OutcomeRelation | None, median: Floats, naive: Floats
) -> CorrectedFigures | None:
    """Return the mean with its interval above the median, which is not corrected: (2, k + 1) each.

    ``median`` (3, k + 1) and the mean of all records, ``naive`` (3,), are as they were.
    """
    if relation is None:
        return None
    half = Z * relation.errors
    figures = (relation.means, relation.means - half, relation.means + half)
    parts = zip(figures, naive, median, strict=True)
    rows = (np.vstack([np.append(own, last), below]) for own, last, below in parts)
    return CorrectedFigures(*(np.round(one, 6) for one in rows))


def correct_estimates(
    naive: Floats, half: Floats, known: Floats, shares: Floats, matrix: Floats
) -> tuple[Floats, Floats]:
    """Return corrected estimates (v, k) and half their intervals, from naive ones (v, k) alone.

    m_t = Σ_s B_st n_s m_s / Σ_s B_st n_s with B = D⁻¹ and n the ``shares`` of the records with a
    value; ``known`` counts those. What is published of clusters is all that goes in, so that
    nothing more comes out.
    """
    weights = np.linalg.inv(matrix) * shares[:, None]  # (s, t)
    weights = weights / weights.sum(axis=0)
    means = naive @ weights
    apart = (naive[:, :, None] - means[:, None, :]) ** 2 / np.maximum(known, 1)[None, :, None]
    variance = ((half[:, :, None] / Z) ** 2 + apart) * weights**2
    return means, np.asarray(Z * np.sqrt(variance.sum(axis=1)))


def outcome_rows(profile: Profile) -> list[dict[str, Any]]:
    """Return a row for each outcome, value and cluster: what was counted, and corrected figures.

    ``observed`` and its interval are of ``records`` with a value, of which ``events`` have it;
    ``estimate`` and its interval are corrected where ``corrected`` is true.
    """

    def shown(value: float, kind: type = float) -> Any:
        return None if np.isnan(value) else kind(value)

    rows = []
    for outcome in profile.outcomes:
        best = outcome.corrected or outcome
        for row, value in enumerate(outcome.values):
            for place, number in enumerate(profile.numbers):
                at = row, place
                events = outcome.counts[at] if outcome.kind == "share" else np.nan
                own = {
                    "cluster": number,
                    "outcome": outcome.name,
                    "value": value,
                    "estimate": shown(best.estimate[at]),
                    "low": shown(best.low[at]),
                    "high": shown(best.high[at]),
                    "naive": shown(outcome.estimate[at]),
                    "corrected": outcome.corrected is not None and value != "median",
                    "differs": outcome.differs(row, place),
                    "observed": shown(outcome.estimate[at]),
                    "observed_low": shown(outcome.low[at]),
                    "observed_high": shown(outcome.high[at]),
                    "events": shown(events, int),
                    "records": shown(outcome.known[place], int),
                }
                rows.append(own)
    return rows


OTHER = "other"


def summarise(  # noqa: PLR0913 - what is known of the records is given by name
    table: pa.Table,
    labels: Ints,
    k: int,
    weights: Floats,
    wanted: Sequence[str] | None = None,
    keys: Keys | None = None,
    classification: Classification | None = None,
    *,
    amounts: bool = False,
) -> tuple[Outcome, ...]:
    """Return each covariate that can be summed up, per cluster and over all records.

    Numbers get a mean and a median; texts, truth values and whole numbers with at most eight
    different values get shares. Of labels such as hospitals with more values, the most common ones
    and the others do; other texts of more values, dates, and numbers that are ids or weights are
    left out. A column that got the name of its role, such as los, is found by its own name, too.
    With the ``keys`` of the records, outcomes can be protected; with their ``classification`` they
    are corrected. Where all numbers are known to be ``amounts``, none is an id or a weight.
    """
    if wanted is not None:
        wanted = [resolve_name(name, table.column_names) for name in wanted]
    missing = set(wanted or ()) - set(table.column_names)
    if missing:
        have = ", ".join(table.column_names) or "none"
        raise InputError("profile.outcomes", have=have, missing=sorted(missing))
    groups = [*(labels == c for c in range(k)), np.ones(labels.size, dtype=bool)]
    names = table.column_names if wanted is None else wanted
    records = LabelledRecords(labels, groups, weights, keys, classification, amounts)
    outcomes = (_summarise_column(name, table[name], records) for name in names)
    return tuple(outcome for outcome in outcomes if outcome is not None)


@dataclass(frozen=True, eq=False)
class LabelledRecords:
    """What is known of the records that outcomes are summed over."""

    labels: Ints
    groups: list[Mask]  # the records of each cluster, and all of them
    weights: Floats
    keys: Keys | None
    classification: Classification | None
    amounts: bool


def _summarise_column(
    name: str, column: pa.ChunkedArray, records: LabelledRecords
) -> Outcome | None:
    kind = column.type
    whole, text = pa.types.is_integer(kind), pa.types.is_string(kind) or pa.types.is_boolean(kind)
    text = text or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    number = whole or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    known = np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False), dtype=bool)
    if not (number or text) or not known.any():
        return None
    different = len(pc.unique(column.drop_null())) if whole else 0
    if text or name in RATES or (whole and different <= MAX_VALUES):
        return _summarise_shares(name, column, known, records)
    if not records.amounts and _is_identifier(name, different, int(known.sum())):
        return None
    groups, weights, keys = records.groups, records.weights, records.keys
    values = pc.cast(column, pa.float64()).to_numpy().astype(np.float64)
    known &= np.isfinite(values)
    if name in NON_NEGATIVE:
        known &= values >= 0  # as in the totals, so that mean and records give the total
    figures = np.full((3, 2, len(groups)), np.nan)
    bounds = np.zeros(len(groups))
    for place, group in enumerate(groups):
        rows = known & group
        own, mass = values[rows], weights[rows]
        if mass.any():
            figures[:, 0, place] = mean_interval(own, mass)
            figures[:, 1, place] = median_interval(own, mass)
            bounds[place] = np.max(np.abs(own - figures[0, 0, place]) * mass) / mass.sum()
    none = np.empty((0, len(groups)))
    counted = _counts(known, groups)
    cells = None
    if keys is not None:
        sums = _sum_keys(keys, known, groups)
        cells = OutcomeCells(sums, none.astype(np.uint64), np.round(bounds, 9))
    estimate, low, high = np.round(figures, 6)
    measures = ("mean", "median")
    own = np.where(known, values, np.nan)
    related = relate_by_bch(own, (), records.labels, weights, records.classification)
    better = correct_mean(related, figures[:, 1], figures[:, 0, -1])
    return Outcome(name, "number", measures, counted, none, estimate, low, high, cells, better)


def _summarise_shares(
    name: str, column: pa.ChunkedArray, known: Mask, records: LabelledRecords
) -> Outcome | None:
    groups, weights, keys = records.groups, records.weights, records.keys
    texts = pc.cast(column, pa.string())
    kinds = sorted(pc.unique(texts.drop_null()).to_pylist(), key=_sort_key)
    if len(kinds) > MAX_VALUES:
        if not (is_label(name) or find_role(name) in RATES) or len(kinds) == known.sum():
            return None
        texts, kinds = _pool_rare(texts)
    shown = _shown_categories(kinds)
    codes = pc.index_in(texts, pa.array(shown, pa.string())).to_numpy(zero_copy_only=False)
    counts = np.array([_counts(codes == v, groups) for v in range(len(shown))])
    figures = np.full((3, len(shown), len(groups)), np.nan)
    for place, group in enumerate(groups):
        rows = known & group
        mass, n = float(weights[rows].sum()), effective_size(weights[rows])
        if mass:
            sums = [weights[rows & (codes == v)].sum() for v in range(len(shown))]
            share = np.array(sums) / mass
            figures[:, :, place] = share, *wilson_interval(share, np.array(n))
    counted = _counts(known, groups)
    cells = None
    if keys is not None:
        each = np.array([_sum_keys(keys, codes == v, groups) for v in range(len(shown))])
        cells = OutcomeCells(_sum_keys(keys, known, groups), each, np.zeros(len(groups)))
    estimate, low, high = np.round(figures, 6)
    places = np.where(known, np.where(np.isin(codes, range(len(shown))), codes, len(shown)), np.nan)
    values = tuple(shown)
    every = values if len(shown) == len(kinds) else (*values, OTHER)
    related = relate_by_bch(places, every, records.labels, weights, records.classification)
    better = correct_shares(related, figures[:, :, -1], len(shown))
    return Outcome(name, "share", values, counted, counts, estimate, low, high, cells, better)


def _is_identifier(name: str, different: int, known: int) -> bool:
    """Return whether numbers are weights, or ids of which hardly any occurs twice."""
    named = is_amount(name) or find_role(name) is not None
    distinct = different > max(MAX_VALUES, 0.95 * known) and not named
    return distinct or WEIGHT_NAME.fullmatch(normalise_name(name)) is not None


def _shown_categories(kinds: Sequence[str]) -> list[str]:
    """Return the categories to show: of two one, the yes where the other is a no.

    Of 1 and 2, 1 is not a yes, so both are shown.
    """
    answers = [yes_no(kind) for kind in kinds]
    if len(kinds) > 2 or (True in answers and None in answers):
        return list(kinds)
    return [kinds[answers.index(True)]] if True in answers else list(kinds[:1])


def _pool_rare(texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, list[str]]:
    """Return texts of which the most common ones stay, and these, the others last."""
    counted = pc.value_counts(texts.drop_null()).to_pylist()
    counted.sort(key=lambda one: (-one["counts"], _sort_key(one["values"])))
    common = [one["values"] for one in counted if one["values"] != OTHER][: MAX_VALUES - 1]
    rare = pc.and_(pc.is_valid(texts), pc.invert(pc.is_in(texts, pa.array(common))))
    return pc.if_else(rare, OTHER, texts), [*common, OTHER]


def _counts(rows: Mask, groups: list[Mask]) -> Floats:
    return np.array([float(np.sum(rows & group)) for group in groups])


def _sum_keys(keys: Keys, rows: Mask, groups: list[Mask]) -> Keys:
    return np.array([keys[rows & group].sum(dtype=np.uint64) for group in groups])


def _sort_key(value: str) -> tuple[float, str]:
    return (float(value), "") if value.lstrip("-").isdigit() else (float("inf"), value)
