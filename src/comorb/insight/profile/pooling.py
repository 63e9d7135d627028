"""Pooling: slices that a page can show: those of few records, or too many, become one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import InputError
from comorb.insight.profile.cutting import MOST, TIMES, By, Cut, cut
from comorb.insight.profile.outcomes import OTHER
from comorb.model.arrays import Floats, Ints
from comorb.records.layouts.columns import FEW
from comorb.records.layouts.names import is_label

FEWEST = 30  # records of a slice that is shown by itself, at least
SHOWN = 12  # slices without an order
LONGEST = 48  # points in time
KINDS = 5000  # different texts that are looked at


def splits(table: pa.Table, features: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return what records can be split by: times, age, sex, categories and features.

    A text of many values is one where its name says that it is a label, such as a hospital.

    >>> splits(pa.table({"sex": ["f", "m"], "age": [30, 40], "los": [3.5, 4.0]}))
    ('age', 'sex')
    """
    names = list(table.column_names)
    dated = "date" in names and pa.types.is_temporal(table["date"].type)
    times = TIMES[::-1] if dated and table["date"].null_count < table.num_rows else ()
    first = [name for name in ("age", "sex", "site", "region") if name in names]
    rest = [name for name in names if name not in first]
    found = (name for name in (*first, *rest) if _can_split(name, table[name], name in features))
    return (*(name for name in times if name not in names), *found)


def pooled(table: pa.Table, by: By, least: int = 0) -> tuple[Cut, tuple[str, ...]]:
    """Return slices of ``FEWEST`` records or more each, or ``least``, and what was pooled.

    A time of too many points is taken more coarsely; small neighbours in an order become one
    slice, and so do the rarest of others.
    """
    made, notes = _cut(table, by)
    fewest, before = max(FEWEST, least), len(made.labels)
    counts = np.bincount(made.places[made.places >= 0], minlength=before).astype(np.float64)
    joined = (_neighbours if made.ordered else _rarest)(counts, fewest)
    labels = [_label(made, np.flatnonzero(joined == place)) for place in range(joined.max() + 1)]
    if len(labels) < 2:
        raise InputError(
            f"expected slices of {fewest} records or more to compare, but {by.name!r} has fewer "
            "than two; split by something else"
        )
    if len(labels) < before:
        notes += (f"{before} slices became {len(labels)}: small or rare ones are pooled",)
    places = np.where(made.places < 0, -1, joined[made.places])
    return Cut(made.by, places, tuple(labels), made.ordered), notes


def _label(made: Cut, some: Ints) -> str:
    """Return what some slices are called together: the ends of those in an order, or the others."""
    first, last = made.labels[int(some[0])], made.labels[int(some[-1])]
    if some.size == 1:
        return first
    return f"{first} … {last}" if made.ordered else OTHER


def _can_split(name: str, column: pa.ChunkedArray, feature: bool) -> bool:
    kind = column.type
    if pa.types.is_temporal(kind) or pa.types.is_nested(kind):
        return False
    different = pc.count_distinct(column, mode="only_valid").as_py()
    if different < 2 or name == "age" or feature:
        return bool(different >= 2)
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return False
    most = MOST if pa.types.is_integer(kind) else min(KINDS, len(column) // 2)  # more are ids
    return bool(different <= (most if is_label(name) else FEW))


def _cut(table: pa.Table, by: By) -> tuple[Cut, tuple[str, ...]]:
    """Return slices, however many; of times, not more points than a page shows."""
    if by.name not in TIMES or by.name in table.column_names:
        return cut(table, by, KINDS), ()
    made = cut(table, by, KINDS)
    coarser = list(TIMES[: TIMES.index(by.name)])
    while len(made.labels) > LONGEST and coarser:
        made = cut(table, By(coarser.pop()), KINDS)
    same = made.by == by.name
    note = f"more than {LONGEST} points by {by.name}, so it is by {made.by}"
    return made, () if same else (note,)


def _neighbours(counts: Floats, fewest: int) -> Ints:
    """Return the slice of each slice in an order, when small ones join the next or the last."""
    joined, place, held = np.zeros(counts.size, np.int64), 0, 0.0
    for at, count in enumerate(counts):
        if held >= fewest:
            place, held = place + 1, 0.0
        joined[at], held = place, held + count
    if held < fewest and place:
        joined[joined == place] = place - 1
    return joined


def _rarest(counts: Floats, fewest: int) -> Ints:
    """Return the slice of each slice, when the rarest become one, the last of all."""
    order = np.argsort(-counts, kind="stable")
    small = counts[order] < fewest
    if counts.size > SHOWN:
        small[SHOWN - 1 :] = True
    kept = sorted(order[~small].tolist())
    if small.any() and counts[order[small]].sum() < fewest and kept:
        kept.remove(min(kept, key=lambda place: counts[place]))
    joined = np.full(counts.size, len(kept), np.int64)
    joined[kept] = np.arange(len(kept))
    return joined
