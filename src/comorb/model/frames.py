"""Frames: data frames and arrays as columns of features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np
from scipy import sparse

from comorb.errors import InputError
from comorb.model.arrays import Floats, Mask
from comorb.model.emissions.base import Feature, FeatureTable, Kind, Transform
from comorb.model.features import check_values

MAX_LEVELS = 255  # of a category: a level fits in a byte
WHOLE = "whole numbers"


def columns_of(table: Any) -> dict[str, Any]:
    """Return the columns of a table by their names, each an array of any type.

    Frames of pandas and polars, Arrow tables, mappings of columns, a `FeatureTable`, and arrays,
    whose columns are named x0, x1, …
    """
    if isinstance(table, FeatureTable):
        return table.columns()
    if isinstance(table, Mapping):
        names, parts = [*table], [*table.values()]
    elif hasattr(table, "column_names"):  # Arrow
        names, parts = table.column_names, [column.to_pylist() for column in table.columns]
    elif hasattr(table, "iter_columns"):  # polars
        names, parts = table.columns, [column.to_list() for column in table.iter_columns()]
    elif hasattr(table, "iloc"):  # pandas
        names = [str(name) for name in table.columns]
        parts = [
            table.iloc[:, at].to_numpy(dtype=object, na_value=None) for at in range(len(names))
        ]
    else:
        values = np.asarray(table)
        names, parts = [f"x{at}" for at in range(values.shape[1])], [*values.T]
    check_names(names)
    return {name: _array(part) for name, part in zip(names, parts, strict=True)}


def check_names(names: Sequence[str]) -> None:
    """Refuse a name that occurs twice."""
    if twice := sorted({name for name in names if list(names).count(name) > 1}):
        raise InputError("column.name_twice", name=twice[0])


def _array(values: Any) -> Any:
    """Return a column as an array, of objects where it isn't an array of numbers."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return values
    found = np.empty(len(values), dtype=object)
    found[:] = list(values)
    return found


def missing_in(column: Any) -> Mask:
    """Return which cells are missing: None, NaN, NaT or an empty text."""
    if column.dtype != object:
        return np.asarray(column != column)
    blank = [value is None or value != value or value == "" for value in column.tolist()]
    return np.array(blank, dtype=bool)


def check_cells(name: str, column: Any) -> None:
    """Refuse cells that hold lists, tables and the like."""
    for value in column.tolist() if column.dtype == object else ():
        if isinstance(value, dict | list | set | tuple | np.ndarray):
            raise InputError("column.cells", name=name, type=type(value).__name__)


def infer_kind(column: Any) -> tuple[Kind, str]:
    """Return the kind of a column without one, and what is in doubt.

    Truth values, zeros and ones are binary, texts are categories, and numbers are numbers: whole
    ones may be counts or categories, which the values don't show.
    """
    there = column[~missing_in(column)]
    values = set(there.tolist()) if there.dtype == object else set(np.unique(there).tolist())
    if all(isinstance(value, bool | np.bool_) for value in values) or values <= {0, 1}:
        return "binary", ""
    if not all(isinstance(value, int | float | np.number) for value in values):
        return "category", ""
    return "number", WHOLE if all(float(value).is_integer() for value in values) else ""


def make_feature(
    name: str, column: Any, kind: Kind, transform: Transform = "none"
) -> tuple[Feature, Floats]:
    """Return a column as a feature of a kind, and its values."""
    if kind not in get_args(Kind):
        raise InputError("column.kind", name=name, kinds=get_args(Kind), kind=kind)
    if transform not in get_args(Transform) or (transform != "none" and kind != "number"):
        raise InputError("column.transform", name=name, transform=transform, kind=kind)
    if kind in ("category", "binary"):
        feature, values = _levels(name, column, kind)
    else:
        feature, values = Feature(name, kind, (), transform), _numbers(name, column, kind)
    check_values(feature, values)
    return feature, values


def _numbers(name: str, column: Any, kind: str) -> Floats:
    there = ~missing_in(column)
    values = np.full(column.size, np.nan)
    try:
        values[there] = column[there].astype(np.float64)
    except (TypeError, ValueError):
        wrong = next(value for value in column[there].tolist() if not _is_number(value))
        raise InputError("column.no_numbers", name=name, kind=kind, value=str(wrong)[:20]) from None
    return values


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _levels(name: str, column: Any, kind: Kind) -> tuple[Feature, Floats]:
    there = ~missing_in(column)
    texts = [_text(value) for value in column[there].tolist()]
    levels = sorted(set(texts), key=_order)
    if kind == "binary":
        if set(levels) <= {"0", "1"}:
            levels = ["0", "1"]
        if len(levels) > 2:
            raise InputError("column.binary", name=name, came=len(levels))
    if len(levels) > MAX_LEVELS or (len(levels) > 20 and len(levels) > there.sum() / 2):
        raise InputError(
            "column.many_levels", name=name, kind=kind, came=len(levels), values=there.sum()
        )
    places = {level: float(place) for place, level in enumerate(levels)}
    values = np.full(column.size, np.nan)
    values[there] = [places[text] for text in texts]
    return Feature(name, kind, tuple(levels or ["none"])), values


def _text(value: Any) -> str:
    """Return how a level is written: 1.0 and True as 1, whatever the type of the column."""
    if isinstance(value, bool | np.bool_ | float | np.floating) and float(value).is_integer():
        return str(int(value))
    return str(value).strip()


def _order(level: str) -> tuple[bool, float, str]:
    return (False, float(level), level) if _is_number(level) else (True, 0.0, level)


def split_codes(X: Any) -> tuple[sparse.csr_array | Any | None, Any]:
    """Return the codes and the table of what was given: a pair of both, or one of them."""
    if isinstance(X, tuple | list) and len(X) == 2 and sparse.issparse(X[0]):
        return X[0], X[1]
    return (X, None) if sparse.issparse(X) else (None, X)
