"""Visits: what follows from the patient and the days of each: stays, readmissions, sums.

A table whose columns say when a visit began and ended, or how it ended, gets the columns that
follow from them; of a patient, what can be added is added up over all visits.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from comorb.records.layouts.covariates import are_numbers, counted
from comorb.records.layouts.names import is_additive, plain
from comorb.records.layouts.plan import Plan
from comorb.records.sources.duck import OpenedSource, SourceTable, as_text, literal, quoted
from comorb.records.sources.merging import either, largest
from comorb.records.values import TIME, read_dates, yes_no

WITHIN = 30  # days after a discharge in which a new visit is a readmission
SUMMED = "summed over the visits of a patient"
_ROW = " row of the file"
_FORMATS = (
    *("%Y-%m-%d", "%Y%m%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y"),
    *("%d-%m-%Y", "%m-%d-%Y", "%d%b%Y", "%d-%b-%Y"),
)
_NUMBERS = re.compile(r"U?(TINY|SMALL|BIG|HUGE)?INT(EGER)?|DOUBLE|FLOAT|DECIMAL.*")
_DIED = re.compile(
    r"(20|expired?|died|dead|death|deceased|verstorben|gestorben|tod|deces|decede|mort[oe]?|"
    r"exitus|fallecid[oa]|fallecimiento|muert[oea]|defuncion|defuncio|decedut[oa]|deceduto|"
    r"obito|falecid[oa]|falecimento|overleden)(_\w+)?|\w+_(died|dead|death|deceased|expired)"
)
_SEVERAL = ("omop", "fhir")  # layouts whose readers unite visits in their own way


@dataclass
class _Derived:
    """The columns that are added to a table or take the place of one, and notes on them."""

    added: dict[str, str]
    notes: list[str]


def with_visits(source: OpenedSource, plan: Plan) -> Plan:
    """Return a plan whose table has what follows from the days and the patients of its visits.

    Without a column for it: ``los`` from the days of admission and discharge, ``died`` from how
    the visit ended, ``readmitted`` and ``days_between`` from the other visits of the patient.
    """
    if plan.reader.of_json or plan.reader.kind in _SEVERAL:
        return plan
    plan = _by_row(source, plan)
    layout = plan.layout
    if layout.patient is None or (_grouped(plan) and layout.record is None):
        return plan
    day = _day(source, plan.table, layout.date)
    of_patients = plan.unit == "patient"
    if (day is None and not of_patients) or not _several(source, plan):
        return plan
    return _by_patient(source, plan, day)


def dies(text: str) -> bool:
    """Tell whether a way in which a visit ended is death, in words or by the code of UB-04.

    >>> dies("Expired in facility"), dies("20"), dies("home")
    (True, True, False)
    """
    return _DIED.fullmatch(plain(text)) is not None


def _grouped(plan: Plan) -> bool:
    return plan.reader.by_code or plan.layout.part is not None


def _by_row(source: OpenedSource, plan: Plan) -> Plan:
    """Return the plan with what each row tells by itself: the stay, and whether it ended so."""
    table, layout = plan.table, plan.layout
    derived = _Derived({}, [])
    free = {name.lower() for name in table.columns}
    if layout.los is None and "los" not in free:
        first, last = _day(source, table, layout.date), _day(source, table, layout.discharged)
        if first and last:
            derived.added["los"] = f"CASE WHEN {last} >= {first} THEN {last} - {first} END"
            derived.notes.append(
                f"the length of stay is the days from column {layout.date!r} to "
                f"{layout.discharged!r}; where the second is earlier, it is missing"
            )
    if layout.died is None and "died" not in free and layout.disposition is not None:
        name = layout.disposition
        text = as_text(name, table.columns[name])
        view = source.view(table.label, f"SELECT {text} AS text FROM {table.sql}")
        ends = [end for end in counted(source, view, "text") if dies(end)]
        if ends:
            derived.added["died"] = f"{text} IN ({', '.join(map(literal, ends))})"
            said = ", ".join(map(repr, sorted(ends)[:3]))
            derived.notes.append(f"died is column {name!r} where it is {said}")
    if not derived.added:
        return plan
    picks = ", ".join(f"{sql} AS {quoted(name)}" for name, sql in derived.added.items())
    view = source.view(table.label, f"SELECT *, {picks} FROM {table.sql}", table.text)
    return replace(plan, table=view, notes=(*plan.notes, *derived.notes))


def _by_patient(source: OpenedSource, plan: Plan, day: str | None) -> Plan:
    """Return the plan with what the other visits of a patient tell, and, by patient, sums."""
    table, layout = plan.table, plan.layout
    patient, of_patients = quoted(layout.patient or ""), plan.unit == "patient"
    end = _day(source, table, layout.discharged) or day
    key = quoted(layout.record or "") if _grouped(plan) else quoted(_ROW)
    columns = _additive(source, plan) if of_patients else ()
    flags = _flags(source, plan)
    numbered = f"SELECT *, row_number() OVER () AS {quoted(_ROW)} FROM {table.sql}"
    parts = [f"{key} AS key", f"any_value({patient}) AS patient"]
    parts += [f"min({day or 'NULL::DATE'}) AS day", f"max({end or 'NULL::DATE'}) AS ended"]
    parts += [
        f"max(TRY_CAST({quoted(name)} AS DOUBLE)) AS sum_{i}" for i, name in enumerate(columns)
    ]
    parts += [f"bool_or({sql}) AS flag_{role}" for role, sql in flags.items()]
    visits = (
        f"SELECT {', '.join(parts)} FROM ({numbered}) WHERE {patient} IS NOT NULL "
        f"AND {key} IS NOT NULL GROUP BY {key}"
    )
    replaced, added, notes = _figures(plan, columns, flags, day)
    ((latest,),) = source.ask_whole(
        table,
        f"SELECT max({end or 'NULL::DATE'}) FROM ({numbered}) WHERE {patient} IS NOT NULL "
        f"AND {key} IS NOT NULL",
        largest,
    )
    latest_day = "NULL::DATE" if latest is None else f"DATE {literal(str(latest))}"
    dated = (
        "SELECT *, lead(day) OVER w - ended AS next, day - lag(ended) OVER w AS past, "
        f"{latest_day} AS latest FROM ({visits}) "
        "WINDOW w AS (PARTITION BY patient ORDER BY day, key)"
    )
    at_risk = f"NOT coalesce(flag_died, false) AND (next IS NOT NULL OR latest - ended >= {WITHIN})"
    at_risk = at_risk if "died" in flags else at_risk.partition("AND ")[2]
    again = f"CASE WHEN {at_risk} THEN coalesce(next BETWEEN 1 AND {WITHIN}, false) END"
    told = f"SELECT *, {again} AS again FROM ({dated})"
    picks = ", ".join(f"{sql} AS {quoted(f' {name}')}" for name, sql in (replaced | added).items())
    name = f"visits_of_{len(source.notes)}_{table.sql.strip('()').split()[-1]}".lower()
    name = quoted(re.sub(r"\W", "_", name))
    source.rows(table, f"CREATE OR REPLACE TEMP TABLE {name} AS SELECT key, {picks} FROM ({told})")
    swap = ", ".join(f"visits.{quoted(f' {one}')} AS {quoted(one)}" for one in replaced)
    more = ", ".join(f"visits.{quoted(f' {one}')} AS {quoted(one)}" for one in added)
    sql = (
        f"SELECT base.* EXCLUDE ({quoted(_ROW)}){f' REPLACE ({swap})' if swap else ''}"
        f"{f', {more}' if more else ''} FROM ({numbered}) AS base "
        f"LEFT JOIN {name} AS visits ON base.{key} = visits.key ORDER BY base.{quoted(_ROW)}"
    )
    view = source.view(table.label, sql, table.text)
    return replace(plan, table=view, notes=(*plan.notes, *notes))


def _figures(
    plan: Plan, columns: Sequence[str], flags: dict[str, str], day: str | None
) -> tuple[dict[str, str], dict[str, str], list[str]]:
    """Return the columns that are replaced and added, as SQL over the visits, and notes."""
    layout, of_patients = plan.layout, plan.unit == "patient"
    taken = {name.lower() for name in plan.table.columns}
    own = {"died": layout.died or "died", "readmitted": layout.readmitted or "readmitted"}
    replaced: dict[str, str] = {}
    added: dict[str, str] = {}
    notes: list[str] = []
    over = " OVER (PARTITION BY patient)" if of_patients else ""
    if of_patients:
        replaced = {name: f"sum(sum_{i}){over}" for i, name in enumerate(columns)}
        replaced |= {own[role]: f"bool_or(flag_{role}){over}" for role in flags}
        if "visits" not in taken:
            added["visits"] = f"count(*){over}"
        names = ", ".join(repr(name) for name in columns)
        said = [f"{SUMMED}: {names}"] if columns else []
        said += [f"of any visit: {', '.join(own[role] for role in flags)}"] if flags else []
        notes.append("; ".join([*said, "of the first visit: all other columns"]))
    if day is not None and "readmitted" not in flags and "readmitted" not in taken:
        added["readmitted"] = f"bool_or(again){over}" if of_patients else "again"
        notes.append(
            f"readmitted is a visit of the same patient from 1 to {WITHIN} days after a discharge; "
            f"not known where the records end within {WITHIN} days of it, or the patient died"
        )
    if day is not None and "days_between" not in taken:
        added["days_between"] = (
            f"avg(past) FILTER (past >= 0){over}"
            if of_patients
            else "CASE WHEN past >= 0 THEN past END"
        )
        notes.append("days_between are the days from the end of one visit to the next")
    return replaced, added, notes


def _several(source: OpenedSource, plan: Plan) -> bool:
    """Tell whether some patient has several visits."""
    patient = quoted(plan.layout.patient or "")
    count = f"count(DISTINCT {quoted(plan.layout.record or '')})" if _grouped(plan) else "count(*)"
    sql = (
        f"SELECT 1 FROM {plan.table.sql} WHERE {patient} IS NOT NULL GROUP BY {patient} "
        f"HAVING {count} > 1 LIMIT 1"
    )
    return bool(source.ask_whole(plan.table, sql, either))


def _additive(source: OpenedSource, plan: Plan) -> tuple[str, ...]:
    """Return the columns of numbers whose values can be added up over visits."""
    table, layout = plan.table, plan.layout
    aside = {*(layout.codes or ()), *layout.ids, layout.weight, layout.age, *layout.ignored}
    roles = {layout.los, layout.cost, "los"}
    return tuple(
        name
        for name, kind in table.columns.items()
        if name not in aside
        and (name in roles or is_additive(name))
        and (_NUMBERS.fullmatch(kind) or (kind == "VARCHAR" and are_numbers(source, table, name)))
    )


def _flags(source: OpenedSource, plan: Plan) -> dict[str, str]:
    """Return the SQL of the yes in the columns of deaths and readmissions, by role."""
    table, layout = plan.table, plan.layout
    own = {"died": layout.died or "died", "readmitted": layout.readmitted}
    found = {}
    for role, name in own.items():
        if name is None or name not in table.columns:
            continue
        text = as_text(name, table.columns[name])
        view = source.view(table.label, f"SELECT {text} AS text FROM {table.sql}")
        texts = counted(source, view, "text")
        yes = [one for one in texts if yes_no(one)]
        no = [one for one in texts if yes_no(one) is False]
        if yes:
            listed, others = ", ".join(map(literal, yes)), ", ".join(map(literal, no)) or "NULL"
            found[role] = (
                f"CASE WHEN {text} IN ({listed}) THEN true WHEN {text} IN ({others}) THEN false END"
            )
    return found


def _day(source: OpenedSource, table: SourceTable, name: str | None) -> str | None:
    """Return the SQL that reads a column as days; None where that can't be done for sure."""
    if name is None:
        return None
    kind = table.columns[name]
    if kind.startswith(("DATE", "TIMESTAMP")):
        return f"CAST({quoted(name)} AS DATE)"
    text = f"regexp_replace({as_text(name, kind)}, {literal(TIME)}, '')"
    view = source.view(table.label, f"SELECT {text} AS text FROM {table.sql}")
    days = read_dates(counted(source, view, "text"), name).of
    known = {one.strip(): when for one, when in (days or {}).items() if isinstance(when, date)}
    formats = [one for one in _FORMATS if known and _reads(one, known)]
    if not formats:
        return None
    tries = ", ".join(f"try_strptime(trim({text}), {literal(one)})" for one in formats)
    return f"CAST(coalesce({tries}) AS DATE)"


def _reads(form: str, days: dict[str, date]) -> bool:
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
