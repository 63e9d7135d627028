"""Identity: which record each row of a row-wise table belongs to, and the ids of the records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.model.arrays import Indices, Ints
from comorb.records.layouts.plan import Plan
from comorb.records.ledger import NO_UNIQUE_ID, Ledger


@dataclass(frozen=True)
class Identity:
    """The number of each row's record (-1: none), the ids of the records, and from which column.

    Records keep the order of the rows; where rows are united, they are in the order of their ids.
    """

    place: Ints
    ids: pa.Array
    column: str | None
    ledger: Ledger

    @property
    def by_row(self) -> bool:
        """Whether each row is the record of its number."""
        return len(self.ids) == len(self.place)


def identify(
    plan: Plan, others: pa.Table, mentions: Callable[[], tuple[Ints, Indices]], n: int
) -> Identity:
    """Tell the records of a table's n rows apart.

    A repeated visit id is one record when a column numbers its parts, a duplicate when the rows
    are the same, and an error when they are not.
    """
    layout, column = plan.layout, plan.id_column
    ledger = Ledger().open("rows", "read", n)
    if column is not None:
        values = others[column].combine_chunks()
        if _ascending(values):
            return Identity(np.arange(n), values, column, ledger)
        codes = pc.dictionary_encode(values)
        distinct = len(codes.dictionary)
        several_visits = column == layout.patient and plan.unit == "visit" and distinct < n
        if not several_visits:
            ledger = ledger.less("rows", "without an id", values.null_count)
            numbers = pc.fill_null(codes.indices, -1).to_numpy().astype(np.int64)
            known = Identity(numbers, codes.dictionary, column, ledger)
            if distinct == n:
                return known
            if plan.unit == "patient" or layout.part is not None:
                return _unite(known)
            return _distinct(plan, others, mentions(), known)
    ids = pa.array(np.arange(1, n + 1)).cast(pa.string())
    return Identity(np.arange(n), ids, None, ledger.noted(NO_UNIQUE_ID))


def _ascending(values: pa.Array) -> bool:
    """Tell whether each id is above the one before, as in a sorted export: then all differ."""
    ordered = pc.less(values.slice(0, len(values) - 1), values.slice(1))
    return not values.null_count and bool(pc.all(ordered, min_count=0).as_py())


def _unite(known: Identity) -> Identity:
    order = pc.sort_indices(known.ids).to_numpy()
    rank = np.empty(len(order) + 1, dtype=np.int64)
    rank[order] = np.arange(len(order))
    rank[-1] = -1
    return replace(known, place=rank[known.place], ids=known.ids.take(pa.array(order)))


def _distinct(
    plan: Plan, others: pa.Table, mentions: tuple[Ints, Indices], known: Identity
) -> Identity:
    """Leave out the rows that repeat an earlier one, or refuse an id with unequal rows."""
    order = np.argsort(known.place, kind="stable")
    ordered = known.place[order]
    again = np.flatnonzero((ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0))
    earlier, later = order[again], order[again + 1]
    at, raws = mentions
    by_row = np.argsort(at, kind="stable")
    at, raws = at[by_row], raws[by_row]

    def codes(row: int) -> list[int]:
        start, end = np.searchsorted(at, (row, row + 1))
        return sorted(raws[start:end].tolist())

    for one, two in zip(earlier.tolist(), later.tolist(), strict=True):
        if codes(one) != codes(two) or not others.slice(one, 1).equals(others.slice(two, 1)):
            first = plan.table.first_row
            raise RecordsError(
                f"{plan.table.label}: the ids in column {known.column!r} must be unique, but rows "
                f"{one + first:,} and {two + first:,} have the same id and unequal contents. Name "
                "the column that is unique, or read with unit='patient' to unite them."
            )
    place = known.place.copy()
    place[later] = -1
    ledger = known.ledger.less("rows", "the same row again", len(later))
    return replace(known, place=place, ledger=ledger)
