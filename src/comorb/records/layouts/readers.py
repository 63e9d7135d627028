"""The layouts that are known: to add one, write its module and name it in `READERS`."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches

import pyarrow as pa

from comorb.errors import RecordsError
from comorb.records.layouts import binary, delimited, fhir, long, omop, wide
from comorb.records.layouts.coded import with_codes_of
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.covariates import settled
from comorb.records.layouts.description import Layout
from comorb.records.layouts.neighbours import Cells
from comorb.records.layouts.nested import flat_columns
from comorb.records.layouts.plan import Plan, Reader
from comorb.records.layouts.visits import with_visits
from comorb.records.sources.databases import is_query
from comorb.records.sources.duck import OpenedSource, SourceTable, as_text, quoted
from comorb.records.sources.merging import first
from comorb.records.sources.ndjson import flatten

# The more special ones come last, and are asked first whether a table is theirs.
READERS: dict[str, Reader] = {
    module.READER.kind: module.READER for module in (wide, long, delimited, binary, omop, fhir)
}
_SAMPLE_ROWS = 1000


def plan_reading(
    source: OpenedSource,
    table: str | None,
    layout: Layout,
    unit: str | None,
    *,
    whole: bool = False,
    keep_empty: bool = False,
    kind: str = "diagnosis",
) -> Plan:
    """Find out how to read a source; what is said about it stands.

    A table that will be read ``whole`` decides the types of its covariates as it is read; one
    that will be read in parts is looked through for that first. With ``keep_empty``, records
    without a code are read, too; ``kind`` is what the codes are of, such as 'drug'.
    """
    if unit not in (None, "visit", "patient"):
        raise RecordsError(f"Expected a unit of 'visit' or 'patient'; got {unit!r}.")
    if layout.kind is not None and layout.kind not in READERS:
        raise RecordsError(f"Expected a layout out of {', '.join(READERS)}; got {layout.kind!r}.")
    chosen = choose_table(source, table)
    plan = None
    if list(chosen.columns) == ["json"]:
        columns = _columns(source, chosen, layout)
        plan = _first_plan(source, chosen, columns, of_json=True)
    if plan is None:
        chosen, columns = open_columns(source, chosen, layout)
        if kind != "diagnosis":
            columns = with_codes_of(columns, kind)
        plan = plan_table(source, chosen, columns)
    keep_empty = keep_empty or not plan.reader.least_codes
    own = set(plan.layout.codes or ()) <= chosen.columns.keys()
    stored = chosen if own else plan.table
    plan = replace(plan, unit=unit or plan.reader.unit, keep_empty=keep_empty, stored=stored)
    if plan.holds and kind == "diagnosis":
        note = f"{chosen.label} holds {plan.holds}, not diagnoses; they are read as what they are"
        plan = replace(plan, notes=(*plan.notes, note))
    if plan.reader is binary.READER:
        plan = binary.settle_items(source, plan, columns.cells)
    plan = with_visits(source, plan)
    if whole:
        return plan
    return replace(plan, meanings=settled(source, plan.table, plan.layout))


def open_columns(
    source: OpenedSource, table: SourceTable | str | None, layout: Layout
) -> tuple[SourceTable, Columns]:
    """Return a table of rows and columns, or what was asked for as one, and its columns."""
    chosen = table if isinstance(table, SourceTable) else choose_table(source, table)
    if list(chosen.columns) == ["json"]:
        chosen = flatten(source, chosen)
    chosen = flat_columns(source, chosen, layout)
    return chosen, _columns(source, chosen, layout)


def plan_table(source: OpenedSource, table: SourceTable, columns: Columns) -> Plan:
    """Return how to read a table of rows and columns."""
    plan = _first_plan(source, table, columns, of_json=False)
    if plan is None:
        raise columns.refusal()
    if plan.reader in (wide.READER, long.READER, delimited.READER):
        return replace(plan, system=columns.procedures(plan.layout))
    return plan


def _first_plan(
    source: OpenedSource, table: SourceTable, columns: Columns, of_json: bool
) -> Plan | None:
    readers = [reader for reader in reversed(READERS.values()) if reader.of_json == of_json]
    if not of_json and columns.given.kind is not None:
        readers = [reader for reader in readers if reader.kind == columns.given.kind]
    plans = (reader.understand(source, table, columns) for reader in readers)
    return next((plan for plan in plans if plan is not None), None)


def choose_table(source: OpenedSource, asked: str | None) -> SourceTable:
    """Return the table that was asked for, or the one that must be meant."""
    names = list(source.openers)
    if asked is not None:
        if is_query(asked):
            if source.ask is None:
                raise RecordsError(f"{source.label} is no database, so it can't answer a query.")
            return source.ask(asked)
        if (name := source.name_of(asked)) is not None:
            return source.table(name)
        near = get_close_matches(asked, names, 3, 0.5) or names
        raise RecordsError(
            f"{source.label} has no table {asked!r}; the nearest are {', '.join(near)}. A query "
            "must begin with SELECT or WITH."
        )
    for standard in ("condition_occurrence", "condition_era", "condition"):
        if standard in names:
            if standard == "condition_era" and len(names) > 1:
                source.note(
                    "no table was named, and there is no condition_occurrence: condition_era was "
                    "read, in which the conditions of a time are united"
                )
            return source.table(standard)
    if (usual := source.usual_table()) is not None:
        return usual
    if len(names) == 1:
        return source.table(names[0])
    if not names:
        raise RecordsError(f"{source.label} holds no tables.")
    raise RecordsError(
        f"{source.label} holds {len(names)} tables: {', '.join(names[:12])}. Say which one to read."
    )


def _columns(source: OpenedSource, table: SourceTable, given: Layout) -> Columns:
    def load() -> Cells:
        names = list(table.columns)
        rows = min(_SAMPLE_ROWS, 50 + 500_000 // len(names))
        picks = ", ".join(f"{as_text(n, table.columns[n])} AS {quoted(n)}" for n in names)
        sql = f"SELECT {picks} FROM {table.sql} LIMIT {rows}"
        batches = source.whole(sql, lambda: list(source.batches(table, sql)), first)
        if not batches:
            raise RecordsError(f"{table.label} holds no rows; export it again.")
        whole = pa.Table.from_batches(batches)
        return {name: whole[name].to_pylist() for name in names}

    return Columns(table.label, list(table.columns), given, load)
