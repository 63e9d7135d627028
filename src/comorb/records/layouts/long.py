"""Long: a row is one code of a record; also tables of drugs, procedures and other codes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.model.arrays import Indices
from comorb.records.codes.recognition import fits, recognise
from comorb.records.codes.systems import SYSTEMS
from comorb.records.codes.vocabulary import Raw, Vocabulary
from comorb.records.layouts.assembly import Assembly, Encode, build_matrix
from comorb.records.layouts.columns import Columns, list_names
from comorb.records.layouts.covariates import (
    are_numbers,
    cast_columns,
    column_sql,
    count_texts,
    covariate_names,
    group_covariates,
    has_several_days,
    has_unread_dates,
    meaning_notes,
    meanings_table,
    read_roles,
    undated_error,
    varying_columns,
)
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.plan import Plan, Reader
from comorb.records.ledger import PROBLEM_LIMIT, Ledger, Problem
from comorb.records.sources.duck import (
    OpenedSource,
    SourceTable,
    add_by_first,
    add_by_two,
    add_rows,
    literal,
    quote,
    text_sql,
)
from comorb.records.values import TIME, Meanings

_OWN_COLUMNS = (" record", " code", " version")
_CODE_SCHEMA = pa.schema([("version", pa.string()), ("code", pa.string()), ("number", pa.int32())])


@dataclass(frozen=True)
class _Codes:
    """The distinct texts of codes, ``written`` beside each version, and the rows of each raw code.

    ``written`` has the number of the raw code too, as two spellings of a version are one edition;
    ``rows`` are all that were read.
    """

    written: pa.Table
    raws: dict[Raw, int]
    lines: Ledger
    rows: int

    @property
    def numbers(self) -> Indices:
        """The number of the raw code of each text."""
        return np.asarray(self.written["number"].to_numpy(), dtype=np.int32)


def _plan(source: OpenedSource, table: SourceTable, columns: Columns) -> Plan | None:
    """Return how to read a table with one code column and an id; cells may hold several codes."""
    asked = columns.given.kind == READER.kind
    if len(columns.codes) != 1:
        return None
    layout, notes = replace(columns.layout(READER.kind, columns.codes), part=None), []
    if not layout.ids and (key := _repeating_id(source, table, columns)):
        layout = replace(layout, record=key)
        notes.append(Message("note.record_repeats", column=layout.record))
    if columns.holds_lists and (asked or columns.repeats(layout.record or layout.patient)):
        layout = replace(layout, separator=layout.separator or columns.separator)
    if not asked and (not layout.ids or (columns.holds_lists and not layout.separator)):
        return None
    return _keep_diagnoses(source, Plan(READER, table, layout, notes=tuple(notes)), columns)


def _repeating_id(source: OpenedSource, table: SourceTable, columns: Columns) -> str | None:
    """Return the column of no known name that repeats as the ids of records do.

    Where the rows of a record lie far apart, only the whole table tells.
    """
    if columns.repeating_id or not columns.unique_ids:
        return columns.repeating_id
    picks = ", ".join(f"count(DISTINCT {quote(name)})" for name in columns.unique_ids)
    sql = f"SELECT count(*), {picks} FROM {table.sql}"
    ((rows, *different),) = source.query_whole(table, sql, None)
    pairs = zip(different, columns.unique_ids, strict=True)
    return max((pair for pair in pairs if pair[0] < 0.8 * rows), default=(0, None))[1]


def _keep_diagnoses(source: OpenedSource, plan: Plan, columns: Columns) -> Plan:
    """Return the plan for the diagnoses alone, one a row, with the names that the table has."""
    table, (code, *_) = plan.table, plan.layout.codes or ("",)
    if columns.kind_column:
        name, is_diagnosis = columns.kind_column
        text = text_sql(name, table.columns[name])
        sql = f"SELECT {text}, count(*) FROM {table.sql} GROUP BY 1"
        counts = dict(source.query_whole(table, sql, add_by_first))
        kept = [value for value in counts if value is not None and is_diagnosis(value)]
        if 0 < len(kept) < len(counts):
            rule = f"{text} IN ({', '.join(map(literal, kept))})"
            sql = f"SELECT * EXCLUDE ({quote(name)}) FROM {table.sql} WHERE {rule}"
            table = source.view(table.label, sql, table.text)
            others = sum(counts.values()) - sum(counts[value] for value in kept)
            note = Message("note.which_diagnoses", name=name)
            plan = replace(
                plan,
                table=table,
                removed={Message("ledger.no_diagnosis"): others},
                notes=(*plan.notes, note),
            )
    plan = replace(plan, titles=read_code_titles(source, table, code, columns.description))
    return _split_cells(source, plan, code) if plan.layout.separator else plan


def _split_cells(source: OpenedSource, plan: Plan, code: str) -> Plan:
    """Return the plan for a table with a row for each code of the cells."""
    table, mark = plan.table, literal((plan.layout.separator or "").strip() or " ")
    picks = ", ".join(
        f"unnest(string_split(coalesce({text_sql(name, kind)}, ''), {mark})) AS {quote(name)}"
        if name == code
        else quote(name)
        for name, kind in table.columns.items()
    )
    ((rows,),) = source.query_whole(table, f"SELECT count(*) FROM {table.sql}", add_rows)
    split = source.view(table.label, f"SELECT {picks} FROM {table.sql}", table.text)
    note = Message("note.several_in_cell", code=code, n=rows)
    return replace(plan, table=split, notes=(*plan.notes, note))


def read_code_titles(
    source: OpenedSource, table: SourceTable, code: str, description: str | None
) -> dict[str, str]:
    """Return the most common description of each code that has one."""
    if description is None:
        return {}
    picks = [f"trim({text_sql(name, table.columns[name])})" for name in (code, description)]
    found = source.query_whole(
        table,
        f"SELECT {picks[0]} AS code, {picks[1]} AS title, count(*) FROM {table.sql} "
        "WHERE code <> '' AND title <> '' GROUP BY ALL",
        add_by_two,
    )
    found.sort(key=lambda row: row[1], reverse=True)
    return {code: title for code, title, _ in sorted(found, key=lambda row: row[2])}


def read_long(source: OpenedSource, plan: Plan, encode: Encode) -> Assembly:
    """Read a table in which a row is one code of a record."""
    base = _name_columns(source, plan)
    codes = _count_codes(source, base, plan)
    if not codes.rows:
        raise RecordsError("source.no_rows", table=base.label)
    if not codes.lines.left("rows"):
        raise plan.missing_ids_error()
    vocabulary = encode(codes.raws)
    ids = _read_ids(source, base)
    counts = np.fromiter(codes.raws.values(), np.int64, len(codes.raws))
    lost = vocabulary.lost(counts)
    malformed = lost.pop("malformed")
    written = int(counts[~vocabulary.missing].sum())
    pairs = _read_pairs(source, base, codes, vocabulary)
    matrix, once = build_matrix(vocabulary, len(ids), written - malformed, pairs)
    covariates, notes = _read_covariates(source, base, plan)
    ledger = codes.lines
    ledger = ledger.less("rows", Message("ledger.no_code"), (ledger.left("rows") or 0) - written)
    ledger = ledger.less("rows", Message("ledger.malformed_code"), malformed)
    for reason, count in lost.items():
        ledger = ledger.less("rows", reason, count)
    usable = written - malformed - sum(lost.values())
    ledger = ledger.less("rows", Message("ledger.again"), usable - once)
    as_in_file = plan.reader is READER and not plan.removed and not plan.layout.separator
    own_rows = malformed and as_in_file
    problems = _find_problems(source, base, codes, vocabulary, plan.layout) if own_rows else ()
    ledger = Ledger(ledger.lines, problems, notes)
    return Assembly(matrix, ids, vocabulary, covariates, ledger).drop_empty(plan.keep_empty)


def make_layout(kind: str, view: SourceTable) -> Layout:
    """Return the layout of a view with visit, patient, code, date and perhaps age and sex."""
    age, sex = ("age", "sex") if "sex" in view.columns else (None, None)
    return Layout(kind, ("code",), "visit", patient="patient", age=age, sex=sex, date="date")


def count_long(source: OpenedSource, plan: Plan) -> dict[Raw, int]:
    """Return how often each raw code is mentioned."""
    return _count_codes(source, _name_columns(source, plan), plan).raws


def find_varying(source: OpenedSource, plan: Plan) -> Plan:
    """Return a plan that says which columns differ within records, for readers of its parts."""
    table = plan.table
    sql = f'SELECT * FROM ({_renamed_sql(plan)}) WHERE " record" IS NOT NULL'
    base = source.view(table.label, sql, table.text)
    if not _covariate_names(base):
        return replace(plan, varying=())
    meanings = _read_meanings(source, base, plan)
    view = _map_values(source, base, 'base." record"', meanings)
    return replace(plan, varying=varying_columns(source, view, " record"))


def _name_columns(source: OpenedSource, plan: Plan) -> SourceTable:
    """Return the table with its columns under known names; text is read once and kept."""
    table, sql = plan.table, _renamed_sql(plan)
    if table.text:
        source.rows(table, f"CREATE OR REPLACE TEMP TABLE base AS {sql}")
        sql = "SELECT * FROM base"
    return source.view(table.label, sql, table.text)


def _renamed_sql(plan: Plan) -> str:
    """Return the SQL of the table with its columns under known names."""
    table, layout, record = plan.table, plan.layout, plan.id_column
    (code,) = layout.codes or ("",)
    version = f"CAST({quote(layout.version)} AS VARCHAR)" if layout.version else "NULL::VARCHAR"
    picks = [
        f'{quote(record or "")} AS " record"',
        f'CAST({quote(code)} AS VARCHAR) AS " code"',
        f'{version} AS " version"',
    ]
    others = [name for name in table.columns if name not in (record, code, layout.record)]
    for name, shown in covariate_names(others, layout).items():
        value = column_sql(name, table, layout)
        value = f"TRY_CAST({quote(name)} AS DOUBLE)" if shown == "weight" else value
        picks.append(f"{value} AS {quote(shown)}")
    return f"SELECT {', '.join(picks)} FROM {table.sql}"


def _count_codes(source: OpenedSource, base: SourceTable, plan: Plan) -> _Codes:
    rows = source.rows(
        base,
        'SELECT " version", " code", count(*), count(" record") '
        f"FROM {base.sql} GROUP BY ALL ORDER BY ALL",
    )
    total, known = sum(row[2] for row in rows), sum(row[3] for row in rows)
    lines = Ledger().open("rows", Message("ledger.read"), total + sum(plan.removed.values()))
    for rule, count in plan.removed.items():
        lines = lines.less("rows", rule, count)
    lines = lines.less("rows", Message("ledger.no_id"), total - known)
    raws: dict[Raw, int] = {}
    numbers: dict[Raw, int] = {}
    written = []
    for version, text, _, count in rows:
        if text is not None and count:
            raw = (plan.edition(version), text)
            raws[raw] = raws.get(raw, 0) + count
            number = numbers.setdefault(raw, len(numbers))
            written.append({"version": version, "code": text, "number": number})
    return _Codes(pa.Table.from_pylist(written, _CODE_SCHEMA), raws, lines, total)


def _read_ids(source: OpenedSource, base: SourceTable) -> pa.Array:
    source.rows(
        base,
        'CREATE OR REPLACE TEMP TABLE ids AS SELECT DISTINCT " record" AS id '
        f"FROM {base.sql} WHERE id IS NOT NULL ORDER BY id",
    )
    batches = source.batches(base, "SELECT CAST(id AS VARCHAR) AS id FROM ids ORDER BY rowid")
    parts = [batch.column(0) for batch in batches]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


def _read_pairs(
    source: OpenedSource, base: SourceTable, codes: _Codes, vocabulary: Vocabulary
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield blocks of (record, raw code), of the codes that are usable."""
    usable = (vocabulary.places[codes.numbers] >= 0).any(axis=1)
    source.connection.register("known", codes.written.filter(pa.array(usable)))
    for batch in source.batches(
        base,
        "SELECT CAST(ids.rowid AS INTEGER) AS record, known.number AS number "
        f'FROM {base.sql} AS base JOIN ids ON base." record" = ids.id '
        'JOIN known ON base." code" = known.code '
        'AND base." version" IS NOT DISTINCT FROM known.version',
    ):
        yield batch.column(0).to_numpy(), batch.column(1).to_numpy()


def _read_covariates(
    source: OpenedSource, base: SourceTable, plan: Plan
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the covariates of each record, and notes on what they hold."""
    if not _covariate_names(base):
        return pa.table({}), ()
    meanings = _read_meanings(source, base, plan)
    ids = ' JOIN ids ON base." record" = ids.id'
    view = _map_values(source, base, "ids.rowid", meanings, ids)
    varying = plan.varying
    if varying is None:
        varying = varying_columns(source, view, " record")
    covariates, notes = group_covariates(source, view, " record", plan.layout, varying)
    plain = {name: one for name, one in meanings.items() if one.of is None}
    return cast_columns(covariates, plan.layout, plain), (*notes, *meaning_notes(meanings))


def _covariate_names(base: SourceTable) -> list[str]:
    return [name for name in base.columns if name not in _OWN_COLUMNS]


def _read_meanings(source: OpenedSource, base: SourceTable, plan: Plan) -> Mapping[str, Meanings]:
    """Return what the texts of covariates mean; refuse days that don't tell the first visit."""
    meanings = plan.meanings
    if meanings is None:
        meanings = read_roles(
            [name for name in _covariate_names(base) if base.columns[name] == "VARCHAR"],
            plan.layout,
            lambda name: count_texts(source, base, name),
            lambda name: are_numbers(source, base, name),
        )
    of_patients = plan.reader is READER and plan.unit == "patient" and plan.varying is None
    if of_patients and has_unread_dates(meanings) and has_several_days(source, base, " record"):
        raise undated_error(base.label, plan.layout.date)
    return meanings


def _map_values(
    source: OpenedSource,
    base: SourceTable,
    record: str,
    meanings: Mapping[str, Meanings],
    joins: str = "",
) -> SourceTable:
    """Return the covariates of each row, texts replaced by what they mean, and its record."""
    picks = {name: f"base.{quote(name)}" for name in _covariate_names(base)}
    for place, name in enumerate(picks):
        if name in meanings and meanings[name].of is not None and base.columns[name] == "VARCHAR":
            source.register(f"meanings_{place}", meanings_table(meanings[name]))
            picks[name] = f"meanings_{place}.value"
            joins += (
                f" LEFT JOIN meanings_{place} ON meanings_{place}.text = "
                f"regexp_replace(base.{quote(name)}, {literal(TIME)}, '')"
            )
    shown = ", ".join(f"{value} AS {quote(name)}" for name, value in picks.items())
    return source.view(
        base.label, f'SELECT {record} AS " record", {shown} FROM {base.sql} AS base{joins}'
    )


def _find_problems(
    source: OpenedSource, base: SourceTable, codes: _Codes, vocabulary: Vocabulary, layout: Layout
) -> tuple[Problem, ...]:
    """Return where the first malformed codes stand."""
    malformed = vocabulary.malformed[codes.numbers]
    source.connection.register("malformed", codes.written.filter(pa.array(malformed)))
    rows = source.rows(
        base,
        f'SELECT place FROM (SELECT row_number() OVER () AS place, " code" FROM {base.sql}) '
        f'WHERE " code" IN (SELECT code FROM malformed) ORDER BY place LIMIT {PROBLEM_LIMIT}',
    )
    (column,) = layout.codes or ("",)
    reason = Message("ledger.not_of_system", system=vocabulary.system)
    return tuple(Problem(row + base.first_row - 1, column, reason) for (row,) in rows)


READER = Reader("long", _plan, read_long, count_long, by_code=True)


# How columns with codes are called, the surest first, in small letters with _ between words.
_CODE_NAMES = {
    "drug": (
        r"(^|_)atc",
        r"(^|_)(rxcui|rxnorm|rx_?norm)",
        r"(^|_)(ndc|din|pzn|cip(7|13)?|cis|gtin|dmd|dm_d|vmp|amp|zindex)(_|\d|$)",
        r"(^|_)(drug|med|medication|medicine|substance|product|wirkstoff|arzneimittel|medikament"
        r"|medicament\w*|farmac\w*|geneesmiddel|prescription)s?_?(source_)?(code|cd|value|concept_id)",
    ),
    "procedure": (
        r"(^|_)(icd(_?(9|10))?(cm)?_?)?(proc|procs|prcdr|procedure|procedures|px|pcs|cpt4?|hcpcs"
        r"|ops|opcs4?|ccam|prozedur\w*|procedimient\w*|procediment\w*|procedur\w*|intervent\w*"
        r"|operation\w*|operacion\w*|verrichting\w*|actes?)(_|\d|$)",
        r"(^|_)(icd(_?(9|10))?(cm)?|i9|i10)(_|\d|$)",
    ),
}
_ANY_CODE_NAME = (
    r"(^|_)(loinc|snomed|sct)(_|\d|$)",
    r"^(codes?|codigos?|codis?|codice|kode)(_?\d+)?$",
)
# Names where there are no codes: they are then the codes.
_TEXT_NAMES = {
    "drug": r"^(drug|medication|medicine|med|wirkstoff|arzneimittel|medikament|medicament\w*"
    r"|farmac\w*|geneesmiddel|generic|substance)s?(_name|_generic|_generic_name|name)?$",
    "procedure": r"^(procedure|prozedur|procedimient\w*|intervent\w*)s?(_name|name)?$",
}
_NOT_CODE_NAME = re.compile(
    r"(^|_)(date|dt|time|datetime|desc\w*|names?|title|text|label|display|seq|num|number|type"
    r"|version|vers|vrsn|system|status|count|cost|flag|start|stop|end|offset|priority|order|rank"
    r"|unit|dose|strength|route|form|reason\w*|diag\w*|dx|indication\w*|provider|location|adm"
    r"|orderdate|startdate|enddate|chartdate|chapter|group|modifier)(_|\d|$)|(_|^)id$"
)
_TITLE_NAME = re.compile(
    r"(^|_)(desc\w*|names?|title|text|string|label|display|term|libelle|bezeichnung|omschrijving)(_|$)"
)
_CONCEPT_NAME = re.compile(r"[a-z]+_concept_id", re.IGNORECASE)  # a table of OMOP, read as one
_DATE = re.compile(r"\d{4}-\d\d-\d\d.*|\d\d?/\d\d?/\d{2,4}.*")


def find_code_columns(columns: Columns, kind: str) -> Columns:
    """Return the columns of a table of some kind with those named that hold its codes."""
    if columns.given.codes or any(_CONCEPT_NAME.fullmatch(name) for name in columns.names):
        return columns
    for pattern in (
        *_CODE_NAMES.get(kind, (rf"^{re.escape(kind)}s?(_?code|_?cd)?(_?\d+)?$",)),
        *_ANY_CODE_NAME,
    ):
        if codes := _numbered_alike(
            [c for c in _candidate_columns(columns) if re.search(pattern, _normalise_name(c))]
        ):
            return replace(columns, given=replace(columns.given, codes=codes))
    known = {key for key, system in SYSTEMS.items() if system.kind == kind}
    fitting = [
        c for c in _candidate_columns(columns) if recognise(columns.sample[c]).system in known
    ]
    if codes := _numbered_alike(fitting):
        return replace(columns, given=replace(columns.given, codes=codes))
    texts = [c for c in columns.names if re.search(_TEXT_NAMES.get(kind, "^$"), _normalise_name(c))]
    if texts and columns.sample[texts[0]]:
        given = replace(columns.given, codes=(texts[0],), kind=columns.given.kind or "long")
        return replace(columns, given=given)
    if len(columns.flags) > 1 or (kind not in _CODE_NAMES and columns.codes):
        return columns
    raise RecordsError(
        "join.no_codes", table=columns.label, kind=kind, shown=list_names(columns.names)
    )


def find_system(kind: str, codes: Mapping[str, int]) -> str | None:
    """Return the coding system of codes of a kind, None where the codes alone have to tell it.

    Drugs and procedures are of a system of their kind that lists them, or are kept as written.
    """
    known = [key for key, system in SYSTEMS.items() if system.kind == kind]
    if kind == "diagnosis" or not known:
        return None
    fit = fits(codes)
    best = max(known, key=lambda key: (fit[key].listed, fit[key].written))
    return best if fit[best].written > 0.8 and fit[best].listed > 0.5 else "opaque"


def read_code_names(source: OpenedSource, table: SourceTable, code: str) -> dict[str, str]:
    """Return what a table calls each code: the most common text of the columns that name codes.

    The column in which a code has the fewest names comes first, and the others where it has none.
    """
    texts = [c for c in table.columns if c != code and table.columns[c] == "VARCHAR"]
    pattern = "|".join(_TEXT_NAMES.values())
    naming = [
        c
        for c in texts
        if _TITLE_NAME.search(_normalise_name(c)) or re.search(pattern, _normalise_name(c))
    ]
    key = f"trim({text_sql(code, table.columns[code])})"
    ranked = []
    for column in naming:
        name = f"trim({quote(column)})"
        ((pairs, codes, worded),) = source.rows(
            table,
            f"SELECT count(DISTINCT ({key}, {name})), count(DISTINCT {key}), "
            f"avg(CAST(regexp_matches({name}, '[^\\W\\d_]{{3}}') AS INTEGER)) FROM {table.sql} "
            f"WHERE {key} <> '' AND {name} <> ''",
        )
        if codes and worded > 0.8 and pairs <= 2 * codes:
            ranked.append((pairs / codes, len(column), column))
    titles: dict[str, str] = {}
    for _, _, column in sorted(ranked, reverse=True):
        titles |= read_code_titles(source, table, code, column)
    return titles


def _candidate_columns(columns: Columns) -> list[str]:
    """Return the columns that may hold codes: no ids, dates and descriptions of them."""
    taken = set(columns.given.roles.values())
    return [
        name
        for name in columns.names
        if name not in taken
        and not _NOT_CODE_NAME.search(_normalise_name(name))
        and columns.sample[name]
        and not all(map(_DATE.fullmatch, columns.sample[name]))
    ]


def _numbered_alike(names: Sequence[str]) -> tuple[str, ...]:
    """Return the first name and those that differ from it in their number alone."""
    stems = [re.sub(r"\d+", "", _normalise_name(name)) for name in names]
    return tuple(name for name, stem in zip(names, stems, strict=True) if stem == stems[0])


def _normalise_name(name: str) -> str:
    spaced = re.sub(r"([a-z])([A-Z])", r"\1_\2", name)
    return re.sub(r"[^a-z0-9]+", "_", spaced.lower()).strip("_")
