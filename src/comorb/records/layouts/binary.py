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
from comorb.records.sources.duck import OpenedSource, as_text
from comorb.records.values import is_missing, yes_no

_AT_ONCE = 200


def _recognise(columns: Columns) -> Layout | None:
    """Return the layout of a table without code columns and with several of yes and no."""
    asked = columns.given.kind == "binary"
    if not asked and (columns.codes or len(columns.flags) < 2):
        return None
    return columns.layout("binary", columns.flags) if columns.flags else None


def settle_items(source: OpenedSource, plan: Plan) -> Plan:
    """Return the plan once it is known what stands for yes, and that no item is missing.

    Where items are written 1 and 2, 2 is a yes unless the layout says otherwise; where no item is
    written as no, an empty cell is one. Both are noted.
    """
    values = _values(source, plan)
    written = {_simple(text) for counts in values.values() for text in counts}
    written = {text for text in written if not is_missing(text)}
    yes, notes = plan.layout.yes, []
    if yes is None and written == {"1", "2"}:
        yes = "2"
        notes.append("items are written 1 and 2: 2 was read as yes; say what yes is if it is 1")
    if yes is not None and _simple(yes) not in written:
        raise RecordsError(
            f"{plan.table.label}: no item holds {yes!r}, which was said to stand for yes; say what "
            "does."
        )
    blank = {
        name: sum(count for text, count in counts.items() if is_missing(text))
        for name, counts in values.items()
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
    elif written == {"1"}:
        notes.append("every item of every row is 1, which was read as yes")
    items, others = len(values), len(plan.table.columns) - len(values) - len(plan.layout.named)
    if items < others:
        shown = ", ".join(map(repr, list(values)[:5])) + (" …" if items > 5 else "")
        notes.append(f"{items:,} columns of yes and no were read as items ({shown}), others not")
    layout = replace(plan.layout, yes=yes)
    return replace(plan, layout=layout, notes=(*plan.notes, *notes))


def _values(source: OpenedSource, plan: Plan) -> dict[str, dict[str, int]]:
    """Return the distinct texts of each item, '' for null, and how often each occurs."""
    table, names = plan.table, plan.layout.codes or ()
    counts: dict[str, dict[str, int]] = {}
    for start in range(0, len(names), _AT_ONCE):
        some = names[start : start + _AT_ONCE]
        texts = (f"coalesce({as_text(name, table.columns[name])}, '')" for name in some)
        picks = ", ".join(f"histogram({text})" for text in texts)
        (found,) = source.rows(table, f"SELECT {picks} FROM {table.sql}")
        counts |= dict(zip(some, (one or {} for one in found), strict=True))
    return counts


def _simple(text: str) -> str:
    return text.strip().lower().removesuffix(".0")


def _is_yes(text: str, yes: str | None) -> bool | None:
    """Tell a yes from a no; None for what is neither."""
    if yes is None:
        return yes_no(text)
    simple = _simple(text)
    return simple == _simple(yes) or (False if simple in ("0", "1", "2") else yes_no(text))


def _mention(mentions: Mentions, batch: pa.RecordBatch, plan: Plan) -> None:
    """Add the name of a column for each yes in it."""
    for name in plan.layout.codes or ():
        column = batch.column(name).dictionary_encode()
        texts = column.dictionary.to_pylist()
        values = [not is_missing(text) and _is_yes(text, plan.layout.yes) for text in texts]
        if None in values:
            place = pc.index(column.indices, values.index(None)).as_py()
            row = place + mentions.read + plan.table.first_row
            raise RecordsError(
                f"{plan.table.label}, row {row:,}: the column {name!r} of a binary layout "
                "holds something other than 0 and 1; leave it out of the code columns."
            )
        truth = np.array([*values, False], dtype=bool)
        rows = np.flatnonzero(truth[pc.fill_null(column.indices, len(values)).to_numpy()])
        number = mentions.lookup([name], plan)[0, 0]
        mentions.add(rows, np.full(len(rows), number), name)


READER = row_reader("binary", _recognise, _mention, least_codes=0)
