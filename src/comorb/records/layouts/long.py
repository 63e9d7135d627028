"""Long: a row is one code of a record.

DuckDB numbers the records and the codes; only integers leave it, and NumPy sorts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from comorb.errors import RecordsError
from comorb.records.codes.systems import edition
from comorb.records.codes.vocabulary import Raw, Vocabulary
from comorb.records.layouts.assembly import Assembly, Encode, build_matrix, without_empty
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.covariates import (
    as_read,
    counted,
    meanings_table,
    notes_of,
    read_roles,
    shown_names,
    typed,
    unite,
)
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.plan import Plan, Reader
from comorb.records.ledger import PROBLEM_LIMIT, Ledger, Problem
from comorb.records.sources.duck import OpenedSource, SourceTable, literal, quoted
from comorb.records.values import TIME

_OWN = (" record", " code", " version")


@dataclass(frozen=True)
class _Codes:
    """The distinct codes as written, with the version beside them, and the rows of each.

    ``numbers`` says which raw code each is, as two spellings of a version are one edition.
    """

    versions: list[str | None]
    texts: list[str]
    numbers: NDArray[np.int64]
    raws: dict[Raw, int]
    lines: Ledger


def _understand(source: OpenedSource, table: SourceTable, columns: Columns) -> Plan | None:
    """Return how to read a table with one code column and an id that repeats."""
    asked = columns.given.kind == READER.kind
    if not columns.codes or not (asked or len(columns.codes) == 1):
        return None
    layout = replace(columns.layout(READER.kind, columns.codes), part=None)
    notes = []
    if not layout.ids and not asked and columns.key:
        layout = replace(layout, record=columns.key)
        notes.append(
            f"column {columns.key!r} repeats from row to row, so it was taken as the id of a record"
        )
    if not layout.ids and not asked:
        return None
    if columns.joined:
        if not (asked or columns.repeats(layout.record or layout.patient)):
            return None
        layout = replace(layout, separator=layout.separator or columns.separator)
    return _narrowed(source, Plan(READER, table, layout, notes=tuple(notes)), columns)


def _narrowed(source: OpenedSource, plan: Plan, columns: Columns) -> Plan:
    """Return the plan for the diagnoses alone, one a row, with the names that the table has."""
    table, (code, *_) = plan.table, plan.layout.codes or ("",)
    removed, notes = dict(plan.removed), list(plan.notes)
    if columns.other_kinds and columns.given.codes is None:
        name, said = columns.other_kinds
        kept = f"CAST({quoted(name)} AS VARCHAR) IN ({', '.join(map(literal, said))})"
        ((others,),) = source.rows(table, f"SELECT count(*) FROM {table.sql} WHERE NOT ({kept})")
        removed["not a diagnosis"] = others
        notes.append(f"column {name!r} says which codes are diagnoses; the others were left out")
        table = source.view(table.label, f"SELECT * FROM {table.sql} WHERE {kept}", table.text)
    titles = _titles(source, table, code, columns.description)
    if plan.layout.separator:
        mark = literal(plan.layout.separator.strip() or " ")
        ((rows,),) = source.rows(table, f"SELECT count(*) FROM {table.sql}")
        others = ", ".join(quoted(name) for name in table.columns if name != code)
        cells = f"unnest(string_split(CAST({quoted(code)} AS VARCHAR), {mark})) AS {quoted(code)}"
        sql = f"SELECT {', '.join(filter(None, [others, cells]))} FROM {table.sql}"
        table = source.view(table.label, sql, table.text)
        notes.append(f"cells of column {code!r} hold several codes, so that {rows:,} rows are more")
    return replace(plan, table=table, removed=removed, titles=titles, notes=tuple(notes))


def _titles(
    source: OpenedSource, table: SourceTable, code: str, description: str | None
) -> dict[str, str]:
    """Return the most common description of each code that has one."""
    if description is None:
        return {}
    text = f"trim(CAST({quoted(description)} AS VARCHAR))"
    return dict(
        source.rows(
            table,
            f"SELECT trim(CAST({quoted(code)} AS VARCHAR)) AS code, mode({text}) "
            f"FROM {table.sql} WHERE code IS NOT NULL AND {text} <> '' GROUP BY 1",
        )
    )


def read_long(source: OpenedSource, plan: Plan, encode: Encode) -> Assembly:
    """Read a table in which a row is one code of a record."""
    base = _base(source, plan)
    codes = _codes(source, base, plan.removed)
    vocabulary = encode(codes.raws)
    ids = _ids(source, base)
    counts = np.fromiter(codes.raws.values(), np.int64, len(codes.raws))
    malformed = int(counts[vocabulary.malformed].sum())
    written = int(counts[~vocabulary.missing].sum())
    pairs = _pairs(source, base, codes, vocabulary)
    matrix, once = build_matrix(vocabulary, len(ids), written - malformed, pairs)
    matrix, held = without_empty(matrix, plan.keep_empty)
    covariates, notes = _covariates(source, base, plan)
    ledger = codes.lines
    ledger = ledger.less("rows", "without a code", (ledger.left("rows") or 0) - written)
    ledger = ledger.less("rows", "malformed code", malformed)
    ledger = ledger.less("rows", "again in one record", written - malformed - once)
    ledger = ledger.open("records", "read", len(ids))
    ledger = ledger.less("records", "without a usable code", len(ids) - int(held.sum()))
    ledger = ledger.open("features", "read", len(vocabulary.codes))
    own_rows = malformed and plan.reader is READER
    problems = _problems(source, base, codes, vocabulary, plan.layout) if own_rows else ()
    ledger = Ledger(ledger.lines, problems, notes)
    return Assembly(matrix, ids, vocabulary, covariates, ledger).holding(held)


def layout_of(kind: str, view: SourceTable) -> Layout:
    """Return the layout of a view with visit, patient, code, date and perhaps age and sex."""
    age, sex = ("age", "sex") if "sex" in view.columns else (None, None)
    return Layout(kind, ("code",), "visit", patient="patient", age=age, sex=sex, date="date")


def count_long(source: OpenedSource, plan: Plan) -> dict[Raw, int]:
    """Return how often each raw code is mentioned."""
    return _codes(source, _base(source, plan), {}).raws


def _base(source: OpenedSource, plan: Plan) -> SourceTable:
    """Return the table with its columns under known names; text is read once and kept."""
    table, layout, record = plan.table, plan.layout, plan.id_column
    if record is None:
        raise RecordsError(
            f"{table.label} has no column that was recognised as the id of a visit or a patient, "
            "which a long layout needs; name it."
        )
    (code,) = layout.codes or ("",)
    version = f"CAST({quoted(layout.version)} AS VARCHAR)" if layout.version else "NULL::VARCHAR"
    picks = [
        f'{quoted(record)} AS " record"',
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
        source.run(table, f"CREATE TEMP TABLE base AS {sql}")
        sql = "SELECT * FROM base"
    return source.view(table.label, sql, table.text)


def _codes(source: OpenedSource, base: SourceTable, removed: Mapping[str, int]) -> _Codes:
    rows = source.rows(
        base,
        'SELECT " version", " code", count(*), count(" record") '
        f"FROM {base.sql} GROUP BY ALL ORDER BY ALL",
    )
    total, known = sum(row[2] for row in rows), sum(row[3] for row in rows)
    if not total:
        raise RecordsError(f"{base.label} holds no rows; export it again.")
    lines = Ledger().open("rows", "read", total + sum(removed.values()))
    for rule, count in removed.items():
        lines = lines.less("rows", rule, count)
    lines = lines.less("rows", "without an id", total - known)
    written = [row for row in rows if row[1] is not None and row[3]]
    numbers: dict[Raw, int] = {}
    raws: dict[Raw, int] = {}
    number_of_text = []
    for version, text, _, count in written:
        raw = (None if version is None else edition(version), text)
        number_of_text.append(numbers.setdefault(raw, len(numbers)))
        raws[raw] = raws.get(raw, 0) + count
    versions, texts = [row[0] for row in written], [row[1] for row in written]
    return _Codes(versions, texts, np.array(number_of_text, dtype=np.int64), raws, lines)


def _ids(source: OpenedSource, base: SourceTable) -> pa.Array:
    source.run(
        base,
        'CREATE TEMP TABLE ids AS SELECT DISTINCT " record" AS id '
        f"FROM {base.sql} WHERE id IS NOT NULL ORDER BY id",
    )
    batches = source.batches(base, "SELECT CAST(id AS VARCHAR) AS id FROM ids ORDER BY rowid")
    parts = [batch.column(0) for batch in batches]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


def _pairs(
    source: OpenedSource, base: SourceTable, codes: _Codes, vocabulary: Vocabulary
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield blocks of (record, raw code), of the codes that are usable."""
    usable = np.flatnonzero(vocabulary.places[codes.numbers, 0] >= 0)
    known = pa.table(
        {
            "version": pa.array([codes.versions[i] for i in usable], pa.string()),
            "code": pa.array([codes.texts[i] for i in usable], pa.string()),
            "number": pa.array(codes.numbers[usable].astype(np.int32)),
        }
    )
    source.connection.register("known", known)
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
        meanings = read_roles(texts, plan.layout, lambda name: counted(source, base, name))
    picks, joins = {name: f"base.{quoted(name)}" for name in names}, ""
    for role in ("age", "sex", "date"):
        if role in texts and role in meanings and meanings[role].of is not None:
            source.connection.register(f"{role}_meanings", meanings_table(meanings[role]))
            picks[role] = f"{role}_meanings.value"
            joins += (
                f" LEFT JOIN {role}_meanings ON {role}_meanings.text = "
                f"regexp_replace(base.{quoted(role)}, {literal(TIME)}, '')"
            )
    shown = ", ".join(f"{value} AS {quoted(name)}" for name, value in picks.items())
    view = source.view(
        base.label,
        f'SELECT ids.rowid AS " record", {shown} FROM {base.sql} AS base '
        f'JOIN ids ON base." record" = ids.id{joins}',
    )
    covariates, notes = unite(source, view, " record")
    plain = {name: one for name, one in meanings.items() if one.of is None}
    return typed(covariates, plan.layout, plain), (*notes, *notes_of(meanings))


def _problems(
    source: OpenedSource, base: SourceTable, codes: _Codes, vocabulary: Vocabulary, layout: Layout
) -> tuple[Problem, ...]:
    """Return where the first malformed codes stand."""
    malformed = np.flatnonzero(vocabulary.malformed[codes.numbers])
    texts = pa.table({"code": [codes.texts[i] for i in malformed]})
    source.connection.register("malformed", texts)
    rows = source.rows(
        base,
        f'SELECT place FROM (SELECT row_number() OVER () AS place, " code" FROM {base.sql}) '
        f'WHERE " code" IN (SELECT code FROM malformed) ORDER BY place LIMIT {PROBLEM_LIMIT}',
    )
    (column,) = layout.codes or ("",)
    reason = f"not a code of {vocabulary.system}"
    return tuple(Problem(row + base.first_row - 1, column, reason) for (row,) in rows)


READER = Reader("long", _understand, read_long, count_long, by_code=True)
