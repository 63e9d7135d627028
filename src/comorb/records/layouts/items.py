"""Items: a row is a record, with a column of yes and no, or of few values, for each item."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.messages import Message
from comorb.model.emissions.base import Kind
from comorb.records.features import FeatureSpec
from comorb.records.layouts.columns import MAX_VALUES, Cells, Columns
from comorb.records.layouts.covariates import covariate_names
from comorb.records.layouts.events import read_answers
from comorb.records.layouts.layout import Layout
from comorb.records.layouts.plan import Plan
from comorb.records.layouts.wide import Mentions, make_row_reader
from comorb.records.sources.duck import (
    Merge,
    OpenedSource,
    SourceTable,
    add_histograms,
    all_true,
    literals,
    quote,
)
from comorb.records.values import find_sentinels, is_missing, yes_no

_ITEMS_PER_QUERY = 1000
_MIN_LEVEL_ROWS = 10  # the fewest rows of a level other than yes and no, in a large table


def _recognise(columns: Columns) -> Layout | None:
    """Return the layout of a table without codes and with several columns of yes and no.

    Without these, every column must have few values, or features must be named.
    """
    given, features = columns.given.kind == "binary", columns.given.features
    if not given and columns.codes and not columns.are_items:
        return None
    if given or columns.are_items or len(columns.flags) > 1:
        items = columns.flags or columns.choices
    else:
        items = () if features or len(columns.choices) < 3 else columns.choices
    return columns.layout("binary", items) if items or features else None


def plan_items(source: OpenedSource, plan: Plan, cells: Cells) -> Plan:
    """Return the plan for a table in which each item is a yes or a no, or one of few values.

    Where items are written 1 and 2, `_which_is_yes` says which is a yes unless the layout does;
    where no item is written as no, an empty cell is one; numbers such as 98 and 99 that stand
    apart are empty cells. All of this is noted. An item with empty cells and a no, or with several
    levels, becomes a feature, in which empty cells are missing.
    """
    items, yes = plan.layout.codes or (), plan.layout.yes
    seen = {cell for name in items for cell in cells[name]}
    answers = {cell and yes_no(cell) for cell in seen}
    if not items:
        return plan
    known = literals(sorted(filter(None, seen)))
    if yes is None and answers == {True, False}:
        flags = _query_items(source, plan, lambda text: f"bool_and({text} IN ({known}))", all_true)
        if all(flag for _, flag in flags):
            return _add_notes(plan, [])
    counts = _query_items(source, plan, lambda text: f"histogram({text})", add_histograms)
    texts = {name: dict(held or {}) for name, held in counts}
    unknown = {name: find_sentinels(held) for name, held in texts.items()}
    answered = {
        name: {t: n for t, n in held.items() if t not in unknown[name] and not is_missing(t)}
        for name, held in texts.items()
    }
    written = {_normalise_answer(text) for held in answered.values() for text in held}
    notes: list[str] = []
    plain = [held for held in answered.values() if {*map(_normalise_answer, held)} <= {"1", "2"}]
    if yes is None and {"1", "2"} <= written and len(plain) > 0.8 * len(items):
        yes, note = _which_is_yes(items, plain, written)
        notes.append(note)
    if yes is not None and _normalise_answer(yes) not in written:
        raise RecordsError("layout.no_yes", table=plan.table.label, yes=yes)
    read = {name: _read_item(held, yes, unknown[name]) for name, held in texts.items()}
    notes += _sentinel_note(texts, unknown)
    if not any(item.no for item in read.values()) and any(item.blank for item in read.values()):
        notes.append(Message("note.items_empty"))
    elif yes is None and written == {"1"}:
        notes.append(Message("note.items_all_one"))
    else:
        notes += [
            Message("note.item_empty", name=name)
            for name, item in read.items()
            if item.blank and item.kind is None
        ]
    # Items that are more than yes and no become features.
    made = [name for name, item in read.items() if item.kind]
    labels = tuple(name for name in made if read[name].kind == "category")
    codes = tuple(name for name in items if name not in made)
    layout = replace(plan.layout, yes=yes, codes=codes, category=(*plan.layout.category, *labels))
    shown = covariate_names(made, layout)
    asked = tuple(FeatureSpec(shown[name], read[name].kind, required=False) for name in made)
    table = _replace_answers(source, plan.table, read)
    return _add_notes(replace(plan, table=table, layout=layout, asked=asked), notes)


@dataclass(frozen=True)
class _Item:
    """The meanings of the texts of an item; ``kind`` is that of the feature it becomes, if any."""

    yes: tuple[str, ...] = ()
    no: tuple[str, ...] = ()
    blank: tuple[str, ...] = ()
    kind: Kind | None = None


def _which_is_yes(
    items: Sequence[str], answered: Sequence[Mapping[str, int]], written: Collection[str]
) -> tuple[str, str]:
    """Return which of 1 and 2 is the yes of items, and the note on why.

    The labels in their names decide. Otherwise it is 1, unless 2 is the rarer answer over all
    items: most people lack most conditions.
    """
    labels = Counter(
        one.yes[0] for name in items if (one := read_answers(("1", "2"), "item", name)).is_clear
    )
    if labels:
        ((yes, _),) = labels.most_common(1)
        return yes, Message("note.items_labelled", yes=yes)
    counts: Counter[str] = Counter()
    for held in answered:
        for text, n in held.items():
            counts[_normalise_answer(text)] += n
    percent = f"{100 * counts['2'] / counts.total():.0f}%"
    if "0" in written or 2 * counts["2"] >= counts.total():
        return "1", Message("note.items_one_is_yes", percent=percent)
    return "2", Message("note.items_one_two", percent=percent)


def _sentinel_note(
    texts: Mapping[str, Mapping[str, int]], unknown: Mapping[str, Collection[str]]
) -> list[str]:
    """Return the note on numbers that were read as missing answers, if any."""
    marks = sorted({_normalise_answer(text) for some in unknown.values() for text in some})
    n = sum(texts[name][text] for name, some in unknown.items() for text in some)
    names = [repr(name) for name, some in unknown.items() if some]
    if not names:
        return []
    return [Message("note.items_unknown", n=n, marks=marks, items=len(names), first=names[0])]


def _read_item(held: Mapping[str, int], yes: str | None, unknown: Collection[str]) -> _Item:
    """Return the meanings of the texts of an item, each with its number of rows."""
    blank = tuple(text for text in held if is_missing(text) or text in unknown)
    meant = {text: _is_yes(text, yes) for text in held if text not in blank}
    one, zero = (tuple(text for text in meant if meant[text] is way) for way in (True, False))
    strange = [text for text in meant if meant[text] is None]
    if not strange:
        return _Item(one, zero, blank, "binary" if blank and zero else None)
    least = min(_MIN_LEVEL_ROWS, sum(held.values()) // 100)
    stray = bool(one and zero) and min(held[text] for text in strange) < least
    many = len(meant) > MAX_VALUES
    return _Item(one, zero) if stray or many else _Item(blank=blank, kind="category")


def _add_notes(plan: Plan, notes: list[str]) -> Plan:
    """Return the plan with notes, and one on which columns are items where most are not."""
    items = plan.layout.codes or ()
    others = len(plan.table.columns) - len(plan.layout.named) - len(plan.asked)
    if items and 2 * len(items) < others:
        shown = ", ".join(map(repr, items[:5])) + (" …" if len(items) > 5 else "")
        notes.append(Message("note.items", limit=len(items), shown=shown))
    return replace(plan, notes=(*plan.notes, *notes))


def _query_items(
    source: OpenedSource, plan: Plan, aggregate: Callable[[str], str], merge: Merge
) -> Iterator[tuple[str, Any]]:
    """Yield each item with an aggregate of its texts, which are '' for null."""
    table, items = plan.table, plan.layout.codes or ()
    for start in range(0, len(items), _ITEMS_PER_QUERY):
        some = items[start : start + _ITEMS_PER_QUERY]
        picks = ", ".join(aggregate(f"coalesce({table.text_sql(name)}, '')") for name in some)
        (values,) = source.query_whole(table, f"SELECT {picks} FROM {table.sql}", merge)
        yield from zip(some, values, strict=True)


def _replace_answers(
    source: OpenedSource, table: SourceTable, read: Mapping[str, _Item]
) -> SourceTable:
    """Return the table with 1 and 0 for the texts that mean yes and no; others stay."""

    def answer(name: str, item: _Item) -> str:
        text = table.text_sql(name)
        empty = "NULL" if item.kind else "'0'"
        cases = "".join(
            f" WHEN coalesce({text}, '') IN ({literals(texts)}) THEN {value}"
            for value, texts in (("'1'", item.yes), ("'0'", item.no), (empty, item.blank))
            if texts
        )
        return f"CASE{cases} ELSE {text} END" if cases else text

    picks = ", ".join(f"{answer(name, item)} AS {quote(name)}" for name, item in read.items())
    return source.derive(table, f"SELECT * REPLACE ({picks}) FROM {table.sql}")


def _normalise_answer(text: str) -> str:
    return text.strip().lower().removesuffix(".0")


def _is_yes(text: str, yes: str | None) -> bool | None:
    """Return whether a text is a yes or a no, None for neither; ``yes`` is a yes if given."""
    if yes is None:
        return yes_no(text)
    simple = _normalise_answer(text)
    if simple == _normalise_answer(yes):
        return True
    return False if simple in ("0", "1", "2") else yes_no(text)


def _add_mentions(mentions: Mentions, batch: pa.RecordBatch, plan: Plan) -> None:
    """Add the name of a column for each yes in it."""
    for name in plan.layout.codes or ():
        column = batch.column(name).fill_null("").dictionary_encode()
        values = [yes_no(text) for text in column.dictionary.to_pylist()]
        if None in values:
            place = pc.index(column.indices, values.index(None)).as_py()
            row = place + mentions.read + plan.table.first_row
            raise RecordsError("layout.not_binary", table=plan.table.label, row=row, name=name)
        truth = np.array(values, dtype=bool)
        rows = np.flatnonzero(truth[column.indices.to_numpy()])
        number = mentions.lookup([name], plan)[0, 0]
        mentions.add(rows, np.full(len(rows), number), name)


READER = make_row_reader("binary", _recognise, _add_mentions, least_codes=0)
