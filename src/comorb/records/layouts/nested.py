"""Columns that hold more than one value a cell: lists become text, structures are left out."""

from __future__ import annotations

import re

from comorb.errors import RecordsError
from comorb.records.layouts.description import Layout
from comorb.records.layouts.names import CODE, NOT_CODE, named
from comorb.records.sources.duck import OpenedSource, SourceTable, quoted

_STRUCTURE = re.compile(r"(STRUCT|MAP|UNION|VARIANT)\b|.*\]\[")
_LIST = re.compile(r".*\[\d*\]")


def flat_columns(source: OpenedSource, table: SourceTable, given: Layout) -> SourceTable:
    """Return a table with one value in each cell: a list becomes 'a;b', and a time span a text.

    Structures are left out with a note, unless they are named or have the name of codes.
    """
    picks, gone = {}, []
    for name, kind in table.columns.items():
        if _STRUCTURE.match(kind):
            gone.append(name)
        elif _LIST.fullmatch(kind):
            picks[name] = f"array_to_string(CAST({quoted(name)} AS VARCHAR[]), ';')"
        elif kind == "INTERVAL":
            picks[name] = f"CAST({quoted(name)} AS VARCHAR)"
    if not picks and not gone:
        return table
    called = {*named(gone, CODE)} - {*named(gone, NOT_CODE)}
    for name in gone:
        if name in called or name in (given.codes or ()) or name in given.roles.values():
            raise RecordsError(
                f"{table.label}: column {name!r} holds structures, which aren't read; write what "
                "is in them to columns of their own."
            )
        source.note(f"column {name!r} of {table.label} holds structures and was left out")
    flat = [
        f"{picks.get(name, quoted(name))} AS {quoted(name)}"
        for name in table.columns
        if name not in gone
    ]
    if not flat:
        raise RecordsError(f"{table.label} holds structures alone; write them as columns.")
    return source.view(table.label, f"SELECT {', '.join(flat)} FROM {table.sql}", table.text)
