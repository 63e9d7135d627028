"""OMOP: conditions, drugs or procedures of the common data model, persons and concepts joined."""

from __future__ import annotations

import pyarrow as pa

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.long import count_long, make_layout, read_code_titles, read_long
from comorb.records.layouts.plan import Plan, Reader
from comorb.records.sources.duck import (
    OpenedSource,
    SourceTable,
    add_rows,
    integer_sql,
    quote,
    unite_rows,
)

_DOMAINS = ("condition", "drug", "procedure", "measurement", "observation", "device")
# The columns that are read of other tables, the key first.
_JOINED_COLUMNS = {
    "person": ("person_id", "year_of_birth", "gender_concept_id"),
    "concept": ("concept_id", "concept_name"),
}


def _plan(source: OpenedSource, table: SourceTable, columns: Columns) -> Plan | None:
    """Return how to read a table of one domain, or None when the table isn't of OMOP."""
    have = {name.lower(): name for name in table.columns}
    domain = next((one for one in _DOMAINS if f"{one}_concept_id" in have), None)
    if domain is None or "person_id" not in have:
        return None
    code = (columns.given.codes or (f"{domain}_concept_id",))[0]
    if code.lower() not in have:
        raise RecordsError("omop.no_column", table=table.label, code=code)
    visit = "c.visit_occurrence_id" if "visit_occurrence_id" in have else "NULL"
    of_concepts = code.lower().endswith("concept_id")
    written = f"c.{quote(code)}"
    written = integer_sql(written) if of_concepts else f"CAST({written} AS VARCHAR)"
    ends = ("start_date", "start_datetime", "era_start_date", "exposure_start_date", "date")
    days = [f"{domain}_{end}" for end in ends]
    start = next((f"c.{day}" for day in days if day in have), "NULL::DATE")
    persons, join = "", ""
    if "person" in source.openers:
        day = f"TRY_CAST(left(CAST({start} AS VARCHAR), 10) AS DATE)"
        persons = (
            f", year({day}) - p.born AS age, CASE p.gender WHEN '8507' THEN 'male' "
            "WHEN '8532' THEN 'female' END AS sex"
        )
        once = (
            f"SELECT {integer_sql('person_id')} AS id, "
            "min(TRY_CAST(year_of_birth AS INTEGER)) AS born, "
            f"min({integer_sql('gender_concept_id')}) AS gender "
            f"FROM {source.table('person').sql} GROUP BY 1"
        )
        join = f" LEFT JOIN ({once}) p ON p.id = {integer_sql('c.person_id')}"
    view = source.view(
        table.label,
        f"SELECT {integer_sql(visit)} AS visit, {integer_sql('c.person_id')} AS patient, "
        f"NULLIF({written}, '0') AS code, {start} AS date{persons} "
        f"FROM {table.sql} c{join}",
        table.text,
    )
    # The names that the table itself has, as exports without a vocabulary do.
    usual = (code.lower().replace("_id", "_name"), "standard_concept_name", "concept_name")
    own = next((have[name] for name in usual if name in have), None)
    titles = _read_titles(source, view) or read_code_titles(source, table, have[code.lower()], own)
    notes = _note_persons(source, table)  # refuses a table of persons without its columns
    joined = {}
    for name, wanted in _JOINED_COLUMNS.items():
        if name in source.opened:
            spelled = {column.lower(): column for column in source.opened[name].columns}
            joined[name] = tuple(spelled[column] for column in wanted)
    return Plan(
        READER,
        view,
        make_layout(READER.kind, view),
        titles=titles,
        system="opaque" if of_concepts else None,
        notes=notes,
        holds="" if domain == "condition" else f"{domain}s",
        keys=(have["person_id"], have.get("visit_occurrence_id")),
        joined=joined,
    )


def _read_titles(source: OpenedSource, view: SourceTable) -> dict[str, str]:
    """Return the names of the concepts that occur."""
    if "concept" not in source.openers:
        return {}
    concept = source.table("concept")
    sql = f"SELECT DISTINCT code FROM {view.sql} WHERE code IS NOT NULL"
    codes = sorted(code for (code,) in source.query_whole(view, sql, unite_rows))
    source.register("occurring", pa.table({"code": pa.array(codes, pa.string())}))
    sql = (
        f"SELECT {integer_sql('concept_id')} AS code, min(concept_name) AS name "
        f"FROM {concept.sql} WHERE code IN (SELECT code FROM occurring) "
        "AND concept_name IS NOT NULL GROUP BY 1"
    )
    return dict(source.query_whole(concept, sql, unite_rows))


def _note_persons(source: OpenedSource, table: SourceTable) -> tuple[str, ...]:
    """Return notes on persons that are unknown, or that are there twice."""
    if "person" not in source.opened:
        return ()
    person, id_ = source.opened["person"], integer_sql("person_id")
    unknown = source.count_rows(
        table,
        f"{table.sql} c ANTI JOIN {person.sql} p ON {integer_sql('p.person_id')} = "
        f"{integer_sql('c.person_id')} WHERE c.person_id IS NOT NULL",
    )
    repeated = f"SELECT count(*) - count(DISTINCT {id_}) FROM {person.sql}"
    ((again,),) = source.query_whole(person, f"{repeated} WHERE person_id IS NOT NULL", add_rows)
    notes = {
        Message("note.unknown_persons", n=unknown, table=table.label, person=person.label): unknown,
        Message("note.repeated_persons", n=again, person=person.label): again,
    }
    return tuple(note for note, rows in notes.items() if rows)


READER = Reader("omop", _plan, read_long, count_long, unit="patient", by_code=True)
