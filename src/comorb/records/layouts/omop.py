"""OMOP: conditions, drugs or procedures of a common data model, persons and concepts joined."""

from __future__ import annotations

from comorb.errors import RecordsError
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.long import count_long, layout_of, read_long, titles_of
from comorb.records.layouts.plan import Plan, Reader
from comorb.records.sources.duck import OpenedSource, SourceTable, quoted

_DOMAINS = ("condition", "drug", "procedure", "measurement", "observation", "device")


def _understand(source: OpenedSource, table: SourceTable, columns: Columns) -> Plan | None:
    """Return how to read a table of one domain, or None when the table isn't of OMOP."""
    have = {name.lower() for name in table.columns}
    domain = next((one for one in _DOMAINS if f"{one}_concept_id" in have), None)
    if domain is None or "person_id" not in have:
        return None
    code = (columns.given.codes or (f"{domain}_concept_id",))[0]
    if code.lower() not in have:
        raise RecordsError(f"{table.label} has no column {code!r}; name another with the codes.")
    visit = "c.visit_occurrence_id" if "visit_occurrence_id" in have else "NULL"
    ends = ("start_date", "start_datetime", "era_start_date", "exposure_start_date", "date")
    days = [f"{domain}_{end}" for end in ends]
    start = next((f"c.{day}" for day in days if day in have), "NULL::DATE")
    persons, join = "", ""
    if "person" in source.openers:
        day = f"TRY_CAST(left(CAST({start} AS VARCHAR), 10) AS DATE)"
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
        f"NULLIF(CAST(c.{quoted(code)} AS VARCHAR), '0') AS code, {start} AS date{persons} "
        f"FROM {table.sql} c{join}",
        table.text,
    )
    system = "opaque" if code.lower().endswith("concept_id") else None
    titles = _titles(source, view) or _own_titles(source, table, code)
    holds = "" if domain == "condition" else f"{domain}s"
    layout = layout_of(READER.kind, view)
    return Plan(READER, view, layout, titles=titles, system=system, holds=holds)


def _titles(source: OpenedSource, view: SourceTable) -> dict[str, str]:
    """Return the names of the concepts that occur."""
    if "concept" not in source.openers:
        return {}
    concept = source.table("concept")
    rows = source.rows(
        concept,
        f"SELECT CAST(concept_id AS VARCHAR), concept_name FROM {concept.sql} "
        f"WHERE CAST(concept_id AS VARCHAR) IN (SELECT code FROM {view.sql})",
    )
    return dict(rows)


def _own_titles(source: OpenedSource, table: SourceTable, code: str) -> dict[str, str]:
    """Return the names that the table itself has, as exports without a vocabulary do."""
    columns = {name.lower(): name for name in table.columns}
    usual = (code.lower().replace("_id", "_name"), "standard_concept_name", "concept_name")
    name = next((columns[one] for one in usual if one in columns), None)
    return titles_of(source, table, columns[code.lower()], name)


READER = Reader("omop", _understand, read_long, count_long, unit="patient", by_code=True)
