"""The ledger: what became of every input row, code, record and feature.

Four quantities are followed, each as a chain of lines in which one line ends where the next
begins: ``rows`` of the input, ``codes`` found in them, ``records`` of the cohort and
``features`` (the codes that are its columns). A chain with a gap would be a silent loss.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any, Literal

from comorb.messages import Message, pack, unpack
from comorb.model.tabular import Tabular

Unit = Literal["rows", "codes", "records", "features"]
UNITS: tuple[Unit, ...] = ("rows", "codes", "records", "features")
PROBLEM_LIMIT = 100
NO_UNIQUE_ID = Message("note.row_numbers")


def relaxed_note(least: int) -> Message:
    """Return the note on records that need fewer codes than usual."""
    return Message("note.least_relaxed", limit=least, option="--at-least N")


@dataclass(frozen=True)
class Line:
    """One rule and how many of a unit were there before and after it."""

    unit: Unit
    rule: str
    before: int
    after: int

    @property
    def removed(self) -> int:
        """How many the rule took away."""
        return self.before - self.after

    def __str__(self) -> str:
        removed = f" (−{self.removed:,})" if self.removed else ""
        return f"{self.unit:<9}{self.after:>12,}  {self.rule}{removed}"


@dataclass(frozen=True)
class Problem:
    """One cell that couldn't be used: its place and the reason, never its value."""

    row: int
    column: str
    reason: str


@dataclass(frozen=True)
class Ledger(Tabular):
    """Lines in the order in which they happened, the first problems, and notes for the reader.

    Lines are a chain for each unit and count in full; of the cells that couldn't be used, at most
    ``PROBLEM_LIMIT`` are named.
    """

    lines: tuple[Line, ...] = ()
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def start(cls, records: int, features: int, rule: str = Message("ledger.made")) -> Ledger:
        """Begin the chains of a cohort that comes from no file."""
        return cls().open("records", rule, records).open("features", rule, features)

    def of_part(self, records: int, features: int) -> Ledger:
        """Return the ledger of a part of these records."""
        numbered = [NO_UNIQUE_ID] if NO_UNIQUE_ID in self.notes else []
        return Ledger.start(records, features, Message("ledger.read")).noted(*numbered)

    def open(self, unit: Unit, rule: str, count: int) -> Ledger:
        """Return a ledger with the first line of a chain."""
        return self.add(unit, rule, count, count)

    def less(self, unit: Unit, rule: str, removed: int) -> Ledger:
        """Return a ledger with so many fewer of a unit, or the same one when none are."""
        before = self.left(unit) or 0
        return self.add(unit, rule, before, before - removed) if removed else self

    def add(self, unit: Unit, rule: str, before: int, after: int) -> Ledger:
        """Return a ledger with one more line."""
        return replace(self, lines=(*self.lines, Line(unit, rule, before, after)))

    def noted(self, *notes: str) -> Ledger:
        """Return a ledger with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    def chain(self, unit: Unit) -> tuple[Line, ...]:
        """Return the lines of one unit."""
        return tuple(line for line in self.lines if line.unit == unit)

    def left(self, unit: Unit) -> int | None:
        """Return how many of a unit are left, or None when it was not followed."""
        chain = self.chain(unit)
        return chain[-1].after if chain else None

    @property
    def adds_up(self) -> bool:
        """Whether every chain is without gaps, and no count grows."""
        chains = [self.chain(unit) for unit in UNITS]
        return all(0 <= line.after <= line.before for line in self.lines) and all(
            one.after == two.before for chain in chains for one, two in pairwise(chain)
        )

    def __add__(self, other: Ledger) -> Ledger:
        """Return the ledger of two parts of one source, to which the same rules were applied.

        Rules keep their order, and one that took nothing from a part may be missing there. Features
        and problems are not those of a part, and are left out.
        """
        whole = Ledger(notes=tuple(dict.fromkeys((*self.notes, *other.notes))))
        for unit in UNITS[:-1]:
            chains = self.chain(unit), other.chain(unit)
            rules: list[str] = []
            for chain in chains:
                place = 0
                for line in chain:
                    if line.rule not in rules:
                        rules.insert(place, line.rule)
                    place = rules.index(line.rule) + 1
            left = sum(chain[0].before for chain in chains if chain)
            for rule in rules:
                lines = [line for chain in chains for line in chain if line.rule == rule]
                gone = sum(line.removed for line in lines)
                whole, left = whole.add(unit, rule, left, left - gone), left - gone
        return whole

    def columns(self) -> dict[str, list[Any]]:
        """Return a row for each rule, by columns."""
        names = ("unit", "rule", "before", "after")
        return {name: [getattr(line, name) for line in self.lines] for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return the ledger as plain lists and dictionaries, for JSON."""
        plain: dict[str, Any] = pack(asdict(self))
        return plain

    @classmethod
    def from_dict(cls, plain: dict[str, Any]) -> Ledger:
        """Return the ledger that ``to_dict`` made plain; TypeError for what it can't have made."""
        plain = unpack(plain)
        lines = tuple(Line(**line) for line in plain["lines"])
        problems = tuple(Problem(**problem) for problem in plain["problems"])
        notes = tuple(plain["notes"])
        counts = [count for line in lines for count in (line.before, line.after)]
        counts += [problem.row for problem in problems]
        texts = [text for line in lines for text in (line.unit, line.rule)]
        texts += [text for one in problems for text in (one.column, one.reason)]
        if not (
            all(type(one) is int for one in counts)
            and all(isinstance(one, str) for one in (*texts, *notes))
        ):
            raise TypeError("a ledger holds counts and texts alone")
        return cls(lines, problems, notes)

    def __str__(self) -> str:
        return "\n".join([*map(str, self.lines), *(f"note: {note}" for note in self.notes)])
