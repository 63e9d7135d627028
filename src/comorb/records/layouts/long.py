"""Long: a row is one code of a record.

DuckDB numbers the records and the codes; only integers leave it, and NumPy sorts them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from comorb.errors import RecordsError
from comorb.model.arrays import Indices
from comorb.records.codes.vocabulary import Raw, Vocabulary
from comorb.records.layouts.assembly import Assembly, Encode, build_matrix
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.covariates import (
    are_numbers,
    as_read,
    counted,
    meanings_table,
    notes_of,
    read_roles,
    shown_names,
    typed,
    unite,
)
from comorb.records.layouts.description import Layout
from comorb.records.layouts.first import several_days, stay_text, undated
from comorb.records.layouts.plan import Plan, Reader
from comorb.records.ledger import PROBLEM_LIMIT, Ledger, Problem
from comorb.records.sources.duck import OpenedSource, SourceTable, as_text, literal, quoted
from comorb.records.sources.merging import summed, summed_by_first, summed_by_two
from comorb.records.values import TIME

_OWN = (" record", " code", " version")
_WRITTEN = pa.schema([("version", pa.string()), ("code", pa.string()), ("number", pa.int32())])


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


def _understand(source: OpenedSource, table: SourceTable, columns: Columns) -> Plan | None:
    """Return how to read a table with one code column and an id; cells may hold several codes."""
    asked = columns.given.kind == READER.kind
    if len(columns.codes) != 1:
        return None
    layout, notes = replace(columns.layout(READER.kind, columns.codes), part=None), []
    if not layout.ids and (key := _repeating_id(source, table, columns)):
        layout = replace(layout, record=key)
        notes.append(
            f"column {layout.record!r} repeats from row to row, so it was taken as the id of a "
            "record; name the id if it is another"
        )
    if columns.joined and (asked or columns.repeats(layout.record or layout.patient)):
        layout = replace(layout, separator=layout.separator or columns.separator)
    if not asked and (not layout.ids or (columns.joined and not layout.separator)):
        return None
    return _of_diagnoses(source, Plan(READER, table, layout, notes=tuple(notes)), columns)


def _repeating_id(source: OpenedSource, table: SourceTable, columns: Columns) -> str | None:
    """Return the column of no known name that repeats as the ids of records do.

    Where the rows of a record lie far apart, only the whole table tells.
    """
    if columns.repeating_id or not columns.unique_ids:
        return columns.repeating_id
    picks = ", ".join(f"count(DISTINCT {quoted(name)})" for name in columns.unique_ids)
    sql = f"SELECT count(*), {picks} FROM {table.sql}"
    ((rows, *different),) = source.ask_whole(table, sql, None)
    pairs = zip(different, columns.unique_ids, strict=True)
    return max((pair for pair in pairs if pair[0] < 0.8 * rows), default=(0, None))[1]


def _of_diagnoses(source: OpenedSource, plan: Plan, columns: Columns) -> Plan:
    """Return the plan for the diagnoses alone, one a row, with the names that the table has."""
    table, (code, *_) = plan.table, plan.layout.codes or ("",)
    if columns.kind_column:
        name, is_diagnosis = columns.kind_column
        text = as_text(name, table.columns[name])
        sql = f"SELECT {text}, count(*) FROM {table.sql} GROUP BY 1"
        counts = dict(source.ask_whole(table, sql, summed_by_first))
        kept = [value for value in counts if value is not None and is_diagnosis(value)]
        if 0 < len(kept) < len(counts):
            rule = f"{text} IN ({', '.join(map(literal, kept))})"
            sql = f"SELECT * EXCLUDE ({quoted(name)}) FROM {table.sql} WHERE {rule}"
            table = source.view(table.label, sql, table.text)
            others = sum(counts.values()) - sum(counts[value] for value in kept)
            note = f"column {name!r} says which codes are diagnoses; the others were left out"
            plan = replace(
                plan, table=table, removed={"not a diagnosis": others}, notes=(*plan.notes, note)
            )
    plan = replace(plan, titles=titles_of(source, table, code, columns.description))
    return _one_a_row(source, plan, code) if plan.layout.separator else plan


def _one_a_row(source: OpenedSource, plan: Plan, code: str) -> Plan:
    """Return the plan for a table with a row for each code of the cells."""
    table, mark = plan.table, literal((plan.layout.separator or "").strip() or " ")
    picks = ", ".join(
        f"unnest(string_split(coalesce({as_text(name, kind)}, ''), {mark})) AS {quoted(name)}"
        if name == code
        else quoted(name)
        for name, kind in table.columns.items()
    )
    ((rows,),) = source.ask_whole(table, f"SELECT count(*) FROM {table.sql}", summed)
    split = source.view(table.label, f"SELECT {picks} FROM {table.sql}", table.text)
    note = f"cells of column {code!r} hold several codes: {rows:,} rows were read as one a code"
    return replace(plan, table=split, notes=(*plan.notes, note))


def titles_of(
    source: OpenedSource, table: SourceTable, code: str, description: str | None
) -> dict[str, str]:
    """Return the most common description of each code that has one."""
    if description is None:
        return {}
    picks = [f"trim({as_text(name, table.columns[name])})" for name in (code, description)]
    found = source.ask_whole(
        table,
        f"SELECT {picks[0]} AS code, {picks[1]} AS title, count(*) FROM {table.sql} "
        "WHERE code <> '' AND title <> '' GROUP BY ALL",
        summed_by_two,
    )
    found.sort(key=lambda row: row[1], reverse=True)
    return {code: title for code, title, _ in sorted(found, key=lambda row: row[2])}


def read_long(source: OpenedSource, plan: Plan, encode: Encode) -> Assembly:
    """Read a table in which a row is one code of a record."""
    base = _base(source, plan)
    codes = _codes(source, base, plan)
    if not codes.rows:
        raise RecordsError(f"{base.label} holds no rows; export it again.")
    if not codes.lines.left("rows"):
        raise plan.without_ids()
    vocabulary = encode(codes.raws)
    ids = _ids(source, base)
    counts = np.fromiter(codes.raws.values(), np.int64, len(codes.raws))
    lost = vocabulary.lost(counts)
    malformed = lost.pop("malformed")
    written = int(counts[~vocabulary.missing].sum())
    pairs = _pairs(source, base, codes, vocabulary)
    matrix, once = build_matrix(vocabulary, len(ids), written - malformed, pairs)
    covariates, notes = _covariates(source, base, plan)
    ledger = codes.lines
    ledger = ledger.less("rows", "without a code", (ledger.left("rows") or 0) - written)
    ledger = ledger.less("rows", "malformed code", malformed)
    for reason, count in lost.items():
        ledger = ledger.less("rows", reason, count)
    usable = written - malformed - sum(lost.values())
    ledger = ledger.less("rows", "again in one record", usable - once)
    as_in_file = plan.reader is READER and not plan.removed and not plan.layout.separator
    own_rows = malformed and as_in_file
    problems = _problems(source, base, codes, vocabulary, plan.layout) if own_rows else ()
    ledger = Ledger(ledger.lines, problems, notes)
    return Assembly(matrix, ids, vocabulary, covariates, ledger).with_codes(plan.keep_empty)


def layout_of(kind: str, view: SourceTable) -> Layout:
    """Return the layout of a view with visit, patient, code, date and perhaps age and sex."""
    age, sex = ("age", "sex") if "sex" in view.columns else (None, None)
    return Layout(kind, ("code",), "visit", patient="patient", age=age, sex=sex, date="date")


def count_long(source: OpenedSource, plan: Plan) -> dict[Raw, int]:
    """Return how often each raw code is mentioned."""
    return _codes(source, _base(source, plan), plan).raws


def _base(source: OpenedSource, plan: Plan) -> SourceTable:
    """Return the table with its columns under known names; text is read once and kept."""
    table, layout, record = plan.table, plan.layout, plan.id_column
    (code,) = layout.codes or ("",)
    version = f"CAST({quoted(layout.version)} AS VARCHAR)" if layout.version else "NULL::VARCHAR"
    picks = [
        f'{quoted(record or "")} AS " record"',
        f'CAST({quoted(code)} AS VARCHAR) AS " code"',
        f'{version} AS " version"',
    ]
    others = [name for name in table.columns if name not in (record, code, layout.record)]
    for name, shown in shown_names(others, layout).items():
        value = as_read(name, table, layout)
        value = f"TRY_CAST({quoted(name)} AS DOUBLE)" if shown == "weight" else value
        picks.append(f"{value} AS {quoted(shown)}")
    sql = f"SELECT {', '.join(picks)} FROM {table.sql}"
    if table.text:
        source.rows(table, f"CREATE OR REPLACE TEMP TABLE base AS {sql}")
        sql = "SELECT * FROM base"
    return source.view(table.label, sql, table.text)


def _codes(source: OpenedSource, base: SourceTable, plan: Plan) -> _Codes:
    rows = source.rows(
        base,
        'SELECT " version", " code", count(*), count(" record") '
        f"FROM {base.sql} GROUP BY ALL ORDER BY ALL",
    )
    total, known = sum(row[2] for row in rows), sum(row[3] for row in rows)
    lines = Ledger().open("rows", "read", total + sum(plan.removed.values()))
    for rule, count in plan.removed.items():
        lines = lines.less("rows", rule, count)
    lines = lines.less("rows", "without an id", total - known)
    raws: dict[Raw, int] = {}
    numbers: dict[Raw, int] = {}
    written = []
    for version, text, _, count in rows:
        if text is not None and count:
            raw = (plan.edition(version), text)
            raws[raw] = raws.get(raw, 0) + count
            number = numbers.setdefault(raw, len(numbers))
            written.append({"version": version, "code": text, "number": number})
    return _Codes(pa.Table.from_pylist(written, _WRITTEN), raws, lines, total)


def _ids(source: OpenedSource, base: SourceTable) -> pa.Array:
    source.rows(
        base,
        'CREATE OR REPLACE TEMP TABLE ids AS SELECT DISTINCT " record" AS id '
        f"FROM {base.sql} WHERE id IS NOT NULL ORDER BY id",
    )
    batches = source.batches(base, "SELECT CAST(id AS VARCHAR) AS id FROM ids ORDER BY rowid")
    parts = [batch.column(0) for batch in batches]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


def _pairs(
    source: OpenedSource, base: SourceTable, codes: _Codes, vocabulary: Vocabulary
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield blocks of (record, raw code), of the codes that are usable."""
    usable = (vocabulary.places[codes.numbers] >= 0).any(axis=1)
    source.register("known", codes.written.filter(pa.array(usable)))
    for batch in source.batches(
        base,
        "SELECT CAST(ids.rowid AS INTEGER) AS record, known.number AS number "
        f'FROM {base.sql} AS base JOIN ids ON base." record" = ids.id '
        'JOIN known ON base." code" = known.code '
        'AND base." version" IS NOT DISTINCT FROM known.version',
    ):
        yield batch.column(0).to_numpy(), batch.column(1).to_numpy()


def _covariates(
    source: OpenedSource, base: SourceTable, plan: Plan
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the covariates of each record, and notes on what they hold."""
    names = [name for name in base.columns if name not in _OWN]
    if not names:
        return pa.table({}), ()
    texts = [name for name in names if base.columns[name] == "VARCHAR"]
    meanings = plan.meanings
    if meanings is None:
        meanings = read_roles(
            texts,
            plan.layout,
            lambda name: counted(source, base, name),
            lambda name: are_numbers(source, base, name),
        )
    of_patients = plan.reader is READER and plan.unit == "patient"
    if of_patients and stay_text(meanings) and several_days(source, base, " record"):
        raise undated(base.label, plan.layout.date)
    picks, joins = {name: f"base.{quoted(name)}" for name in names}, ""
    for place, name in enumerate(texts):
        if name in meanings and meanings[name].of is not None:
            source.register(f"meanings_{place}", meanings_table(meanings[name]))
            picks[name] = f"meanings_{place}.value"
            joins += (
                f" LEFT JOIN meanings_{place} ON meanings_{place}.text = "
                f"regexp_replace(base.{quoted(name)}, {literal(TIME)}, '')"
            )
    shown = ", ".join(f"{value} AS {quoted(name)}" for name, value in picks.items())
    view = source.view(
        base.label,
        f'SELECT ids.rowid AS " record", {shown} FROM {base.sql} AS base '
        f'JOIN ids ON base." record" = ids.id{joins}',
    )
    covariates, notes = unite(source, view, " record", plan.layout)
    plain = {name: one for name, one in meanings.items() if one.of is None}
    return typed(covariates, plan.layout, plain), (*notes, *notes_of(meanings))


def _problems(
    source: OpenedSource, base: SourceTable, codes: _Codes, vocabulary: Vocabulary, layout: Layout
) -> tuple[Problem, ...]:
    """Return where the first malformed codes stand."""
    malformed = vocabulary.malformed[codes.numbers]
    source.register("malformed", codes.written.filter(pa.array(malformed)))
    rows = source.rows(
        base,
        f'SELECT place FROM (SELECT row_number() OVER () AS place, " code" FROM {base.sql}) '
        f'WHERE " code" IN (SELECT code FROM malformed) ORDER BY place LIMIT {PROBLEM_LIMIT}',
    )
    (column,) = layout.codes or ("",)
    reason = f"not a code of {vocabulary.system}"
    return tuple(Problem(row + base.first_row - 1, column, reason) for (row,) in rows)


READER = Reader("long", _understand, read_long, count_long, by_code=True)
