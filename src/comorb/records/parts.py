"""Parts: records that don't fit in memory, read in parts that do.

The engine counts the codes and, where the rows of a record lie apart, sorts them; it uses the
disk when memory is short. Each part holds whole records and goes the way of any cohort.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.model.arrays import Mask
from comorb.records.codes.coding import Coding
from comorb.records.codes.vocabulary import Raw
from comorb.records.cohort import Cohort
from comorb.records.joining import open_joining
from comorb.records.layouts.assembly import Encode, encoder
from comorb.records.layouts.dating import dated
from comorb.records.layouts.plan import Plan
from comorb.records.ledger import NO_UNIQUE_ID, Ledger
from comorb.records.preparation import Preparation
from comorb.records.sources.duck import OpenedSource, quoted
from comorb.records.sources.frames import register_table
from comorb.records.sources.merging import summed
from comorb.records.sources.opening import open_source

PART_ROWS = 1 << 18
_ROW = "row number"
_SIZE = re.compile(r"\s*([0-9.]+)\s*([KMGT]i?B)\s*", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Part(Cohort):
    """Some of the records of a cohort: no rule has to leave any of them, and no code goes."""

    def _keep(self, mask: Mask, rule: str) -> Cohort:
        return self._take(mask, rule)


@contextmanager
def open_parts(
    source: Any, preparation: Preparation, memory: str | None = None
) -> Iterator[Iterator[Part]]:
    """Open a source as parts of one cohort, before any rule; all of them have the same codes.

    ``memory`` is about the most to hold, such as '2GB'; a quarter of it is for DuckDB, of which
    each source has an equal share.
    """
    kind, records, besides = preparation.sources(source)
    share = _share(memory, 4 * (1 + len(besides)))
    with open_source(records, share) as opened:
        read = preparation.plan(opened, kind)
        with open_joining(records, opened, read, besides, preparation.level, share) as joining:
            parts = _cohorts(opened, *plan_parts(opened, read, preparation), preparation.coding)
            yield (joining.join(part) for part in parts)


def plan_parts(
    opened: OpenedSource, read: Plan, preparation: Preparation
) -> tuple[Plan, Ledger, Encode]:
    """Return how parts of a source are read: the plan, what is known of all, and their codes."""
    plan, begun = _with_id(opened, read)
    begun = begun.noted(*plan.notes, *opened.notes, *plan.doubts(opened))
    raws = _count(opened, plan)
    vocabulary = plan.vocabulary(raws, preparation.own_system, preparation.coding)
    if vocabulary.undecided and (by_date := dated(opened, plan)):
        plan, raws = by_date, _count(opened, by_date)
        vocabulary = plan.vocabulary(raws, preparation.own_system, preparation.coding)
    return plan, begun, encoder(raws, vocabulary)


def _count(source: OpenedSource, plan: Plan) -> dict[Raw, int]:
    """Return how often each raw code is mentioned."""
    question = f"codes {plan.layout.codes} by {plan.layout.version} in {plan.table.sql}"
    return source.whole(question, lambda: plan.reader.count(source, plan), _counted_in_both)


def _counted_in_both(one: dict[Raw, int], two: dict[Raw, int]) -> dict[Raw, int]:
    total = Counter(one)
    total.update(two)
    return dict(sorted(total.items(), key=lambda pair: (pair[0][0] or "", pair[0][1])))


def _with_id(source: OpenedSource, plan: Plan) -> tuple[Plan, Ledger]:
    """Return how to read the rows that belong to a record, and what became of the others."""
    table, column = plan.table, plan.id_column
    if column is None:
        return _numbered(source, plan)
    name = quoted(column)
    ((total, known),) = source.ask_whole(
        table, f"SELECT count(*), count({name}) FROM {table.sql}", summed
    )
    if not total:
        raise RecordsError(f"{table.label} holds no rows; export it again.")
    if not known and plan.reader.by_code:
        raise plan.without_ids()
    if not _apart(plan):
        distinct = f"SELECT count(*) FROM (SELECT {name} FROM {table.sql} GROUP BY 1) WHERE {name}"
        ((different,),) = source.ask_whole(table, f"{distinct} IS NOT NULL", summed)
        if different < known and column == plan.layout.patient:
            return _numbered(source, plan)
        if different < known:
            raise RecordsError(
                f"{table.label}: {known - different:,} rows repeat an id of column {column!r}, "
                "which must be unique when records are read in parts. Name the column that is "
                "unique, read with unit='patient' to unite them, or read without memory."
            )
    gone = {**plan.removed, "without an id": total - known}
    begun = Ledger().open("rows", "read", sum(gone.values()))
    for rule, count in gone.items():
        begun = begun.less("rows", rule, count)
    if known < total:
        held = f"SELECT * FROM {table.sql} WHERE {name} IS NOT NULL"
        table = source.view(table.label, held, table.text)
    return replace(plan, table=table, removed={}), begun


def _numbered(source: OpenedSource, plan: Plan) -> tuple[Plan, Ledger]:
    table = source.view(plan.table.label, source.numbered(plan.table, _ROW), plan.table.text)
    layout = replace(plan.layout, record=_ROW)
    return replace(plan, table=table, layout=layout), Ledger(notes=(NO_UNIQUE_ID,))


def _apart(plan: Plan) -> bool:
    """Tell whether the rows of a record may lie apart."""
    return plan.reader.by_code or plan.unit == "patient" or plan.layout.part is not None


def _tables(source: OpenedSource, plan: Plan) -> Iterator[pa.Table]:
    """Yield the rows of a table; all rows of a record are in the same one."""
    table, key, apart = plan.table, plan.id_column or "", _apart(plan)
    order = f" ORDER BY {quoted(key)}" if apart else ""
    held: list[pa.RecordBatch] = []
    for batch in source.batches(table, f"SELECT * FROM {table.sql}{order}", PART_ROWS):
        held.append(batch)
        if sum(map(len, held)) < PART_ROWS:
            continue
        whole = pa.Table.from_batches(held)
        end = pc.index(whole[key], whole[key][-1]).as_py() if apart else len(whole)
        if end:
            yield whole.slice(0, end)
            held = whole.slice(end).combine_chunks().to_batches()
    if held:
        yield pa.Table.from_batches(held)


def _cohorts(
    source: OpenedSource, plan: Plan, begun: Ledger, encode: Encode, coding: Coding
) -> Iterator[Part]:
    """Yield the cohort of each part of the rows."""
    empty = True
    for table in _tables(source, plan):
        with source.connection.cursor() as connection:
            own = OpenedSource(source.label, connection)
            read = register_table(own, plan.table.label, table)
            part = replace(plan, table=read)
            assembly = part.reader.read(own, part, encode)
            cohort = part.cohort(assembly, coding, Part)
        ledger = (cohort.ledger + begun).open("features", "read", len(cohort.codes))
        begun = Ledger()
        empty = empty and not (len(cohort) and cohort.codes)
        yield replace(cohort, ledger=ledger)
    if empty:
        plan.check_usable(assembly)


def read_portion(
    source: OpenedSource, plan: Plan, encode: Encode, coding: Coding
) -> tuple[Part, RecordsError | None] | None:
    """Return the cohort of all rows of a portion, and why it is of no use; None without rows."""
    order = f" ORDER BY {quoted(plan.id_column or '')}" if _apart(plan) else ""
    table = plan.table
    batches = list(source.batches(table, f"SELECT * FROM {table.sql}{order}"))
    if not batches:
        return None
    held = register_table(source, table.label, pa.Table.from_batches(batches))
    part = replace(plan, table=held)
    assembly = part.reader.read(source, part, encode)
    try:
        part.check_usable(assembly)
    except RecordsError as error:
        return part.cohort(assembly, coding, Part), error
    return part.cohort(assembly, coding, Part), None


def _share(memory: str | None, among: int) -> str | None:
    size = _SIZE.fullmatch(memory or "")
    return f"{float(size[1]) / among}{size[2]}" if size else memory
