"""What a part of the reproduction says: Markdown, tables and claims with a verdict."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

NUMBER = re.compile(r"[+\-−]?\d[\d,.]*(e[+-]\d+)?( ?s|%|×)?|–|")
Verdict = Literal["confirmed", "confirmed with limits", "not confirmed"]


@dataclass(frozen=True)
class Claim:
    """A claim of the paper, whether it holds here, and our number."""

    text: str
    verdict: Verdict
    evidence: str


@dataclass(frozen=True)
class Section:
    """One part of the page: a title, Markdown beneath it, and the claims it settles."""

    title: str
    body: str
    claims: tuple[Claim, ...] = ()


def judged(text: str, times: int, of: int, evidence: str) -> Claim:
    """Return a claim that held some times of all: always, at least half, or less."""
    verdict: Verdict = (
        "confirmed"
        if times == of
        else "confirmed with limits"
        if times and 2 * times >= of
        else "not confirmed"
    )
    return Claim(text, verdict, evidence)


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a Markdown table, numbers to the right.

    >>> print(table(["method", "s"], [["k-means", 1.5]]))
    | method | s |
    |---|---:|
    | k-means | 1.5 |
    """
    body = [[str(cell) for cell in row] for row in rows]
    right = [all(NUMBER.fullmatch(row[i]) for row in body) for i in range(len(header))]
    rule = "".join("---:|" if flag and body else "---|" for flag in right)
    lines = [f"| {' | '.join(header)} |", f"|{rule}"]
    return "\n".join(lines + [f"| {' | '.join(row)} |" for row in body])
