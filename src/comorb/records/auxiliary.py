"""Auxiliary tables: sources besides the records, each of a kind, and the ids they are joined by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.codes.systems import SYSTEMS, systems_by_kind
from comorb.records.cohort import Cohort
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.plan import Plan
from comorb.records.sources.arrow import copy_reader
from comorb.records.sources.databases import is_query
from comorb.records.sources.duck import OpenedSource, SourceTable, quote, run_safely

MAIN = "diagnosis"
COVARIATES = ("visit", "patient")

_KIND = re.compile(r"[a-z][a-z0-9_-]*")
# What tables of a kind are called in folders and databases, the usual ones first.
_TABLES = {
    "diagnosis": (
        "condition_occurrence",
        "condition_era",
        r"conditions?|diagnos[ei]s(_?icd)?|\w*diagnos\w*",
    ),
    "drug": (
        "drug_exposure",
        "drug_era",
        "medicationrequest",
        r"prescriptions?|medications?|drugs?|medikamente|rx",
    ),
    "procedure": ("procedure_occurrence", r"procedures?(_?icd)?|prozeduren"),
    "visit": ("visit_occurrence", r"admissions?|encounters?|visits?|stays?"),
    "patient": ("person", r"patients?|persons?"),
}


@dataclass(frozen=True)
class Beside:
    """A source to read beside the records: its kind, and what is known of it."""

    kind: str
    source: Any
    table: str | None = None
    layout: Layout = field(default_factory=Layout)
    system: str | None = None

    @property
    def of_covariates(self) -> bool:
        """Whether a row is a visit or a patient, and its columns are covariates."""
        return self.kind in COVARIATES


def arranged(
    source: Any,
    kinds: Sequence[str] = (),
    layouts: Mapping[str, Layout] | None = None,
    system: str | None = None,
) -> tuple[str, Any, tuple[Beside, ...]]:
    """Return the kind of the records, where they lie, and what is to be read beside them.

    ``source`` is one source, or a mapping of kinds to sources; ``kinds`` are tables of the records'
    own source. The records are those of the kind 'diagnosis', or else of the first.
    """
    given = dict(source) if isinstance(source, Mapping) else {}
    if isinstance(source, Mapping) and not given:
        raise RecordsError("join.no_sources", example="{'diagnosis': …}")
    for kind in (*given, *kinds):
        _check_kind(kind)
    names = list(given or kinds)
    main = MAIN if MAIN in names or not names else names[0]
    if main in COVARIATES:
        raise RecordsError("join.main_no_codes", kind=main)
    records = given.pop(main) if given else source
    twice = [kind for kind in kinds if kind in given or kinds.count(kind) > 1]
    if twice:
        raise RecordsError("join.kind_twice", kind=twice[0])
    own = {kind: records for kind in kinds if kind != main}
    layouts = dict(layouts or {})
    systems = {kind: keys for kind, keys in systems_by_kind(system or "").items() if kind}
    for kind in (*layouts, *systems):
        if kind not in (*given, *own):
            have = (*given, *own)
            key = "join.expected_beside" if have else "join.expected"
            raise RecordsError(Message(key, kind=kind, have=have))
    besides = [
        Beside(kind, one, None, layouts.get(kind, Layout()), systems.get(kind))
        for kind, one in (given | own).items()
    ]
    return main, records, tuple(sorted(besides, key=_order))


def main_and_beside(source: Any) -> tuple[Any, dict[str, Any]]:
    """Return the records' own source, and the others by their kinds."""
    if not isinstance(source, Mapping):
        return source, {}
    beside = dict(source)
    return beside.pop(MAIN if MAIN in beside else next(iter(beside), ""), None), beside


def _order(beside: Beside) -> int:
    """Covariates first, and visits before patients, who may be found by their visits."""
    return COVARIATES.index(beside.kind) if beside.of_covariates else len(COVARIATES)


def _check_kind(kind: str) -> None:
    if not _KIND.fullmatch(kind):
        raise RecordsError("join.kind_form", kind=kind)
    if kind in SYSTEMS:
        raise RecordsError("join.kind_system", kind=kind)


def in_the_records(beside: Beside, records: Any, opened: OpenedSource) -> Beside:
    """Return a source by the name of a table of the records' own source, where no file has it."""
    asked = beside.source
    if not isinstance(asked, str) or "://" in asked or Path(asked).exists():
        return beside
    if is_query(asked) or opened.name_of(asked) is not None:
        return replace(beside, source=records, table=asked)
    return beside


def table_of(opened: OpenedSource, kind: str) -> str | None:
    """Return the table of a source with several that is called after a kind."""
    if len(opened.openers) < 2:
        return None
    for pattern in _TABLES.get(kind, (rf"{re.escape(kind)}s?",)):
        named = [name for name in opened.openers if re.fullmatch(pattern, name.lower())]
        if len(named) == 1:
            return named[0]
    have = ", ".join(list(opened.openers)[:12])
    raise RecordsError("join.no_table", source=opened.label, kind=kind, have=have)


def refuse_the_same_twice(given: Sequence[tuple[str, Any, str | None]]) -> None:
    """Refuse two kinds that are one and the same table, each given with its source and table."""
    seen: dict[tuple[str, str | None], str] = {}
    for kind, source, table in given:
        if not isinstance(source, str | Path):
            continue
        text = str(source)
        place = (text if "://" in text else str(Path(text).resolve()), table)
        if place in seen:
            raise RecordsError(
                "join.source_twice", file=Path(text).name, first=seen[place], second=kind
            )
        seen[place] = kind


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
            raise RecordsError("join.differs", table=self.table.label, column=self.of_records)
        return pc.replace_substring_regex(pc.utf8_trim(keys, " "), _NUMBER, "")

    def copy_to(self, other: OpenedSource) -> SourceTable:
        """Copy the distinct keys into another source: the id, and the key of a record."""
        sql = (
            f"SELECT DISTINCT {key_text(self.column)} AS {quote(ID)}, "
            f"{key_text(self.of_records)} AS {quote(RECORD)} FROM {self.table.sql} "
            f"WHERE {key_text(self.column)} <> '' AND {key_text(self.of_records)} <> ''"
        )
        batches = self.source.batches(self.table, sql)
        schema = pa.schema([(ID, pa.string()), (RECORD, pa.string())])
        reader = pa.RecordBatchReader.from_batches(schema, batches)
        return copy_reader(other, self.table.label, reader)


def key_text(column: str) -> str:
    """Return the SQL of an id as it is compared."""
    return f"regexp_replace(trim(CAST({quote(column)} AS VARCHAR)), '{_NUMBER}', '')"


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
        raise RecordsError("join.no_id", table=plan.table.label)
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
        note = Message(
            "note.matched",
            kind=kind,
            matched=self.matched,
            rows=self.rows,
            level=Message(f"level.{self.key.level}"),
            column=self.column,
        )
        none = self.rows - self.matched
        return Message("note.none_matched", note=note, n=none) if none else note


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
            f"(SELECT {quote(ID)} FROM {links.sql})) FROM {table.sql}",
        )
        if matched:
            return Match(key, column, links, rows, matched)
    records = " or ".join(f"{key.column!r} ({key.level})" for key in keys)
    have = ", ".join(repr(column) for _, column in tried)
    what = Message("join.ids_unknown", columns=have) if tried else Message("join.has_neither")
    raise RecordsError(
        "join.no_match", table=table.label, kind=beside.kind, records=records, what=what
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
        f"SELECT {', '.join([quote(RECORD), *picks])} FROM {table.sql} "
        f"JOIN {found.links.sql} ON {key_text(found.column)} = {quote(ID)} ORDER BY 1"
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
        f"SELECT {picks} FROM {table.sql} WHERE {quote(RECORD)} IN "
        "(SELECT wanted FROM wanted_keys) ORDER BY ALL"
    )
    try:
        return run_safely(
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
