"""FHIR: Condition resources in NDJSON files, Patient resources joined."""

from __future__ import annotations

from comorb.errors import RecordsError
from comorb.records.codes.systems import of_url
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.long import count_long, layout_of, read_long
from comorb.records.layouts.plan import Plan, Reader
from comorb.records.sources.duck import OpenedSource, SourceTable, literal

_PREFERRED = ("icd-10-cm", "icd-10", "icd-9-cm", "snomed")
_VOID = "('refuted', 'entered-in-error')"
_STATUS = "json_extract_string(json, '$.verificationStatus.coding[0].code')"
_CODINGS = "CAST(json_extract(json, '$.code.coding[*]') AS JSON[])"
_ONSET = (
    "coalesce(json_extract_string(json, '$.onsetDateTime'), "
    "json_extract_string(json, '$.recordedDate'))"
)


def _understand(source: OpenedSource, table: SourceTable, columns: Columns) -> Plan | None:
    """Return how to read the conditions, or None when the objects aren't of FHIR."""
    first = f"SELECT json_extract_string(json, '$.resourceType') FROM {table.sql} LIMIT 1"
    resource = next((kind for (kind,) in source.rows(table, first)), None)
    if resource is None:
        return None
    if resource != "Condition":
        raise RecordsError(
            f"{table.label} holds FHIR resources of type {resource}; records are read from "
            "Condition resources."
        )
    url = _usual_system(source, table)
    same = f"IS NOT DISTINCT FROM {literal(url) if url else 'NULL'}"
    coding = f"list_filter({_CODINGS}, lambda c: json_extract_string(c, '$.system') {same})[1]"
    view = _view(source, table, coding)
    ((void,),) = source.rows(table, f"SELECT count(*) FROM {table.sql} WHERE {_STATUS} IN {_VOID}")
    removed = {"refuted or entered in error": void} if void else {}
    system = of_url(url)
    titles = _titles(source, table, coding) if system == "opaque" else {}
    layout = layout_of(READER.kind, view)
    return Plan(READER, view, layout, removed=removed, titles=titles, system=system)


def _usual_system(source: OpenedSource, table: SourceTable) -> str | None:
    """Return the URL of the coding system that most conditions use."""
    counts = source.rows(
        table,
        "SELECT json_extract_string(coding, '$.system') AS system, count(DISTINCT place) "
        f"FROM (SELECT row_number() OVER () AS place, unnest({_CODINGS}) AS coding "
        f"FROM {table.sql}) GROUP BY system",
    )
    best: tuple[str | None, int] = max(
        counts, key=lambda row: (row[1], _preference(row[0])), default=(None, 0)
    )
    return best[0]


def _preference(url: str | None) -> int:
    ranks = [len(_PREFERRED) - i for i, part in enumerate(_PREFERRED) if part in (url or "")]
    return max(ranks, default=0)


def _view(source: OpenedSource, table: SourceTable, coding: str) -> SourceTable:
    persons, join = "", ""
    if "patient" in source.openers:
        born = "TRY_CAST(json_extract_string(p.json, '$.birthDate') AS DATE)"
        persons = (
            f", date_sub('year', {born}, TRY_CAST(left(date, 10) AS DATE)) AS age, "
            "json_extract_string(p.json, '$.gender') AS sex"
        )
        join = (
            f" LEFT JOIN {source.table('patient').sql} p "
            "ON json_extract_string(p.json, '$.id') = c.patient"
        )
    return source.view(
        table.label,
        f"SELECT c.*{persons} FROM (SELECT "
        f"{_reference('encounter')} AS visit, {_reference('subject')} AS patient, "
        f"json_extract_string({coding}, '$.code') AS code, {_ONSET} AS date FROM {table.sql} "
        f"WHERE coalesce({_STATUS}, '') NOT IN {_VOID}) c{join}",
        text=True,
    )


def _reference(name: str) -> str:
    path = literal(f"$.{name}.reference")
    return f"regexp_replace(json_extract_string(json, {path}), '^.*[/:]', '')"


def _titles(source: OpenedSource, table: SourceTable, coding: str) -> dict[str, str]:
    """Return the display of each code."""
    rows = source.rows(
        table,
        f"SELECT json_extract_string({coding}, '$.code') AS code, "
        f"max(json_extract_string({coding}, '$.display')) AS title FROM {table.sql} "
        "GROUP BY code HAVING code IS NOT NULL AND title IS NOT NULL",
    )
    return dict(rows)


READER = Reader(
    "fhir", _understand, read_long, count_long, unit="patient", by_code=True, of_json=True
)
