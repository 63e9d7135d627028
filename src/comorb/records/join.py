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
    Beside,
    Key,
    Match,
    in_the_records,
    joined_rows,
    kept,
    keys_of,
    match,
    patient_key,
    refuse_the_same_twice,
    rows_of,
    table_of,
)
from comorb.records.codes.systems import PROCEDURES
from comorb.records.codes.vocabulary import Coding, Raw, Vocabulary, build_vocabulary
from comorb.records.cohort import Cohort, as_matrix
from comorb.records.layouts.assembly import Encode, make_encoder
from comorb.records.layouts.covariates import (
    cast_columns,
    column_sql,
    count_texts,
    covariate_names,
    has_unread_dates,
    infer_meanings,
    meaning_notes,
    undated_error,
)
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
class CodesBeside:
    """A table of codes of one kind that is joined to the records by a key.

    ``codes`` are the features, such as 'drug:A10B'; ``notes`` are for the ledger.
    """

    key: Key
    codes: tuple[str, ...]
    names: tuple[str, ...]
    system: str
    notes: tuple[str, ...]
    source: OpenedSource
    plan: Plan
    encode: Encode

    def features(self, keys: pa.Array) -> csr_array[Any]:
        """Return which features the records with these keys have, a row each."""
        rows = rows_of(self.source, self.plan.table, keys)
        if not len(rows):
            return as_matrix(np.zeros(len(keys) + 1, np.int64), np.empty(0, np.int32), self.width)
        with self.source.connection.cursor() as connection:
            own = OpenedSource(self.source.label, connection)
            table = register_table(own, self.plan.table.label, rows)
            plan = replace(self.plan, table=table)
            assembly = plan.reader.read(own, plan, self.encode)
        places = pc.index_in(keys, assembly.ids)
        known = np.flatnonzero(places.is_valid().to_numpy(zero_copy_only=False))
        picked = assembly.matrix[places.drop_null().to_numpy()]
        counts = np.zeros(len(keys), np.int64)
        counts[known] = np.diff(picked.indptr)
        return as_matrix(np.append(0, np.cumsum(counts)), picked.indices, self.width)

    @property
    def width(self) -> int:
        """The number of features."""
        return len(self.codes)


def open_codes(
    source: OpenedSource, beside: Beside, keys: Sequence[Key], levels: tuple[str, ...]
) -> CodesBeside:
    """Find out how codes of a kind are read and joined, and which features they become."""
    plan = plan_reading(source, beside.table, beside.layout, None, whole=True, kind=beside.kind)
    table = plan.table
    if table.text:
        table = kept(source, table, f"SELECT * FROM {table.sql}", "beside_rows")
    found = match(source, table, beside, plan.layout, keys)
    titles = plan.titles
    (code, *more) = plan.layout.codes or ("",)
    if not more and plan.reader.kind in ("long", "delimited"):
        titles = {**read_code_names(source, table, code), **titles}
    doubts = [*plan.notes, *source.notes, *plan.storage_notes(source)]
    plan = _join_codes(source, replace(plan, table=table), beside.kind, found)
    raws = plan.reader.count(source, plan)
    vocabulary = _vocabulary(plan, raws, beside, levels, titles)
    columns = ", ".join(map(repr, (plan.layout.codes or ())[:12]))
    if not vocabulary.codes:
        raise RecordsError(
            "join.no_usable_code", table=table.label, columns=columns, kind=beside.kind
        )
    return CodesBeside(
        found.key,
        tuple(f"{beside.kind}:{one}" for one in vocabulary.codes),
        vocabulary.names,
        f"{beside.kind}:{vocabulary.system}",
        (
            found.told(beside.kind),
            *(Message("note.of_kind", kind=beside.kind, note=note) for note in doubts),
            *(
                Message("note.of_kind", kind=beside.kind, note=note)
                for note in _losses(source, plan, raws, vocabulary)
            ),
            *(Message("note.of_kind", kind=beside.kind, note=note) for note in vocabulary.notes),
        ),
        source,
        plan,
        make_encoder(raws, vocabulary),
    )


def _join_codes(source: OpenedSource, plan: Plan, kind: str, found: Match) -> Plan:
    """Return how to read the codes of the rows that match, the key of a record as their id."""
    layout, columns = plan.layout, plan.table.columns
    picks = []
    for name in layout.codes or ():
        text = text_sql(name, columns[name])
        # NDC has no code 0, which stands for none in exports.
        plain = f"CASE WHEN NOT regexp_full_match(trim({text}), '0+') THEN {text} END"
        picks.append(f"{plain if kind == 'drug' else text} AS {quote(name)}")
    if plan.reader.kind == "binary":
        picks = [quote(name) for name in layout.codes or ()]
    if layout.version is not None:
        picks.append(quote(layout.version))
    table = kept(source, plan.table, joined_rows(plan.table, found, picks), "beside_joined")
    own = Layout(layout.kind, layout.codes, patient=RECORD, version=layout.version)
    own = replace(own, separator=layout.separator)
    return replace(plan, table=table, layout=own, unit="patient")


def _vocabulary(
    plan: Plan,
    raws: dict[Raw, int],
    beside: Beside,
    levels: tuple[str, ...],
    titles: Mapping[str, str],
) -> Vocabulary:
    """Return the features of the raw codes; a version of the ICD means that of its procedures."""

    def own(raw: Raw) -> Raw:
        said, code = raw
        return (PROCEDURES.get(said, said) if said and beside.kind == "procedure" else said, code)

    counts, texts = Counter[Raw](), Counter[str]()
    for raw, count in raws.items():
        counts[own(raw)] += count
        texts[raw[1]] += count
    system = beside.system or plan.system
    if system is None or "+" in system:
        system = find_system(beside.kind, texts)
    made = build_vocabulary(counts, system, Coding(levels), titles)
    number = {raw: place for place, raw in enumerate(counts)}
    return made.at([number[own(raw)] for raw in raws])


def _losses(
    source: OpenedSource, plan: Plan, raws: dict[Raw, int], vocabulary: Vocabulary
) -> list[str]:
    """Return what the ledger says of rows and codes that are of no use."""
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
            f"{column_sql(name, table, layout)} AS {quote(shown)}"
            for name, shown in covariate_names(free, layout).items()
        ]
        own = [quote(name) for name in table.columns if name not in free]
        rows = rows_of(self.source, table, keys, ", ".join([*own, *picks]))
        named = [name for name in rows.column_names if name not in (RECORD, *BIRTHS)]
        columns = {name: rows[name] for name in (RECORD, BIRTH_YEAR) if name in rows.column_names}
        if named:
            read = cast_columns(rows.select(named), layout, self.meanings)
            columns |= {name: read[name] for name in named}
        if BIRTH in rows.column_names:
            days = pa.table({"date": rows[BIRTH]})
            meanings = {"date": self.birth} if self.birth else {}
            columns[BIRTH] = cast_columns(days, Layout(date="date"), meanings)["date"]
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
    events = read_events(source, table, layout, beside.layout)
    table, layout = events.table, events.layout
    found = match(source, table, beside, layout, keys)
    patient = layout.patient if all(key.level != "patient" for key in keys) else None
    patient = None if patient == found.column else patient
    table, birth = _join_covariates(source, table, layout, found, patient)
    own = replace(layout, record=RECORD, patient=patient, weight=None)
    free = {name: kind for name, kind in table.columns.items() if name not in BIRTHS}
    meanings = infer_meanings(source, replace(table, columns=free), own)
    shown = covariate_names([name for name in free if name != RECORD], own).values()
    names = {name: f"{beside.kind}.{name}" if name in taken else name for name in shown}
    notes = [found.told(beside.kind)]
    others = [
        *source.notes,
        *events.notes,
        *meaning_notes(meanings),
        *(birth.notes if birth else ()),
    ]
    others += _repeated(source, table, beside, found, own, has_unread_dates(meanings))
    others += [
        Message("note.renamed_column", name=name, new=new)
        for name, new in names.items()
        if name != new
    ]
    notes += [Message("note.of_kind", kind=beside.kind, note=note) for note in others]
    patients = patient_key(found, source, table, patient) if patient else None
    return CovariatesBeside(
        beside.kind, found.key, tuple(notes), source, table, own, meanings, birth, names, patients
    )


def _join_covariates(
    source: OpenedSource, table: SourceTable, layout: Layout, found: Match, patient: str | None
) -> tuple[SourceTable, Meanings | None]:
    """Return the rows that match without their ids, and what their dates of birth mean."""
    ids = {found.column, layout.record, layout.patient} - {patient}
    births = [name for name in table.columns if _BIRTH_DATE.fullmatch(_squashed(name))]
    years = [name for name in table.columns if _BIRTH_YEAR.fullmatch(_squashed(name))]
    picks = [quote(name) for name in table.columns if name not in {*ids, *births, *years}]
    if births:
        kind = table.columns[births[0]]
        day = quote(births[0]) if kind == "DATE" else text_sql(births[0], kind)
        picks.append(f"{day} AS {quote(BIRTH)}")
    elif years:
        text = text_sql(years[0], table.columns[years[0]])
        year = f"TRY_CAST(regexp_extract({text}, '^\\s*(\\d{{4}})', 1) AS INTEGER)"
        picks.append(f"{year} AS {quote(BIRTH_YEAR)}")
    rows = kept(source, table, joined_rows(table, found, picks), "beside_joined")
    if rows.columns.get(BIRTH) != "VARCHAR":
        return rows, None
    return rows, read_dates(count_texts(source, rows, BIRTH), births[0])


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
        f"SELECT count(*), count(DISTINCT {quote(RECORD)}), "
        f"(SELECT count(*) FROM (SELECT DISTINCT * FROM {table.sql})) FROM {table.sql}",
    )
    if different > records and not (beside.kind == "visit" and found.key.of == "patient"):
        raise RecordsError(
            "join.repeated",
            table=table.label,
            n=different - records,
            column=found.column,
            kind=beside.kind,
        )
    notes: list[str] = [Message("note.rows_twice", n=rows - different)] if rows > different else []
    if different > records:
        if without_days:
            raise undated_error(table.label, layout.date)
        key = "note.first_by_date" if layout.date else "note.first_taken"
        notes.append(Message(key, n=different, patients=records))
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


C = TypeVar("C", bound=Cohort)

SLICE = 1 << 18
AGE_NOTE = Message("note.ages_from_birth")
NO_AGE_NOTE = Message("note.no_ages")


@dataclass(frozen=True, eq=False)
class Joining:
    """The sources beside some records, opened; see `open_joining`."""

    tables: tuple[CovariatesBeside, ...] = ()
    codes: tuple[CodesBeside, ...] = ()

    def join(self, cohort: C) -> C:
        """Return records with the features and covariates of the other sources.

        All features are there, also those that none of these records has.
        """
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
        beside = (
            vstack([one.features(keys) for keys in _slices(one.key.values(cohort))], "csr")
            for one in self.codes
        )
        joined = hstack([cohort.matrix, *beside], "csr")
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
    besides: Sequence[Beside],
    levels: tuple[str, ...],
    memory: str | None = None,
) -> Iterator[Joining]:
    """Open the sources beside some records, and find out how each is joined to them.

    ``records`` is the source that was opened and planned; ``levels`` are those at which codes are
    features.
    """
    keys = keys_of(opened, plan) if besides else ()
    taken = set(covariate_names(list(plan.table.columns), plan.layout).values())
    tables: list[CovariatesBeside] = []
    codes: list[CodesBeside] = []
    only = next(iter(opened.openers)) if len(opened.openers) == 1 else None
    places: list[tuple[str, Any, str | None]] = [("the records", records, only)]
    with ExitStack() as stack:
        for beside in (in_the_records(one, records, opened) for one in besides):
            source = stack.enter_context(open_source(beside.source, memory))
            table = beside.table or table_of(source, beside.kind)
            places.append((beside.kind, beside.source, table or next(iter(source.openers), None)))
            refuse_the_same_twice(places)
            found = replace(beside, table=table)
            if beside.of_covariates:
                one = open_covariates(source, found, keys, taken)
                tables.append(one)
                taken.update(one.names.values())
                keys = (*keys, one.patients) if one.patients else keys
            else:
                codes.append(open_codes(source, found, keys, levels))
        yield Joining(
            tuple(replace(one, notes=_new(one.notes, opened)) for one in tables),
            tuple(replace(one, notes=_new(one.notes, opened)) for one in codes),
        )


def _new(notes: Sequence[str], opened: OpenedSource) -> tuple[str, ...]:
    """Return the notes that aren't known of the records' source, which may be this one too."""
    return tuple(note for note in notes if note.partition(": ")[2] not in opened.notes)
