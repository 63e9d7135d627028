"""The dialect of a text file: its delimiter and its column names.

DuckDB's own detection turns a ragged file into a single column and an unclosed quote into
a long value, so a file is looked through here first and then read with an explicit dialect.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from comorb.errors import RecordsError
from comorb.records.sources.writing import Writing, look_through

DELIMITERS = ",\t;|^~: "
WHOLE_LINE = "\x1f"
_DATA_LIKE = re.compile(r"[-+]?\d+([.,]\d+)?|\d{4}-\d\d-\d\d.*|[A-Z]\d\d(\.?[0-9A-Z]{1,4})?")
# The first line by which a spreadsheet is told the delimiter.
_SEPARATOR = re.compile(r'"?sep=(.)"?[ \t]*(\r\n|\r|\n)', re.IGNORECASE)
_FORMULA = re.compile(r'="(.*)"')
_FLAG = re.compile(r"([01](\.0)?|true|false)?", re.IGNORECASE)


@dataclass(frozen=True)
class Dialect:
    """What DuckDB needs to know to read a text file exactly.

    ``skip`` counts the lines above the header; ``formulas`` says that cells may be ="text".
    """

    delimiter: str
    encoding: str
    compression: str
    columns: tuple[str, ...]
    skip: int = 0
    formulas: bool = False


def sniff(path: Path) -> Dialect:
    """Look a whole text file through and return its dialect.

    A file that is empty, binary, cut off or in two encodings is refused, and so is one without a
    header, without rows or with a column name twice.
    """
    return dialect_of(path.name, look_through(path))


def dialect_of(name: str, writing: Writing) -> Dialect:
    """Return the dialect of a text file that was looked through."""
    text = writing.start.decode(writing.encoding, errors="ignore").removeprefix("\ufeff")
    marks, skip = "", 0
    if line := _SEPARATOR.match(text):
        marks, skip, text = line[1], 1, text[line.end() :]
    delimiter, rows = _split(text, writing.whole, marks)
    if not rows:
        raise RecordsError(f"{name} holds no text but blank lines; export it again.")
    if len(rows) == 1 and writing.whole:
        raise RecordsError(f"{name} holds a header and no rows; export it again.")
    if writing.formulas:
        rows[0] = [_FORMULA.sub(r"\1", cell) for cell in rows[0]]
    columns = column_names(name, rows)
    return Dialect(
        delimiter, writing.encoding, writing.compression, columns, skip, writing.formulas
    )


def refuse_twice(name: str, columns: Sequence[str]) -> None:
    """Refuse a table in which two columns have one name, in whatever case."""
    counts = Counter(column.lower() for column in columns)
    for column in columns:
        if counts[column.lower()] > 1:
            raise RecordsError(
                f"{name} has the column {column!r} {counts[column.lower()]} times, not counting "
                "upper and lower case as different; rename all but one."
            )


def _split(text: str, whole: bool, said: str) -> tuple[str, list[list[str]]]:
    """Return the delimiter that gives every row the header's width, and the rows it gives."""
    if said:
        return said, _parse(text, said, whole)
    first = text.lstrip().partition("\n")[0]
    marks = [mark for mark in DELIMITERS if mark in first] or DELIMITERS
    tries = {mark: _parse(text, mark, whole) for mark in marks}
    widths = {mark: [len(row) for row in rows] for mark, rows in tries.items()}
    several = [mark for mark, width in widths.items() if width and width[0] > 1]
    even = [mark for mark in several if len(set(widths[mark])) == 1]
    if several:
        usual = [mark for mark in even if mark in DELIMITERS[:4]]
        best = max(usual or even or several, key=lambda mark: widths[mark][0])
        return best, tries[best]
    for mark in DELIMITERS[:4]:
        below = set(widths.get(mark, [])[1:])
        if len(below) == 1 and below != {1}:
            return mark, tries[mark]
    return WHOLE_LINE, _parse(text, WHOLE_LINE, whole)


def _parse(text: str, delimiter: str, whole: bool) -> list[list[str]]:
    rows: list[list[str]] = []
    try:
        rows.extend(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    except csv.Error:
        whole = True
    if not whole and len(rows) > 1:
        rows.pop()
    return [row for row in rows if row]


def column_names(name: str, rows: list[list[str]]) -> tuple[str, ...]:
    """Return the column names of the first row, or refuse a row that is no header."""
    names = [cell.strip() for cell in rows[0]]
    for place, cell in enumerate(names):
        below = [row[place].strip() for row in rows[1:200] if len(row) == len(names)]
        flags = bool(below) and all(_FLAG.fullmatch(value) for value in below)
        if cell in ("0", "1") or (_DATA_LIKE.fullmatch(cell) and not flags):
            raise RecordsError(
                f"{name} has no header: its first row looks like data in column {place + 1}. "
                "Add a first row with the names of the columns."
            )
    names = [cell or f"column_{place}" for place, cell in enumerate(names, 1)]
    refuse_twice(name, names)
    return tuple(names)
