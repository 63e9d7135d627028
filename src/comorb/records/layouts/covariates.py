"""Covariates: the columns besides the codes, with the types that their values have."""

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
from comorb.records.layouts.layout import COVARIATE_ROLES, Layout
from comorb.records.layouts.names import is_amount, is_coded
from comorb.records.sources.duck import (
    OpenedSource,
    SourceTable,
    add_by_first,
    all_true,
    literal,
    literals,
    quote,
)
from comorb.records.values import (
    MARKS,
    TIME,
    Meanings,
    read_ages,
    read_dates,
    read_numbers,
    read_sexes,
)

_ROLE_READERS: dict[str, Callable[[Mapping[str, int], str], Meanings]] = {
    "age": read_ages,
    "sex": read_sexes,
    "date": read_dates,
}
_ARROW_TYPES = {int: pa.int64(), float: pa.float64(), str: pa.string(), date: pa.date32()}
_MARKS = pa.array(
    sorted(
        "".join(letters)
        for mark in MARKS
        for letters in product(*({letter, letter.lower()} for letter in mark))
    )
)
INTEGER_PATTERN = r"^-?(0|[1-9][0-9]{0,14})$"
NUMBER_PATTERN = r"^-?(0|[1-9][0-9]{0,14})(\.[0-9]+)?$"
DAY_PATTERN = r"^(19|20)[0-9]{2}(0[1-9]|1[0-2])(0[1-9]|[12][0-9]|3[01])(\.0)?$"
_DAY_RANGE = (19000101, 20991231)
_NUMBER_TYPES = re.compile(r"U?(TINY|SMALL|BIG)?INT(EGER)?|DOUBLE|FLOAT")


def covariate_names(columns: Sequence[str], layout: Layout) -> dict[str, str]:
    """Return the columns that are covariates, each with its name as a covariate.

    Those with a role, such as age and los, are named by it. Ignored columns are no covariates, nor
    are those that number parts or editions.
    """
    other = {layout.part, layout.version, *layout.ignored}
    given = {column: role for role, column in layout.roles.items() if role in COVARIATE_ROLES}
    return {
        name: given.get(name) or (f"{name} (column)" if name in given.values() else name)
        for name in columns
        if name not in other
    }


def column_sql(name: str, table: SourceTable, layout: Layout) -> str:
    """Return the SQL that reads a column: ids, and what is interpreted here, as text."""
    role = next((role for role, column in layout.roles.items() if column == name), "")
    numbers = r"ENUM|U?\w*INT|DOUBLE|FLOAT|DECIMAL"
    interpreted = role in _ROLE_READERS and re.match(numbers, table.columns[name])
    return table.text_sql(name) if interpreted or role in ("record", "patient") else quote(name)


def read_roles(
    names: Sequence[str],
    layout: Layout,
    counts: Callable[[str], Mapping[str, int]],
    are_numbers: Callable[[str], bool],
) -> dict[str, Meanings]:
    """Return the meanings of the values of columns that have a role in the layout.

    ``names`` are columns of text; ``are_numbers`` is whether a column holds only numbers, which
    need no interpretation.
    """
    own = {role: getattr(layout, role) or role for role in _ROLE_READERS if role in names}
    meanings = {role: _ROLE_READERS[role](counts(role), column) for role, column in own.items()}
    shown = covariate_names([*layout.category, *layout.number], layout)
    meanings |= {shown[name]: Meanings(str) for name in layout.category}
    numbers = {"los": layout.los or "los", "cost": layout.cost or "cost"}
    numbers |= {shown[name]: name for name in layout.number}
    for name, column in numbers.items():
        if name in names and not are_numbers(name):
            meanings[name] = read_numbers(counts(name), column)
    return meanings


def count_texts(source: OpenedSource, table: SourceTable, column: str) -> dict[str, int]:
    """Return the distinct texts of a column without the time of day, and how often each occurs."""
    # Grouped twice, as a regular expression on every row takes longer than all the rest.
    distinct = f"SELECT {quote(column)} AS text, count(*) AS n FROM {table.sql} GROUP BY 1"
    sql = (
        f"SELECT regexp_replace(text, {literal(TIME)}, ''), CAST(sum(n) AS BIGINT) "
        f"FROM ({distinct}) WHERE text IS NOT NULL GROUP BY 1"
    )
    return dict(source.query_whole(table, sql, add_by_first))


def are_numbers(source: OpenedSource, table: SourceTable, column: str) -> bool:
    """Return whether every text of a column that isn't missing is a number."""
    text, is_number = quote(column), f"regexp_matches({quote(column)}, '{NUMBER_PATTERN}')"
    rule = f"{text} IS NULL OR upper({text}) IN ({literals(sorted(MARKS))}) OR {is_number}"
    ((numbers,),) = source.query_whole(table, f"SELECT bool_and({rule}) FROM {table.sql}", all_true)
    return numbers is not False


def infer_meanings(source: OpenedSource, table: SourceTable, layout: Layout) -> dict[str, Meanings]:
    """Return the meanings of the texts of covariates in a whole table, for readers of its parts."""
    free = [name for name in table.columns if name not in {*(layout.codes or ()), *layout.ids}]
    names = covariate_names(free, layout)
    picks = ", ".join(f"{column_sql(n, table, layout)} AS {quote(new)}" for n, new in names.items())
    if not picks:
        return {}
    view = source.view(table.label, f"SELECT {picks} FROM {table.sql}")
    texts = [name for name, kind in view.columns.items() if kind == "VARCHAR"]
    typed = texts + [name for name, kind in view.columns.items() if _NUMBER_TYPES.fullmatch(kind)]
    if not typed:
        return {}
    counts: dict[str, Counter[str]] = {name: Counter() for name in texts if name in _ROLE_READERS}
    kinds: dict[str, set[type]] = {name: set() for name in typed if name not in _ROLE_READERS}
    wanted = ", ".join(map(quote, typed))

    def look() -> tuple[dict[str, Counter[str]], dict[str, set[type]]]:
        for batch in source.batches(view, f"SELECT {wanted} FROM {view.sql}"):
            for name, total in counts.items():
                total.update(_count_distinct(pa.chunked_array([batch.column(name)])))
            for name, seen in kinds.items():
                column = _drop_marks(pa.chunked_array([batch.column(name)]))
                if column.null_count < len(column):
                    seen.add(_narrowest_type(name, column))
        return counts, kinds

    counts, kinds = source.answer_whole(f"types of {wanted} in {view.sql}", look, _merge_seen)
    widest = {
        name: next((kind for kind in (str, float, int, date) if kind in seen), str)
        for name, seen in kinds.items()
    }

    def count(name: str) -> Mapping[str, int]:
        return counts[name] if name in counts else count_texts(source, view, name)

    known = read_roles(texts, layout, count, lambda name: widest[name] in (int, float))
    return {name: Meanings(kind) for name, kind in widest.items()} | known


def _merge_seen(one: Any, two: Any) -> Any:
    """Return the texts and the types of columns in two partitions of a table."""
    counts = {name: one[0][name] + two[0][name] for name in one[0]}
    return counts, {name: one[1][name] | two[1][name] for name in one[1]}


def read_meanings(table: pa.Table, layout: Layout) -> dict[str, Meanings]:
    """Return the meanings of the texts of a table in memory, by the roles of its layout."""
    return read_roles(
        [name for name in table.column_names if pa.types.is_string(table[name].type)],
        layout,
        lambda name: _count_distinct(table[name]),
        lambda name: _narrowest_type(name, _drop_marks(table[name])) in (int, float),
    )


def meaning_notes(meanings: Mapping[str, Meanings]) -> tuple[str, ...]:
    """Return the notes of the ledger on the values of a table."""
    return tuple(note for one in meanings.values() for note in one.notes)


def cast_columns(
    table: pa.Table, layout: Layout, meanings: Mapping[str, Meanings] | None = None
) -> pa.Table:
    """Give text columns the type that their values have; ids stay text.

    A column without given meanings is decided by its own values, age, sex and date only when no
    meanings are given at all.
    """
    if meanings is None:
        meanings = read_meanings(table, layout)
    columns = dict(zip(table.column_names, table.columns, strict=True))
    given = dict.fromkeys(covariate_names(layout.category, layout).values(), pa.string())
    given |= dict.fromkeys(covariate_names(layout.number, layout).values(), pa.float64())
    for name in columns.keys() - layout.ids:
        by_name = "" if name in given else name
        columns[name] = _cast_column(by_name, columns[name], meanings.get(name))
        if name in given and not pa.types.is_string(columns[name].type):
            columns[name] = columns[name].cast(given[name])
    return pa.table(columns)


def varying_columns(source: OpenedSource, table: SourceTable, key: str) -> tuple[str, ...]:
    """Return the columns that differ within some record, by its key, and so aren't covariates.

    Of age, sex, date and weight the smallest value is kept, so they are never among them.
    """
    free = [name for name in table.columns if name not in (key, "age", "sex", "date", "weight")]
    if not free:
        return ()
    values, tests, ends = [], [], []
    for place, name in enumerate(free):
        value = quote(name)
        if table.columns[name] == "VARCHAR":
            # DuckDB can't spill the texts of a group to the disk, but can spill hashes.
            value = f"CASE WHEN {value} IS NOT NULL THEN hash({value}) END"
        values.append(f"{value} AS value_{place}")
        tests.append(f"bool_and(low_{place} = high_{place})")
        ends.append(f"min(value_{place}) AS low_{place}, max(value_{place}) AS high_{place}")
    (same,) = source.query_whole(
        table,
        f"SELECT {', '.join(tests)} FROM (SELECT {', '.join(ends)} FROM (SELECT {quote(key)} "
        f"AS key, {', '.join(values)} FROM {table.sql}) GROUP BY key)",
        all_true,
    )
    return tuple(name for name, flag in zip(free, same, strict=True) if flag is False)


def meanings_table(meanings: Meanings) -> pa.Table:
    """Return the value of each text as a table with the columns text and value."""
    pairs = dict(meanings.of or {})
    values = pa.array(list(pairs.values()), _ARROW_TYPES[meanings.kind])
    return pa.table({"text": pa.array(list(pairs), pa.string()), "value": values})


def read_weights(label: str, column: str, values: pa.ChunkedArray) -> Floats:
    """Return a column as weights, all of them positive numbers."""
    if not _is_number(values.type) or values.null_count or pc.min(values).as_py() <= 0:
        raise RecordsError("layout.weights", label=label, column=column)
    return np.asarray(values.to_numpy(), dtype=np.float64)


def _is_number(kind: Any) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _cast_column(name: str, column: pa.ChunkedArray, meanings: Meanings | None) -> pa.ChunkedArray:
    if pa.types.is_decimal(column.type) or (name == "age" and _is_number(column.type)):
        return column.cast(pa.float64(), safe=False)
    if pa.types.is_timestamp(column.type) and name == "date":
        return column.cast(pa.date32(), safe=False)
    if not (pa.types.is_string(column.type) or _is_number(column.type)):
        return column
    if meanings is not None and meanings.of is not None:
        return _map_texts(column, meanings)
    column = _drop_marks(column)
    if meanings is None and name in _ROLE_READERS:
        return column
    kind = _narrowest_type(name, column) if meanings is None else meanings.kind
    if kind is date:
        return _parse_days(column)
    if kind is str:
        return _drop_point(column) if is_coded(name) else column
    return column.cast(_ARROW_TYPES[kind]) if pa.types.is_string(column.type) else column


def _drop_time(texts: pa.Array) -> pa.Array:
    return pc.replace_substring_regex(texts, TIME, "")


def _count_distinct(column: pa.ChunkedArray) -> dict[str, int]:
    pairs = pc.value_counts(column.drop_null())
    table = pa.table({"text": _drop_time(pairs.field("values")), "count": pairs.field("counts")})
    summed = table.group_by("text").aggregate([("count", "sum")])
    return dict(zip(summed["text"].to_pylist(), summed["count_sum"].to_pylist(), strict=True))


def _map_texts(column: pa.ChunkedArray, meanings: Meanings) -> pa.ChunkedArray:
    """Replace each text by its value, looking at the distinct ones only."""
    of, kind = meanings.of or {}, _ARROW_TYPES[meanings.kind]
    encoded = column.dictionary_encode()
    if not encoded.num_chunks:
        return pa.chunked_array([], kind)
    texts = _drop_time(encoded.chunk(0).dictionary).dictionary_encode()
    values = pa.array([of.get(text) for text in texts.dictionary.to_pylist()], kind)
    values = values.take(texts.indices)
    return pa.chunked_array([values.take(chunk.indices) for chunk in encoded.chunks], kind)


def _drop_marks(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_string(column.type):
        return column
    return pc.if_else(pc.is_in(column, _MARKS), pa.scalar(None, pa.string()), column)


def _drop_point(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return texts or numbers as texts, whole numbers without the '.0' of their type."""
    return pc.replace_substring_regex(column.cast(pa.string()), r"^(-?[0-9]+)\.0$", r"\1")


def _parse_days(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return numbers such as 20090412, or their texts, as days; null for what is no day."""
    texts = _drop_point(column)
    days = pc.strptime(texts, format="%Y%m%d", unit="s", error_is_null=True).cast(pa.date32())
    years = pc.add(pc.multiply(pc.year(days), 10_000), pc.multiply(pc.month(days), 100))
    same = pc.equal(pc.add(years, pc.day(days)), texts.cast(pa.float64()))
    return pc.if_else(same, days, pa.scalar(None, pa.date32()))


def _narrowest_type(name: str, column: pa.ChunkedArray) -> type:
    """Return the type that every value of a column has; numbers that are labels are text."""
    if is_coded(name):
        return str
    number = _is_number(column.type)
    if number:
        low, high = pc.min_max(column).as_py().values()
        like_days = low is not None and _DAY_RANGE[0] <= low <= high <= _DAY_RANGE[1]
    else:
        like_days = _all_match(column, DAY_PATTERN)
    if like_days and not is_amount(name) and _parse_days(column).null_count == column.null_count:
        return date
    if number:
        return int if pa.types.is_integer(column.type) else float
    if _all_match(column, INTEGER_PATTERN):
        return int
    return float if _all_match(column, NUMBER_PATTERN) else str


def _all_match(column: pa.ChunkedArray, pattern: str) -> bool:
    """Return whether all values match, of which there are some or no rows; few are tried first."""
    if len(column) and column.null_count == len(column):
        return False
    parts = (part.drop_null() for part in (column.slice(0, 1000), column))
    matches = (pc.match_substring_regex(part, pattern) for part in parts)
    return all(pc.all(each, min_count=0).as_py() for each in matches)


def has_unread_dates(meanings: Mapping[str, Meanings]) -> bool:
    """Return whether dates can't be read: as texts, 05.02.2018 would precede 12.01.2017."""
    return "date" in meanings and meanings["date"].of is None


def undated_error(label: str, column: str | None) -> RecordsError:
    """Return the error of a table in which the first visit isn't known."""
    return RecordsError("layout.first_visit", label=label, column=column)
