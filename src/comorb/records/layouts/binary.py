"""Binary: a row is a record, with a column of yes and no for each code."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.plan import Plan
from comorb.records.layouts.rows import Mentions, row_reader
from comorb.records.values import yes_no


def _recognise(columns: Columns) -> Layout | None:
    """Return the layout of a table without code columns and with several of 0 and 1."""
    asked = columns.given.kind == "binary"
    if not asked and (columns.codes or len(columns.flags) < 2):
        return None
    return columns.layout("binary", columns.flags) if columns.flags else None


def _mention(mentions: Mentions, batch: pa.RecordBatch, plan: Plan) -> None:
    """Add the name of a column for each yes in it; an empty cell is a no."""
    for name in plan.layout.codes or ():
        column = batch.column(name).dictionary_encode()
        values = [bool(text.strip()) and yes_no(text) for text in column.dictionary.to_pylist()]
        if None in values:
            place = pc.index(column.indices, values.index(None)).as_py()
            row = place + mentions.read + plan.table.first_row
            raise RecordsError(
                f"{plan.table.label}, row {row:,}: the column {name!r} of a binary layout "
                "holds something other than 0 and 1; leave it out of the code columns."
            )
        truth = np.array([*values, False], dtype=bool)
        rows = np.flatnonzero(truth[pc.fill_null(column.indices, len(values)).to_numpy()])
        number = mentions.lookup([name], None)[0, 0]
        mentions.add(rows, np.full(len(rows), number), name)


READER = row_reader("binary", _recognise, _mention)
