"""Binary: a row is a record, with a column of yes and no for each item."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.records.layouts.columns import Columns
from comorb.records.layouts.description import Layout
from comorb.records.layouts.neighbours import Cells
from comorb.records.layouts.plan import Plan
from comorb.records.layouts.rows import Mentions, row_reader
from comorb.records.sources.duck import OpenedSource, SourceTable, as_text, literal, quoted
from comorb.records.values import is_missing, yes_no

_AT_ONCE = 200


def _recognise(columns: Columns) -> Layout | None:
    """Return the layout of a table without code columns and with several of yes and no."""
    asked = columns.given.kind == "binary"
    if not asked and (columns.codes or len(columns.flags) < 2):
        return None
    return columns.layout("binary", columns.flags) if columns.flags else None


def settle_items(source: OpenedSource, plan: Plan, cells: Cells) -> Plan:
    """Return the plan for a table in which each item is a yes or a no.

    Where items are written 1 and 2, 2 is a yes unless the layout says otherwise; where no item is
    written as no, an empty cell is one. Both are noted. A table whose first ``cells`` are yes and
    no is read as it is, and refused when an empty one turns up.
    """
    items = plan.layout.codes or ()
    answers = {cell and yes_no(cell) for name in items for cell in cells[name]}
    if plan.layout.yes is None and answers == {True, False}:
        return _noted(plan, [])
    texts = _texts(source, plan)
    written = {_simple(text) for text in texts if not is_missing(text)}
    yes, notes = plan.layout.yes, []
    if yes is None and written == {"1", "2"}:
        yes = "2"
        notes.append("items are written 1 and 2: 2 was read as yes; say what yes is if it is 1")
    if yes is not None and _simple(yes) not in written:
        raise RecordsError(
            f"{plan.table.label}: no item holds {yes!r}, which was said to stand for yes; say what "
            "does."
        )
    meant = {text: _is_yes(text, yes) for text in texts if not is_missing(text)}
    blank = [text for text in texts if is_missing(text)]
    if blank and False not in meant.values():
        meant |= dict.fromkeys(blank, False)
        notes.append("no item is written as no: empty cells were read as no")
    elif yes is None and written == {"1"}:
        notes.append("every item of every row is 1, which was read as yes; say what yes is if not")
    plan = replace(plan, layout=replace(plan.layout, yes=yes))
    return _noted(replace(plan, table=_answered(source, plan, meant)), notes)


def _noted(plan: Plan, notes: list[str]) -> Plan:
    """Return the plan with notes, and one that names the items where most columns are others."""
    items = plan.layout.codes or ()
    if 2 * len(items) < len(plan.table.columns) - len(plan.layout.named):
        shown = ", ".join(map(repr, items[:5])) + (" …" if len(items) > 5 else "")
        notes.append(f"{len(items):,} columns of yes and no were read as items ({shown})")
    return replace(plan, notes=(*plan.notes, *notes))


def _texts(source: OpenedSource, plan: Plan) -> set[str]:
    """Return the distinct texts of all items, '' for null."""
    table, items = plan.table, plan.layout.codes or ()
    found: set[str] = set()
    for start in range(0, len(items), _AT_ONCE):
        some = items[start : start + _AT_ONCE]
        texts = (f"coalesce({as_text(name, table.columns[name])}, '')" for name in some)
        picks = ", ".join(f"list(DISTINCT {text})" for text in texts)
        (lists,) = source.rows(table, f"SELECT {picks} FROM {table.sql}")
        found.update(*(texts or () for texts in lists))
    return found


def _answered(source: OpenedSource, plan: Plan, meant: dict[str, bool | None]) -> SourceTable:
    """Return the table with 1 and 0 for what is meant by a text, which else stays as it is."""
    table, items = plan.table, plan.layout.codes or ()
    answers = {
        int(one): ", ".join(literal(text) for text, meaning in meant.items() if meaning is one)
        for one in (True, False)
        if one in meant.values()
    }

    def answer(name: str) -> str:
        text = as_text(name, table.columns[name])
        cases = (
            f"WHEN coalesce({text}, '') IN ({texts}) THEN '{one}'" for one, texts in answers.items()
        )
        return f"CASE {' '.join(cases)} ELSE {text} END"

    picks = ", ".join(f"{answer(name)} AS {quoted(name)}" for name in items)
    sql = f"SELECT * REPLACE ({picks}) FROM {table.sql}"
    return source.view(table.label, sql, table.text)


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
        column = batch.column(name).fill_null("").dictionary_encode()
        texts = column.dictionary.to_pylist()
        values = [yes_no(text) for text in texts]
        if None in values:
            raise _refusal(mentions, plan, name, column, values.index(None))
        truth = np.array(values, dtype=bool)
        rows = np.flatnonzero(truth[column.indices.to_numpy()])
        number = mentions.lookup([name], plan)[0, 0]
        mentions.add(rows, np.full(len(rows), number), name)


def _refusal(
    mentions: Mentions, plan: Plan, name: str, column: pa.DictionaryArray, strange: int
) -> RecordsError:
    """Return the error of an item that is neither a yes nor a no."""
    row = pc.index(column.indices, strange).as_py() + mentions.read + plan.table.first_row
    where = f"{plan.table.label}, row {row:,}: "
    if is_missing(column.dictionary[strange].as_py()):
        return RecordsError(
            f"{where}the item {name!r} is empty. Empty is missing, not no, and missing items can't "
            "be read yet: leave out such columns or rows, or write 0 where it is a no."
        )
    return RecordsError(
        f"{where}the column {name!r} of a binary layout holds something other than 0 and 1; leave "
        "it out of the code columns."
    )


READER = row_reader("binary", _recognise, _mention, least_codes=0)
