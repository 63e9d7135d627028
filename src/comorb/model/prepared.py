"""Prepared: the values of features as the model sees them, learned or as it knows them."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

from comorb.errors import ComorbWarning, InputError
from comorb.model.arrays import Floats
from comorb.model.exact import weighted_sum
from comorb.model.features import Feature, FeatureTable
from comorb.model.kinds import learned
from comorb.model.kinds.count import LARGEST
from comorb.model.kinds.variable import Variable


@dataclass(frozen=True, eq=False)
class Prepared:
    """The values of variables, (n, p), as the model sees them: NaN where one is missing."""

    variables: tuple[Variable, ...]
    values: Floats

    def reach(self, weights: Floats | None, total: float) -> float:
        """Return a power of two that bounds Σ w·z² / Σ w of every number."""
        worst = 1.0
        for variable, column in zip(self.variables, self.values.T, strict=True):
            if variable.n_values is None:
                squares = np.nan_to_num(column) ** 2
                worst = max(worst, weighted_sum(squares, weights, total) / total)
        return float(2.0 ** (1 + np.ceil(np.log2(worst))))


def prepared(
    table: FeatureTable, weights: Floats | None = None, total: float | None = None
) -> Prepared:
    """Return the values of a table whose variables are learned from it."""
    for feature, column in zip(table.features, table.values.T, strict=True):
        check_values(feature, column)
    if total is None:
        total = float(table.values.shape[0])
    variables = learned(table, weights, total)
    return _as_seen(table.values, variables)


def prepared_for(variables: tuple[Variable, ...], table: FeatureTable) -> Prepared:
    """Return the values of a table as the variables of a model see them, found by their names.

    A level that the model doesn't know counts as missing, with a warning.
    """
    places = {feature.name: at for at, feature in enumerate(table.features)}
    columns = np.full((table.values.shape[0], len(variables)), np.nan)
    for at, variable in enumerate(variables):
        own = variable.feature
        if own.name not in places:
            raise InputError(
                f"expected the feature {own.name!r}, which the model was fitted with; add the "
                "column, with blanks where its values are missing"
            )
        feature = table.features[places[own.name]]
        if feature.kind != own.kind:
            raise InputError(
                f"expected the feature {own.name!r} to be a {own.kind}, as the model was fitted "
                f"with it, got a {feature.kind}; name its kind"
            )
        values = table.values[:, places[own.name]]
        check_values(feature, values)
        columns[:, at] = values if feature.levels == own.levels else _placed(feature, own, values)
    return _as_seen(columns, variables)


def check_values(feature: Feature, values: Floats) -> None:
    """Refuse values that a feature of its kind can't have."""
    there = values[~np.isnan(values)]
    name = feature.name
    if np.isinf(there).any():
        raise InputError(
            f"column {name!r} holds a number that is infinite; leave the cell blank where the "
            "value is unknown"
        )
    if feature.kind == "count":
        if (there < 0).any() or (there != np.floor(there)).any():
            raise InputError(
                f"expected column {name!r} to hold counts: whole numbers of zero or more; got "
                f"{there[(there < 0) | (there != np.floor(there))][0]:g}; mend it, or make it a "
                "number"
            )
        if (there > LARGEST).any():
            raise InputError(
                f"expected counts up to {LARGEST} in column {name!r}, got {there.max():g}; make "
                "it a number, with a log transform"
            )
    if feature.transform == "log" and (there <= 0).any():
        raise InputError(
            f"expected numbers above 0 in column {name!r}, whose logarithm is taken, got "
            f"{there.min():g}; choose the rank transform, or none"
        )
    if feature.kind in ("category", "binary") and there.size:
        top = len(feature.levels) - 1
        if there.min() < 0 or there.max() > top or (there != np.floor(there)).any():
            raise InputError(
                f"expected the places of levels, 0 to {top}, in column {name!r}, got others; make "
                "its levels from its values"
            )


def _placed(feature: Feature, own: Feature, values: Floats) -> Floats:
    """Return the places of levels among those that a model knows, NaN for others."""
    known = {level: float(place) for place, level in enumerate(own.levels)}
    place = np.array([*(known.get(level, np.nan) for level in feature.levels), np.nan])
    there = ~np.isnan(values)
    found = place[np.where(there, values, len(feature.levels)).astype(np.int64)]
    lost = int(np.count_nonzero(there & np.isnan(found)))
    if lost:
        unknown = [level for level in feature.levels if level not in known]
        warnings.warn(
            f"column {own.name!r} has {_levels(unknown)} that the model was not fitted with; "
            f"{lost} values count as missing. Its levels are {', '.join(own.levels)}",
            ComorbWarning,
            stacklevel=3,
        )
    return np.asarray(found)


def _levels(unknown: list[str]) -> str:
    shown = ", ".join(unknown[:3]) + (" and others" if len(unknown) > 3 else "")
    return f"the level{'s' if len(unknown) > 1 else ''} {shown}"


def _as_seen(values: Floats, variables: tuple[Variable, ...]) -> Prepared:
    columns = [
        variable.prepared(column) for variable, column in zip(variables, values.T, strict=True)
    ]
    stacked = np.column_stack(columns) if columns else np.empty((values.shape[0], 0))
    return Prepared(variables, np.ascontiguousarray(stacked, dtype=np.float64))
