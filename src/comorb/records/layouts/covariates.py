"""Covariates: the columns beside the codes, with the types that their values have."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from comorb.errors import RecordsError
from comorb.records.layouts.layout import Layout
from comorb.records.sources.duck import Source, Table, quoted

_MISSING = pa.array(["", "NA", "N/A", "NULL", "null", "NaN", "nan", "?", "None", "<NA>", "\\N"])
_WHOLE = r"^-?(0|[1-9][0-9]{0,14})$"
_NUMBER = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?$"
_DAY = r"^[0-9]{4}-?[0-9]{2}-?[0-9]{2}([ T].*)?$"
KEPT_WHEN_UNEQUAL = ("age", "sex", "date", "weight")


def renamed(table: pa.Table, layout: Layout) -> pa.Table:
    """Give age, sex, date and weight these names; leave parts and versions out."""
    names = shown_names(table.column_names, layout)
    return table.select(list(names)).rename_columns(list(names.values()))


def shown_names(columns: Sequence[str], layout: Layout) -> dict[str, str]:
    """Return the columns that are covariates, each with the name that it gets."""
    roles = {column: role for role, column in layout.roles.items()}
    given = {column: role for column, role in roles.items() if role in KEPT_WHEN_UNEQUAL}
    free = [column for column in columns if roles.get(column) not in ("part", "version")]
    return {
        name: given.get(name) or (f"{name} (column)" if name in given.values() else name)
        for name in free
    }


def united(source: Source, table: Table, key: str) -> tuple[pa.Table, tuple[str, ...]]:
    """Return one row for each value of a key, in its order, and a note on columns left out.

    A column that differs within a record isn't one of its covariates; of age, sex, date and
    weight, the smallest value is kept.
    """
    names = [name for name in table.columns if name != key]
    picks = ", ".join(f"min({quoted(n)}) AS {quoted(n)}" for n in names)
    grouped = f"SELECT {quoted(key)}, {picks} FROM {table.sql} GROUP BY 1 ORDER BY 1"
    free = [name for name in names if name not in KEPT_WHEN_UNEQUAL]
    varying: list[str] = []
    if free:
        tests = ", ".join(f"bool_and({quoted(f'low {n}')} = {quoted(f'high {n}')})" for n in free)
        ends = ", ".join(
            f"min({quoted(n)}) AS {quoted(f'low {n}')}, max({quoted(n)}) AS {quoted(f'high {n}')}"
            for n in free
        )
        (same,) = source.rows(
            table,
            f"SELECT {tests} FROM (SELECT {ends} FROM {table.sql} GROUP BY {quoted(key)})",
        )
        varying = [name for name, flag in zip(free, same, strict=True) if flag is False]
    batches = list(source.batches(table, grouped))
    whole = pa.Table.from_batches(batches)
    notes = [f"column {name!r} differs within records and isn't a covariate" for name in varying]
    return whole.drop_columns([key, *varying]), tuple(notes)


def typed(table: pa.Table, layout: Layout) -> pa.Table:
    """Give text columns the type that every value of them has; ids stay text."""
    ids = (layout.record, layout.patient)
    columns = {name: table[name] for name in table.column_names}
    return pa.table(
        {name: held if name in ids else _typed(name, held) for name, held in columns.items()}
    )


def weights_of(label: str, column: str, values: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return a column as weights, all of them positive numbers."""
    numbers = values if _is_number(values.type) else None
    if numbers is None or values.null_count or pc.min(values).as_py() <= 0:
        raise RecordsError(
            f"{label}: the weights in column {column!r} must all be numbers above 0; correct or "
            "leave out the rows where they are not."
        )
    return np.asarray(values.to_numpy(), dtype=np.float64)


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _typed(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_decimal(column.type) or (name == "age" and _is_number(column.type)):
        return column.cast(pa.float64())
    if pa.types.is_timestamp(column.type) and name == "date":
        return column.cast(pa.date32(), safe=False)
    if not pa.types.is_string(column.type):
        return column
    column = pc.if_else(pc.is_in(column, _MISSING), pa.scalar(None, pa.string()), column)
    if name == "date":
        return _dates(column)
    if name == "age" and _all_match(column, _NUMBER):
        return column.cast(pa.float64())
    if _all_match(column, _WHOLE):
        return column.cast(pa.int64())
    if _all_match(column, _NUMBER):
        return column.cast(pa.float64())
    return column


def _dates(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not _all_match(column, _DAY):
        return column
    digits = pc.replace_substring(pc.utf8_slice_codeunits(column, 0, 10), "-", "")
    digits = pc.utf8_slice_codeunits(digits, 0, 8)
    try:
        return pc.strptime(digits, format="%Y%m%d", unit="s").cast(pa.date32())
    except pa.ArrowInvalid:
        return column


def _all_match(column: pa.ChunkedArray, pattern: str) -> bool:
    head = column.slice(0, 1000)
    return all(
        part.null_count < len(part)
        and pc.all(pc.match_substring_regex(part.drop_null(), pattern)).as_py()
        for part in (head, column)
        if len(part) and (part is column or part.null_count < len(part))
    )
