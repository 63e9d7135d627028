"""Wide and delimited: a row is a record, its codes in several columns or in one text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.model.arrays import Indices, Ints, Mask
from comorb.records.codes.vocabulary import Raw
from comorb.records.layouts.assembly import (
    Assembly,
    Encode,
    build_matrix,
    have_feature,
    matrix_from_grids,
)
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.covariates import (
    cast_columns,
    column_sql,
    covariate_names,
    meaning_notes,
    read_meanings,
    undated_error,
)
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.plan import Plan, Reader
from comorb.records.ledger import NO_UNIQUE_ID, PROBLEM_LIMIT, Ledger, Problem
from comorb.records.sources.duck import OpenedSource, SourceTable, quote


@dataclass(frozen=True)
class Identity:
    """The number of each row's record (-1: none), the ids of the records, and their column.

    Records are in the order of the rows, or, where rows are united, of their ids.
    """

    place: Ints
    ids: pa.Array
    column: str | None
    ledger: Ledger

    @property
    def by_row(self) -> bool:
        """Whether each row is the record of its number."""
        return len(self.ids) == len(self.place)


def identify(
    plan: Plan, others: pa.Table, mentions: Callable[[], tuple[Ints, Indices]], n: int
) -> Identity:
    """Return the record of each of a table's n rows.

    A repeated visit id is one record when a column numbers its parts, or when its rows agree on the
    patient and the stay; a duplicate when the rows are the same, and an error when they are not.
    """
    layout, column = plan.layout, plan.id_column
    ledger = Ledger().open("rows", Message("ledger.read"), n)
    if column is not None:
        values = others[column].combine_chunks()
        # In a sorted export each id is above the one before: then all differ.
        ordered = pc.less(values.slice(0, n - 1), values.slice(1))
        if not values.null_count and pc.all(ordered, min_count=0).as_py():
            return Identity(np.arange(n), values, column, ledger)
        codes = pc.dictionary_encode(values)
        distinct = len(codes.dictionary)
        several_visits = column == layout.patient and plan.unit == "visit" and distinct < n
        if not several_visits:
            if not distinct:
                raise plan.missing_ids_error()
            ledger = ledger.less("rows", Message("ledger.no_id"), values.null_count)
            numbers = pc.fill_null(codes.indices, -1).to_numpy().astype(np.int64)
            known = Identity(numbers, codes.dictionary, column, ledger)
            if distinct == n:
                return known
            if plan.has_several_rows:
                return _unite_rows(known)
            return _drop_repeated(plan, others, mentions(), known)
    ids = pa.array(np.arange(1, n + 1)).cast(pa.string())
    return Identity(np.arange(n), ids, None, ledger.noted(NO_UNIQUE_ID))


def _unite_rows(known: Identity) -> Identity:
    """Return records in the order of their ids, each with all of its rows."""
    order = pc.sort_indices(known.ids)
    rank = np.append(np.argsort(order.to_numpy()), -1)
    return replace(known, place=rank[known.place], ids=known.ids.take(order))


def _drop_repeated(
    plan: Plan, others: pa.Table, mentions: tuple[Ints, Indices], known: Identity
) -> Identity:
    """Leave out the rows that repeat an earlier one; unite unequal lines of a stay, or refuse."""
    order = np.argsort(known.place, kind="stable")
    ordered = known.place[order]
    again = np.flatnonzero((ordered[1:] == ordered[:-1]) & (ordered[1:] >= 0))
    earlier, later = order[again], order[again + 1]
    at, raws = mentions
    by_row = np.argsort(at, kind="stable")
    at, raws = at[by_row], raws[by_row]

    def codes(row: int) -> list[int]:
        start, end = np.searchsorted(at, (row, row + 1))
        return sorted(raws[start:end].tolist())

    for one, two in zip(earlier.tolist(), later.tolist(), strict=True):
        if codes(one) != codes(two) or not others.slice(one, 1).equals(others.slice(two, 1)):
            stays = others.select(plan.stay_columns)
            if stays.num_columns and stays.take(earlier).equals(stays.take(later)):
                n = len(np.unique(known.place[later]))
                note = Message(
                    "note.lines_of_stay", column=known.column, n=n, same=stays.column_names
                )
                return replace(_unite_rows(known), ledger=known.ledger.noted(note))
            label, first = plan.table.label, plan.table.first_row
            where = {"column": known.column, "one": one + first, "two": two + first}
            raise RecordsError("source.id_twice", table=label, **where)
    place = known.place.copy()
    place[later] = -1
    ledger = known.ledger.less("rows", Message("ledger.same_row"), len(later))
    return replace(known, place=place, ledger=ledger)


@dataclass
class Mentions:
    """The codes that rows mention.

    A batch of a wide table is a grid with the number of a raw code in each cell, or -1. Other
    layouts, and grids once they are flattened, have blocks of one column each.
    """

    numbers: dict[Raw, int] = field(default_factory=dict)
    blocks: list[tuple[Ints, Indices, str]] = field(default_factory=list)
    grids: list[Indices] = field(default_factory=list)
    read: int = 0

    def add(self, rows: Ints, raws: Indices, column: str) -> None:
        """Add a block of mentions; ``rows`` count from the rows read before."""
        self.blocks.append((rows + self.read, raws, column))

    def flatten(self, names: tuple[str, ...]) -> None:
        """Turn the grids into blocks."""
        start = 0
        for grid in self.grids:
            for name, column in zip(names, grid.T, strict=True):
                rows = np.flatnonzero(column >= 0)
                self.blocks.append((rows + start, column[rows], name))
            start += len(grid)
        self.grids = []

    def counts(self) -> Ints:
        """Return how often each raw code is mentioned."""
        total = np.zeros(len(self.numbers), dtype=np.int64)
        for grid in self.grids:
            total += np.bincount(grid.ravel() + 1, minlength=len(total) + 1)[1:]
        for _, raws, _ in self.blocks:
            total += np.bincount(raws, minlength=len(total))
        return total

    def flat(self, names: tuple[str, ...]) -> tuple[Ints, Indices]:
        """Return the rows and raw codes of all mentions."""
        self.flatten(names)
        if not self.blocks:
            return np.zeros(0, np.int64), np.zeros(0, np.int32)
        rows, raws, _ = zip(*self.blocks, strict=True)
        return np.concatenate(rows), np.concatenate(raws)

    def keep(self, place: Ints) -> None:
        """Leave out the mentions in rows that belong to no record."""
        for number, (rows, raws, column) in enumerate(self.blocks):
            kept = place[rows] >= 0
            self.blocks[number] = (rows[kept], raws[kept], column)

    def cells(self, marked: Mask) -> list[tuple[int, str]]:
        """Return the row and the column of the first cells, by row, that hold marked raw codes."""
        cells = [
            (row, name)
            for rows, raws, name in self.blocks
            for row in rows[marked[raws]][:PROBLEM_LIMIT].tolist()
        ]
        return sorted(cells, key=lambda cell: cell[0])[:PROBLEM_LIMIT]

    def lookup(
        self, values: list[str | None], plan: Plan, versions: pa.DictionaryArray | None = None
    ) -> Indices:
        """Return the numbers of a batch's codes, -1 for none, in a row for each version."""
        texts = [None] if versions is None else versions.dictionary.to_pylist()
        numbers = self.numbers
        table = [
            [
                -1 if value is None else numbers.setdefault((system, value), len(numbers))
                for value in values
            ]
            for system in map(plan.edition, texts)
        ]
        return np.array(table, dtype=np.int32)


AddMentions = Callable[[Mentions, pa.RecordBatch, Plan], None]


def make_row_reader(
    kind: str,
    recognise: Callable[[Columns], Layout | None],
    mention: AddMentions,
    least_codes: int = 3,
) -> Reader:
    """Return the reader of a layout in which a row is a record, or, by patient, a part of one.

    ``recognise`` returns the layout of a table by its columns, or None when it has another;
    ``mention`` adds the codes that the rows of a batch mention.
    """

    def plan(source: OpenedSource, table: SourceTable, columns: Columns) -> Plan | None:
        layout = recognise(columns)
        return None if layout is None else Plan(reader, table, layout)

    read, count = partial(_read_rows, mention), partial(_count_codes, mention)
    reader = Reader(kind, plan, read, count, least_codes=least_codes)
    return reader


def _read_rows(mention: AddMentions, source: OpenedSource, plan: Plan, encode: Encode) -> Assembly:
    names = plan.layout.codes or ()
    mentions, others = _scan_rows(mention, source, plan)
    known = identify(plan, others, lambda: mentions.flat(names), mentions.read)
    if not known.by_row:
        mentions.flatten(names)
        mentions.keep(known.place)
    counts = mentions.counts()
    vocabulary = encode(dict(zip(mentions.numbers, counts.tolist(), strict=True)))
    if mentions.grids:
        matrix, once = matrix_from_grids(vocabulary, mentions.grids)
    else:
        blocks = ((known.place[rows], raws) for rows, raws, _ in mentions.blocks)
        matrix, once = build_matrix(vocabulary, len(known.ids), int(counts.sum()), blocks)
    held = plan.keep_empty | have_feature(matrix, vocabulary)
    used = int((held if known.by_row else held[known.place[known.place >= 0]]).sum())
    left = known.ledger.left("rows") or 0
    ledger = known.ledger.less("rows", Message("ledger.no_usable_code"), left - used)
    written = int(counts[~vocabulary.missing].sum())
    ledger = ledger.open("codes", Message("ledger.found"), written)
    for reason, count in vocabulary.lost(counts).items():
        ledger = ledger.less("codes", reason, count)
        written -= count
    ledger = ledger.less("codes", Message("ledger.again"), written - once)
    if vocabulary.malformed.any():
        reason = Message("ledger.not_of_system", system=vocabulary.system)
        mentions.flatten(names)
        first = plan.table.first_row
        cells = mentions.cells(vocabulary.malformed)
        problems = tuple(Problem(row + first, name, reason) for row, name in cells)
        ledger = replace(ledger, problems=problems)
    covariates, notes = _read_covariates(plan, others, known)
    assembly = Assembly(matrix, known.ids, vocabulary, covariates, ledger.noted(*notes))
    return assembly.drop_empty(plan.keep_empty)


def _count_codes(mention: AddMentions, source: OpenedSource, plan: Plan) -> dict[Raw, int]:
    """Count the raw codes batch by batch, in memory that doesn't grow with the rows."""
    mentions, layout, table = Mentions(), plan.layout, plan.table
    total: Ints = np.zeros(0, dtype=np.int64)
    names = [*(layout.codes or ()), *([layout.version] if layout.version else [])]
    if not names:
        return {}
    texts = ", ".join(f"{table.text_sql(name)} AS {quote(name)}" for name in names)
    for batch in source.batches(table, f"SELECT {texts} FROM {table.sql}"):
        mention(mentions, batch, plan)
        counts = mentions.counts()
        counts[: len(total)] += total
        total = counts
        mentions = Mentions(mentions.numbers, read=mentions.read + batch.num_rows)
    return dict(zip(mentions.numbers, total.tolist(), strict=True))


def _scan_rows(mention: AddMentions, source: OpenedSource, plan: Plan) -> tuple[Mentions, pa.Table]:
    """Return the mentions of codes, and the other columns."""
    table, layout = plan.table, plan.layout
    codes = layout.codes or ()
    others = [name for name in table.columns if name not in {*codes, *layout.ignored}]
    picks = [f"{table.text_sql(name)} AS {quote(name)}" for name in codes]
    picks += [f"{column_sql(name, table, layout)} AS {quote(name)}" for name in others]
    sql = f"SELECT {', '.join(picks)} FROM {table.sql}"
    mentions, batches = Mentions(), []
    for batch in source.batches(table, sql):
        mention(mentions, batch, plan)
        batches.append(batch.select(others))
        mentions.read += batch.num_rows
    if not mentions.read:
        raise RecordsError("source.no_rows", table=table.label)
    return mentions, pa.Table.from_batches(batches)


def _read_versions(batch: pa.RecordBatch, layout: Layout) -> pa.DictionaryArray | None:
    """Return the version column of a batch, if there is one; null is a text, too."""
    if layout.version is None:
        return None
    texts = batch.column(layout.version).cast(pa.string())
    return texts.dictionary_encode(null_encoding="encode")


def _read_covariates(
    plan: Plan, others: pa.Table, known: Identity
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the covariates of each record, those of its first row by date, and notes on them."""
    if known.column is not None:
        others = others.drop_columns([known.column])
    names = covariate_names(others.column_names, plan.layout)
    others = others.select(list(names)).rename_columns(list(names.values()))
    meanings = read_meanings(others, plan.layout) if plan.meanings is None else plan.meanings
    others = cast_columns(others, plan.layout, meanings)
    if others.num_columns and len(known.ids) != others.num_rows:
        rows = np.flatnonzero(known.place >= 0)
        dates = others["date"].type if "date" in others.column_names else None
        if dates and not pa.types.is_temporal(dates) and plan.unit == "patient":
            raise undated_error(plan.table.label, plan.layout.date)
        if dates and pa.types.is_temporal(dates):
            order = pc.sort_indices(others, [("date", "ascending")]).to_numpy()
            rows = order[known.place[order] >= 0]
        first = np.empty(len(known.ids), dtype=np.int64)
        first[known.place[rows[::-1]]] = rows[::-1]
        others = others.take(pa.array(first))
    return others, meaning_notes(meanings)


def _recognise_delimited(columns: Columns) -> Layout | None:
    """Return the layout of a table with a row a record, and several codes in a cell."""
    alone = len(columns.codes) == 1 and columns.given.kind == "delimited"
    if not (alone or columns.holds_lists):
        return None
    layout = columns.layout("delimited", columns.codes)
    if columns.given.kind is None and columns.repeats(layout.record):
        return None
    return replace(layout, separator=layout.separator or columns.separator)


def _add_delimited_codes(mentions: Mentions, batch: pa.RecordBatch, plan: Plan) -> None:
    """Add the codes of each text."""
    for name in plan.layout.codes or ():
        _add_column_of_lists(mentions, batch, plan, name)


def _add_column_of_lists(mentions: Mentions, batch: pa.RecordBatch, plan: Plan, name: str) -> None:
    mark = plan.layout.separator or ";"
    text = batch.column(name)
    lists = pc.utf8_split_whitespace(text) if mark == " " else pc.split_pattern(text, mark)
    parents = pc.list_parent_indices(lists)
    versions = _read_versions(batch, plan.layout)
    versions = None if versions is None else versions.take(parents)
    flat = pc.list_flatten(lists).dictionary_encode()
    lookup = mentions.lookup(flat.dictionary.to_pylist(), plan, versions)
    held = np.flatnonzero(flat.indices.is_valid().to_numpy(zero_copy_only=False))
    version: Any = -1 if versions is None else versions.indices.to_numpy()[held]
    raws = lookup[version, flat.indices.drop_null().to_numpy()]
    mentions.add(parents.to_numpy()[held].astype(np.int64), raws, name)


DELIMITED = make_row_reader("delimited", _recognise_delimited, _add_delimited_codes)


def _recognise_wide(columns: Columns) -> Layout | None:
    """Return the layout of a table with several code columns, or with one and no id."""
    if not columns.codes:
        return None
    layout = columns.layout("wide", columns.codes)
    alone = len(columns.codes) == 1 and (columns.holds_lists or layout.ids or columns.repeating_id)
    return None if alone and columns.given.kind is None else layout


def _add_wide_codes(mentions: Mentions, batch: pa.RecordBatch, plan: Plan) -> None:
    """Add a grid with the number of the code in each cell."""
    names = plan.layout.codes or ()
    texts = pa.chunked_array([batch.column(name) for name in names], pa.string())
    encoded = texts.dictionary_encode(null_encoding="encode")
    versions = _read_versions(batch, plan.layout)
    version = -1 if versions is None else versions.indices.to_numpy()
    lookup = mentions.lookup(encoded.chunk(0).dictionary.to_pylist(), plan, versions)
    grid = np.empty((batch.num_rows, len(names)), dtype=np.int32)
    for j, column in enumerate(encoded.chunks):
        grid[:, j] = lookup[version, column.indices.to_numpy()]
    mentions.grids.append(grid)


WIDE = make_row_reader("wide", _recognise_wide, _add_wide_codes)
