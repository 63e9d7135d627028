"""Covariates beside the records: tables of visits and of patients, a row each."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.records.beside import Beside
from comorb.records.keys import RECORD, Key, Match, joined_rows, kept, match, patient_key, rows_of
from comorb.records.layouts.covariates import (
    as_read,
    counted,
    notes_of,
    settled,
    shown_names,
    typed,
)
from comorb.records.layouts.description import Layout
from comorb.records.layouts.first import stay_text, undated
from comorb.records.layouts.readers import open_columns
from comorb.records.sources.duck import OpenedSource, SourceTable, as_text, quoted
from comorb.records.values import Meanings, read_dates

BIRTHS = BIRTH, BIRTH_YEAR = " birth", " birth year"

_BIRTH_DATE = re.compile(
    r"dob|datebirth|dateofbirth|birth(date|day|datetime)?|birthdt|geburts(datum|tag)|geboortedatum"
    r"|fecha(de)?nacimiento|fnac|data(di)?nascita|data(de)?nascimento|date(de)?naissance"
    r"|data(de)?naixement"
)
_BIRTH_YEAR = re.compile(
    r"yearofbirth|birthyear|yob|geburtsjahr|geboortejaar|an(n?ee)?(de)?naissance"
    r"|ano(de)?nac(imiento)?|anno(di)?nascita|ano(de)?nascimento"
)


@dataclass(frozen=True, eq=False)
class CovariatesBeside:
    """A table with a row for each visit or patient that is joined to the records by a key.

    ``names`` are what its covariates are called beside those of the records; ``patients`` is the
    key of patients that it brings to records that have none.
    """

    kind: str
    key: Key
    notes: tuple[str, ...]
    source: OpenedSource
    table: SourceTable
    layout: Layout
    meanings: Mapping[str, Meanings]
    birth: Meanings | None
    names: Mapping[str, str]
    patients: Key | None

    def columns(self, keys: pa.Array) -> pa.Table:
        """Return the covariates of the records with these keys, a row each, missing for some."""
        table, layout = self.table, self.layout
        free = [name for name in table.columns if name not in (RECORD, *BIRTHS)]
        picks = [
            f"{as_read(name, table, layout)} AS {quoted(shown)}"
            for name, shown in shown_names(free, layout).items()
        ]
        own = [quoted(name) for name in table.columns if name not in free]
        rows = rows_of(self.source, table, keys, ", ".join([*own, *picks]))
        named = [name for name in rows.column_names if name not in (RECORD, *BIRTHS)]
        columns = {name: rows[name] for name in (RECORD, BIRTH_YEAR) if name in rows.column_names}
        if named:
            read = typed(rows.select(named), layout, self.meanings)
            columns |= {name: read[name] for name in named}
        if BIRTH in rows.column_names:
            days = pa.table({"date": rows[BIRTH]})
            meanings = {"date": self.birth} if self.birth else {}
            columns[BIRTH] = typed(days, Layout(date="date"), meanings)["date"]
        whole = pa.table(columns)
        if "date" in named:
            whole = whole.take(pc.sort_indices(whole, [("date", "ascending")]))
        places = pc.index_in(keys, whole[RECORD].combine_chunks())
        return whole.drop_columns([RECORD]).take(places)


def open_covariates(
    source: OpenedSource, beside: Beside, keys: Sequence[Key], taken: Collection[str]
) -> CovariatesBeside:
    """Find out how a table of visits or patients is read and joined.

    A covariate with a name that is ``taken`` gets its kind before it.
    """
    table, columns = open_columns(source, beside.table, beside.layout)
    columns.check()
    layout = replace(columns.layout("long", ()), kind=None, codes=None, part=None, version=None)
    if table.text:
        table = kept(source, table, f"SELECT * FROM {table.sql}", "beside_rows")
    found = match(source, table, beside, layout, keys)
    patient = layout.patient if all(key.level != "patient" for key in keys) else None
    patient = None if patient == found.column else patient
    table, birth = _joined(source, table, layout, found, patient)
    own = replace(layout, record=RECORD, patient=patient, weight=None)
    free = {name: kind for name, kind in table.columns.items() if name not in BIRTHS}
    meanings = settled(source, replace(table, columns=free), own)
    shown = shown_names([name for name in free if name != RECORD], own).values()
    names = {name: f"{beside.kind}.{name}" if name in taken else name for name in shown}
    notes = [found.told(beside.kind)]
    others = [*source.notes, *notes_of(meanings), *(birth.notes if birth else ())]
    others += _repeated(source, table, beside, found, own, stay_text(meanings))
    others += [
        f"the records have a column {name!r} already; this one is called {new!r}"
        for name, new in names.items()
        if name != new
    ]
    notes += [f"{beside.kind}: {note}" for note in others]
    patients = patient_key(found, source, table, patient) if patient else None
    return CovariatesBeside(
        beside.kind, found.key, tuple(notes), source, table, own, meanings, birth, names, patients
    )


def _joined(
    source: OpenedSource, table: SourceTable, layout: Layout, found: Match, patient: str | None
) -> tuple[SourceTable, Meanings | None]:
    """Return the rows that match without their ids, and what their dates of birth mean."""
    ids = {found.column, layout.record, layout.patient} - {patient}
    births = [name for name in table.columns if _BIRTH_DATE.fullmatch(_squashed(name))]
    years = [name for name in table.columns if _BIRTH_YEAR.fullmatch(_squashed(name))]
    picks = [quoted(name) for name in table.columns if name not in {*ids, *births, *years}]
    if births:
        kind = table.columns[births[0]]
        day = quoted(births[0]) if kind == "DATE" else as_text(births[0], kind)
        picks.append(f"{day} AS {quoted(BIRTH)}")
    elif years:
        text = as_text(years[0], table.columns[years[0]])
        year = f"TRY_CAST(regexp_extract({text}, '^\\s*(\\d{{4}})', 1) AS INTEGER)"
        picks.append(f"{year} AS {quoted(BIRTH_YEAR)}")
    rows = kept(source, table, joined_rows(table, found, picks), "beside_joined")
    if rows.columns.get(BIRTH) != "VARCHAR":
        return rows, None
    return rows, read_dates(counted(source, rows, BIRTH), births[0])


def _repeated(
    source: OpenedSource,
    table: SourceTable,
    beside: Beside,
    found: Match,
    layout: Layout,
    without_days: bool,
) -> list[str]:
    """Return a note on rows of the same visit or patient; refuse unequal ones where one is due."""
    ((rows, records, different),) = source.rows(
        table,
        f"SELECT count(*), count(DISTINCT {quoted(RECORD)}), "
        f"(SELECT count(*) FROM (SELECT DISTINCT * FROM {table.sql})) FROM {table.sql}",
    )
    if different > records and not (beside.kind == "visit" and found.key.of == "patient"):
        raise RecordsError(
            f"{table.label}: {different - records:,} rows repeat an id of column {found.column!r} "
            f"with unequal contents, and a table of the kind {beside.kind!r} has one row for each. "
            "Leave one of each, or name the column that is unique."
        )
    notes = [f"{rows - different:,} rows are there twice"] if rows > different else []
    if different > records:
        if without_days:
            raise undated(table.label, layout.date)
        which = "first by date" if layout.date else "first"
        notes.append(
            f"{different:,} rows are of {records:,} patients, of whom the {which} is taken"
        )
    return notes


def ages(columns: Mapping[str, pa.ChunkedArray]) -> pa.Array | None:
    """Return the full years from birth to the date of each record, if both are known.

    Ages that can't be, under 0 or over 130 years, are missing.
    """
    days = columns.get("date")
    if days is None or not pa.types.is_date(days.type):
        return None
    years = pc.year(days)
    if BIRTH in columns and pa.types.is_date(columns[BIRTH].type):
        born = columns[BIRTH]
        before = pc.less(
            pc.add(pc.multiply(pc.month(days), 32), pc.day(days)),
            pc.add(pc.multiply(pc.month(born), 32), pc.day(born)),
        )
        full = pc.subtract(pc.subtract(years, pc.year(born)), before.cast(pa.int64()))
    elif BIRTH_YEAR in columns:
        full = pc.subtract(years, columns[BIRTH_YEAR].cast(pa.int64()))
    else:
        return None
    possible = pc.and_(pc.greater_equal(full, 0), pc.less_equal(full, 130))
    return pc.if_else(possible, full, pa.scalar(None, pa.int64())).cast(pa.float64())


def _squashed(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
