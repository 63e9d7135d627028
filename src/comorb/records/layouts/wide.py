"""Wide: a row is a record, its codes in several columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from comorb.records.layouts.columns import Columns
from comorb.records.layouts.description import Layout
from comorb.records.layouts.plan import Plan
from comorb.records.layouts.rows import Mentions, row_reader, versions_of


def _recognise(columns: Columns) -> Layout | None:
    """Return the layout of a table with several code columns, or with one and no id."""
    if not columns.codes:
        return None
    layout = columns.layout("wide", columns.codes)
    alone = len(columns.codes) == 1 and (columns.joined or layout.ids or columns.repeating_id)
    return None if alone and columns.given.kind is None else layout


def _mention(mentions: Mentions, batch: pa.RecordBatch, plan: Plan) -> None:
    """Add a grid with the number of the code in each cell."""
    names = plan.layout.codes or ()
    texts = pa.chunked_array([batch.column(name) for name in names], pa.string())
    encoded = texts.dictionary_encode(null_encoding="encode")
    versions = versions_of(batch, plan.layout)
    said = -1 if versions is None else versions.indices.to_numpy()
    lookup = mentions.lookup(encoded.chunk(0).dictionary.to_pylist(), plan, versions)
    grid = np.empty((batch.num_rows, len(names)), dtype=np.int32)
    for j, column in enumerate(encoded.chunks):
        grid[:, j] = lookup[said, column.indices.to_numpy()]
    mentions.grids.append(grid)


READER = row_reader("wide", _recognise, _mention)
