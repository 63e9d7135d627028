"""Delimited: a row is a record, its codes in one text such as 'I10;E11.9'."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.records.layouts.columns import Columns
from comorb.records.layouts.description import Layout
from comorb.records.layouts.plan import Plan
from comorb.records.layouts.rows import Mentions, row_reader, versions_of


def _recognise(columns: Columns) -> Layout | None:
    """Return the layout of a table with a row a record, and several codes in one column."""
    if len(columns.codes) != 1 or not (columns.joined or columns.given.kind == "delimited"):
        return None
    layout = columns.layout("delimited", columns.codes)
    if columns.given.kind is None and columns.repeats(layout.record):
        return None
    return replace(layout, separator=layout.separator or columns.separator)


def _mention(mentions: Mentions, batch: pa.RecordBatch, plan: Plan) -> None:
    """Add the codes of each text."""
    (name,) = plan.layout.codes or ("",)
    mark = plan.layout.separator or ";"
    text = batch.column(name)
    lists = pc.utf8_split_whitespace(text) if mark == " " else pc.split_pattern(text, mark)
    parents = pc.list_parent_indices(lists)
    versions = versions_of(batch, plan.layout)
    versions = None if versions is None else versions.take(parents)
    flat = pc.list_flatten(lists).dictionary_encode()
    lookup = mentions.lookup(flat.dictionary.to_pylist(), plan, versions)
    held = np.flatnonzero(flat.indices.is_valid().to_numpy(zero_copy_only=False))
    said: Any = -1
    if versions is not None:
        said = versions.indices.to_numpy()[held]
    raws = lookup[said, flat.indices.drop_null().to_numpy()]
    mentions.add(parents.to_numpy()[held].astype(np.int64), raws, name)


READER = row_reader("delimited", _recognise, _mention)
