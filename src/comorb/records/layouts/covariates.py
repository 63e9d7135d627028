"""Covariates: the columns beside the codes, with the types that their values have.

Age, sex and date, and what is said to be a number, are read as `comorb.records.values` reads them;
any other column holds numbers when every value is one, days when every number is one such as
20090412, and labels where its name says that its numbers are none.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from comorb.errors import RecordsError
from comorb.model.arrays import Floats
from comorb.records.layouts.description import COVARIATES, Layout
from comorb.records.layouts.names import is_amount, is_coded
from comorb.records.sources.duck import OpenedSource, SourceTable, as_text, literal, quoted
from comorb.records.sources.merging import every, summed_by_first
from comorb.records.values import (
    MARKS,
    TIME,
    Meanings,
    read_ages,
    read_dates,
    read_numbers,
    read_sexes,
)

_READ: dict[str, Callable[[Mapping[str, int], str], Meanings]] = {
    "age": read_ages,
    "sex": read_sexes,
    "date": read_dates,
}
_TYPES = {int: pa.int64(), float: pa.float64(), str: pa.string(), date: pa.date32()}
_MARKS = pa.array(
    sorted(
        "".join(letters)
        for mark in MARKS
        for letters in product(*({letter, letter.lower()} for letter in mark))
    )
)
WHOLE = r"^-?(0|[1-9][0-9]{0,14})$"
NUMBER = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?$"
DAY = r"^(19|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])(\.0)?$"
_DAYS = (19000101, 20991231)
_NUMBERS = re.compile(r"U?(TINY|SMALL|BIG)?INT(EGER)?|DOUBLE|FLOAT")
_LABELS = re.compile(r"ENUM")
_LABELS_AND_NUMBERS = re.compile(r"ENUM|U?\w*INT|DOUBLE|FLOAT|DECIMAL")
KEPT_WHEN_UNEQUAL = ("age", "sex", "date", "weight")


def shown_names(columns: Sequence[str], layout: Layout) -> dict[str, str]:
    """Return the columns that are covariates, each with the name that it gets.

    Those with a role, such as age and los, are called by it; columns that number parts or editions
    are no covariates, nor are those to be ignored.
    """
    roles = {column: role for role, column in layout.roles.items()}
    aside = {layout.part, layout.version, *layout.ignored}
    given = {column: role for column, role in roles.items() if role in COVARIATES}
    return {
        name: given.get(name) or (f"{name} (column)" if name in given.values() else name)
        for name in columns
        if name not in aside
    }


def as_read(name: str, table: SourceTable, layout: Layout) -> str:
    """Return the SQL that reads a column: ids, and what is interpreted here, as text."""
    kind = table.columns[name]
    role = next((role for role, column in layout.roles.items() if column == name), "")
    labels = _LABELS if role == "age" else _LABELS_AND_NUMBERS
    interpreted = role in _READ and labels.match(kind)
    return as_text(name, kind) if interpreted or role in ("record", "patient") else quoted(name)


def read_roles(
    names: Sequence[str],
    layout: Layout,
    counts: Callable[[str], Mapping[str, int]],
    are_numbers: Callable[[str], bool],
) -> dict[str, Meanings]:
    """Return what the values of those columns mean of which the layout says something.

    ``names`` are those of columns of text; ``are_numbers`` tells whether a column holds nothing
    else, so that there is nothing to interpret.
    """
    own = {role: getattr(layout, role) or role for role in _READ if role in names}
    meanings = {role: _READ[role](counts(role), column) for role, column in own.items()}
    shown = shown_names([*layout.category, *layout.number], layout)
    meanings |= {shown[name]: Meanings(str) for name in layout.category}
    numbers = {"los": layout.los or "los", "cost": layout.cost or "cost"}
    numbers |= {shown[name]: name for name in layout.number}
    for name, column in numbers.items():
        if name in names and not are_numbers(name):
            meanings[name] = read_numbers(counts(name), column)
    return meanings


def counted(source: OpenedSource, table: SourceTable, column: str) -> dict[str, int]:
    """Return the distinct texts of a column without the time of day, and how often each occurs."""
    text = f"regexp_replace({quoted(column)}, {literal(TIME)}, '')"
    sql = f"SELECT {text} AS text, count(*) FROM {table.sql} WHERE text IS NOT NULL GROUP BY 1"
    return dict(source.ask_whole(table, sql, summed_by_first))


def are_numbers(source: OpenedSource, table: SourceTable, column: str) -> bool:
    """Tell whether every text of a column that isn't missing is a number."""
    text, marks = quoted(column), ", ".join(map(literal, sorted(MARKS)))
    rule = f"{text} IS NULL OR upper({text}) IN ({marks}) OR regexp_matches({text}, '{NUMBER}')"
    ((numbers,),) = source.ask_whole(table, f"SELECT bool_and({rule}) FROM {table.sql}", every)
    return numbers is not False


def settled(source: OpenedSource, table: SourceTable, layout: Layout) -> dict[str, Meanings]:
    """Decide over a whole table what the texts of its covariates mean, for readers of its parts."""
    free = [name for name in table.columns if name not in {*(layout.codes or ()), *layout.ids}]
    names = shown_names(free, layout)
    picks = ", ".join(f"{as_read(n, table, layout)} AS {quoted(new)}" for n, new in names.items())
    if not picks:
        return {}
    view = source.view(table.label, f"SELECT {picks} FROM {table.sql}")
    texts = [name for name, kind in view.columns.items() if kind == "VARCHAR"]
    numbers = [name for name, kind in view.columns.items() if _NUMBERS.fullmatch(kind)]
    if not texts and not numbers:
        return {}
    counts: dict[str, Counter[str]] = {name: Counter() for name in texts if name in _READ}
    free = [name for name in (*texts, *numbers) if name not in _READ]
    kinds: dict[str, set[type]] = {name: set() for name in free}
    wanted = ", ".join(map(quoted, (*texts, *numbers)))

    def look() -> tuple[dict[str, Counter[str]], dict[str, set[type]]]:
        for batch in source.batches(view, f"SELECT {wanted} FROM {view.sql}"):
            for name, total in counts.items():
                total.update(_distinct(pa.chunked_array([batch.column(name)])))
            for name, seen in kinds.items():
                column = _without_marks(pa.chunked_array([batch.column(name)]))
                seen |= {_narrowest(name, column)} if column.null_count < len(column) else set()
        return counts, kinds

    counts, kinds = source.whole(f"types of {wanted} in {view.sql}", look, _seen_in_both)
    widest = {
        name: next((kind for kind in (str, float, int, date) if kind in seen), str)
        for name, seen in kinds.items()
    }

    def count(name: str) -> Mapping[str, int]:
        return counts[name] if name in counts else counted(source, view, name)

    known = read_roles(texts, layout, count, lambda name: widest[name] in (int, float))
    return {name: Meanings(kind) for name, kind in widest.items()} | known


def _seen_in_both(one: Any, two: Any) -> Any:
    """Return the texts and the types of columns in two parts of a table."""
    counts = {name: one[0][name] + two[0][name] for name in one[0]}
    return counts, {name: one[1][name] | two[1][name] for name in one[1]}


def meanings_of(table: pa.Table, layout: Layout) -> dict[str, Meanings]:
    """Return what the texts of a table that was read whole mean, where the layout says what."""
    texts = [name for name in table.column_names if pa.types.is_string(table[name].type)]

    def are_numbers(name: str) -> bool:
        return _narrowest(name, _without_marks(table[name])) in (int, float)

    return read_roles(texts, layout, lambda name: _distinct(table[name]), are_numbers)


def notes_of(meanings: Mapping[str, Meanings]) -> tuple[str, ...]:
    """Return what the ledger says of the values of a table."""
    return tuple(note for one in meanings.values() for note in one.notes)


def typed(
    table: pa.Table, layout: Layout, meanings: Mapping[str, Meanings] | None = None
) -> pa.Table:
    """Give text columns the type that their values have; ids stay text.

    A column whose meanings are not given is decided by its own values, age, sex and date only
    when no meanings are given at all.
    """
    if meanings is None:
        meanings = meanings_of(table, layout)
    columns = dict(zip(table.column_names, table.columns, strict=True))
    said = dict.fromkeys(shown_names(layout.category, layout).values(), pa.string())
    said |= dict.fromkeys(shown_names(layout.number, layout).values(), pa.float64())
    for name in columns.keys() - layout.ids:
        by_name = "" if name in said else name
        columns[name] = _typed(by_name, columns[name], meanings.get(name))
        if name in said and not pa.types.is_string(columns[name].type):
            columns[name] = columns[name].cast(said[name])
    return pa.table(columns)


def unite(
    source: OpenedSource, table: SourceTable, key: str, layout: Layout
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return one row for each value of a key, in its order, and a note on columns left out.

    A column that differs within a record isn't one of its covariates; of age, sex, date and
    weight, the smallest value is kept.
    """
    names = [name for name in table.columns if name != key]
    picks = ", ".join(f"min({quoted(n)}) AS {quoted(n)}" for n in names)
    grouped = f"SELECT {quoted(key)}, {picks} FROM {table.sql} GROUP BY 1 ORDER BY 1"
    free = [name for name in names if name not in KEPT_WHEN_UNEQUAL]
    varying: list[str] = []
    if free:
        tests = ", ".join(f"bool_and({quoted(f'low {n}')} = {quoted(f'high {n}')})" for n in free)
        ends = ", ".join(
            f"min({quoted(n)}) AS {quoted(f'low {n}')}, max({quoted(n)}) AS {quoted(f'high {n}')}"
            for n in free
        )
        (same,) = source.ask_whole(
            table,
            f"SELECT {tests} FROM (SELECT {ends} FROM {table.sql} GROUP BY {quoted(key)})",
            every,
        )
        varying = [name for name, flag in zip(free, same, strict=True) if flag is False]
    whole = pa.Table.from_batches(list(source.batches(table, grouped)))
    own = [layout.roles.get(name, name) for name in varying]
    notes = [f"column {name!r} differs within records and isn't a covariate" for name in own]
    return whole.drop_columns([key, *varying]), tuple(notes)


def meanings_table(meanings: Meanings) -> pa.Table:
    """Return what each text means as a table with the columns text and value."""
    pairs = dict(meanings.of or {})
    values = pa.array(list(pairs.values()), _TYPES[meanings.kind])
    return pa.table({"text": pa.array(list(pairs), pa.string()), "value": values})


def weights_of(label: str, column: str, values: pa.ChunkedArray) -> Floats:
    """Return a column as weights, all of them positive numbers."""
    if not _is_number(values.type) or values.null_count or pc.min(values).as_py() <= 0:
        raise RecordsError(
            f"{label}: the weights in column {column!r} must all be numbers above 0; correct or "
            "leave out the rows where they are not."
        )
    return np.asarray(values.to_numpy(), dtype=np.float64)


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _typed(name: str, column: pa.ChunkedArray, meanings: Meanings | None) -> pa.ChunkedArray:
    if pa.types.is_decimal(column.type) or (name == "age" and _is_number(column.type)):
        return column.cast(pa.float64(), safe=False)
    if pa.types.is_timestamp(column.type) and name == "date":
        return column.cast(pa.date32(), safe=False)
    if not (pa.types.is_string(column.type) or _is_number(column.type)):
        return column
    if meanings is not None and meanings.of is not None:
        return _mapped(column, meanings)
    column = _without_marks(column)
    if meanings is None and name in _READ:
        return column
    kind = _narrowest(name, column) if meanings is None else meanings.kind
    if kind is date:
        return _days(column)
    if kind is str:
        return _without_point(column) if is_coded(name) else column
    return column.cast(_TYPES[kind]) if pa.types.is_string(column.type) else column


def _without_time(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, TIME, "")


def _distinct(column: pa.ChunkedArray) -> dict[str, int]:
    pairs = pc.value_counts(column.drop_null())
    texts, counts = _without_time(pairs.field("values")), pairs.field("counts")
    table = (
        pa.table({"text": texts, "count": counts}).group_by("text").aggregate([("count", "sum")])
    )
    return dict(zip(table["text"].to_pylist(), table["count_sum"].to_pylist(), strict=True))


def _mapped(column: pa.ChunkedArray, meanings: Meanings) -> pa.ChunkedArray:
    """Replace each text by what it means, looking at the distinct ones only."""
    of, kind = meanings.of or {}, _TYPES[meanings.kind]
    encoded = column.dictionary_encode()
    if not encoded.num_chunks:
        return pa.chunked_array([], kind)
    texts = _without_time(encoded.chunk(0).dictionary).dictionary_encode()
    values = pa.array([of.get(text) for text in texts.dictionary.to_pylist()], kind)
    values = values.take(texts.indices)
    return pa.chunked_array([values.take(chunk.indices) for chunk in encoded.chunks], kind)


def _without_marks(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_string(column.type):
        return column
    return pc.if_else(pc.is_in(column, _MARKS), pa.scalar(None, pa.string()), column)


def _without_point(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts or numbers as texts, whole numbers without the '.0' of their type."""
    return pc.replace_substring_regex(column.cast(pa.string()), r"^(-?[0-9]+)\.0$", r"\1")


def _days(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers such as 20090412, or their texts, as days; null for what is no day."""
    texts = _without_point(column)
    days = pc.strptime(texts, format="%Y%m%d", unit="s", error_is_null=True).cast(pa.date32())
    years = pc.add(pc.multiply(pc.year(days), 10_000), pc.multiply(pc.month(days), 100))
    same = pc.equal(pc.add(years, pc.day(days)), texts.cast(pa.float64()))
    return pc.if_else(same, days, pa.scalar(None, pa.date32()))


def _narrowest(name: str, column: pa.ChunkedArray) -> type:
    """Return the type that every value of a column has; numbers that are labels are text."""
    if is_coded(name):
        return str
    number = _is_number(column.type)
    like_days = _between_days(column) if number else _all_match(column, DAY)
    if like_days and not is_amount(name) and _days(column).null_count == column.null_count:
        return date
    if number:
        return int if pa.types.is_integer(column.type) else float
    if _all_match(column, WHOLE):
        return int
    return float if _all_match(column, NUMBER) else str


def _between_days(column: pa.ChunkedArray) -> bool:
    ends = pc.min_max(column).as_py()
    return ends["min"] is not None and _DAYS[0] <= ends["min"] <= ends["max"] <= _DAYS[1]


def _all_match(column: pa.ChunkedArray, pattern: str) -> bool:
    head = column.slice(0, 1000)
    return all(
        part.null_count < len(part)
        and pc.all(pc.match_substring_regex(part.drop_null(), pattern)).as_py()
        for part in (head, column)
        if len(part) and (part is column or part.null_count < len(part))
    )
