"""Readers: the layouts that are known; to add one, write its module and name it in `READERS`."""

from __future__ import annotations

import re
from dataclasses import replace
from difflib import get_close_matches

import pyarrow as pa

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.layouts import fhir, items, long, omop, wide
from comorb.records.layouts.columns import Cells, Columns
from comorb.records.layouts.covariates import infer_meanings
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.long import find_code_columns
from comorb.records.layouts.names import CODE_NAME, NOT_CODE_NAME, names_matching
from comorb.records.layouts.plan import Plan, Reader
from comorb.records.layouts.visits import add_visit_history
from comorb.records.sources.databases import is_query
from comorb.records.sources.duck import OpenedSource, SourceTable, quote, take_first
from comorb.records.sources.text_files import flatten_json

_STRUCTURE = re.compile(r"(STRUCT|MAP|UNION|VARIANT)\b|.*\]\[")
_LIST = re.compile(r".*\[\d*\]")


def flatten_columns(source: OpenedSource, table: SourceTable, given: Layout) -> SourceTable:
    """Return a table with one value in each cell: a list becomes 'a;b', and a time span a text.

    Structures are left out with a note; they are refused if they have a role or a name of codes.
    """
    picks, gone = {}, []
    for name, kind in table.columns.items():
        if _STRUCTURE.match(kind):
            gone.append(name)
        elif _LIST.fullmatch(kind):
            picks[name] = f"array_to_string(CAST({quote(name)} AS VARCHAR[]), ';')"
        elif kind == "INTERVAL":
            picks[name] = f"CAST({quote(name)} AS VARCHAR)"
    if not picks and not gone:
        return table
    named = {*names_matching(gone, CODE_NAME)} - {*names_matching(gone, NOT_CODE_NAME)}
    for name in gone:
        if name in named or name in (given.codes or ()) or name in given.roles.values():
            raise RecordsError("source.structures", table=table.label, name=name)
        source.note(Message("note.structures", name=name, table=table.label))
    kept = [name for name in table.columns if name not in gone]
    if not kept:
        raise RecordsError("source.only_structures", table=table.label)
    flat = ", ".join(f"{picks.get(name, quote(name))} AS {quote(name)}" for name in kept)
    return source.derive(table, f"SELECT {flat} FROM {table.sql}")


# The more special ones come last, and are tried first.
READERS: dict[str, Reader] = {
    reader.kind: reader
    for reader in (wide.WIDE, long.READER, wide.DELIMITED, items.READER, omop.READER, fhir.READER)
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
    """Return how to read a source; the given layout stands.

    A table that will be read ``whole`` decides the types of its covariates as it is read; one
    that will be read in parts is scanned for them first. With ``keep_empty``, records without a
    code are read, too; ``kind`` is that of the codes, such as 'drug'.
    """
    if unit not in (None, "visit", "patient"):
        raise RecordsError("layout.unit", unit=unit)
    if layout.kind is not None and layout.kind not in READERS:
        raise RecordsError("layout.kind", kinds=READERS, kind=layout.kind)
    chosen = choose_table(source, table)
    plan = None
    if list(chosen.columns) == ["json"]:
        columns = _load_columns(source, chosen, layout)
        plan = _first_plan(source, chosen, columns, of_json=True)
    if plan is None:
        chosen, columns = open_columns(source, chosen, layout)
        if kind != "diagnosis":
            columns = find_code_columns(columns, kind)
        plan = plan_table(source, chosen, columns)
    keep_empty = keep_empty or not plan.reader.least_codes
    own = set(plan.layout.codes or ()) <= chosen.columns.keys()
    stored = chosen if own else plan.table
    plan = replace(plan, unit=unit or plan.reader.unit, keep_empty=keep_empty, stored=stored)
    if plan.holds and kind == "diagnosis":
        note = Message("note.not_diagnoses", table=chosen.label, what=plan.holds)
        plan = replace(plan, notes=(*plan.notes, note))
    if plan.reader is items.READER:
        plan = items.plan_items(source, plan, columns.cells)
    plan = add_visit_history(source, plan, layout)
    if whole:
        return plan
    plan = replace(plan, meanings=infer_meanings(source, plan.table, plan.layout))
    return long.find_varying(source, plan) if plan.reader.by_code else plan


def open_columns(
    source: OpenedSource, table: SourceTable | str | None, layout: Layout
) -> tuple[SourceTable, Columns]:
    """Return a table, or the one of this name, as rows and columns, and its columns."""
    chosen = table if isinstance(table, SourceTable) else choose_table(source, table)
    if list(chosen.columns) == ["json"]:
        chosen = flatten_json(source, chosen)
    chosen = flatten_columns(source, chosen, layout)
    return chosen, _load_columns(source, chosen, layout)


def plan_table(source: OpenedSource, table: SourceTable, columns: Columns) -> Plan:
    """Return how to read a table of rows and columns."""
    plan = _first_plan(source, table, columns, of_json=False)
    if plan is None:
        raise columns.unreadable_error()
    if plan.reader in (wide.WIDE, long.READER, wide.DELIMITED):
        return replace(plan, system=columns.procedures(plan.layout))
    return plan


def _first_plan(
    source: OpenedSource, table: SourceTable, columns: Columns, of_json: bool
) -> Plan | None:
    readers = [reader for reader in reversed(READERS.values()) if reader.of_json == of_json]
    if not of_json and columns.given.kind is not None:
        readers = [reader for reader in readers if reader.kind == columns.given.kind]
    plans = (reader.plan(source, table, columns) for reader in readers)
    return next((plan for plan in plans if plan is not None), None)


def choose_table(source: OpenedSource, wanted: str | None) -> SourceTable:
    """Return the table of a name or a query, or the one that is read without either."""
    names = list(source.openers)
    if wanted is not None:
        if is_query(wanted):
            if source.ask is None:
                raise RecordsError("source.no_database", source=source.label)
            return source.ask(wanted)
        if (own := source.name_of(wanted)) is not None:
            return source.table(own)
        near = get_close_matches(wanted, names, 3, 0.5) or names
        raise RecordsError("source.no_table", source=source.label, table=wanted, near=near)
    for standard in ("condition_occurrence", "condition_era", "condition"):
        if standard in names:
            if standard == "condition_era" and len(names) > 1:
                source.note(Message("note.condition_era"))
            return source.table(standard)
    if source.default is not None:
        name, note = source.default
        source.note(note)
        return source.table(name)
    if len(names) == 1:
        return source.table(names[0])
    if not names:
        raise RecordsError("source.no_tables", source=source.label)
    raise RecordsError("source.which_table", source=source.label, n=len(names), names=names[:12])


def _load_columns(source: OpenedSource, table: SourceTable, given: Layout) -> Columns:
    def load() -> Cells:
        names = list(table.columns)
        rows = min(_SAMPLE_ROWS, 50 + 500_000 // len(names))
        picks = ", ".join(f"{table.text_sql(name)} AS {quote(name)}" for name in names)
        sql = f"SELECT {picks} FROM {table.sql} LIMIT {rows}"
        batches = source.answer_whole(sql, lambda: list(source.batches(table, sql)), take_first)
        if not batches:
            raise RecordsError("source.no_rows", table=table.label)
        whole = pa.Table.from_batches(batches)
        return {name: whole[name].to_pylist() for name in names}

    return Columns(table.label, list(table.columns), given, load)
