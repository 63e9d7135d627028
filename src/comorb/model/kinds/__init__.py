"""Kinds of features beside codes, one file each, all with the duties of a `Variable`."""

from __future__ import annotations

from comorb.model.arrays import Floats
from comorb.model.features import FeatureTable, Kind
from comorb.model.kinds.category import Category
from comorb.model.kinds.count import Count
from comorb.model.kinds.number import Number
from comorb.model.kinds.variable import Variable

KINDS: dict[Kind, type[Variable]] = {
    "binary": Category,
    "category": Category,
    "count": Count,
    "number": Number,
}


def learned(table: FeatureTable, weights: Floats | None, total: float) -> tuple[Variable, ...]:
    """Return the variables of a table: what its features are like in the whole population."""
    return tuple(
        KINDS[feature.kind].learned(feature, column, weights, total)
        for feature, column in zip(table.features, table.values.T, strict=True)
    )
