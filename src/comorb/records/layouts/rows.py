"""Rows: what the layouts share in which a row is a record."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from comorb.errors import RecordsError
from comorb.model.arrays import Indices, Ints, Mask
from comorb.records.codes.vocabulary import Raw, Vocabulary
from comorb.records.layouts.assembly import (
    Assembly,
    Encode,
    build_matrix,
    matrix_of_grids,
    with_feature,
)
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.covariates import as_read, meanings_of, notes_of, shown_names, typed
from comorb.records.layouts.description import Layout
from comorb.records.layouts.first import by_day
from comorb.records.layouts.identity import Identity, identify
from comorb.records.layouts.plan import Plan, Reader
from comorb.records.ledger import PROBLEM_LIMIT, Ledger, Problem
from comorb.records.sources.duck import OpenedSource, SourceTable, as_text, quoted


@dataclass
class Mentions:
    """The codes that rows mention.

    A batch of a wide table is a grid, the number of a raw code in each cell or -1; the mentions of
    other layouts, and of grids once they are flattened, are in blocks of one column each.
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


Mention = Callable[[Mentions, pa.RecordBatch, Plan], None]


def row_reader(
    kind: str,
    recognise: Callable[[Columns], Layout | None],
    mention: Mention,
    least_codes: int = 3,
) -> Reader:
    """Return the reader of a layout in which a row is a record, or, by patient, a part of one.

    ``recognise`` returns the layout of a table by its columns, or None when it isn't laid out so;
    ``mention`` adds the codes that the rows of a batch mention.
    """

    def understand(source: OpenedSource, table: SourceTable, columns: Columns) -> Plan | None:
        layout = recognise(columns)
        return None if layout is None else Plan(reader, table, layout)

    read, count = partial(_read, mention), partial(_count, mention)
    reader = Reader(kind, understand, read, count, least_codes=least_codes)
    return reader


def _read(mention: Mention, source: OpenedSource, plan: Plan, encode: Encode) -> Assembly:
    names = plan.layout.codes or ()
    mentions, others = _scan(mention, source, plan)
    known = identify(plan, others, lambda: mentions.flat(names), mentions.read)
    if not known.by_row:
        mentions.flatten(names)
        mentions.keep(known.place)
    counts = mentions.counts()
    vocabulary = encode(dict(zip(mentions.numbers, counts.tolist(), strict=True)))
    if mentions.grids:
        matrix, once = matrix_of_grids(vocabulary, mentions.grids)
    else:
        blocks = ((known.place[rows], raws) for rows, raws, _ in mentions.blocks)
        matrix, once = build_matrix(vocabulary, len(known.ids), int(counts.sum()), blocks)
    held = plan.keep_empty | with_feature(matrix, vocabulary)
    ledger = _ledger(known, held, vocabulary, counts, once)
    if vocabulary.malformed.any():
        reason = f"not a code of {vocabulary.system}"
        mentions.flatten(names)
        first = plan.table.first_row
        cells = mentions.cells(vocabulary.malformed)
        problems = tuple(Problem(row + first, name, reason) for row, name in cells)
        ledger = replace(ledger, problems=problems)
    covariates, notes = _covariates(plan, others, known)
    assembly = Assembly(matrix, known.ids, vocabulary, covariates, ledger.noted(*notes))
    return assembly.with_codes(plan.keep_empty)


def _count(mention: Mention, source: OpenedSource, plan: Plan) -> dict[Raw, int]:
    """Count the raw codes batch by batch, in memory that doesn't grow with the rows."""
    mentions, layout = Mentions(), plan.layout
    total: Ints = np.zeros(0, dtype=np.int64)
    names = [*(layout.codes or ()), *([layout.version] if layout.version else [])]
    if not names:
        return {}
    sql = f"SELECT {_texts(plan, names)} FROM {plan.table.sql}"
    for batch in source.batches(plan.table, sql):
        mention(mentions, batch, plan)
        counts = mentions.counts()
        counts[: len(total)] += total
        total = counts
        mentions = Mentions(mentions.numbers, read=mentions.read + batch.num_rows)
    return dict(zip(mentions.numbers, total.tolist(), strict=True))


def _scan(mention: Mention, source: OpenedSource, plan: Plan) -> tuple[Mentions, pa.Table]:
    """Return the mentions of codes, and the other columns."""
    table, layout = plan.table, plan.layout
    codes = layout.codes or ()
    aside = {*codes, *layout.ignored}
    others = [name for name in table.columns if name not in aside]
    picks = [f"{as_read(name, table, layout)} AS {quoted(name)}" for name in others]
    texts = [_texts(plan, codes)] if codes else []
    sql = f"SELECT {', '.join([*texts, *picks])} FROM {table.sql}"
    mentions, batches = Mentions(), []
    for batch in source.batches(table, sql):
        mention(mentions, batch, plan)
        batches.append(batch.select(others))
        mentions.read += batch.num_rows
    if not mentions.read:
        raise RecordsError(f"{table.label} holds no rows; export it again.")
    return mentions, pa.Table.from_batches(batches)


def versions_of(batch: pa.RecordBatch, layout: Layout) -> pa.DictionaryArray | None:
    """Return what the version column of a batch says, if there is one; nothing is a text, too."""
    if layout.version is None:
        return None
    said = batch.column(layout.version).cast(pa.string())
    return said.dictionary_encode(null_encoding="encode")


def _texts(plan: Plan, names: tuple[str, ...] | list[str]) -> str:
    columns = plan.table.columns
    return ", ".join(f"{as_text(name, columns[name])} AS {quoted(name)}" for name in names)


def _ledger(known: Identity, held: Mask, vocabulary: Vocabulary, counts: Ints, once: int) -> Ledger:
    """Continue the rows and account for the codes."""
    ledger = known.ledger
    used = int((held if known.by_row else held[known.place[known.place >= 0]]).sum())
    ledger = ledger.less("rows", "without a usable code", (ledger.left("rows") or 0) - used)
    written = int(counts[~vocabulary.missing].sum())
    lost = vocabulary.lost(counts)
    ledger = ledger.open("codes", "found", written)
    for reason, count in lost.items():
        ledger = ledger.less("codes", reason, count)
    return ledger.less("codes", "again in one record", written - sum(lost.values()) - once)


def _covariates(plan: Plan, others: pa.Table, known: Identity) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the covariates of each record, those of its first row by date, and notes on them."""
    if known.column is not None:
        others = others.drop_columns([known.column])
    names = shown_names(others.column_names, plan.layout)
    others = others.select(list(names)).rename_columns(list(names.values()))
    meanings = plan.meanings
    if meanings is None:
        meanings = meanings_of(others, plan.layout)
    others = typed(others, plan.layout, meanings)
    if others.num_columns and len(known.ids) != others.num_rows:
        rows = np.flatnonzero(known.place >= 0)
        dates = others["date"].type if "date" in others.column_names else None
        if dates and (plan.unit == "patient" or pa.types.is_temporal(dates)):
            order = by_day(others, plan.table.label, plan.layout.date).to_numpy()
            rows = order[known.place[order] >= 0]
        first = np.empty(len(known.ids), dtype=np.int64)
        first[known.place[rows[::-1]]] = rows[::-1]
        others = others.take(pa.array(first))
    return others, notes_of(meanings)
