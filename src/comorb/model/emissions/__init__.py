"""Kinds of features beside codes, one file each, all with the duties of a `Variable`."""

from __future__ import annotations

from math import isfinite
from typing import Any

from comorb.messages import Message
from comorb.model.arrays import Floats
from comorb.model.emissions.base import Feature, FeatureTable, Kind, Variable
from comorb.model.emissions.category import Category
from comorb.model.emissions.count import Count
from comorb.model.emissions.number import Number

KINDS: dict[Kind, type[Variable]] = {
    "binary": Category,
    "category": Category,
    "count": Count,
    "number": Number,
}


def to_dict(variable: Variable) -> dict[str, Any]:
    """Return a variable as plain values."""
    own = {"influence": variable.influence, "facts": list(variable.facts)}
    return variable.feature.to_dict() | own


def from_dict(plain: dict[str, Any]) -> Variable:
    """Return the variable of plain values; `ValueError` for what makes none."""
    feature = Feature.from_dict(plain)
    influence, facts = plain["influence"], plain["facts"]
    numbers = [influence, *facts]
    if not all(isinstance(one, int | float) and isfinite(one) for one in numbers):
        raise ValueError(Message("variable.facts", name=feature.name))
    if not influence > 0:
        raise ValueError(Message("variable.influence", name=feature.name))
    own = tuple(float(fact) for fact in facts)
    return KINDS[feature.kind].from_facts(feature, float(influence), own)


def learn_variables(
    table: FeatureTable, weights: Floats | None, total: float
) -> tuple[Variable, ...]:
    """Return the variables of a table: what its features are like in the whole population."""
    return tuple(
        KINDS[feature.kind].learn(feature, column, weights, total)
        for feature, column in zip(table.features, table.values.T, strict=True)
    )
