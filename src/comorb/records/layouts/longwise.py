"""Long layouts, in which a row is one code of a record: long, OMOP and FHIR.

The engine numbers the records and the codes; only integers leave it, and NumPy sorts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from comorb.errors import RecordsError
from comorb.records.codes.vocabulary import Raw, Vocabulary
from comorb.records.layouts.assembly import Assembly, Encode, build_matrix, without_empty
from comorb.records.layouts.covariates import shown_names, typed, united
from comorb.records.layouts.identity import id_column
from comorb.records.layouts.layout import Layout, edition
from comorb.records.ledger import PROBLEM_LIMIT, Ledger, Problem
from comorb.records.sources.duck import Source, Table, as_text, quoted


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


def read_long(
    source: Source,
    table: Table,
    layout: Layout,
    unit: str,
    encode: Encode,
    removed: Mapping[str, int],
) -> Assembly:
    """Read a table in which a row is one code of a record; ``removed`` rows are already out."""
    base = _base(source, table, layout, unit)
    codes = _codes(source, base, removed)
    vocabulary = encode(codes.raws)
    ids = _ids(source, base)
    counts = np.fromiter(codes.raws.values(), np.int64, len(codes.raws))
    malformed = int(counts[vocabulary.malformed].sum())
    written = int(counts[~vocabulary.missing].sum())
    pairs = _pairs(source, base, codes, vocabulary)
    matrix, once = build_matrix(vocabulary, len(ids), written - malformed, pairs)
    matrix, held = without_empty(matrix)
    covariates, notes = _covariates(source, base, layout)
    ledger = codes.lines
    ledger = ledger.less("rows", "without a code", (ledger.left("rows") or 0) - written)
    ledger = ledger.less("rows", "malformed code", malformed)
    ledger = ledger.less("rows", "again in one record", written - malformed - once)
    ledger = ledger.open("records", "read", len(ids))
    ledger = ledger.less("records", "without a usable code", len(ids) - int(held.sum()))
    ledger = ledger.open("features", "read", len(vocabulary.codes))
    told = malformed and layout.kind == "long"
    problems = _problems(source, base, codes, vocabulary, layout) if told else ()
    ledger = Ledger(ledger.lines, problems, notes)
    return Assembly(matrix, ids, vocabulary, covariates, ledger).holding(held)


def count_long(source: Source, table: Table, layout: Layout, unit: str) -> dict[Raw, int]:
    """Return how often each raw code is mentioned."""
    return _codes(source, _base(source, table, layout, unit), {}).raws


def _base(source: Source, table: Table, layout: Layout, unit: str) -> Table:
    """Return the table with its columns under known names; text is read once and kept."""
    record = id_column(table, layout, unit)
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
        number = shown in ("age", "weight")
        value = f"TRY_CAST({quoted(name)} AS DOUBLE)" if number else quoted(name)
        value = as_text(name, table.columns[name]) if name == layout.patient else value
        picks.append(f"{value} AS {quoted(shown)}")
    sql = f"SELECT {', '.join(picks)} FROM {table.sql}"
    if table.text:
        source.run(table, f"CREATE TEMP TABLE base AS {sql}")
        sql = "SELECT * FROM base"
    return source.view(table.label, sql, table.text)


def _codes(source: Source, base: Table, removed: Mapping[str, int]) -> _Codes:
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
    of = []
    for version, text, _, count in written:
        raw = (None if version is None else edition(version), text)
        of.append(numbers.setdefault(raw, len(numbers)))
        raws[raw] = raws.get(raw, 0) + count
    versions, texts = [row[0] for row in written], [row[1] for row in written]
    return _Codes(versions, texts, np.array(of, dtype=np.int64), raws, lines)


def _ids(source: Source, base: Table) -> pa.Array:
    source.run(
        base,
        'CREATE TEMP TABLE ids AS SELECT DISTINCT " record" AS id '
        f"FROM {base.sql} WHERE id IS NOT NULL ORDER BY id",
    )
    batches = source.batches(base, "SELECT CAST(id AS VARCHAR) AS id FROM ids ORDER BY rowid")
    parts = [batch.column(0) for batch in batches]
    return pa.concat_arrays(parts) if parts else pa.array([], pa.string())


def _pairs(
    source: Source, base: Table, codes: _Codes, vocabulary: Vocabulary
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Yield blocks of (record, raw code), of the codes that are usable."""
    fit = np.flatnonzero(vocabulary.places[codes.numbers, 0] >= 0)
    known = pa.table(
        {
            "version": pa.array([codes.versions[i] for i in fit], pa.string()),
            "code": pa.array([codes.texts[i] for i in fit], pa.string()),
            "number": pa.array(codes.numbers[fit].astype(np.int32)),
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


def _covariates(source: Source, base: Table, layout: Layout) -> tuple[pa.Table, tuple[str, ...]]:
    hidden = (" record", " code", " version")
    names = [name for name in base.columns if name not in hidden]
    if not names:
        return pa.table({}), ()
    view = source.view(
        base.label,
        f'SELECT ids.rowid AS " record", {", ".join(f"base.{quoted(name)}" for name in names)} '
        f'FROM {base.sql} AS base JOIN ids ON base." record" = ids.id',
    )
    covariates, notes = united(source, view, " record")
    return typed(covariates, layout), notes


def _problems(
    source: Source, base: Table, codes: _Codes, vocabulary: Vocabulary, layout: Layout
) -> tuple[Problem, ...]:
    bad = np.flatnonzero(vocabulary.malformed[codes.numbers])
    source.connection.register("bad", pa.table({"code": [codes.texts[i] for i in bad]}))
    rows = source.rows(
        base,
        f'SELECT place FROM (SELECT row_number() OVER () AS place, " code" FROM {base.sql}) '
        f'WHERE " code" IN (SELECT code FROM bad) ORDER BY place LIMIT {PROBLEM_LIMIT}',
    )
    (column,) = layout.codes or ("",)
    reason = f"not a code of {vocabulary.system}"
    return tuple(Problem(row + base.first_row - 1, column, reason) for (row,) in rows)
