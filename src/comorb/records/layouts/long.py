"""Long: a row is one code of a record, of a diagnosis, a drug, a procedure or another kind."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.model.arrays import Mask
from comorb.records.codes.recognition import fits, recognise
from comorb.records.codes.systems import SYSTEMS
from comorb.records.codes.vocabulary import Raw, Vocabulary
from comorb.records.layouts.assembly import Assembly, Encode, Pairs, build_matrix
from comorb.records.layouts.columns import Columns, find_unique_ids, list_names
from comorb.records.layouts.covariates import (
    are_numbers,
    cast_columns,
    column_sql,
    count_texts,
    covariate_names,
    has_unread_dates,
    meaning_notes,
    meanings_table,
    read_roles,
    undated_error,
    varying_columns,
)
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.names import (
    DESCRIPTION_NAME,
    KIND_CODE_NAMES,
    KIND_TEXT_NAMES,
    NOT_CODE_OF_KIND_NAME,
    names_matching,
    normalise_name,
)
from comorb.records.layouts.plan import Plan, Reader
from comorb.records.ledger import PROBLEM_LIMIT, Ledger, Problem
from comorb.records.sources.duck import OpenedSource, SourceTable, literal, literals, quote
from comorb.records.values import TIME, Meanings

_OWN_COLUMNS = (" record", " code", " version")
_CODE_SCHEMA = pa.schema([("version", pa.string()), ("code", pa.string()), ("number", pa.int32())])


@dataclass(frozen=True)
class _Codes:
    """The distinct texts of codes and versions, and the number of rows of each raw code.

    A text has the number of its raw code, as two spellings of a version are one edition. ``rows``
    are all that were read.
    """

    written: pa.Table
    raws: dict[Raw, int]
    lines: Ledger
    rows: int

    def texts(self, marked: Mask) -> pa.Table:
        """Return the texts of the raw codes that are marked."""
        numbers = np.asarray(self.written["number"].to_numpy(), dtype=np.int32)
        return self.written.filter(pa.array(marked[numbers]))


def _plan(source: OpenedSource, table: SourceTable, columns: Columns) -> Plan | None:
    """Return how to read a table with one code column and an id; cells may hold several codes."""
    given = columns.given.kind == READER.kind
    if len(columns.codes) != 1:
        return None
    layout, notes = replace(columns.layout(READER.kind, columns.codes), part=None), []
    if not layout.ids and (key := _repeating_id(source, table, columns)):
        layout = replace(layout, record=key)
        notes.append(Message("note.record_repeats", column=layout.record))
    if columns.holds_lists and (given or columns.repeats(layout.record or layout.patient)):
        layout = replace(layout, separator=layout.separator or columns.separator)
    if not given and (not layout.ids or (columns.holds_lists and not layout.separator)):
        return None
    plan = _keep_diagnoses(source, Plan(READER, table, layout, notes=tuple(notes)), columns)
    titles = read_code_titles(source, plan.table, columns.codes[0], columns.description)
    plan = replace(plan, titles=titles)
    if not layout.separator:
        return plan
    # A row for each code of a cell.
    table, code, mark = plan.table, columns.codes[0], literal(layout.separator.strip() or " ")
    codes = f"unnest(string_split(coalesce({table.text_sql(code)}, ''), {mark}))"
    rows = source.count_rows(table)
    split = source.derive(table, f"SELECT * REPLACE ({codes} AS {quote(code)}) FROM {table.sql}")
    note = Message("note.several_in_cell", code=code, n=rows)
    return replace(plan, table=split, notes=(*plan.notes, note))


def _repeating_id(source: OpenedSource, table: SourceTable, columns: Columns) -> str | None:
    """Return the column of no known name that repeats like the ids of records.

    Where the rows of a record lie far apart, the whole table is needed to see that.
    """
    ids = find_unique_ids(columns.cells, columns.free_in_long)
    if columns.repeating_id or not ids:
        return columns.repeating_id
    picks = ", ".join(f"count(DISTINCT {quote(name)})" for name in ids)
    sql = f"SELECT count(*), {picks} FROM {table.sql}"
    ((rows, *different),) = source.query_whole(table, sql, None)
    pairs = zip(different, ids, strict=True)
    return max((pair for pair in pairs if pair[0] < 0.8 * rows), default=(0, None))[1]


def _keep_diagnoses(source: OpenedSource, plan: Plan, columns: Columns) -> Plan:
    """Return the plan for the rows that are diagnoses, where a column has the kind of each."""
    if not columns.kind_column:
        return plan
    table, (name, is_diagnosis) = plan.table, columns.kind_column
    text = table.text_sql(name)
    counts: dict[str | None, int] = dict(source.count_values(table, text))
    kept = [value for value in counts if value is not None and is_diagnosis(value)]
    if not 0 < len(kept) < len(counts):
        return plan
    rows = f"{table.sql} WHERE {text} IN ({literals(kept)})"
    view = source.derive(table, f"SELECT * EXCLUDE ({quote(name)}) FROM {rows}")
    others = sum(counts.values()) - sum(counts[value] for value in kept)
    notes = (*plan.notes, Message("note.which_diagnoses", name=name))
    return replace(plan, table=view, removed={Message("ledger.no_diagnosis"): others}, notes=notes)


def read_code_titles(
    source: OpenedSource, table: SourceTable, code: str, description: str | None
) -> dict[str, str]:
    """Return the most common description of each code that has one."""
    if description is None:
        return {}
    picks = [f"trim({table.text_sql(name)})" for name in (code, description)]
    found = source.count_values(table, *picks, where=f"{picks[0]} <> '' AND {picks[1]} <> ''")
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
    source.rows(
        base,
        'CREATE OR REPLACE TEMP TABLE ids AS SELECT DISTINCT " record" AS id '
        f"FROM {base.sql} WHERE id IS NOT NULL ORDER BY id",
    )
    listed = source.batches(base, "SELECT CAST(id AS VARCHAR) AS id FROM ids ORDER BY rowid")
    ids = pa.chunked_array([batch.column(0) for batch in listed], pa.string()).combine_chunks()
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
    """Return the layout of a view with visit, patient, code, date and maybe age and sex."""
    age, sex = ("age", "sex") if "sex" in view.columns else (None, None)
    return Layout(kind, ("code",), "visit", patient="patient", age=age, sex=sex, date="date")


def count_long(source: OpenedSource, plan: Plan) -> dict[Raw, int]:
    """Return how often each raw code is mentioned."""
    return _count_codes(source, _name_columns(source, plan), plan).raws


def find_varying(source: OpenedSource, plan: Plan) -> Plan:
    """Return a plan with the columns that differ within records, for readers of its parts."""
    sql = f'SELECT * FROM ({_renamed_sql(plan)}) WHERE " record" IS NOT NULL'
    base = source.derive(plan.table, sql)
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
    return source.derive(table, sql)


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
    counts = 'count(*), count(" record")'
    sql = f'SELECT " version", " code", {counts} FROM {base.sql} GROUP BY ALL ORDER BY ALL'
    rows = source.rows(base, sql)
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


def _read_pairs(
    source: OpenedSource, base: SourceTable, codes: _Codes, vocabulary: Vocabulary
) -> Iterator[Pairs]:
    """Yield blocks of (record, raw code), of the codes that are usable."""
    usable: Mask = np.any(vocabulary.places >= 0, axis=1)
    source.connection.register("known", codes.texts(usable))
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
    varying = varying_columns(source, view, " record") if plan.varying is None else plan.varying
    # Of a column that differs within no record, or that is kept though it does, the smallest value.
    names = [quote(name) for name in view.columns if name not in (" record", *varying)]
    picks = ", ".join(['" record"', *(f"min({name}) AS {name}" for name in names)])
    grouped = source.batches(view, f"SELECT {picks} FROM {view.sql} GROUP BY 1 ORDER BY 1")
    covariates = pa.Table.from_batches(list(grouped)).drop_columns([" record"])
    own = [plan.layout.roles.get(name, name).strip() for name in varying]
    notes = [Message("note.differs_within", name=name) for name in own]
    plain = {name: one for name, one in meanings.items() if one.of is None}
    return cast_columns(covariates, plan.layout, plain), (*notes, *meaning_notes(meanings))


def _covariate_names(base: SourceTable) -> list[str]:
    return [name for name in base.columns if name not in _OWN_COLUMNS]


def _read_meanings(source: OpenedSource, base: SourceTable, plan: Plan) -> Mapping[str, Meanings]:
    """Return the meanings of texts; refuse unread days that leave the first visit unknown."""
    meanings = plan.meanings
    if meanings is None:
        meanings = read_roles(
            [name for name in _covariate_names(base) if base.columns[name] == "VARCHAR"],
            plan.layout,
            lambda name: count_texts(source, base, name),
            lambda name: are_numbers(source, base, name),
        )
    of_patients = plan.reader is READER and plan.unit == "patient" and plan.varying is None
    if of_patients and has_unread_dates(meanings):
        days = '" record" IS NOT NULL GROUP BY " record" HAVING min(date) < max(date) LIMIT 1'
        if source.has_rows(base, f"{base.sql} WHERE {days}"):
            raise undated_error(base.label, plan.layout.date)
    return meanings


def _map_values(
    source: OpenedSource,
    base: SourceTable,
    record: str,
    meanings: Mapping[str, Meanings],
    joins: str = "",
) -> SourceTable:
    """Return the covariates of each row, texts replaced by their values, and its record."""
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
    """Return the rows of the first malformed codes."""
    source.connection.register("malformed", codes.texts(vocabulary.malformed))
    rows = source.rows(
        base,
        f'SELECT place FROM (SELECT row_number() OVER () AS place, " code" FROM {base.sql}) '
        f'WHERE " code" IN (SELECT code FROM malformed) ORDER BY place LIMIT {PROBLEM_LIMIT}',
    )
    (column,) = layout.codes or ("",)
    reason = Message("ledger.not_of_system", system=vocabulary.system)
    return tuple(Problem(row + base.first_row - 1, column, reason) for (row,) in rows)


READER = Reader("long", _plan, read_long, count_long, by_code=True)


_CONCEPT_NAME = re.compile(r"[a-z]+_concept_id", re.IGNORECASE)  # a table of OMOP, read as one
_DATE = re.compile(r"\d{4}-\d\d-\d\d.*|\d\d?/\d\d?/\d{2,4}.*")


def find_code_columns(columns: Columns, kind: str) -> Columns:
    """Return the columns of a table of some kind, with those of its codes in the given layout."""
    given, sample = columns.given, columns.sample
    if given.codes or any(_CONCEPT_NAME.fullmatch(name) for name in columns.names):
        return columns
    taken = {*given.roles.values(), *names_matching(columns.names, NOT_CODE_OF_KIND_NAME)}
    # No ids, dates and descriptions.
    free = [
        name
        for name in columns.names
        if name not in taken and sample[name] and not all(map(_DATE.fullmatch, sample[name]))
    ]
    own_name = rf"^{re.escape(kind)}s?(_?code|_?cd)?(_?\d+)?$"
    patterns = (*KIND_CODE_NAMES.get(kind, (own_name,)), *KIND_CODE_NAMES["any"])
    known = {key for key, system in SYSTEMS.items() if system.kind == kind}
    found = [names_matching(free, re.compile(pattern)) for pattern in patterns]
    if not any(found):
        found = [[name for name in free if recognise(sample[name]).system in known]]
    if names := next(filter(None, found), None):
        # The first column, and those that differ from it in their number alone.
        stems = [re.sub(r"\d+", "", normalise_name(name)) for name in names]
        codes = tuple(n for n, stem in zip(names, stems, strict=True) if stem == stems[0])
        return replace(columns, given=replace(given, codes=codes))
    texts = names_matching(columns.names, re.compile(KIND_TEXT_NAMES.get(kind, "^$")))
    if texts and sample[texts[0]]:
        given = replace(given, codes=(texts[0],), kind=given.kind or "long")
        return replace(columns, given=given)
    if len(columns.flags) > 1 or (kind not in KIND_CODE_NAMES and columns.codes):
        return columns
    shown = list_names(columns.names)
    raise RecordsError("join.no_codes", table=columns.label, kind=kind, shown=shown)


def find_system(kind: str, codes: Mapping[str, int]) -> str | None:
    """Return the coding system of codes of a kind, None where the codes alone decide it.

    Drugs and procedures are of a system of their kind that lists them, or are kept as written.
    """
    known = [key for key, system in SYSTEMS.items() if system.kind == kind]
    if kind == "diagnosis" or not known:
        return None
    fit = fits(codes)
    best = max(known, key=lambda key: (fit[key].listed, fit[key].written))
    return best if fit[best].written > 0.8 and fit[best].listed > 0.5 else "opaque"


def read_code_names(source: OpenedSource, table: SourceTable, code: str) -> dict[str, str]:
    """Return the name of each code: the most common text of the columns that name codes.

    The column in which a code has the fewest names comes first, and the others where it has none.
    """
    texts = [c for c in table.columns if c != code and table.columns[c] == "VARCHAR"]
    pattern = re.compile("|".join((DESCRIPTION_NAME.pattern, *KIND_TEXT_NAMES.values())))
    key = f"trim({table.text_sql(code)})"
    ranked = []
    for column in names_matching(texts, pattern):
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
