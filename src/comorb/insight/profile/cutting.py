"""Cutting: which slice each record belongs to, by age, sex, site, time or any other column."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import InputError
from comorb.model.arrays import Floats, Ints
from comorb.records.layouts.names import role_of

AGES = (18.0, 45.0, 65.0, 80.0)  # where ages are cut unless something else is said
TIMES = ("year", "quarter", "month")
MOST = 24  # slices, at most
_QUANTILES = re.compile(r"q(\d{1,2})")


@dataclass(frozen=True)
class By:
    """What records are sliced by: a column or a time, with cut points or a number of quantiles."""

    name: str
    cuts: tuple[float, ...] = ()
    quantiles: int = 0

    @classmethod
    def of(cls, text: str) -> By:
        """Read what was asked for, such as 'sex', 'age:18,45,65' or 'age:q4'.

        >>> By.of("age:18,65").cuts
        (18.0, 65.0)
        """
        name, _, how = (part.strip() for part in text.partition(":"))
        if quantiles := _QUANTILES.fullmatch(how):
            number = int(quantiles[1])
            if name and 2 <= number <= MOST:
                return cls(name, quantiles=number)
        try:
            cuts = tuple(float(cut) for cut in how.split(",")) if how else ()
        except ValueError:
            cuts = (0.0, 0.0)
        if not name or how.startswith("q") or list(cuts) != sorted(set(cuts)) or len(cuts) >= MOST:
            raise InputError(
                "expected a column, and cut points in ascending order or a number of quantiles, "
                f"such as 'age', 'age:18,45,65' or 'age:q4', got {text!r}"
            )
        return cls(name, cuts)

    def __str__(self) -> str:
        how = ",".join(f"{cut:g}" for cut in self.cuts) or (self.quantiles and f"q{self.quantiles}")
        return f"{self.name}:{how}" if how else self.name


@dataclass(frozen=True, eq=False)
class Cut:
    """The slice of each record, −1 where it isn't known, and what the slices are called."""

    by: str
    places: Ints
    labels: tuple[str, ...]
    ordered: bool  # whether they have an order, so that a trend can be tested


def cut(table: pa.Table, by: By, most: int = MOST, records: Ints | None = None) -> Cut:
    """Return the slices of records by one of their covariates; what can't be is an InputError.

    ``records`` are how many each row of the table stands for; one, where nothing is said.
    """
    column = table[_column(table.column_names, by)]
    if by.name in TIMES and by.name not in table.column_names:
        made = _times(column, by, most)
    elif _is_number(column.type):
        made = _numbers(pc.cast(column, pa.float64()).to_numpy().astype(np.float64), by, records)
    else:
        made = _texts(column, by, most)
    held = np.unique(made.places[made.places >= 0])
    if held.size < 2:
        said = "has the same value in all records" if held.size else "holds no value"
        raise InputError(f"expected slices to compare, but {by.name!r} {said}; name another column")
    places = np.where(made.places < 0, -1, np.searchsorted(held, made.places))
    return Cut(str(by), places, tuple(made.labels[i] for i in held), made.ordered)


def default_slices(table: pa.Table, ends: tuple[Any, Any] | None = None) -> tuple[By, ...]:
    """Return what records are sliced by when nothing is said: those of the columns that are there.

    ``ends`` are the first and the last date, where the table's own aren't.

    >>> default_slices(pa.table({"sex": ["f", "m"], "los": [3, 4]}))
    (By(name='sex', cuts=(), quantiles=0),)
    """
    names = [name for name in ("age", "sex", "site") if name in table.column_names]
    if "date" in table.column_names and pa.types.is_temporal(table["date"].type):
        first, last = ends or date_ends(table["date"])
        if first is not None:
            days = (last - first).days
            names.append("year" if days > 1500 else "quarter" if days > 300 else "month")
    return tuple(map(By, names))


def date_ends(column: pa.ChunkedArray) -> tuple[Any, Any]:
    """Return the first and the last date of a column, None where it has none."""
    ends = pc.min_max(column).as_py()
    return ends["min"], ends["max"]


def coarse(table: pa.Table) -> pa.Table:
    """Return a table with one age for each band of ages, and one date for each month.

    It is sliced as the table itself, unless cuts of one's own are asked for.
    """
    for place, name in enumerate(table.column_names):
        column = table[name]
        if name == "age" and _is_number(column.type):
            ages = pc.cast(column, pa.float64()).to_numpy().astype(np.float64)
            known = np.isfinite(ages)
            bands = np.searchsorted(AGES, np.where(known, ages, 0), "right")
            some = np.array([AGES[0] - 1, *AGES])[bands] + np.where(ages == np.round(ages), 0, 0.5)
            table = table.set_column(place, name, pa.array(some, mask=~known))
        elif name == "date" and pa.types.is_temporal(column.type):
            table = table.set_column(place, name, pc.floor_temporal(column, unit="month"))
    return table


def _column(names: Sequence[str], by: By) -> str:
    wanted = "date" if by.name in TIMES and by.name not in names else by.name
    role = role_of(wanted)
    found = wanted if wanted in names else role if role in names else None
    if found is None:
        have = ", ".join(names) or "none"
        raise InputError(
            f"expected one of the records' columns ({have}) or, with dates, year, quarter or month "
            f"to slice by, got {by.name!r}; name the column when you read the records"
        )
    return found


def _times(column: pa.ChunkedArray, by: By, most: int) -> Cut:
    if not pa.types.is_temporal(column.type):
        raise InputError(
            f"expected dates to slice by {by.name}, but the column 'date' holds none that can be "
            "read; write them as YYYY-MM-DD"
        )
    years, step = pc.year(column), {"year": 1, "quarter": 4, "month": 12}[by.name]
    parts = {"year": 0, "quarter": pc.quarter(column), "month": pc.month(column)}[by.name]
    within = pc.subtract(parts, 1) if by.name != "year" else 0
    numbers = pc.fill_null(pc.add(pc.multiply(years, step), within), -1).to_numpy()
    different = np.unique(numbers[numbers >= 0])
    _check_number(by, different.size, most)
    names = {"year": "{0}", "quarter": "{0} Q{1}", "month": "{0}-{1:02}"}[by.name]
    places = np.where(numbers < 0, -1, np.searchsorted(different, numbers))
    return Cut(
        str(by),
        places,
        tuple(names.format(n // step, n % step + 1) for n in different.tolist()),
        True,
    )


def _numbers(values: Floats, by: By, records: Ints | None) -> Cut:
    known = np.isfinite(values)
    cuts = by.cuts
    if by.quantiles:
        shares = np.arange(1, by.quantiles) / by.quantiles
        every = values if records is None else np.repeat(values, records)
        some = every[np.isfinite(every)] if known.any() else np.zeros(1)
        cuts = tuple(np.unique(np.quantile(some, shares, method="nearest")).tolist())
    elif not cuts:
        different = np.unique(values[known])
        if by.name == "age":
            cuts = AGES
        elif different.size <= MOST:
            places = np.where(known, np.searchsorted(different, values), -1)
            return Cut(str(by), places, tuple(f"{one:g}" for one in different), True)
        else:
            return _numbers(values, By(by.name, quantiles=4), records)
    places = np.where(known, np.searchsorted(cuts, np.where(known, values, 0), "right"), -1)
    every = np.append(values[known], cuts)
    return Cut(str(by), places, _bands(cuts, bool(np.all(every == np.round(every)))), True)


def _bands(cuts: Sequence[float], whole: bool) -> tuple[str, ...]:
    """Return what lies between cut points: '≤ 17', '18–44', '≥ 45'; of others '18.5 – 44'."""
    if not whole:
        ends = ("…", *(f"{cut:g}" for cut in cuts), "…")
        return tuple(f"{low} – {high}" for low, high in pairwise(ends))
    between = (
        f"{low:g}" if high - low == 1 else f"{low:g}–{high - 1:g}" for low, high in pairwise(cuts)
    )
    return (f"≤ {cuts[0] - 1:g}", *between, f"≥ {cuts[-1]:g}")


def _texts(column: pa.ChunkedArray, by: By, most: int) -> Cut:
    if by.cuts or by.quantiles:
        raise InputError(
            f"expected numbers to cut, but {by.name!r} holds texts; leave the cut points out"
        )
    texts = pc.cast(column, pa.string())
    kinds = sorted(pc.unique(texts.drop_null()).to_pylist())
    _check_number(by, len(kinds), most)
    found = pc.index_in(texts, pa.array(kinds, pa.string()))
    places = pc.fill_null(found, -1).to_numpy().astype(np.int64)
    return Cut(str(by), places, tuple(kinds), False)


def _check_number(by: By, number: int, most: int) -> None:
    if number > most:
        raise InputError(
            f"expected at most {most} slices, but {by.name!r} has {number:,} different values; "
            "give cut points, a coarser time or another column"
        )


def _is_number(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)
    )
