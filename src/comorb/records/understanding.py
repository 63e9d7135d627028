"""Understanding: tables that workers read, understood by their first rows, and brought together."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from comorb.records.layouts.coded import with_codes_of
from comorb.records.layouts.plan import Plan
from comorb.records.layouts.readers import open_columns, plan_table
from comorb.records.preparation import Preparation
from comorb.records.sources.chunks import Spread
from comorb.records.sources.divided import Divided, NotInPartsError, divide
from comorb.records.sources.portion import Piece, Whole, of_the_head
from comorb.records.sources.shuffle import Bucket, Shuffle, buckets_of

_KINDS = ("wide", "long", "delimited", "binary", "omop")


@dataclass(frozen=True)
class Gathered:
    """A table whose rows were brought together: its name, label and columns, and notes on it."""

    name: str
    label: str
    schema: pa.Schema
    notes: tuple[str, ...]

    def piece(self, bucket: Bucket) -> Piece:
        """Return some of the rows."""
        return Piece(self.label, self.notes, *bucket.table(self.schema))


@dataclass(frozen=True)
class Understood:
    """What the first rows of a source tell: how it is read, and of which tables.

    The first table has the records.
    """

    preparation: Preparation
    whole: Whole
    plan: Plan
    tables: Mapping[str, Spread]

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that rows of the same record, or patient, have in common."""
        plan = self.plan
        patient, record = plan.keys or (plan.layout.patient, plan.layout.record)
        if (self.preparation.unit or plan.reader.unit) == "patient" and patient:
            return (patient,)
        return tuple(column for column in (patient, record) if column)

    def gathered(
        self, folder: str, executor: Executor | None
    ) -> tuple[tuple[Gathered, ...], list[tuple[Bucket, ...]]]:
        """Let workers bring rows together in a folder; return the tables, and what tasks read."""
        rows = next(iter(self.tables.values())).rows
        shuffle, tables, chunks = Shuffle(folder, self.keys, rows=rows), [], []
        for name, spread in self.tables.items():
            columns = self.plan.beside.get(name, ())
            own = replace(shuffle, keys=columns[:1], columns=columns) if columns else shuffle
            some, notes = spread.shuffled(own, executor)
            schema = spread.head.select(columns or spread.head.column_names).schema
            tables.append(Gathered(name, spread.label, schema, notes))
            chunks.append(some)
        return tuple(tables), buckets_of(shuffle, chunks, len(tables[0].schema))


def understand(
    records: Any, preparation: Preparation, kind: str, executor: Executor | None
) -> Understood | None:
    """Return what the first rows of records of a kind tell; None for what isn't read in parts."""
    divided = divide(records, preparation.table, executor)
    if divided is None:
        return None
    try:
        asked = replace(preparation, table=preparation.table or divided.table)
        return _understood(divided, asked, kind)
    except NotInPartsError:
        return None


def _understood(divided: Divided, preparation: Preparation, kind: str) -> Understood:
    whole = Whole(divided.label, tuple(divided.openers))
    tables: dict[str, Spread] = {}

    def head(name: str) -> Piece:
        one = tables[name] = divided.openers[name]()
        return Piece(one.label, one.notes, one.head, pa.array(range(1, len(one.head) + 1)))

    with whole.portion(head) as source:
        names = tuple(one.name for one in preparation.features)
        layout = replace(preparation.layout, features=names)
        table, columns = open_columns(source, preparation.table_in(source, kind), layout)
        if kind != "diagnosis":
            columns = with_codes_of(columns, kind)
        plan = plan_table(source, table, columns)
        if plan.reader.kind not in _KINDS:
            raise NotInPartsError
        whole = replace(whole, answers=of_the_head(source.found))
        return Understood(preparation, whole, plan, tables)
