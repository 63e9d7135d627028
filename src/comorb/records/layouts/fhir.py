"""FHIR: Condition, MedicationRequest or Procedure resources, Patient resources joined."""

from __future__ import annotations

from dataclasses import dataclass

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.codes.systems import system_by_url
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.long import count_long, make_layout, read_long
from comorb.records.layouts.plan import Plan, Reader
from comorb.records.sources.duck import OpenedSource, SourceTable, literal, literals

_PREFERRED = ("icd-10-cm", "icd-10", "icd-9-cm", "snomed")
_CODINGS = "CAST(json_extract(json, '$.code.coding[*]') AS JSON[])"


@dataclass(frozen=True)
class _Resource:
    """The paths of the status and dates of a type of resource, and its status of no record.

    ``holds`` is 'drugs' or 'procedures' where it isn't a diagnosis.
    """

    status: str
    void: str
    rule: str
    dates: tuple[str, ...]
    holds: str = ""

    @property
    def is_void(self) -> str:
        """The SQL of whether a resource is no record."""
        status = f"coalesce(json_extract_string(json, {literal(self.status)}), '')"
        return f"{status} IN ({literals((self.void, 'entered-in-error'))})"

    @property
    def date(self) -> str:
        """The SQL of its date."""
        paths = [f"json_extract_string(json, {literal(path)})" for path in self.dates]
        return f"coalesce({', '.join(paths)})"


_RESOURCES = {
    "Condition": _Resource(
        "$.verificationStatus.coding[0].code",
        "refuted",
        Message("ledger.refuted"),
        ("$.onsetDateTime", "$.recordedDate"),
    ),
    "MedicationRequest": _Resource(
        "$.status", "cancelled", Message("ledger.cancelled"), ("$.authoredOn",), "drugs"
    ),
    "Procedure": _Resource(
        "$.status",
        "not-done",
        Message("ledger.not_done"),
        ("$.performedDateTime", "$.performedPeriod.start", "$.occurrenceDateTime"),
        "procedures",
    ),
}


def _plan(source: OpenedSource, table: SourceTable, columns: Columns) -> Plan | None:
    """Return how to read resources of one type, or None when the objects aren't of FHIR."""
    first = f"SELECT json_extract_string(json, '$.resourceType') FROM {table.sql} LIMIT 1"
    kind = next((kind for (kind,) in source.rows(table, first)), None)
    if kind is None:
        return None
    if kind not in _RESOURCES:
        label = table.label
        raise RecordsError("fhir.other_resource", table=label, kind=kind, resources=_RESOURCES)
    resource = _RESOURCES[kind]
    if kind == "MedicationRequest":
        table = _join_medications(source, table)
    url = _most_used_system(source, table)
    same = f"IS NOT DISTINCT FROM {literal(url) if url else 'NULL'}"
    coding = f"list_filter({_CODINGS}, lambda c: json_extract_string(c, '$.system') {same})[1]"
    code = f"json_extract_string({coding}, '$.code') AS code"
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
    view = source.view(
        table.label,
        f"SELECT c.*{persons} FROM (SELECT {_reference_sql('encounter')} AS visit, "
        f"{_reference_sql('subject')} AS patient, {code}, {resource.date} AS date "
        f"FROM {table.sql} WHERE NOT {resource.is_void}) c{join}",
        text=True,
    )
    count = f"SELECT count(*) FROM {table.sql} WHERE {resource.is_void}"
    ((void,),) = source.rows(table, count)
    system = system_by_url(url)
    titles: dict[str, str] = {}
    if system == "opaque":
        names = (
            f"SELECT {code}, max(json_extract_string({coding}, '$.display')) AS title "
            f"FROM {table.sql} GROUP BY code HAVING code IS NOT NULL AND title IS NOT NULL"
        )
        titles = dict(source.rows(table, names))
    return Plan(
        READER,
        view,
        make_layout(READER.kind, view),
        removed={resource.rule: void} if void else {},
        titles=titles,
        system=system,
        holds=resource.holds,
    )


def _join_medications(source: OpenedSource, table: SourceTable) -> SourceTable:
    """Return requests with the code of their medication, which may be a resource of its own."""
    code = "coalesce(json_extract(json, '$.medicationCodeableConcept'), "
    code += "json_extract(json, '$.medication.concept'))"
    join = ""
    if "medication" in source.openers:
        code = f"coalesce({code}, m.code)"
        join = (
            " LEFT JOIN (SELECT json_extract_string(json, '$.id') AS id, any_value("
            f"json_extract(json, '$.code')) AS code FROM {source.table('medication').sql} "
            f"GROUP BY 1) m ON m.id = coalesce({_reference_sql('medicationReference')}, "
            f"{_reference_sql('medication.reference')})"
        )
    sql = f"SELECT json_merge_patch(json, json_object('code', {code})) AS json FROM {table.sql}"
    return source.view(table.label, f"{sql}{join}", text=True)


def _most_used_system(source: OpenedSource, table: SourceTable) -> str | None:
    """Return the URL of the coding system that most resources use."""
    counts = source.rows(
        table,
        "SELECT json_extract_string(coding, '$.system') AS system, count(DISTINCT place) "
        f"FROM (SELECT row_number() OVER () AS place, unnest({_CODINGS}) AS coding "
        f"FROM {table.sql}) GROUP BY system",
    )

    def rank(row: tuple[str | None, int]) -> tuple[int, int]:
        known = [i for i, part in enumerate(_PREFERRED) if part in (row[0] or "")]
        return row[1], -min(known, default=len(_PREFERRED))

    best: tuple[str | None, int] = max(counts, key=rank, default=(None, 0))
    return best[0]


def _reference_sql(name: str) -> str:
    """Return the SQL of the id that a reference names, of whatever version."""
    path = literal(f"$.{name}.reference")
    text = f"regexp_replace(json_extract_string(json, {path}), '/_history/[^/]*$', '')"
    return f"regexp_replace({text}, '^.*[/:]', '')"


READER = Reader("fhir", _plan, read_long, count_long, unit="patient", by_code=True, of_json=True)
