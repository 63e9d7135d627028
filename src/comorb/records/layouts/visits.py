"""Visits: stays, readmissions and sums, derived from the patient and the days of each visit.

A table of when visits began and ended, or how they ended, gets the columns that follow from it. By
patient, amounts are added up over all visits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime

from comorb.messages import Message
from comorb.records.layouts.covariates import are_numbers, count_texts
from comorb.records.layouts.events import RETURN_DAYS, Events, read_events
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.names import AGE_UNIT_NAME, is_additive, normalise_name
from comorb.records.layouts.plan import Plan
from comorb.records.sources.duck import (
    OpenedSource,
    SourceTable,
    is_number_type,
    literal,
    quote,
    take_largest,
)
from comorb.records.values import TIME, read_age_units, read_dates

_ROW = " row of the file"
_DATE_FORMATS = (
    *("%Y-%m-%d", "%Y%m%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y"),
    *("%d-%m-%Y", "%m-%d-%Y", "%d%b%Y", "%d-%b-%Y", "%d%m%Y", "%m%d%Y"),
)


def add_visit_history(source: OpenedSource, plan: Plan, given: Layout) -> Plan:
    """Return a plan whose table has what follows from the days and the patients of its visits.

    Without a column for it: ``los`` from the days of admission and discharge, ``died`` from how
    the visit ended, ``readmitted`` and ``days_between`` from the other visits of the patient.
    ``given`` is the layout that the caller gave. OMOP and FHIR unite visits in their own way.
    """
    if plan.reader.kind in ("omop", "fhir"):
        return plan
    plan = _add_stays(source, _add_age_units(source, plan))
    events = read_events(source, plan.table, plan.layout, given)
    notes = (*plan.notes, *events.notes)
    plan = replace(plan, table=events.table, layout=events.layout, notes=notes)
    layout = plan.layout
    # Of two rows with one id, whatever they are, one isn't a later visit.
    several_rows = plan.reader.by_code or layout.part is not None or layout.record is not None
    if layout.patient is None or (several_rows and layout.record is None):
        return plan
    day = _day_sql(source, plan.table, layout.date)
    if day is None and plan.unit != "patient":
        return plan
    key, patient = quote((layout.record if several_rows else None) or _ROW), quote(layout.patient)
    count = f"count(DISTINCT {key})" if several_rows else "count(*)"
    several = f"{patient} IS NOT NULL GROUP BY {patient} HAVING {count} > 1 LIMIT 1"
    if not source.has_rows(plan.table, f"{plan.table.sql} WHERE {several}"):
        return plan
    return _add_patient_history(source, plan, key, day, events)


def _add_age_units(source: OpenedSource, plan: Plan) -> Plan:
    """Return the plan with the unit of each age written after it, where a column has it."""
    table, age = plan.table, plan.layout.age
    named = [one for one in table.columns if AGE_UNIT_NAME.fullmatch(normalise_name(one))]
    if age is None or not named or named[0] == age:
        return plan
    (name, *_), text, number = named, table.text_sql(age), f"TRY_CAST({quote(age)} AS DOUBLE)"
    units = read_age_units(
        dict(source.count_values(table, f"coalesce({table.text_sql(name)}, '')"))
    )
    if units is None:
        return replace(plan, notes=(*plan.notes, Message("note.age_unit_unknown", column=name)))
    cases = ""
    for one, unit in units.items():
        word, _, more = unit.partition("+")
        years = f"concat({number} + {more or 0}, {literal(f' {word}')})" if word else "NULL"
        cases += (
            f" WHEN {literal(one)} THEN CASE WHEN {number} IS NULL THEN {text} ELSE {years} END"
        )
    swap = f"CASE {table.text_sql(name)}{cases} ELSE {text} END AS {quote(age)}"
    view = source.derive(table, f"SELECT * REPLACE ({swap}) FROM {table.sql}")
    note = Message("note.age_unit", column=age, unit=name)
    return replace(plan, table=view, notes=(*plan.notes, note))


def _add_stays(source: OpenedSource, plan: Plan) -> Plan:
    """Return the plan with the length of each stay, where there are days and no column for it."""
    table, layout = plan.table, plan.layout
    if layout.los is not None or "los" in {name.lower() for name in table.columns}:
        return plan
    first, last = _day_sql(source, table, layout.date), _day_sql(source, table, layout.discharged)
    if not (first and last):
        return plan
    stay = f"CASE WHEN {last} >= {first} THEN {last} - {first} END AS los"
    note = Message("note.length_of_stay", date=layout.date, discharged=layout.discharged)
    view = source.derive(table, f"SELECT *, {stay} FROM {table.sql}")
    return replace(plan, table=view, notes=(*plan.notes, note))


def _add_patient_history(
    source: OpenedSource, plan: Plan, key: str, day: str | None, events: Events
) -> Plan:
    """Return the plan with what follows from the other visits of a patient and, by patient, sums.

    ``key`` is the column of visits. Readmissions are not derived where a column of the file is
    named after them, even an unread one: they are one outcome, of one source.
    """
    table, patient = plan.table, quote(plan.layout.patient or "")
    end = _day_sql(source, table, plan.layout.discharged) or day or "NULL::DATE"
    columns = _additive_columns(source, plan) if plan.unit == "patient" else ()
    flags = events.flags
    numbered = f"SELECT *, row_number() OVER () AS {quote(_ROW)} FROM {table.sql}"
    known = f"({numbered}) WHERE {patient} IS NOT NULL AND {key} IS NOT NULL"
    parts = [f"{key} AS key", f"any_value({patient}) AS patient"]
    parts += [f"min({day or 'NULL::DATE'}) AS day", f"max({end}) AS ended"]
    parts += [f"max(TRY_CAST({quote(one)} AS DOUBLE)) AS sum_{i}" for i, one in enumerate(columns)]
    parts += [f"bool_or({sql}) AS flag_{role}" for role, sql in flags.items()]
    visits = f"SELECT {', '.join(parts)} FROM {known} GROUP BY {key}"
    replaced, added, notes = _history_columns(plan, columns, events, day)
    ((latest,),) = source.query_whole(table, f"SELECT max({end}) FROM {known}", take_largest)
    latest_day = "NULL::DATE" if latest is None else f"DATE {literal(str(latest))}"
    dated = (
        "SELECT *, lead(day) OVER w - ended AS next, day - lag(ended) OVER w AS past, "
        f"{latest_day} AS latest FROM ({visits}) "
        "WINDOW w AS (PARTITION BY patient ORDER BY day, key)"
    )
    alive = "NOT coalesce(flag_died, false) AND " if "died" in flags else ""
    at_risk = f"{alive}(next IS NOT NULL OR latest - ended >= {RETURN_DAYS})"
    again = f"CASE WHEN {at_risk} THEN coalesce(next BETWEEN 1 AND {RETURN_DAYS}, false) END"
    picks = ", ".join(f"{sql} AS {quote(f' {one}')}" for one, sql in (replaced | added).items())
    name = f"visits_of_{len(source.notes)}_{table.sql.strip('()').split()[-1]}".lower()
    name = re.sub(r"\W", "_", name)
    name, rows = quote(name), quote(f"rows_{name}")
    derived = f"SELECT key, {picks} FROM (SELECT *, {again} AS again FROM ({dated}))"
    source.rows(table, f"CREATE OR REPLACE TEMP TABLE {name} AS {derived}")
    swap, more = (
        ", ".join(f"visits.{quote(f' {one}')} AS {quote(one)}" for one in some)
        for some in (replaced, added)
    )
    sql = (
        f"SELECT base.* EXCLUDE ({quote(_ROW)}){f' REPLACE ({swap})' if swap else ''}"
        f"{f', {more}' if more else ''} FROM ({numbered}) AS base "
        f"LEFT JOIN {name} AS visits ON base.{key} = visits.key ORDER BY base.{quote(_ROW)}"
    )
    # Several queries follow, each of which would number, join and sort all rows again.
    source.rows(table, f"CREATE OR REPLACE TEMP TABLE {rows} AS {sql}")
    source.rows(table, f"DROP TABLE {name}")
    view = source.derive(table, f"SELECT * FROM {rows}")
    return replace(plan, table=view, notes=(*plan.notes, *notes))


def _history_columns(
    plan: Plan, columns: Sequence[str], events: Events, day: str | None
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Return the columns that are replaced and added, as SQL over the visits, and notes."""
    layout, flags, of_patients = plan.layout, events.flags, plan.unit == "patient"
    taken = {name.lower() for name in plan.table.columns}
    replaced: dict[str, str] = {}
    added: dict[str, str] = {}
    notes: list[str] = []
    over = " OVER (PARTITION BY patient)"
    if of_patients:
        replaced = {name: f"sum(sum_{i}){over}" for i, name in enumerate(columns)}
        replaced |= {getattr(layout, role): f"bool_or(flag_{role}){over}" for role in flags}
        if "visits" not in taken:
            added["visits"] = f"count(*){over}"
        parts = [Message("note.summed", columns=list(map(repr, columns)))] if columns else []
        parts += [Message("note.of_any_visit", flags=flags)] if flags else []
        notes.append(Message("text.parts", parts=[*parts, Message("note.of_first_visit")]))
    if day is not None and layout.readmitted is not None:
        if layout.readmitted in (plan.stored or plan.table).columns:
            notes.append(Message("note.readmitted_column", column=layout.readmitted))
    elif day is not None and not {"readmitted"} & (events.unread | taken):
        added["readmitted"] = f"bool_or(again){over}" if of_patients else "again"
        notes.append(Message("note.readmitted", limit=RETURN_DAYS))
    if day is not None and "days_between" not in taken:
        mean, own = f"avg(past) FILTER (past >= 0){over}", "CASE WHEN past >= 0 THEN past END"
        added["days_between"] = mean if of_patients else own
        notes.append(Message("note.days_between"))
    return replaced, added, notes


def _additive_columns(source: OpenedSource, plan: Plan) -> tuple[str, ...]:
    """Return the columns of numbers whose values can be added up over visits."""
    table, layout = plan.table, plan.layout
    aside = {*(layout.codes or ()), *layout.ids, layout.weight, layout.age, *layout.ignored}
    roles = {layout.los, layout.cost, "los"}
    return tuple(
        name
        for name, kind in table.columns.items()
        if name not in aside
        and (name in roles or is_additive(name))
        and (is_number_type(kind) or (kind == "VARCHAR" and are_numbers(source, table, name)))
    )


def _day_sql(source: OpenedSource, table: SourceTable, name: str | None) -> str | None:
    """Return the SQL that reads a column as days; None where that isn't sure."""
    if name is None:
        return None
    if table.columns[name].startswith(("DATE", "TIMESTAMP")):
        return f"CAST({quote(name)} AS DATE)"
    text = table.text_sql(name)
    view = source.view(table.label, f"SELECT {text} AS text FROM {table.sql}")
    text = f"regexp_replace({text}, {literal(TIME)}, '')"
    days = read_dates(count_texts(source, view, "text"), name).of
    known = {one.strip(): when for one, when in (days or {}).items() if isinstance(when, date)}
    formats = [one for one in _DATE_FORMATS if known and _reads_days(one, known)]
    if not formats:
        return None
    tries = ", ".join(f"try_strptime(trim({text}), {literal(one)})" for one in formats)
    return f"CAST(coalesce({tries}) AS DATE)"


def _reads_days(form: str, days: dict[str, date]) -> bool:
    """Return whether a format reads some of the days, and none of them as another."""
    some = False
    for text, when in days.items():
        try:
            if datetime.strptime(text, form).date() != when:
                return False
            some = True
        except ValueError:
            continue
    return some
