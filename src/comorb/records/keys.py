"""Keys: by which ids a source beside the records is joined to them, and how many rows match.

Ids are compared as texts, without blanks around them and without the '.0' of a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.records.beside import Beside
from comorb.records.cohort import Cohort
from comorb.records.layouts.description import Layout
from comorb.records.layouts.plan import Plan
from comorb.records.sources.duck import OpenedSource, SourceTable, guarded, quoted
from comorb.records.sources.incoming import copy_reader

ID, RECORD = " id", " record"  # in copies of keys: an id, and the key of the record that has it

_ROWS = 1 << 16
_NUMBER = r"\.0$"
_WEAK = re.compile(r"id|key|uid|identifier|rowid")


@dataclass(frozen=True, eq=False)
class Key:
    """Ids of the records: of visits, or of patients, in a column of their source.

    ``of_records`` is the column with the key that a record is found by, another one where a visit
    leads to its patient; ``by_id`` says whether that is the id of the record itself.
    """

    level: str
    column: str
    of_records: str
    by_id: bool
    source: OpenedSource
    table: SourceTable

    @property
    def of(self) -> str:
        """What the records that it leads to are: visits or patients."""
        return self.level if self.column == self.of_records else "patient"

    def values(self, cohort: Cohort) -> pa.Array:
        """Return the key of each record of a cohort."""
        if self.of_records in cohort.covariates.column_names:
            keys = cohort.covariates[self.of_records].combine_chunks().cast(pa.string())
        elif self.by_id:
            keys = cohort.ids
        else:
            raise RecordsError(
                f"{self.table.label}: the column {self.of_records!r} differs within visits, so "
                "nothing can be joined by it; name another column with the id of the patient."
            )
        return pc.replace_substring_regex(pc.utf8_trim(keys, " "), _NUMBER, "")

    def copy_to(self, other: OpenedSource) -> SourceTable:
        """Copy the distinct keys into another source: the id, and the key of a record."""
        sql = (
            f"SELECT DISTINCT {key_text(self.column)} AS {quoted(ID)}, "
            f"{key_text(self.of_records)} AS {quoted(RECORD)} FROM {self.table.sql} "
            f"WHERE {key_text(self.column)} <> '' AND {key_text(self.of_records)} <> ''"
        )
        batches = self.source.batches(self.table, sql)
        schema = pa.schema([(ID, pa.string()), (RECORD, pa.string())])
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        return copy_reader(other, self.table.label, reader)


def key_text(column: str) -> str:
    """Return the SQL of an id as it is compared."""
    return f"regexp_replace(trim(CAST({quoted(column)} AS VARCHAR)), '{_NUMBER}', '')"


def keys_of(source: OpenedSource, plan: Plan) -> tuple[Key, ...]:
    """Return the keys by which sources can be joined to records, the finest that fits first."""
    visit, patient, own = plan.layout.record, plan.layout.patient, plan.id_column
    columns = plan.table.columns
    keys = []
    if visit and visit in columns and plan.unit == "visit":
        keys.append(Key("visit", visit, visit, own == visit, source, plan.table))
    if patient and patient in columns:
        keys.append(Key("patient", patient, patient, own == patient, source, plan.table))
    if visit and visit in columns and plan.unit == "patient" and patient:
        keys.append(Key("visit", visit, patient, True, source, plan.table))
    if not keys:
        raise RecordsError(
            f"{plan.table.label} has no column that was recognised as the id of a visit or a "
            "patient, so nothing can be joined to its records; name it."
        )
    return tuple(keys)


@dataclass(frozen=True, eq=False)
class Match:
    """How a table beside the records is joined: by which key and which of its columns.

    ``rows`` and ``matched`` count its rows; ``links`` has the ids that they are found by.
    """

    key: Key
    column: str
    links: SourceTable
    rows: int
    matched: int

    def told(self, kind: str) -> str:
        """Return what the ledger says of it."""
        none = self.rows - self.matched
        rest = f"; {none:,} have none" if none else ""
        return (
            f"{kind}: {self.matched:,} of {self.rows:,} rows matched a record by {self.key.level} "
            f"id ({self.column}){rest}"
        )


def match(
    source: OpenedSource, table: SourceTable, beside: Beside, layout: Layout, keys: Sequence[Key]
) -> Match:
    """Find out by which ids a table is joined: by the names of columns, and by what they hold.

    The first of the columns that may hold them, of which a row matches, is taken.
    """
    tried = list(dict.fromkeys(_candidates(table, beside, layout, keys)))
    copies: dict[str, SourceTable] = {}
    for key, column in tried:
        if key.level not in copies:
            copies[key.level] = key.copy_to(source)
        links = copies[key.level]
        ((rows, matched),) = source.rows(
            table,
            f"SELECT count(*), count(*) FILTER ({key_text(column)} IN "
            f"(SELECT {quoted(ID)} FROM {links.sql})) FROM {table.sql}",
        )
        if matched:
            return Match(key, column, links, rows, matched)
    records = " or ".join(f"{key.column!r} ({key.level})" for key in keys)
    have = ", ".join(repr(column) for _, column in tried)
    what = f"no row of it has an id in {have} that the records have" if tried else "it has neither"
    raise RecordsError(
        f"{table.label} can't be joined as {beside.kind}: the records are known by {records}, and "
        f"{what}. Give the source that belongs to these records, or name the column with the id."
    )


def _candidates(
    table: SourceTable, beside: Beside, layout: Layout, keys: Sequence[Key]
) -> Iterable[tuple[Key, str]]:
    """Return the columns that may hold each key, the surest first."""
    found: list[tuple[Any, Key, str]] = []
    for place, key in enumerate(_usable(beside, keys)):
        role = {"visit": "record", "patient": "patient"}[key.level]
        column, given = getattr(layout, role), getattr(beside.layout, role)
        same = [one for one in table.columns if _squashed(one) == _squashed(key.column)]
        if beside.kind == key.level == "patient" and column is None:
            column = layout.record
        for one in [given] if given else [*same, column]:
            if one is not None and one in table.columns:
                weak = bool(_WEAK.fullmatch(_squashed(one))) and not beside.of_covariates
                found.append(((weak, place, one not in same), key, one))
    return [(key, column) for _, key, column in sorted(found, key=lambda one: one[0])]


def _usable(beside: Beside, keys: Sequence[Key]) -> list[Key]:
    """Return the keys that fit a kind: a table of visits can't say which visit of a patient."""
    if beside.kind == "patient":
        return sorted(keys, key=lambda key: key.level != "patient")
    if beside.kind == "visit" and any(key.level == "visit" == key.of for key in keys):
        return [key for key in keys if key.level == "visit"]
    return list(keys)


def joined_rows(table: SourceTable, found: Match, picks: Sequence[str]) -> str:
    """Return the SQL of the rows that match, each with the key of its record."""
    return (
        f"SELECT {', '.join([quoted(RECORD), *picks])} FROM {table.sql} "
        f"JOIN {found.links.sql} ON {key_text(found.column)} = {quoted(ID)} ORDER BY 1"
    )


def kept(source: OpenedSource, table: SourceTable, sql: str, name: str) -> SourceTable:
    """Keep the answer of a query, so that it is read once; DuckDB uses the disk if need be."""
    source.rows(table, f"CREATE TEMP TABLE {name} AS {sql}")
    return source.view(table.label, f"SELECT * FROM {name}")


def rows_of(source: OpenedSource, table: SourceTable, keys: pa.Array, picks: str = "*") -> pa.Table:
    """Return the rows of some keys, in an order that doesn't depend on that of the file."""
    wanted = pa.table({"wanted": pc.unique(keys.drop_null())})
    source.connection.register("wanted_keys", wanted)
    sql = (
        f"SELECT {picks} FROM {table.sql} WHERE {quoted(RECORD)} IN "
        "(SELECT wanted FROM wanted_keys) ORDER BY ALL"
    )
    try:
        return guarded(
            table.label, lambda: source.connection.sql(sql).to_arrow_reader(_ROWS).read_all()
        )
    finally:
        source.connection.unregister("wanted_keys")


def patient_key(match: Match, source: OpenedSource, table: SourceTable, column: str) -> Key:
    """Return the key of patients that a table of visits has, of records that have none."""
    return replace(
        match.key,
        level="patient",
        column=column,
        of_records=column,
        by_id=False,
        source=source,
        table=table,
    )


def _squashed(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
