"""Rough numbers: of people, two significant digits and no fewer than tens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import ceil, floor, log10

from comorb.records.ledger import Line

PEOPLE = ("rows", "codes", "records")  # the units of a ledger that tell of people
_COUNT = re.compile(  # a number before what says that it counts something
    r"(?<![\w.:/,-])(\d{1,3}(?:,\d{3})+|\d+)(?= (?:of|more|others?|ha[sd]|have|was|were|is|are|"
    r"rows?|records?|cells?|values?|visits?|patients?|people|codes?|mentions?|lines?|dates?|ages?|ids?)\b)"
)


def rough(count: int, least: int) -> int | None:
    """Return a count with two significant digits, in tens; None for fewer than ``least``.

    >>> [rough(count, 11) for count in (0, 10, 11, 234, 151_551)]
    [None, None, 20, 230, 150000]
    """
    if count < least:
        return None
    step: int = 10 ** max(floor(log10(max(count, 1))) - 1, 1)
    return max(round(count / step) * step, ceil(least / step) * step)


def rough_lines(lines: Sequence[Line], least: int) -> tuple[Line, ...]:
    """Return the lines of a ledger in rough numbers; those of different codes stay."""
    return tuple(
        replace(line, before=rough(line.before, least) or 0, after=rough(line.after, least) or 0)
        if line.unit in PEOPLE
        else line
        for line in lines
    )


def rough_notes(notes: Sequence[str], least: int) -> tuple[str, ...]:
    """Return notes in which counts are rough, and those under ``least`` not told.

    >>> rough_notes(["drug: 4,211 of 4,215 rows matched; 4 have none"], 11)
    ('drug: 4,200 of 4,200 rows matched; fewer than 11 have none',)
    """

    def told(found: re.Match[str]) -> str:
        count = rough(int(found[1].replace(",", "")), least)
        return f"fewer than {least}" if count is None else f"{count:,}"

    return tuple(_COUNT.sub(told, note) for note in notes)
