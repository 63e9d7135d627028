"""Row-wise layouts, in which a row is a record: wide, delimited and binary."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from comorb.errors import RecordsError
from comorb.model.arrays import Ints
from comorb.records.codes.vocabulary import Raw, Vocabulary
from comorb.records.layouts.assembly import (
    Assembly,
    Encode,
    build_matrix,
    matrix_of_grids,
    without_empty,
)
from comorb.records.layouts.covariates import renamed, typed
from comorb.records.layouts.identity import Identity, identify
from comorb.records.layouts.layout import Layout, edition
from comorb.records.ledger import PROBLEM_LIMIT, Ledger, Problem
from comorb.records.sources.duck import Source, Table, as_text, quoted

_TRUE = {"1", "1.0", "true"}
_FALSE = {"0", "0.0", "false", ""}


@dataclass
class _Rows:
    """The mentions of codes, and the other columns of each row.

    A wide batch is a grid, the number of a raw code in each cell or -1; the mentions of other
    layouts, and of grids once they are flattened, are in blocks of one column each.
    """

    numbers: dict[Raw, int] = field(default_factory=dict)
    at: list[Ints] = field(default_factory=list)
    raws: list[NDArray[np.int32]] = field(default_factory=list)
    grids: list[NDArray[np.int32]] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    others: list[pa.RecordBatch] = field(default_factory=list)
    read: int = 0

    def add(self, at: Ints, raws: NDArray[np.int32], column: str) -> None:
        """Add a block of mentions; ``at`` counts from the rows read before."""
        self.at.append(at + self.read)
        self.raws.append(raws)
        self.columns.append(column)

    def flatten(self, names: tuple[str, ...]) -> None:
        """Turn the grids into blocks."""
        start = 0
        for grid in self.grids:
            for name, column in zip(names, grid.T, strict=True):
                at = np.flatnonzero(column >= 0)
                self.at.append(at + start)
                self.raws.append(column[at])
                self.columns.append(name)
            start += len(grid)
        self.grids = []

    def counts(self) -> Ints:
        """Return how often each raw code is mentioned."""
        total = np.zeros(len(self.numbers), dtype=np.int64)
        for grid in self.grids:
            total += np.bincount(grid.ravel() + 1, minlength=len(total) + 1)[1:]
        for raws in self.raws:
            total += np.bincount(raws, minlength=len(total))
        return total

    def mentions(self, names: tuple[str, ...]) -> tuple[Ints, NDArray[np.int32]]:
        """Return the rows and raw codes of all mentions."""
        self.flatten(names)
        return np.concatenate(self.at), np.concatenate(self.raws)

    def keep(self, place: Ints) -> None:
        """Leave out the mentions in rows that belong to no record."""
        held = [place[at] >= 0 for at in self.at]
        self.at = [at[mask] for at, mask in zip(self.at, held, strict=True)]
        self.raws = [raws[mask] for raws, mask in zip(self.raws, held, strict=True)]

    def cells(self, marked: NDArray[np.bool_]) -> list[tuple[int, str]]:
        """Return the row and the column of the first cells, by row, that hold marked raw codes."""
        found = [
            (row, name)
            for at, raws, name in zip(self.at, self.raws, self.columns, strict=True)
            for row in at[marked[raws]][:PROBLEM_LIMIT].tolist()
        ]
        return sorted(found, key=lambda cell: cell[0])[:PROBLEM_LIMIT]

    def number(self, edition_: str | None, code: str) -> int:
        """Return the number of a raw code, a new one when it is new."""
        return self.numbers.setdefault((edition_, code), len(self.numbers))

    def lookup(self, values: list[str], editions: pa.DictionaryArray | None) -> NDArray[np.int32]:
        """Return the numbers of a batch's codes, a row for each edition and one for none."""
        said = [] if editions is None else [edition(v) for v in editions.dictionary.to_pylist()]
        known = self.numbers
        table = [
            [known.setdefault((one, value), len(known)) for value in values]
            for one in (*said, None)
        ]
        return np.array(table, dtype=np.int32)


def read_rowwise(
    source: Source, table: Table, layout: Layout, unit: str, encode: Encode
) -> Assembly:
    """Read a table in which a row is a record, or, by patient, a part of one."""
    rows = _read(source, table, layout)
    others = pa.Table.from_batches(rows.others)
    names = layout.codes or ()
    known = identify(table, layout, unit, others, lambda: rows.mentions(names), rows.read)
    if not known.by_row:
        rows.flatten(names)
        rows.keep(known.place)
    counts = rows.counts()
    vocabulary = encode(dict(zip(rows.numbers, counts.tolist(), strict=True)))
    if rows.grids:
        matrix, once = matrix_of_grids(vocabulary, rows.grids)
    else:
        blocks = zip((known.place[at] for at in rows.at), rows.raws, strict=True)
        matrix, once = build_matrix(vocabulary, len(known.ids), int(counts.sum()), blocks)
    matrix, held = without_empty(matrix)
    ledger = _ledger(known, held, vocabulary, counts, once)
    if vocabulary.malformed.any():
        reason = f"not a code of {vocabulary.system}"
        rows.flatten(names)
        cells = rows.cells(vocabulary.malformed)
        problems = tuple(Problem(row + table.first_row, name, reason) for row, name in cells)
        ledger = replace(ledger, problems=problems)
    covariates = _covariates(layout, others, known)
    return Assembly(matrix, known.ids, vocabulary, covariates, ledger).holding(held)


def _ledger(
    known: Identity, held: NDArray[np.bool_], vocabulary: Vocabulary, counts: Ints, once: int
) -> Ledger:
    """Continue the rows and account for the codes, the records and the features."""
    ledger, kept = known.ledger, int(held.sum())
    used = kept if known.by_row else int(held[known.place[known.place >= 0]].sum())
    ledger = ledger.less("rows", "without a usable code", (ledger.left("rows") or 0) - used)
    found = int(counts[~vocabulary.missing].sum())
    malformed = int(counts[vocabulary.malformed].sum())
    ledger = ledger.open("codes", "found", found)
    ledger = ledger.less("codes", "malformed", malformed)
    ledger = ledger.less("codes", "again in one record", found - malformed - once)
    ledger = ledger.open("records", "read", len(held))
    ledger = ledger.less("records", "without a usable code", len(held) - kept)
    return ledger.open("features", "read", len(vocabulary.codes))


def _covariates(layout: Layout, others: pa.Table, known: Identity) -> pa.Table:
    """Return the covariates of each record: those of its first row, by date where there is one."""
    if known.column is not None:
        others = others.drop_columns([known.column])
    others = typed(renamed(others, layout), layout)
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
    held = set(codes)
    named = [name for name in table.columns if name not in held]
    ids = {layout.record, layout.patient}
    picks = [f"{as_text(name, table.columns[name])} AS {quoted(name)}" for name in codes]
    picks += [
        f"{as_text(name, table.columns[name])} AS {quoted(name)}" if name in ids else quoted(name)
        for name in named
    ]
    sql = f"SELECT {', '.join(picks)} FROM {table.sql}"
    for batch in source.batches(table, sql):
        _mentions(table, rows, batch, layout)
        rows.others.append(batch.select(named))
        rows.read += batch.num_rows
    if not rows.read:
        raise RecordsError(f"{table.label} holds no rows; export it again.")
    return rows


def count_codes(source: Source, table: Table, layout: Layout) -> dict[Raw, int]:
    """Return how often each raw code is mentioned, in memory that does not grow with the rows."""
    rows = _Rows()
    total: Ints = np.zeros(0, dtype=np.int64)
    names = [*(layout.codes or ()), *([layout.version] if layout.version else [])]
    picks = ", ".join(f"{as_text(name, table.columns[name])} AS {quoted(name)}" for name in names)
    if layout.kind == "binary":
        picks = ", ".join(map(quoted, names))
    for batch in source.batches(table, f"SELECT {picks} FROM {table.sql}"):
        _mentions(table, rows, batch, layout)
        counts = rows.counts()
        counts[: len(total)] += total
        total = counts
        rows = _Rows(numbers=rows.numbers, read=rows.read + batch.num_rows)
    return dict(zip(rows.numbers, total.tolist(), strict=True))


def _mentions(table: Table, rows: _Rows, batch: pa.RecordBatch, layout: Layout) -> None:
    if layout.kind == "binary":
        _flags(table, rows, batch, layout.codes or ())
    elif layout.kind == "delimited":
        _delimited(rows, batch, layout)
    else:
        _grid(rows, batch, layout)


def _grid(rows: _Rows, batch: pa.RecordBatch, layout: Layout) -> None:
    codes = layout.codes or ()
    columns = pa.chunked_array([batch.column(name) for name in codes], pa.string())
    encoded = columns.dictionary_encode()
    editions = _editions(batch, layout)
    lookup = rows.lookup(encoded.chunk(0).dictionary.to_pylist(), editions)
    lookup = np.pad(lookup, ((0, 0), (0, 1)), constant_values=-1)
    said: Any = -1
    if editions is not None:
        said = pc.fill_null(editions.indices, len(lookup) - 1).to_numpy()
    grid = np.empty((batch.num_rows, len(codes)), dtype=np.int32)
    for j, column in enumerate(encoded.chunks):
        places = pc.fill_null(column.indices, lookup.shape[1] - 1).to_numpy()
        grid[:, j] = lookup[-1][places] if editions is None else lookup[said, places]
    rows.grids.append(grid)


def _editions(batch: pa.RecordBatch, layout: Layout) -> pa.DictionaryArray | None:
    if layout.version is None:
        return None
    return batch.column(layout.version).cast(pa.string()).dictionary_encode()


def _delimited(rows: _Rows, batch: pa.RecordBatch, layout: Layout) -> None:
    (name,) = layout.codes or ("",)
    mark = layout.separator or ";"
    text = batch.column(name)
    lists = pc.utf8_split_whitespace(text) if mark == " " else pc.split_pattern(text, mark)
    parents = pc.list_parent_indices(lists)
    editions = _editions(batch, layout)
    editions = None if editions is None else editions.take(parents)
    flat = pc.list_flatten(lists).dictionary_encode()
    lookup = rows.lookup(flat.dictionary.to_pylist(), editions)
    held = np.flatnonzero(flat.indices.is_valid().to_numpy(zero_copy_only=False))
    said: Any = -1
    if editions is not None:
        said = pc.fill_null(editions.indices, len(lookup) - 1).to_numpy()[held]
    raws = lookup[said, flat.indices.drop_null().to_numpy()]
    rows.add(parents.to_numpy()[held].astype(np.int64), raws, name)


def _flags(table: Table, rows: _Rows, batch: pa.RecordBatch, codes: tuple[str, ...]) -> None:
    for name in codes:
        column = batch.column(name).dictionary_encode()
        values = [str(value).strip().lower() for value in column.dictionary.to_pylist()]
        for local, value in enumerate(values):
            if value not in _TRUE | _FALSE:
                row = pc.index(column.indices, local).as_py() + rows.read + table.first_row
                raise RecordsError(
                    f"{table.label}, row {row:,}: the column {name!r} of a binary layout holds "
                    "something other than 0 and 1; leave it out of the code columns."
                )
        truth = np.array([value in _TRUE for value in values] + [False])
        at = np.flatnonzero(truth[pc.fill_null(column.indices, len(values)).to_numpy()])
        rows.add(at, np.full(len(at), rows.number(None, name), dtype=np.int32), name)
