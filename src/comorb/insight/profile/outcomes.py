"""Outcomes and covariates per cluster, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import InputError
from comorb.insight.profile.contents import Outcome, OutcomeCells
from comorb.insight.profile.corrected import correct, corrected_mean, corrected_shares
from comorb.insight.profile.intervals import effective, mean, median, wilson
from comorb.model.arrays import Floats, Ints, Keys, Mask
from comorb.model.relating.classification import Classification
from comorb.records.layouts.columns import FEW
from comorb.records.layouts.names import is_label, present_name
from comorb.records.values import yes_no

OTHER = "other"


def summarise(
    table: pa.Table,
    labels: Ints,
    k: int,
    weights: Floats,
    wanted: Sequence[str] | None = None,
    keys: Keys | None = None,
    classification: Classification | None = None,
) -> tuple[Outcome, ...]:
    """Return each covariate that can be summed up, per cluster and over all records.

    Numbers get a mean and a median; texts, truth values and whole numbers with at most eight
    different values get shares. Of labels such as hospitals with more values, the most common ones
    and the others do; other texts of more values, and dates, are left out. A column
    that got the name of its role, such as los, is found by its own name, too. With the ``keys`` of
    the records, outcomes can be protected; with their ``classification`` they are corrected.
    """
    if wanted is not None:
        wanted = [present_name(name, table.column_names) for name in wanted]
    missing = set(wanted or ()) - set(table.column_names)
    if missing:
        have = ", ".join(table.column_names) or "none"
        raise InputError(
            f"expected outcomes among the cohort's covariates ({have}), got "
            f"{', '.join(sorted(missing))}; name the columns when you read the records"
        )
    groups = [*(labels == c for c in range(k)), np.ones(labels.size, dtype=bool)]
    names = table.column_names if wanted is None else wanted
    records = Records(labels, groups, weights, keys, classification)
    outcomes = (_outcome(name, table[name], records) for name in names)
    return tuple(outcome for outcome in outcomes if outcome is not None)


@dataclass(frozen=True, eq=False)
class Records:
    """What is known of the records that outcomes are summed over."""

    labels: Ints
    groups: list[Mask]  # the records of each cluster, and all of them
    weights: Floats
    keys: Keys | None
    classification: Classification | None


def _outcome(name: str, column: pa.ChunkedArray, records: Records) -> Outcome | None:
    kind = column.type
    whole, text = pa.types.is_integer(kind), pa.types.is_string(kind) or pa.types.is_boolean(kind)
    text = text or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind)
    number = whole or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    known = np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False), dtype=bool)
    if not (number or text) or not known.any():
        return None
    if text or (whole and len(pc.unique(column.drop_null())) <= FEW):
        return _shares(name, column, known, records)
    groups, weights, keys = records.groups, records.weights, records.keys
    values = pc.cast(column, pa.float64()).to_numpy().astype(np.float64)
    known &= np.isfinite(values)
    figures = np.full((3, 2, len(groups)), np.nan)
    reach = np.zeros(len(groups))
    for place, group in enumerate(groups):
        rows = known & group
        own, mass = values[rows], weights[rows]
        if mass.any():
            figures[:, 0, place] = mean(own, mass)
            figures[:, 1, place] = median(own, mass)
            reach[place] = np.max(np.abs(own - figures[0, 0, place]) * mass) / mass.sum()
    none = np.empty((0, len(groups)))
    counted = _counts(known, groups)
    cells = None
    if keys is not None:
        sums = _sums(keys, known, groups)
        cells = OutcomeCells(sums, none.astype(np.uint64), np.round(reach, 9))
    estimate, low, high = np.round(figures, 6)
    measures = ("mean", "median")
    own = np.where(known, values, np.nan)
    related = correct(own, (), records.labels, weights, records.classification)
    better = corrected_mean(related, figures[:, 1], figures[:, 0, -1])
    return Outcome(name, "number", measures, counted, none, estimate, low, high, cells, better)


def _shares(name: str, column: pa.ChunkedArray, known: Mask, records: Records) -> Outcome | None:
    groups, weights, keys = records.groups, records.weights, records.keys
    plain = pc.cast(column, pa.string())
    kinds = sorted(pc.unique(plain.drop_null()).to_pylist(), key=_as_sorted)
    if len(kinds) > FEW:
        if not is_label(name) or len(kinds) == known.sum():
            return None
        plain, kinds = _with_others(plain)
    said = [value for value in kinds if yes_no(value)]
    shown = (said or kinds)[:1] if len(kinds) <= 2 else kinds
    codes = pc.index_in(plain, pa.array(shown, pa.string())).to_numpy(zero_copy_only=False)
    counts = np.array([_counts(codes == v, groups) for v in range(len(shown))])
    figures = np.full((3, len(shown), len(groups)), np.nan)
    for place, group in enumerate(groups):
        rows = known & group
        mass, n = float(weights[rows].sum()), effective(weights[rows])
        if mass:
            sums = [weights[rows & (codes == v)].sum() for v in range(len(shown))]
            share = np.array(sums) / mass
            figures[:, :, place] = share, *wilson(share, np.array(n))
    counted = _counts(known, groups)
    cells = None
    if keys is not None:
        each = np.array([_sums(keys, codes == v, groups) for v in range(len(shown))])
        cells = OutcomeCells(_sums(keys, known, groups), each, np.zeros(len(groups)))
    estimate, low, high = np.round(figures, 6)
    places = np.where(known, np.where(np.isin(codes, range(len(shown))), codes, len(shown)), np.nan)
    kinds = [*shown, "" if len(shown) == len(kinds) else OTHER]
    every = tuple(kinds[: len(shown) + bool(kinds[-1])])
    related = correct(places, every, records.labels, weights, records.classification)
    better = corrected_shares(related, figures[:, :, -1], len(shown))
    values = tuple(shown)
    return Outcome(name, "share", values, counted, counts, estimate, low, high, cells, better)


def _with_others(texts: pa.ChunkedArray) -> tuple[pa.ChunkedArray, list[str]]:
    """Return texts of which the most common ones stay, and these, the others last."""
    counted = pc.value_counts(texts.drop_null()).to_pylist()
    counted.sort(key=lambda one: (-one["counts"], _as_sorted(one["values"])))
    common = [one["values"] for one in counted if one["values"] != OTHER][: FEW - 1]
    rare = pc.and_(pc.is_valid(texts), pc.invert(pc.is_in(texts, pa.array(common))))
    return pc.if_else(rare, OTHER, texts), [*common, OTHER]


def _counts(rows: Mask, groups: list[Mask]) -> Floats:
    return np.array([float(np.sum(rows & group)) for group in groups])


def _sums(keys: Keys, rows: Mask, groups: list[Mask]) -> Keys:
    return np.array([keys[rows & group].sum(dtype=np.uint64) for group in groups])


def _as_sorted(value: str) -> tuple[float, str]:
    return (float(value), "") if value.lstrip("-").isdigit() else (float("inf"), value)
