"""Rounded counts: counts of people in a ledger and in notes, to two digits."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import ceil, floor, log10
from typing import TYPE_CHECKING, Any

from comorb.messages import Message, change_values

if TYPE_CHECKING:
    from comorb.records.ledger import Line

PEOPLE = ("rows", "codes", "records")  # the units of a ledger that count people
# Values of a message that are no counts of people, their rows or their codes.
NO_COUNTS = {"least", "limit", "cluster", "k", "before", "after", "files", "columns"}
NO_COUNTS |= {"row", "line", "expected", "came", "base", "other_cluster"}
_COUNT = re.compile(  # a number before a word for what it counts
    r"(?<![\w.:/,-])(\d{1,3}(?:,\d{3})+|\d+)(?= (?:of|more|others?|ha[sd]|have|was|were|is|are|"
    r"rows?|records?|cells?|values?|visits?|patients?|people|codes?|mentions?|lines?|dates?|ages?|ids?)\b)"
)
_CODES = re.compile(r" \([\d,]+ codes?\)")  # how many codes a pattern stands for


def round_count(count: int, min_cell: int) -> int | None:
    """Return a count with two significant digits, in tens; None for fewer than ``min_cell``.

    >>> [round_count(count, 11) for count in (0, 10, 11, 234, 151_551)]
    [None, None, 20, 230, 150000]
    """
    if count < min_cell:
        return None
    step: int = 10 ** max(floor(log10(max(count, 1))) - 1, 1)
    return max(round(count / step) * step, ceil(min_cell / step) * step)


def round_lines(lines: Sequence[Line], min_cell: int) -> tuple[Line, ...]:
    """Return the lines of a ledger in rounded numbers, without those of how many codes differ.

    A code that is there because of one patient would be one more.
    """
    return tuple(
        replace(
            line,
            rule=_without_code_counts(line.rule),
            before=round_count(line.before, min_cell) or 0,
            after=round_count(line.after, min_cell) or 0,
        )
        for line in lines
        if line.unit in PEOPLE
    )


def _without_code_counts(rule: str) -> str:
    """Return a rule without the numbers of codes that its patterns stand for."""
    if not isinstance(rule, Message):
        return _CODES.sub("", rule)
    if rule.key == "ledger.pattern":
        return str(rule.values["code"])
    values = {
        name: [_without_code_counts(one) for one in value] if isinstance(value, list) else value
        for name, value in rule.values.items()
    }
    return Message(rule.key, **values)


def round_notes(notes: Sequence[str], min_cell: int) -> tuple[str, ...]:
    """Return notes in which counts are rounded, and those under ``min_cell`` suppressed.

    Counts are the whole numbers among the values of a message, but for those of ``NO_COUNTS``. In
    a text without a key, as of an earlier version, they are found by the words that follow.

    >>> round_notes(["drug: 4,211 of 4,215 rows matched; 4 have none"], 11)
    ('drug: 4,200 of 4,200 rows matched; fewer than 11 have none',)
    """

    def rounded(count: int) -> int | str:
        number = round_count(count, min_cell)
        return Message("count.few", n=min_cell) if number is None else number

    def in_text(found: re.Match[str]) -> str:
        number = rounded(int(found[1].replace(",", "")))
        return f"{number:,}" if isinstance(number, int) else number

    def change(name: str, value: Any) -> Any:
        if isinstance(value, str):
            return _COUNT.sub(in_text, value)
        counts = type(value) is int and name not in NO_COUNTS
        return rounded(value) if counts else value

    return tuple(change_values(note, change) for note in notes)
