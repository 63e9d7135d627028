"""Join: codes and covariates of auxiliary tables become features and covariates of the records."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.sparse import csr_array, hstack, vstack

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.records.auxiliary import (
    RECORD,
    AuxiliaryTable,
    Key,
    Match,
    check_new_table,
    find_match,
    find_table,
    keep_matching,
    keep_rows,
    keys_of,
    resolve_source,
    select_rows,
    squash_name,
)
from comorb.records.codes.systems import PROCEDURES
from comorb.records.codes.vocabulary import Coding, Raw, Vocabulary, build_vocabulary
from comorb.records.cohort import Cohort, as_matrix
from comorb.records.layouts import covariates
from comorb.records.layouts.assembly import Encode, make_encoder
from comorb.records.layouts.events import read_events
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.long import find_system, read_code_names
from comorb.records.layouts.plan import Plan
from comorb.records.layouts.readers import open_columns, plan_reading
from comorb.records.ledger import Ledger
from comorb.records.sources.arrow import register_table
from comorb.records.sources.duck import OpenedSource, SourceTable, quote, text_sql
from comorb.records.sources.open import open_source
from comorb.records.values import Meanings, read_dates


@dataclass(frozen=True, eq=False)
class JoinedCodes:
    """A table of codes that is joined to the records; ``codes`` are features as 'drug:A10B'."""

    key: Key
    codes: tuple[str, ...]
    names: tuple[str, ...]
    system: str
    notes: tuple[str, ...]
    source: OpenedSource
    plan: Plan
    encode: Encode

    def features(self, keys: pa.Array) -> csr_array[Any]:
        """Return the 0/1 matrix of the records with these keys."""
        rows = select_rows(self.source, self.plan.table, keys)
        counts = np.zeros(len(keys), np.int64)
        if not len(rows):
            return as_matrix(np.append(0, counts), np.empty(0, np.int32), len(self.codes))
        with self.source.connection.cursor() as connection:
            own = OpenedSource(self.source.label, connection)
            table = register_table(own, self.plan.table.label, rows)
            plan = replace(self.plan, table=table)
            assembly = plan.reader.read(own, plan, self.encode)
        places = pc.index_in(keys, assembly.ids)
        known = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
        picked = assembly.matrix[places.drop_null().to_numpy()]
        counts[known] = np.diff(picked.indptr)
        return as_matrix(np.append(0, np.cumsum(counts)), picked.indices, len(self.codes))


def open_codes(
    source: OpenedSource, auxiliary: AuxiliaryTable, keys: Sequence[Key], levels: tuple[str, ...]
) -> JoinedCodes:
    """Return how codes of a kind are read and joined, and the features that they become."""
    kind, given = auxiliary.kind, auxiliary.layout
    plan = plan_reading(source, auxiliary.table, given, None, whole=True, kind=kind)
    table = plan.table
    if table.text:
        table = keep_rows(source, table, f"SELECT * FROM {table.sql}", "auxiliary_rows")
    found = find_match(source, table, auxiliary, plan.layout, keys)
    titles = plan.titles
    (code, *more) = plan.layout.codes or ("",)
    if not more and plan.reader.kind in ("long", "delimited"):
        titles = {**read_code_names(source, table, code), **titles}
    notes = [*plan.notes, *source.notes, *plan.storage_notes(source)]
    plan = _join_codes(source, replace(plan, table=table), kind, found)
    raws = plan.reader.count(source, plan)
    vocabulary = _build_vocabulary(plan, raws, auxiliary, levels, titles)
    if not vocabulary.codes:
        columns = ", ".join(map(repr, (plan.layout.codes or ())[:12]))
        raise RecordsError("join.no_usable_code", table=table.label, columns=columns, kind=kind)
    notes += [*_loss_notes(source, plan, raws, vocabulary), *vocabulary.notes]
    return JoinedCodes(
        found.key,
        tuple(f"{kind}:{one}" for one in vocabulary.codes),
        vocabulary.names,
        f"{kind}:{vocabulary.system}",
        (found.note(kind), *(Message("note.of_kind", kind=kind, note=note) for note in notes)),
        source,
        plan,
        make_encoder(raws, vocabulary),
    )


def _join_codes(source: OpenedSource, plan: Plan, kind: str, found: Match) -> Plan:
    """Return how to read the codes of the rows that match, by the key of their record."""
    layout, columns = plan.layout, plan.table.columns
    picks = []
    for name in layout.codes or ():
        text = text_sql(name, columns[name])
        # NDC has no code 0, which means none in exports.
        plain = f"CASE WHEN NOT regexp_full_match(trim({text}), '0+') THEN {text} END"
        picks.append(f"{plain if kind == 'drug' else text} AS {quote(name)}")
    if plan.reader.kind == "binary":
        picks = [quote(name) for name in layout.codes or ()]
    if layout.version is not None:
        picks.append(quote(layout.version))
    table = keep_matching(source, plan.table, found, picks)
    own = Layout(layout.kind, layout.codes, patient=RECORD, version=layout.version)
    own = replace(own, separator=layout.separator)
    return replace(plan, table=table, layout=own, unit="patient")


def _build_vocabulary(
    plan: Plan,
    raws: dict[Raw, int],
    auxiliary: AuxiliaryTable,
    levels: tuple[str, ...],
    titles: Mapping[str, str],
) -> Vocabulary:
    """Return the features of the raw codes; a version of the ICD means that of its procedures."""
    own = {raw: raw for raw in raws}
    if auxiliary.kind == "procedure":
        own = {(key, code): (PROCEDURES.get(key or "", key), code) for key, code in raws}
    counts, texts = Counter[Raw](), Counter[str]()
    for raw, count in raws.items():
        counts[own[raw]] += count
        texts[raw[1]] += count
    system = auxiliary.system or plan.system
    if system is None or "+" in system:
        system = find_system(auxiliary.kind, texts)
    made = build_vocabulary(counts, system, Coding(levels), titles)
    number = {raw: place for place, raw in enumerate(counts)}
    return made.at([number[own[raw]] for raw in raws])


def _loss_notes(
    source: OpenedSource, plan: Plan, raws: dict[Raw, int], vocabulary: Vocabulary
) -> list[str]:
    """Return notes on rows and codes that are of no use."""
    counts = np.fromiter(raws.values(), np.int64, len(raws))
    lost = {
        Message("note.rows_left_out", n=count, reason=reason): count
        for reason, count in plan.removed.items()
    }
    if plan.reader.by_code:
        ((rows,),) = source.rows(plan.table, f"SELECT count(*) FROM {plan.table.sql}")
        without = rows - int(counts[~vocabulary.missing].sum())
        lost[Message("note.matched_no_code", n=without)] = without
    for reason, count in vocabulary.lost(counts).items():
        lost[Message("note.codes_left_out", n=count, reason=reason)] = count
    return [text for text, count in lost.items() if count]


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
class JoinedCovariates:
    """A table with a row for each visit or patient that is joined to the records by a key.

    ``names`` are those of its covariates among those of the records; ``patients`` is the key of
    patients that it gives to records that have none.
    """

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
            f"{covariates.column_sql(name, table, layout)} AS {quote(shown)}"
            for name, shown in covariates.covariate_names(free, layout).items()
        ]
        own = [quote(name) for name in table.columns if name not in free]
        rows = select_rows(self.source, table, keys, ", ".join([*own, *picks]))
        named = [name for name in rows.column_names if name not in (RECORD, *BIRTHS)]
        columns = {name: rows[name] for name in (RECORD, BIRTH_YEAR) if name in rows.column_names}
        if named:
            read = covariates.cast_columns(rows.select(named), layout, self.meanings)
            columns |= {name: read[name] for name in named}
        if BIRTH in rows.column_names:
            days = pa.table({"date": rows[BIRTH]})
            meanings = {"date": self.birth} if self.birth else {}
            columns[BIRTH] = covariates.cast_columns(days, Layout(date="date"), meanings)["date"]
        whole = pa.table(columns)
        if "date" in named:
            whole = whole.take(pc.sort_indices(whole, [("date", "ascending")]))
        places = pc.index_in(keys, whole[RECORD].combine_chunks())
        return whole.drop_columns([RECORD]).take(places)


def open_covariates(
    source: OpenedSource, auxiliary: AuxiliaryTable, keys: Sequence[Key], taken: Collection[str]
) -> JoinedCovariates:
    """Return how visits or patients are read and joined; ``taken`` names get the kind as prefix."""
    kind = auxiliary.kind
    table, columns = open_columns(source, auxiliary.table, auxiliary.layout)
    columns.check()
    layout = replace(columns.layout("long", ()), kind=None, codes=None, part=None, version=None)
    if table.text:
        table = keep_rows(source, table, f"SELECT * FROM {table.sql}", "auxiliary_rows")
    events = read_events(source, table, layout, auxiliary.layout)
    table, layout = events.table, events.layout
    found = find_match(source, table, auxiliary, layout, keys)
    patient = layout.patient if all(key.level != "patient" for key in keys) else None
    patient = None if patient == found.column else patient
    table, birth = _join_covariates(source, table, layout, found, patient)
    own = replace(layout, record=RECORD, patient=patient, weight=None)
    free = {name: type for name, type in table.columns.items() if name not in BIRTHS}
    meanings = covariates.infer_meanings(source, replace(table, columns=free), own)
    shown = covariates.covariate_names([name for name in free if name != RECORD], own).values()
    names = {name: f"{kind}.{name}" if name in taken else name for name in shown}
    notes = [*source.notes, *events.notes, *covariates.meaning_notes(meanings)]
    notes += birth.notes if birth else ()
    notes += _check_repeated(source, table, kind, found, own, covariates.has_unread_dates(meanings))
    renamed = [(name, new) for name, new in names.items() if name != new]
    notes += [Message("note.renamed_column", name=name, new=new) for name, new in renamed]
    noted = (found.note(kind), *(Message("note.of_kind", kind=kind, note=note) for note in notes))
    patients = Key("patient", patient, patient, False, source, table) if patient else None
    return JoinedCovariates(found.key, noted, source, table, own, meanings, birth, names, patients)


def _join_covariates(
    source: OpenedSource, table: SourceTable, layout: Layout, found: Match, patient: str | None
) -> tuple[SourceTable, Meanings | None]:
    """Return the rows that match without their ids, and the meanings of dates of birth."""
    ids = {found.column, layout.record, layout.patient} - {patient}
    births = [name for name in table.columns if _BIRTH_DATE.fullmatch(squash_name(name))]
    years = [name for name in table.columns if _BIRTH_YEAR.fullmatch(squash_name(name))]
    picks = [quote(name) for name in table.columns if name not in {*ids, *births, *years}]
    if births:
        kind = table.columns[births[0]]
        day = quote(births[0]) if kind == "DATE" else text_sql(births[0], kind)
        picks.append(f"{day} AS {quote(BIRTH)}")
    elif years:
        text = text_sql(years[0], table.columns[years[0]])
        year = f"TRY_CAST(regexp_extract({text}, '^\\s*(\\d{{4}})', 1) AS INTEGER)"
        picks.append(f"{year} AS {quote(BIRTH_YEAR)}")
    rows = keep_matching(source, table, found, picks)
    if rows.columns.get(BIRTH) != "VARCHAR":
        return rows, None
    return rows, read_dates(covariates.count_texts(source, rows, BIRTH), births[0])


def _check_repeated(
    source: OpenedSource,
    table: SourceTable,
    kind: str,
    found: Match,
    layout: Layout,
    without_dates: bool,
) -> list[str]:
    """Return notes on several rows of a visit or patient; refuse those that contradict."""
    ((rows, records, different),) = source.rows(
        table,
        f"SELECT count(*), count(DISTINCT {quote(RECORD)}), "
        f"(SELECT count(*) FROM (SELECT DISTINCT * FROM {table.sql})) FROM {table.sql}",
    )
    if different > records and not (kind == "visit" and found.key.of == "patient"):
        about = {"table": table.label, "n": different - records}
        raise RecordsError("join.repeated", **about, column=found.column, kind=kind)
    notes: list[str] = [Message("note.rows_twice", n=rows - different)] if rows > different else []
    if different > records:
        if without_dates:
            raise covariates.undated_error(table.label, layout.date)
        key = "note.first_by_date" if layout.date else "note.first_taken"
        notes.append(Message(key, n=different, patients=records))
    return notes


def ages(columns: Mapping[str, pa.ChunkedArray]) -> pa.Array | None:
    """Return the full years from birth to each record's date; None under 0 and over 130."""
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


C = TypeVar("C", bound=Cohort)

SLICE = 1 << 18
AGE_NOTE = Message("note.ages_from_birth")
NO_AGE_NOTE = Message("note.no_ages")


@dataclass(frozen=True, eq=False)
class Joining:
    """The auxiliary tables of some records, opened; see `open_joining`."""

    tables: tuple[JoinedCovariates, ...] = ()
    codes: tuple[JoinedCodes, ...] = ()

    def join(self, cohort: C) -> C:
        """Return records with the covariates and all features of the auxiliary tables."""
        if self.tables:
            cohort = self._with_covariates(cohort)
        return self._with_features(cohort) if self.codes else cohort

    def _with_covariates(self, cohort: C) -> C:
        columns = dict(zip(cohort.covariates.column_names, cohort.covariates.columns, strict=True))
        births: dict[str, pa.ChunkedArray] = {}
        notes: list[str] = []
        for one in self.tables:
            notes += one.notes
            table = pa.concat_tables(one.columns(keys) for keys in _slices(one.key.values(cohort)))
            columns |= {shown: table[name] for name, shown in one.names.items()}
            births |= {name: table[name] for name in BIRTHS if name in table.column_names}
            cohort = replace(cohort, covariates=pa.table(columns))
        if births and "age" not in columns:
            known = ages(columns | births)
            notes.append(NO_AGE_NOTE if known is None else AGE_NOTE)
            columns |= {} if known is None else {"age": known}
        ledger = cohort.ledger.noted(*notes)
        return replace(cohort, covariates=pa.table(columns), ledger=ledger)

    def _with_features(self, cohort: C) -> C:
        others = (
            vstack([one.features(keys) for keys in _slices(one.key.values(cohort))], "csr")
            for one in self.codes
        )
        joined = hstack([cohort.matrix, *others], "csr")
        codes = (*cohort.codes, *(code for one in self.codes for code in one.codes))
        lines = tuple(line for line in cohort.ledger.lines if line.unit != "features")
        ledger = Ledger(lines, cohort.ledger.problems, cohort.ledger.notes)
        ledger = ledger.noted(*(note for one in self.codes for note in one.notes))
        return replace(
            cohort,
            matrix=as_matrix(joined.indptr, joined.indices.astype(np.int32), len(codes)),
            codes=codes,
            names=(*cohort.names, *(name for one in self.codes for name in one.names)),
            system=" ".join([cohort.system, *(one.system for one in self.codes)]),
            ledger=ledger.open("features", Message("ledger.read"), len(codes)),
        )


def _slices(keys: pa.Array) -> Iterator[pa.Array]:
    """Yield keys in slices, at least one, so that the rows of one at a time are in memory."""
    for start in range(0, max(len(keys), 1), SLICE):
        yield keys.slice(start, SLICE)


@contextmanager
def open_joining(
    records: Any,
    opened: OpenedSource,
    plan: Plan,
    auxiliary: Sequence[AuxiliaryTable],
    levels: tuple[str, ...],
    memory: str | None = None,
) -> Iterator[Joining]:
    """Open the auxiliary tables of records that were opened and planned, and plan their joins."""
    keys = keys_of(opened, plan) if auxiliary else ()
    taken = set(covariates.covariate_names(list(plan.table.columns), plan.layout).values())
    tables: list[JoinedCovariates] = []
    codes: list[JoinedCodes] = []
    seen: dict[tuple[str, str | None], str] = {}
    only = next(iter(opened.openers)) if len(opened.openers) == 1 else None
    check_new_table(seen, "the records", records, only)
    with ExitStack() as stack:
        for given in (resolve_source(one, records, opened) for one in auxiliary):
            source = stack.enter_context(open_source(given.source, memory))
            table = given.table or find_table(source, given.kind)
            only = table or next(iter(source.openers), None)
            check_new_table(seen, given.kind, given.source, only)
            found = replace(given, table=table)
            if given.has_covariates:
                one = open_covariates(source, found, keys, taken)
                tables.append(one)
                taken.update(one.names.values())
                keys = (*keys, one.patients) if one.patients else keys
            else:
                codes.append(open_codes(source, found, keys, levels))
        yield Joining(
            tuple(replace(one, notes=_new_notes(one.notes, opened)) for one in tables),
            tuple(replace(one, notes=_new_notes(one.notes, opened)) for one in codes),
        )


def _new_notes(notes: Sequence[str], opened: OpenedSource) -> tuple[str, ...]:
    """Return notes without those on the records' source, which may be this one too."""
    return tuple(note for note in notes if note.partition(": ")[2] not in opened.notes)
