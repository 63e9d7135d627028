"""Binary: a row is a record, with a column of yes and no for each item."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.plan import Plan
from comorb.records.layouts.rows import Mentions, row_reader
from comorb.records.sources.duck import OpenedSource, SourceTable, as_text
from comorb.records.values import is_missing, yes_no

ONE_TWO = {"1", "2", "1.0", "2.0"}


def _recognise(columns: Columns) -> Layout | None:
    """Return the layout of a table without code columns and with several of yes and no."""
    asked = columns.given.kind == "binary"
    if not asked and (columns.codes or len(columns.flags) < 2):
        return None
    return columns.layout("binary", columns.flags) if columns.flags else None


def settle_items(source: OpenedSource, plan: Plan) -> Plan:
    """Return the plan once it is known what stands for yes, and that no cell is missing.

    Where no item has a no at all, an empty cell is one; where items are written 1 and 2, 2 is a
    yes unless the layout says otherwise. Both are told.
    """
    values = _values(source, plan.table, plan.layout.codes or ())
    written = {text for texts in values.values() for text in texts if text and not is_missing(text)}
    yes, notes = plan.layout.yes, list(plan.notes)
    if yes is None and written and written <= ONE_TWO and not written <= {"1", "1.0"}:
        yes = "2"
        notes.append("items are written 1 and 2: 2 was read as yes; say what yes is if it is 1")
    blank = {
        name: sum(n for t, n in texts.items() if is_missing(t)) for name, texts in values.items()
    }
    if any(blank.values()):
        if any(_is_yes(text, yes) is False for text in written):
            name = max(blank, key=lambda item: blank[item])
            raise RecordsError(
                f"{plan.table.label}: {sum(map(bool, blank.values())):,} items have empty cells, "
                f"{name!r} in {blank[name]:,} rows. Empty is missing, not no, and missing items "
                "can't be read yet: leave out these columns or rows, or write 0 where it is a no."
            )
        notes.append("no item is written as no: empty cells were read as no")
    return replace(plan, layout=replace(plan.layout, yes=yes), notes=tuple(notes))


def _values(
    source: OpenedSource, table: SourceTable, names: tuple[str, ...]
) -> dict[str, dict[str, int]]:
    """Return the distinct texts of each item, '' for null, and how often each occurs."""
    counted = {}
    for name in names:
        text = f"coalesce({as_text(name, table.columns[name])}, '')"
        sql = f"SELECT {text}, count(*) FROM {table.sql} GROUP BY 1"
        counted[name] = dict(source.rows(table, sql))
    return counted


def _is_yes(text: str, yes: str | None) -> bool | None:
    plain = text.strip().lower().removesuffix(".0")
    if yes is None:
        return yes_no(plain)
    return plain == yes.strip().lower() or (False if plain in ("0", "1", "2") else yes_no(plain))


def _mention(mentions: Mentions, batch: pa.RecordBatch, plan: Plan) -> None:
    """Add the name of a column for each yes in it."""
    for name in plan.layout.codes or ():
        column = batch.column(name).dictionary_encode()
        values = [
            not is_missing(text) and _is_yes(text, plan.layout.yes)
            for text in column.dictionary.to_pylist()
        ]
        if None in values:
            place = pc.index(column.indices, values.index(None)).as_py()
            row = place + mentions.read + plan.table.first_row
            raise RecordsError(
                f"{plan.table.label}, row {row:,}: the column {name!r} of a binary layout "
                "holds something other than 0 and 1; leave it out of the code columns."
            )
        truth = np.array([*values, False], dtype=bool)
        rows = np.flatnonzero(truth[pc.fill_null(column.indices, len(values)).to_numpy()])
        number = mentions.number(None, name)
        mentions.add(rows, np.full(len(rows), number, dtype=np.int32), name)


READER = row_reader("binary", _recognise, _mention, least_codes=0)
