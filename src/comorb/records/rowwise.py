"""Row-wise layouts, in which a row is a record: wide, delimited and binary."""

# ruff: noqa: S608 (every name and text is quoted)
from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from comorb.errors import RecordsError
from comorb.records.assembly import Assembly, Encode, Keys, without_empty
from comorb.records.covariates import renamed, typed
from comorb.records.engine import Source, Table, as_text, quoted
from comorb.records.identity import Identity, identify
from comorb.records.layouts import Layout, edition
from comorb.records.ledger import PROBLEM_LIMIT, Ledger, Problem
from comorb.records.vocabulary import Raw, Vocabulary

_TRUE = {"1", "1.0", "true"}
_FALSE = {"0", "0.0", "false", ""}

Ints = NDArray[np.int64]
Pairs = tuple[Ints, NDArray[np.int32], NDArray[np.uint16]]


@dataclass
class _Rows:
    """The mentions of codes as (row, raw code, column), and the other columns of each row."""

    numbers: dict[Raw, int] = field(default_factory=dict)
    pairs: list[Pairs] = field(default_factory=list)
    others: list[pa.RecordBatch] = field(default_factory=list)
    read: int = 0

    def mentions(self) -> Pairs:
        """Return all pairs as three arrays."""
        none = (np.empty(0, np.int64), np.empty(0, np.int32), np.empty(0, np.uint16))
        at, raws, columns = zip(*(self.pairs or [none]), strict=True)
        return np.concatenate(at), np.concatenate(raws), np.concatenate(columns)

    def number(self, edition_: str | None, code: str) -> int:
        return self.numbers.setdefault((edition_, code), len(self.numbers))


def read_rowwise(
    source: Source, table: Table, layout: Layout, unit: str, encode: Encode
) -> Assembly:
    """Read a table in which a row is a record, or, by patient, a part of one."""
    rows = _read(source, table, layout)
    at, raws, columns = rows.mentions()
    others = pa.Table.from_batches(rows.others)
    known = identify(table, layout, unit, others, (at, raws), rows.read)
    inside = known.place[at] >= 0
    at, raws, columns = at[inside], raws[inside], columns[inside]
    counts = np.bincount(raws, minlength=len(rows.numbers))
    vocabulary = encode({raw: n for raw, n in zip(rows.numbers, counts.tolist(), strict=True) if n})
    raws = (np.cumsum(counts > 0) - 1).astype(np.int32)[raws]
    records = known.place[at]
    keys = Keys(len(vocabulary.codes), len(raws) * vocabulary.places.shape[1])
    for places in vocabulary.places.T:
        keys.add(records, places[raws])
    matrix, held = without_empty(keys.matrix(len(known.ids)))
    bad = np.flatnonzero(vocabulary.malformed[raws])[:PROBLEM_LIMIT]
    reason = f"not a code of {vocabulary.system}"
    names = layout.codes or ()
    ledger = replace(
        _ledger(known, held, vocabulary, raws, records),
        problems=tuple(
            Problem(int(at[i]) + table.first_row, names[columns[i]], reason) for i in bad
        ),
    )
    kept = pa.array(held)
    covariates = _covariates(layout, others, known)
    covariates = covariates.filter(kept) if covariates.num_columns else covariates
    return Assembly(matrix, known.ids.filter(kept), vocabulary, covariates, ledger)


def _ledger(
    known: Identity,
    held: NDArray[np.bool_],
    vocabulary: Vocabulary,
    raws: NDArray[np.int32],
    records: Ints,
) -> Ledger:
    """Continue the rows and account for the codes, the records and the features."""
    ledger, kept = known.ledger, int(held.sum())
    used = int(held[known.place[known.place >= 0]].sum())
    ledger = ledger.less("rows", "without a usable code", (ledger.left("rows") or 0) - used)
    written = ~vocabulary.missing[raws]
    fit = written & ~vocabulary.malformed[raws]
    found, usable = int(written.sum()), int(fit.sum())
    once = Keys(len(vocabulary.codes), usable)
    once.add(records[fit], vocabulary.places[raws[fit], 0])
    ledger = ledger.open("codes", "found", found)
    ledger = ledger.less("codes", "malformed", found - usable)
    ledger = ledger.less("codes", "again in one record", usable - once.matrix(len(held)).nnz)
    ledger = ledger.open("records", "read", len(held))
    ledger = ledger.less("records", "without a usable code", len(held) - kept)
    return ledger.open("features", "read", len(vocabulary.codes))


def _covariates(layout: Layout, others: pa.Table, known: Identity) -> pa.Table:
    """Return the covariates of each record: those of its first row, by date where there is one."""
    if known.column is not None:
        others = others.drop_columns([known.column])
    others = typed(renamed(others, layout))
    if not others.num_columns or len(known.ids) == others.num_rows:
        return others
    rows = np.flatnonzero(known.place >= 0)
    if "date" in others.column_names:
        order = pc.sort_indices(others, [("date", "ascending")])
        rows = order.to_numpy()[known.place[order.to_numpy()] >= 0]
    first = np.empty(len(known.ids), dtype=np.int64)
    first[known.place[rows[::-1]]] = rows[::-1]
    return others.take(pa.array(first))


def _read(source: Source, table: Table, layout: Layout) -> _Rows:
    rows = _Rows()
    codes = layout.codes or ()
    named = [name for name in table.columns if name not in codes]
    ids = {layout.record, layout.patient}
    picks = [f"{as_text(name, table.columns[name])} AS {quoted(name)}" for name in codes]
    picks += [
        f"CAST({quoted(name)} AS VARCHAR) AS {quoted(name)}" if name in ids else quoted(name)
        for name in named
    ]
    sql = f"SELECT {', '.join(picks)} FROM {table.sql}"
    with ThreadPoolExecutor() as pool:
        for batch in source.batches(table, sql):
            if layout.kind == "binary":
                rows.pairs.extend(_flags(table, rows, batch, codes))
            elif layout.kind == "delimited":
                rows.pairs.append(_delimited(rows, batch, layout))
            else:
                rows.pairs.append(_cells(rows, batch, layout, pool))
            rows.others.append(batch.select(named))
            rows.read += batch.num_rows
    if not rows.read:
        raise RecordsError(f"{table.label} holds no rows; export it again.")
    return rows


def _cells(rows: _Rows, batch: pa.RecordBatch, layout: Layout, pool: ThreadPoolExecutor) -> Pairs:
    codes = layout.codes or ()
    encoded = list(pool.map(lambda name: batch.column(name).dictionary_encode(), codes))
    editions = _editions(batch, layout)
    cells = np.empty((batch.num_rows, len(codes)), dtype=np.int32)
    for j, column in enumerate(encoded):
        cells[:, j] = _numbers(rows, column, editions)
    at, columns = np.nonzero(cells >= 0)
    return at + rows.read, cells[at, columns], columns.astype(np.uint16)


def _editions(batch: pa.RecordBatch, layout: Layout) -> pa.DictionaryArray | None:
    if layout.version is None:
        return None
    return batch.column(layout.version).cast(pa.string()).dictionary_encode()


def _numbers(
    rows: _Rows, column: pa.DictionaryArray, editions: pa.DictionaryArray | None
) -> NDArray[np.int32]:
    """Return the number of each cell's raw code, -1 for an empty cell."""
    values = column.dictionary.to_pylist()
    local = pc.fill_null(column.indices, len(values)).to_numpy()
    if editions is None:
        known = [rows.number(None, value) for value in values]
        return np.asarray(np.array([*known, -1], dtype=np.int32)[local])
    said = [edition(value) for value in editions.dictionary.to_pylist()] + [None]
    which = pc.fill_null(editions.indices, len(said) - 1).to_numpy()
    both, back = np.unique(which * (len(values) + 1) + local, return_inverse=True)
    table = [
        -1 if v == len(values) else rows.number(said[e], values[v])
        for e, v in zip(*divmod(both, len(values) + 1), strict=True)
    ]
    return np.asarray(np.array(table, dtype=np.int32)[back])


def _delimited(rows: _Rows, batch: pa.RecordBatch, layout: Layout) -> Pairs:
    (name,) = layout.codes or ("",)
    text = batch.column(name)
    mark = layout.separator or ";"
    lists = pc.utf8_split_whitespace(text) if mark == " " else pc.split_pattern(text, mark)
    parents = pc.list_parent_indices(lists).to_numpy()
    editions = _editions(batch, layout)
    flat = pc.list_flatten(lists).dictionary_encode()
    raws = _numbers(rows, flat, None if editions is None else editions.take(pa.array(parents)))
    held = raws >= 0
    at = parents[held].astype(np.int64) + rows.read
    return at, raws[held], np.zeros(len(at), dtype=np.uint16)


def _flags(
    table: Table, rows: _Rows, batch: pa.RecordBatch, codes: tuple[str, ...]
) -> Iterator[Pairs]:
    for j, name in enumerate(codes):
        column = batch.column(name).dictionary_encode()
        values = [str(value).strip().lower() for value in column.dictionary.to_pylist()]
        raw = rows.number(None, name)
        for local, value in enumerate(values):
            if value not in _TRUE | _FALSE:
                row = pc.index(column.indices, local).as_py() + rows.read + table.first_row
                raise RecordsError(
                    f"{table.label}, row {row:,}: the column {name!r} of a binary layout holds "
                    "something other than 0 and 1; leave it out of the code columns."
                )
        truth = np.array([value in _TRUE for value in values] + [False])
        at = np.flatnonzero(truth[pc.fill_null(column.indices, len(values)).to_numpy()])
        yield (
            at + rows.read,
            np.full(len(at), raw, dtype=np.int32),
            np.full(len(at), j, dtype=np.uint16),
        )
