"""Auxiliary tables: sources besides the records, each of a kind, and the ids that join them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
# The names of tables of a kind in folders and databases, the most specific first.
_TABLES = {
    "diagnosis": "condition_occurrence condition_era "
    r"conditions?|diagnos[ei]s(_?icd)?|\w*diagnos\w*",
    "drug": "drug_exposure drug_era medicationrequest "
    "prescriptions?|medications?|drugs?|medikamente|rx",
    "procedure": "procedure_occurrence procedures?(_?icd)?|prozeduren",
    "visit": "visit_occurrence admissions?|encounters?|visits?|stays?",
    "patient": "person patients?|persons?",
}


@dataclass(frozen=True)
class AuxiliaryTable:
    """A table that is joined to the records: its kind and its source, with layout and system."""

    kind: str
    source: Any
    table: str | None = None
    layout: Layout = field(default_factory=Layout)
    system: str | None = None

    @property
    def has_covariates(self) -> bool:
        """Whether a row is a visit or a patient, and its columns are covariates."""
        return self.kind in COVARIATES


def arrange_sources(
    source: Any,
    kinds: Sequence[str] = (),
    layouts: Mapping[str, Layout] | None = None,
    system: str | None = None,
) -> tuple[str, Any, tuple[AuxiliaryTable, ...]]:
    """Return the kind of the records, their source, and the auxiliary tables.

    ``source`` is one source, or a mapping of kinds to sources; ``kinds`` are tables of the records'
    own source. The records are those of the kind 'diagnosis', or else of the first.
    """
    given = dict(source) if isinstance(source, Mapping) else {}
    if isinstance(source, Mapping) and not given:
        raise RecordsError("join.no_sources", example="{'diagnosis': …}")
    for kind in (*given, *kinds):
        if not _KIND.fullmatch(kind):
            raise RecordsError("join.kind_form", kind=kind)
        if kind in SYSTEMS:
            raise RecordsError("join.kind_system", kind=kind)
    names = list(given or kinds)
    main = MAIN if MAIN in names or not names else names[0]
    if main in COVARIATES:
        raise RecordsError("join.main_no_codes", kind=main)
    records = given.pop(main) if given else source
    twice = [kind for kind in kinds if kind in given or kinds.count(kind) > 1]
    if twice:
        raise RecordsError("join.kind_twice", kind=twice[0])
    own = {kind: records for kind in kinds if kind != main}
    layouts = layouts or {}
    systems = {kind: keys for kind, keys in systems_by_kind(system or "").items() if kind}
    sources = given | own
    for kind in (*layouts, *systems):
        if kind not in sources:
            key = "join.expected_beside" if sources else "join.expected"
            raise RecordsError(Message(key, kind=kind, have=tuple(sources)))
    # Covariates first, and visits before patients, who may be found by their visits.
    order = {kind: place for place, kind in enumerate(COVARIATES)}
    tables = [
        AuxiliaryTable(kind, one, None, layouts.get(kind, Layout()), systems.get(kind))
        for kind, one in sorted(sources.items(), key=lambda pair: order.get(pair[0], len(order)))
    ]
    return main, records, tuple(tables)


def split_sources(source: Any) -> tuple[Any, dict[str, Any]]:
    """Return the records' own source, and the others by their kinds."""
    if not isinstance(source, Mapping):
        return source, {}
    others = dict(source)
    return others.pop(MAIN if MAIN in others else next(iter(others), ""), None), others


def resolve_source(auxiliary: AuxiliaryTable, records: Any, opened: OpenedSource) -> AuxiliaryTable:
    """Return a table of the records' own source where its name, and no file, is given."""
    name = auxiliary.source
    if not isinstance(name, str) or "://" in name or Path(name).exists():
        return auxiliary
    if is_query(name) or opened.name_of(name) is not None:
        return replace(auxiliary, source=records, table=name)
    return auxiliary


def find_table(opened: OpenedSource, kind: str) -> str | None:
    """Return the table of a kind, by its name, in a source of several."""
    if len(opened.openers) < 2:
        return None
    for pattern in _TABLES.get(kind, rf"{re.escape(kind)}s?").split():
        named = [name for name in opened.openers if re.fullmatch(pattern, name.lower())]
        if len(named) == 1:
            return named[0]
    have = ", ".join(list(opened.openers)[:12])
    raise RecordsError("join.no_table", source=opened.label, kind=kind, have=have)


def check_new_table(
    seen: dict[tuple[str, str | None], str], kind: str, source: Any, table: str | None
) -> None:
    """Refuse a table that has been seen as another kind."""
    if isinstance(source, str | Path):
        text = str(source)
        place = (text if "://" in text else str(Path(text).resolve()), table)
        first = seen.setdefault(place, kind)
        if first != kind:
            raise RecordsError("join.source_twice", file=Path(text).name, first=first, second=kind)


ID, RECORD = " id", " record"  # in copies of keys: an id, and the key of the record that has it

_BATCH_ROWS = 1 << 16
_NUMBER = r"\.0$"
_WEAK = re.compile(r"id|key|uid|identifier|rowid")


@dataclass(frozen=True, eq=False)
class Key:
    """Ids of the records: of visits, or of patients, in a column of their source.

    ``of_records`` is the column with the key of a record, another one where a visit leads to its
    patient; with ``by_id`` it is the id of the record itself.
    """

    level: str
    column: str
    of_records: str
    by_id: bool
    source: OpenedSource
    table: SourceTable

    @property
    def of(self) -> str:
        """The unit that it leads to: visit or patient."""
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
    """Return the keys by which tables can be joined to records, the finest first."""
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
    """How an auxiliary table is joined: the key and the ids of the records, and its own column."""

    key: Key
    column: str
    links: SourceTable
    rows: int
    matched: int

    def note(self, kind: str) -> str:
        """Return the note for the ledger."""
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


def find_match(
    source: OpenedSource,
    table: SourceTable,
    auxiliary: AuxiliaryTable,
    layout: Layout,
    keys: Sequence[Key],
) -> Match:
    """Return how a table is joined: by the first column that may hold a key and has a match."""
    tried = list(dict.fromkeys(_find_candidates(table, auxiliary, layout, keys)))
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
        "join.no_match", table=table.label, kind=auxiliary.kind, records=records, what=what
    )


def _find_candidates(
    table: SourceTable, auxiliary: AuxiliaryTable, layout: Layout, keys: Sequence[Key]
) -> list[tuple[Key, str]]:
    """Return the columns that may hold each key, the most certain first."""
    if auxiliary.kind == "patient":
        keys = sorted(keys, key=lambda key: key.level != "patient")
    elif auxiliary.kind == "visit" and any(key.level == "visit" == key.of for key in keys):
        keys = [key for key in keys if key.level == "visit"]  # a patient has several visits
    found: list[tuple[Any, Key, str]] = []
    for place, key in enumerate(keys):
        role = {"visit": "record", "patient": "patient"}[key.level]
        column, given = getattr(layout, role), getattr(auxiliary.layout, role)
        same = [one for one in table.columns if squash_name(one) == squash_name(key.column)]
        if auxiliary.kind == key.level == "patient" and column is None:
            column = layout.record
        for one in [given] if given else [*same, column]:
            if one is not None and one in table.columns:
                weak = bool(_WEAK.fullmatch(squash_name(one))) and not auxiliary.has_covariates
                found.append(((weak, place, one not in same), key, one))
    return [(key, column) for _, key, column in sorted(found, key=lambda one: one[0])]


def keep_matching(
    source: OpenedSource, table: SourceTable, found: Match, picks: Sequence[str]
) -> SourceTable:
    """Keep some columns of the rows that match, each with the key of its record."""
    sql = (
        f"SELECT {', '.join([quote(RECORD), *picks])} FROM {table.sql} "
        f"JOIN {found.links.sql} ON {key_text(found.column)} = {quote(ID)} ORDER BY 1"
    )
    return keep_rows(source, table, sql, "auxiliary_joined")


def keep_rows(source: OpenedSource, table: SourceTable, sql: str, name: str) -> SourceTable:
    """Keep the result of a query, so that it is read once; DuckDB uses the disk if need be."""
    source.rows(table, f"CREATE TEMP TABLE {name} AS {sql}")
    return source.view(table.label, f"SELECT * FROM {name}")


def select_rows(
    source: OpenedSource, table: SourceTable, keys: pa.Array, picks: str = "*"
) -> pa.Table:
    """Return the rows of some keys, in an order that doesn't depend on that of the file."""
    wanted = pa.table({"wanted": pc.unique(keys.drop_null())})
    source.connection.register("wanted_keys", wanted)
    sql = (
        f"SELECT {picks} FROM {table.sql} WHERE {quote(RECORD)} IN "
        "(SELECT wanted FROM wanted_keys) ORDER BY ALL"
    )
    try:
        return run_safely(
            table.label, lambda: source.connection.sql(sql).to_arrow_reader(_BATCH_ROWS).read_all()
        )
    finally:
        source.connection.unregister("wanted_keys")


def squash_name(name: str) -> str:
    """Return the letters and digits of a name, in lower case."""
    return re.sub(r"[^a-z0-9]", "", name.lower())
