"""Standards: OMOP, FHIR and plain NDJSON as one long or wide table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from comorb.errors import RecordsError
from comorb.records.layouts.layout import Layout
from comorb.records.sources.duck import Source, Table, literal, quoted

_PREFERRED = ("icd-10-cm", "icd-10", "icd-9-cm", "snomed")
_VOID = "('refuted', 'entered-in-error')"


@dataclass(frozen=True)
class Standard:
    """A table whose columns are known, what was left out of it, and what it says of its codes."""

    table: Table
    layout: Layout
    removed: Mapping[str, int] = field(default_factory=dict)
    titles: Mapping[str, str] = field(default_factory=dict)
    system: str | None = None


def omop(source: Source, table: Table, given: Layout) -> Standard:
    """Return the condition_occurrence table of an OMOP database, persons joined to it."""
    have = {name.lower() for name in table.columns}
    code = (given.codes or ("condition_concept_id",))[0]
    if code.lower() not in have:
        raise RecordsError(f"{table.label} has no column {code!r}; name another with the codes.")
    visit = "c.visit_occurrence_id" if "visit_occurrence_id" in have else "NULL"
    start = "c.condition_start_date" if "condition_start_date" in have else "NULL"
    day = f"TRY_CAST(left(CAST({start} AS VARCHAR), 10) AS DATE)"
    persons, join = "", ""
    if "person" in source.openers:
        persons = (
            f", year({day}) - TRY_CAST(p.year_of_birth AS INTEGER) AS age, CASE "
            "CAST(p.gender_concept_id AS VARCHAR) WHEN '8507' THEN 'male' WHEN '8532' THEN "
            "'female' END AS sex"
        )
        join = (
            f" LEFT JOIN {source.table('person').sql} p "
            "ON CAST(p.person_id AS VARCHAR) = CAST(c.person_id AS VARCHAR)"
        )
    view = source.view(
        table.label,
        f"SELECT CAST({visit} AS VARCHAR) AS visit, CAST(c.person_id AS VARCHAR) AS patient, "
        f"NULLIF(CAST(c.{quoted(code)} AS VARCHAR), '0') AS code, {day} AS date{persons} "
        f"FROM {table.sql} c{join}",
        table.text,
    )
    titles = {}
    if "concept" in source.openers:
        concept = source.table("concept")
        titles = dict(
            source.rows(
                concept,
                f"SELECT CAST(concept_id AS VARCHAR), concept_name FROM {concept.sql} "
                f"WHERE CAST(concept_id AS VARCHAR) IN (SELECT code FROM {view.sql})",
            )
        )
    system = "opaque" if code.lower().endswith("concept_id") else None
    return Standard(view, _known("omop", view), titles=titles, system=system)


def fhir(source: Source, table: Table) -> Standard:
    """Return FHIR Condition resources as a long table, Patient resources joined to it.

    Of the coding systems in the file, the one that most conditions use is read.
    """
    codings = "CAST(json_extract(json, '$.code.coding[*]') AS JSON[])"
    counts = source.rows(
        table,
        "SELECT json_extract_string(coding, '$.system') AS system, count(DISTINCT place) "
        f"FROM (SELECT row_number() OVER () AS place, unnest({codings}) AS coding "
        f"FROM {table.sql}) GROUP BY system",
    )
    best = max(counts, key=lambda row: (row[1], _preference(row[0])), default=(None, 0))[0]
    same = f"IS NOT DISTINCT FROM {literal(best) if best else 'NULL'}"
    chosen = f"list_filter({codings}, lambda c: json_extract_string(c, '$.system') {same})[1]"
    day = (
        "TRY_CAST(left(coalesce(json_extract_string(json, '$.onsetDateTime'), "
        "json_extract_string(json, '$.recordedDate')), 10) AS DATE)"
    )
    persons, join = "", ""
    if "patient" in source.openers:
        born = "TRY_CAST(json_extract_string(p.json, '$.birthDate') AS DATE)"
        persons = (
            f", date_sub('year', {born}, date) AS age, "
            "json_extract_string(p.json, '$.gender') AS sex"
        )
        join = (
            f" LEFT JOIN {source.table('patient').sql} p "
            "ON json_extract_string(p.json, '$.id') = c.patient"
        )
    view = source.view(
        table.label,
        f"SELECT c.*{persons} FROM (SELECT "
        f"{_reference('encounter')} AS visit, {_reference('subject')} AS patient, "
        f"json_extract_string({chosen}, '$.code') AS code, {day} AS date FROM {table.sql} "
        f"WHERE coalesce(json_extract_string(json, '{_STATUS}'), '') NOT IN {_VOID}) c{join}",
        text=True,
    )
    ((void,),) = source.rows(
        table,
        f"SELECT count(*) FROM {table.sql} WHERE json_extract_string(json, '{_STATUS}') IN {_VOID}",
    )
    titles = dict(
        source.rows(
            table,
            f"SELECT json_extract_string({chosen}, '$.code') AS code, "
            f"max(json_extract_string({chosen}, '$.display')) AS title FROM {table.sql} "
            "GROUP BY code HAVING code IS NOT NULL AND title IS NOT NULL",
        )
    )
    system = _system(best)
    layout = _known("fhir", view)
    removed = {"refuted or entered in error": void} if void else {}
    return Standard(view, layout, removed, titles if system == "opaque" else {}, system)


_STATUS = "$.verificationStatus.coding[0].code"


def resource_type(source: Source, table: Table) -> str | None:
    """Return the FHIR resource type of an NDJSON table, or None."""
    rows = source.rows(
        table, f"SELECT json_extract_string(json, '$.resourceType') FROM {table.sql} LIMIT 1"
    )
    return rows[0][0] if rows else None


def flatten(source: Source, table: Table) -> Table:
    """Return the fields of plain NDJSON objects as text columns; a list becomes 'a;b'."""
    keys = source.rows(
        table,
        f"SELECT key FROM (SELECT unnest(json_keys(json)) AS key FROM {table.sql}) "
        "GROUP BY key ORDER BY key",
    )
    columns = []
    for (key,) in keys:
        path = literal('$."' + key.replace('"', '\\"') + '"')
        columns.append(
            f"CASE json_type(json, {path}) WHEN 'ARRAY' THEN "
            f"array_to_string(CAST(json_extract(json, {path}) AS VARCHAR[]), ';') "
            f"ELSE json_extract_string(json, {path}) END AS {quoted(key)}"
        )
    return source.view(table.label, f"SELECT {', '.join(columns)} FROM {table.sql}", text=True)


def _reference(field_name: str) -> str:
    path = literal(f"$.{field_name}.reference")
    return f"regexp_replace(json_extract_string(json, {path}), '^.*[/:]', '')"


def _preference(system: str | None) -> int:
    ranks = [len(_PREFERRED) - i for i, part in enumerate(_PREFERRED) if part in (system or "")]
    return max(ranks, default=0)


def _system(url: str | None) -> str | None:
    if url and "icd-10" in url:
        return "icd10cm" if "icd-10-cm" in url else "icd10"
    if url and "icd-9" in url:
        return "icd9cm"
    return "opaque" if url else None


def _known(kind: str, view: Table) -> Layout:
    has_person = "sex" in view.columns
    return Layout(
        kind="omop" if kind == "omop" else "fhir",
        codes=("code",),
        record="visit",
        patient="patient",
        age="age" if has_person else None,
        sex="sex" if has_person else None,
        date="date",
    )
