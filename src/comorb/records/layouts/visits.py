"""Visits: what follows from the patient and the days of each: stays, readmissions, sums.

A table whose columns say when a visit began and ended, or how it ended, gets the columns that
follow from them; of a patient, what can be added is added up over all visits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime

from comorb.messages import Message
from comorb.records.layouts.covariates import are_numbers, count_texts
from comorb.records.layouts.events import RETURN_DAYS, read_events
from comorb.records.layouts.layout import EVENT_ROLES, Layout
from comorb.records.layouts.names import is_additive
from comorb.records.layouts.plan import Plan
from comorb.records.sources.duck import (
    OpenedSource,
    SourceTable,
    literal,
    quote,
    take_either,
    take_largest,
    text_sql,
)
from comorb.records.values import TIME, read_dates, yes_no

_ROW = " row of the file"
_DATE_FORMATS = (
    *("%Y-%m-%d", "%Y%m%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y"),
    *("%d-%m-%Y", "%m-%d-%Y", "%d%b%Y", "%d-%b-%Y"),
)
_NUMBER_TYPES = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|FLOAT|DECIMAL.*")
_UNITING_LAYOUTS = ("omop", "fhir")  # layouts whose readers unite visits in their own way


def add_visit_history(source: OpenedSource, plan: Plan, given: Layout) -> Plan:
    """Return a plan whose table has what follows from the days and the patients of its visits.

    Without a column for it: ``los`` from the days of admission and discharge, ``died`` from how
    the visit ended, ``readmitted`` and ``days_between`` from the other visits of the patient.
    ``given`` is the layout as far as it was said.
    """
    if plan.reader.of_json or plan.reader.kind in _UNITING_LAYOUTS:
        return plan
    plan = _add_stays(source, plan)
    events = read_events(source, plan.table, plan.layout, given)
    plan = replace(
        plan, table=events.table, layout=events.layout, notes=(*plan.notes, *events.notes)
    )
    layout = plan.layout
    if layout.patient is None or (_has_several_rows(plan) and layout.record is None):
        return plan
    day = _day_sql(source, plan.table, layout.date)
    of_patients = plan.unit == "patient"
    if (day is None and not of_patients) or not _have_visits(source, plan):
        return plan
    return _add_patient_history(source, plan, day, "readmitted" in events.unread)


def _has_several_rows(plan: Plan) -> bool:
    return plan.reader.by_code or plan.layout.part is not None


def _add_stays(source: OpenedSource, plan: Plan) -> Plan:
    """Return the plan with the length of each stay, where days tell it and no column does."""
    table, layout = plan.table, plan.layout
    if layout.los is not None or "los" in {name.lower() for name in table.columns}:
        return plan
    first, last = _day_sql(source, table, layout.date), _day_sql(source, table, layout.discharged)
    if not (first and last):
        return plan
    stay = f"CASE WHEN {last} >= {first} THEN {last} - {first} END AS los"
    note = Message("note.length_of_stay", date=layout.date, discharged=layout.discharged)
    view = source.view(table.label, f"SELECT *, {stay} FROM {table.sql}", table.text)
    return replace(plan, table=view, notes=(*plan.notes, note))


def _add_patient_history(source: OpenedSource, plan: Plan, day: str | None, unread: bool) -> Plan:
    """Return the plan with what the other visits of a patient tell, and, by patient, sums.

    Readmissions are not made where a column of the file is named after them, also an ``unread``
    one: they are one outcome, of one source.
    """
    table, layout = plan.table, plan.layout
    patient, of_patients = quote(layout.patient or ""), plan.unit == "patient"
    end = _day_sql(source, table, layout.discharged) or day
    key = quote(layout.record or "") if _has_several_rows(plan) else quote(_ROW)
    columns = _additive_columns(source, plan) if of_patients else ()
    flags = _event_flags(source, plan)
    numbered = f"SELECT *, row_number() OVER () AS {quote(_ROW)} FROM {table.sql}"
    parts = [f"{key} AS key", f"any_value({patient}) AS patient"]
    parts += [f"min({day or 'NULL::DATE'}) AS day", f"max({end or 'NULL::DATE'}) AS ended"]
    parts += [
        f"max(TRY_CAST({quote(name)} AS DOUBLE)) AS sum_{i}" for i, name in enumerate(columns)
    ]
    parts += [f"bool_or({sql}) AS flag_{role}" for role, sql in flags.items()]
    visits = (
        f"SELECT {', '.join(parts)} FROM ({numbered}) WHERE {patient} IS NOT NULL "
        f"AND {key} IS NOT NULL GROUP BY {key}"
    )
    replaced, added, notes = _history_columns(plan, columns, flags, day, unread)
    ((latest,),) = source.query_whole(
        table,
        f"SELECT max({end or 'NULL::DATE'}) FROM ({numbered}) WHERE {patient} IS NOT NULL "
        f"AND {key} IS NOT NULL",
        take_largest,
    )
    latest_day = "NULL::DATE" if latest is None else f"DATE {literal(str(latest))}"
    dated = (
        "SELECT *, lead(day) OVER w - ended AS next, day - lag(ended) OVER w AS past, "
        f"{latest_day} AS latest FROM ({visits}) "
        "WINDOW w AS (PARTITION BY patient ORDER BY day, key)"
    )
    alive = "NOT coalesce(flag_died, false) AND " if "died" in flags else ""
    at_risk = f"{alive}(next IS NOT NULL OR latest - ended >= {RETURN_DAYS})"
    again = f"CASE WHEN {at_risk} THEN coalesce(next BETWEEN 1 AND {RETURN_DAYS}, false) END"
    told = f"SELECT *, {again} AS again FROM ({dated})"
    picks = ", ".join(f"{sql} AS {quote(f' {name}')}" for name, sql in (replaced | added).items())
    name = f"visits_of_{len(source.notes)}_{table.sql.strip('()').split()[-1]}".lower()
    name = re.sub(r"\W", "_", name)
    name, rows = quote(name), quote(f"rows_{name}")
    source.rows(table, f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT key, {picks} FROM ({told})")
    swap = ", ".join(f"visits.{quote(f' {one}')} AS {quote(one)}" for one in replaced)
    more = ", ".join(f"visits.{quote(f' {one}')} AS {quote(one)}" for one in added)
    sql = (
        f"SELECT base.* EXCLUDE ({quote(_ROW)}){f' REPLACE ({swap})' if swap else ''}"
        f"{f', {more}' if more else ''} FROM ({numbered}) AS base "
        f"LEFT JOIN {name} AS visits ON base.{key} = visits.key ORDER BY base.{quote(_ROW)}"
    )
    # Several queries follow, each of which would number, join and sort all rows again.
    source.rows(table, f"CREATE OR REPLACE TEMP TABLE {rows} AS {sql}")
    source.rows(table, f"DROP TABLE {name}")
    view = source.view(table.label, f"SELECT * FROM {rows}", table.text)
    return replace(plan, table=view, notes=(*plan.notes, *notes))


def _history_columns(
    plan: Plan, columns: Sequence[str], flags: dict[str, str], day: str | None, unread: bool
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Return the columns that are replaced and added, as SQL over the visits, and notes."""
    layout, of_patients = plan.layout, plan.unit == "patient"
    taken = {name.lower() for name in plan.table.columns}
    own = {role: getattr(layout, role) for role in flags}
    replaced: dict[str, str] = {}
    added: dict[str, str] = {}
    notes: list[str] = []
    over = " OVER (PARTITION BY patient)" if of_patients else ""
    if of_patients:
        replaced = {name: f"sum(sum_{i}){over}" for i, name in enumerate(columns)}
        replaced |= {own[role]: f"bool_or(flag_{role}){over}" for role in flags}
        if "visits" not in taken:
            added["visits"] = f"count(*){over}"
        names = [repr(name) for name in columns]
        said = [Message("note.summed", columns=names)] if columns else []
        said += [Message("note.of_any_visit", flags=flags)] if flags else []
        notes.append(Message("text.parts", parts=[*said, Message("note.of_first_visit")]))
    if day is not None and layout.readmitted is not None:
        if layout.readmitted in (plan.stored or plan.table).columns:
            notes.append(Message("note.readmitted_column", column=layout.readmitted))
    elif day is not None and not unread and "readmitted" not in taken:
        added["readmitted"] = f"bool_or(again){over}" if of_patients else "again"
        notes.append(Message("note.readmitted", limit=RETURN_DAYS))
    if day is not None and "days_between" not in taken:
        added["days_between"] = (
            f"avg(past) FILTER (past >= 0){over}"
            if of_patients
            else "CASE WHEN past >= 0 THEN past END"
        )
        notes.append(Message("note.days_between"))
    return replaced, added, notes


def _have_visits(source: OpenedSource, plan: Plan) -> bool:
    """Tell whether some patient has several visits."""
    patient = quote(plan.layout.patient or "")
    count = (
        f"count(DISTINCT {quote(plan.layout.record or '')})"
        if _has_several_rows(plan)
        else "count(*)"
    )
    sql = (
        f"SELECT 1 FROM {plan.table.sql} WHERE {patient} IS NOT NULL GROUP BY {patient} "
        f"HAVING {count} > 1 LIMIT 1"
    )
    return bool(source.query_whole(plan.table, sql, take_either))


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
        and (
            _NUMBER_TYPES.fullmatch(kind)
            or (kind == "VARCHAR" and are_numbers(source, table, name))
        )
    )


def _event_flags(source: OpenedSource, plan: Plan) -> dict[str, str]:
    """Return the SQL of the yes in the columns of deaths and readmissions, by role."""
    table, layout = plan.table, plan.layout
    found = {}
    for role in EVENT_ROLES:
        if (name := getattr(layout, role)) is None:
            continue
        text = text_sql(name, table.columns[name])
        view = source.view(table.label, f"SELECT {text} AS text FROM {table.sql}")
        texts = count_texts(source, view, "text")
        yes = [one for one in texts if yes_no(one)]
        no = [one for one in texts if yes_no(one) is False]
        listed, others = (", ".join(map(literal, some)) or "NULL" for some in (yes, no))
        found[role] = (
            f"CASE WHEN {text} IN ({listed}) THEN true WHEN {text} IN ({others}) THEN false END"
        )
    return found


def _day_sql(source: OpenedSource, table: SourceTable, name: str | None) -> str | None:
    """Return the SQL that reads a column as days; None where that can't be done for sure."""
    if name is None:
        return None
    kind = table.columns[name]
    if kind.startswith(("DATE", "TIMESTAMP")):
        return f"CAST({quote(name)} AS DATE)"
    text = text_sql(name, kind)
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
    """Tell whether a form reads some of the days, and none of them as another."""
    some = False
    for text, when in days.items():
        try:
            if datetime.strptime(text, form).date() != when:
                return False
            some = True
        except ValueError:
            continue
    return some
