"""Parts: records that don't fit in memory, read in parts that do.

The engine counts the codes and, where the rows of a record lie apart, sorts them; it uses the
disk when memory is short. Each part holds whole records and goes the way of any cohort.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from comorb.errors import RecordsError
from comorb.records.codes.vocabulary import Raw, Vocabulary
from comorb.records.cohort import Cohort
from comorb.records.layouts.assembly import Encode
from comorb.records.layouts.plan import Plan
from comorb.records.layouts.readers import plan_reading
from comorb.records.ledger import Ledger
from comorb.records.preparation import Preparation
from comorb.records.sources.duck import OpenedSource, SourceTable, quoted
from comorb.records.sources.opening import open_source, register_table

PART_ROWS = 1 << 18
_ROW = "row number"
_SIZE = re.compile(r"\s*([0-9.]+)\s*([KMGT]i?B)\s*", re.IGNORECASE)


@dataclass(frozen=True, eq=False)
class Part(Cohort):
    """Some of the records of a cohort: no rule has to leave any of them, and no code goes."""

    def _keep(self, mask: NDArray[np.bool_], rule: str) -> Cohort:
        return self._take(mask, rule)


@dataclass(frozen=True)
class _Rows:
    """The rows with an id: the id's column, whether a record's rows lie apart, how many have none.

    ``notes`` are for the ledger.
    """

    table: SourceTable
    key: str
    apart: bool
    without_id: int
    notes: tuple[str, ...] = ()


@contextmanager
def open_parts(
    source: Any, preparation: Preparation, memory: str | None = None
) -> Iterator[Iterator[Part]]:
    """Open a source as parts of one cohort, before any rule; all of them have the same codes.

    Parameters
    ----------
    source, preparation
        As in `Preparation.read`.
    memory : str, optional
        About the most to hold, such as '2GB'; a quarter of it is for the engine.
    """
    with open_source(source, _share(memory)) as opened:
        plan = plan_reading(
            opened,
            preparation.table,
            preparation.layout,
            preparation.unit,
            keep_empty=preparation.at_least == 0,
        )
        rows = _with_id(opened, plan)
        begun = Ledger(notes=rows.notes)
        if rows.without_id or plan.removed:
            gone = dict(plan.removed) | {"without an id": rows.without_id}
            begun = begun.open("rows", "read", sum(gone.values()))
            for rule, count in gone.items():
                begun = begun.less("rows", rule, count)
        layout = replace(plan.layout, record=_ROW) if rows.key == _ROW else plan.layout
        plan = replace(plan, table=rows.table, layout=layout, removed={})
        raws = plan.reader.count(opened, plan)
        vocabulary = plan.vocabulary(raws, preparation.system, preparation.level)
        encode = _encoder(raws, vocabulary)
        yield _cohorts(opened, plan, rows, begun, encode, preparation.level)


def _with_id(source: OpenedSource, plan: Plan) -> _Rows:
    """Return the rows that belong to a record."""
    table, layout = plan.table, plan.layout
    column = plan.id_column
    if column is None and plan.by_code:
        raise RecordsError(
            f"{table.label} has no column that was recognised as the id of a visit or a patient, "
            "which a long layout needs; name it."
        )
    apart = plan.by_code or plan.unit == "patient" or layout.part is not None
    if column is None:
        return _numbered(source, table)
    name = quoted(column)
    (counts,) = source.rows(table, f"SELECT count(*), count({name}) FROM {table.sql}")
    total, known = counts
    if not total:
        raise RecordsError(f"{table.label} holds no rows; export it again.")
    if not apart:
        distinct = f"SELECT count(*) FROM (SELECT {name} FROM {table.sql} GROUP BY 1) WHERE {name}"
        ((different,),) = source.rows(table, f"{distinct} IS NOT NULL")
        if different < known and column == layout.patient:
            return _numbered(source, table)
        if different < known:
            raise RecordsError(
                f"{table.label}: {known - different:,} rows repeat an id of column {column!r}, "
                "which must be unique when records are read in parts. Name the column that is "
                "unique, read with unit='patient' to unite them, or read without memory."
            )
    held = f"SELECT * FROM {table.sql} WHERE {name} IS NOT NULL"
    view = source.view(table.label, held, table.text) if known < total else table
    return _Rows(view, column, apart, total - known)


def _numbered(source: OpenedSource, table: SourceTable) -> _Rows:
    sql = f"SELECT row_number() OVER () AS {quoted(_ROW)}, * FROM {table.sql}"
    note = "no column holds a unique id: records go by row number"
    return _Rows(source.view(table.label, sql, table.text), _ROW, False, 0, (note,))


def _tables(source: OpenedSource, table: SourceTable, rows: _Rows) -> Iterator[pa.Table]:
    """Yield the rows of a table; all rows of a record are in the same one."""
    order = f" ORDER BY {quoted(rows.key)}" if rows.apart else ""
    held: list[pa.RecordBatch] = []
    for batch in source.batches(table, f"SELECT * FROM {table.sql}{order}", PART_ROWS):
        held.append(batch)
        if sum(map(len, held)) < PART_ROWS:
            continue
        whole = pa.Table.from_batches(held)
        end = len(whole)
        if rows.apart:
            end = pc.index(whole[rows.key], whole[rows.key][-1]).as_py()
        if end:
            yield whole.slice(0, end)
            held = whole.slice(end).combine_chunks().to_batches()
    if held:
        yield pa.Table.from_batches(held)


def _cohorts(
    source: OpenedSource,
    plan: Plan,
    rows: _Rows,
    begun: Ledger,
    encode: Encode,
    levels: tuple[str, ...],
) -> Iterator[Part]:
    """Yield the cohort of each part of the rows."""
    records = 0
    for table in _tables(source, plan.table, rows):
        with source.connection.cursor() as connection:
            own = OpenedSource(source.label, connection)
            read = register_table(own, plan.table.label, table)
            part = replace(plan, table=read)
            assembly = part.reader.read(own, part, encode)
            cohort = part.cohort(assembly, levels, Part)
        ledger = (cohort.ledger + begun).open("features", "read", len(cohort.codes))
        begun = Ledger()
        records += len(cohort)
        yield replace(cohort, ledger=ledger)
    plan.check_usable(records, assembly.vocabulary)


def _encoder(raws: dict[Raw, int], vocabulary: Vocabulary) -> Encode:
    """Return what finds the raw codes of a part in the vocabulary of all."""
    number = {raw: place for place, raw in enumerate(raws)}
    places = np.vstack([vocabulary.places, np.full_like(vocabulary.places[:1], -1)])
    malformed, missing = np.append(vocabulary.malformed, False), np.append(vocabulary.missing, True)

    def encode(some: dict[Raw, int]) -> Vocabulary:
        at = [number.get(raw, -1) for raw in some]
        return replace(vocabulary, places=places[at], malformed=malformed[at], missing=missing[at])

    return encode


def _share(memory: str | None) -> str | None:
    size = _SIZE.fullmatch(memory or "")
    return f"{float(size[1]) / 4}{size[2]}" if size else memory
