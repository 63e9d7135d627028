"""Coding systems: recognise them, roll codes up, and map raw codes to features."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from comorb.errors import RecordsError
from comorb.records.codes.notation import (
    SYSTEMS,
    Normalised,
    check_system,
    normalise,
    written_as_numbers,
)
from comorb.records.codes.titles import ICD9_CHAPTERS, ICD10_CHAPTERS, full_titles, group_of, name

__all__ = [
    "LEVELS",
    "SYSTEMS",
    "Features",
    "Normalised",
    "Recognition",
    "featurise",
    "name",
    "normalise",
    "recognise",
    "roll_up",
]

LEVELS = ("category", "full", "group", "chapter")

_ATC = re.compile(r"[A-Z][0-9]{2}[A-WYZ]{2}(?:[0-9]{2})?")
_EUROPEAN = re.compile(r"[+*!†‡]\s*$")
_ICD_SHARE = 0.8
_UNBILLABLE_SHARE = 0.2


@dataclass(frozen=True)
class Recognition:
    """The coding system that fits a column.

    Attributes
    ----------
    system
        One of `SYSTEMS`.
    matched
        Values that fit the system.
    total
        Values that are not missing.
    ambiguous
        Values that fit both ICD-9 and ICD-10, as some E and V codes do.
    """

    system: str
    matched: int
    total: int
    ambiguous: int


@dataclass(frozen=True)
class Features:
    """What the raw codes of a column become.

    Attributes
    ----------
    of
        For each raw code its features, one a level; empty for missing and malformed codes.
    repaired, malformed, missing
        The raw codes to which that happened.
    mixed
        Raw codes without one group at the 'group' level, mostly because they are too coarse
        and the groups of their subdivisions differ: their category stands in for the group.
    """

    of: dict[str, tuple[str, ...]]
    repaired: frozenset[str]
    malformed: frozenset[str]
    missing: frozenset[str]
    mixed: frozenset[str]


def recognise(values: Iterable[str] | Mapping[str, int]) -> Recognition:
    """Recognise the coding system of a column.

    Parameters
    ----------
    values
        The distinct codes of the column, or each with its count.

    Returns
    -------
    Recognition
        'opaque' when fewer than four in five values look like ICD-9 or ICD-10.

    Examples
    --------
    >>> recognise(["428.0", "250.00", "V45.81"])
    Recognition(system='icd9cm', matched=3, total=3, ambiguous=1)
    """
    counts = values if isinstance(values, Mapping) else dict.fromkeys(values, 1)
    floats = written_as_numbers(counts)
    present = {
        raw: count
        for raw, count in counts.items()
        if normalise(raw, "opaque", floats).state != "missing"
    }
    total = sum(present.values())
    nines = {raw for raw in present if normalise(raw, "icd9cm", floats).code}
    tens = {raw for raw in present if _looks_like_icd10(raw)}

    def count(raws: Iterable[str]) -> int:
        return sum(present[raw] for raw in raws)

    if not total or count(nines | tens) < _ICD_SHARE * total:
        return Recognition("opaque", total, total, 0)
    system = "icd9cm"
    if count(tens) > count(nines):
        system = _which_icd10({raw: present[raw] for raw in tens})
    matched = count(raw for raw in present if normalise(raw, system, floats).code)
    return Recognition(system, matched, total, ambiguous=count(nines & tens))


def roll_up(code: str, system: str, level: str) -> str:
    """Roll a canonical code up to a level.

    Parameters
    ----------
    code
        A code from `normalise`.
    system
        One of `SYSTEMS`; an opaque code is the same at every level.
    level
        'category' (3 characters, 4 for ICD-9 E codes), 'full', 'group' (CCS or CCSR) or
        'chapter'.

    Returns
    -------
    str
        The category or code, a group such as 'CCS108' or 'CIR019', or a chapter such as
        '390-459' or 'I00-I99': no two levels share a text with two meanings.

    Examples
    --------
    >>> roll_up("42823", "icd9cm", "category"), roll_up("42823", "icd9cm", "group")
    ('428', 'CCS108')
    """
    check_system(system)
    if level not in LEVELS:
        raise RecordsError(f"Expected a level out of {', '.join(LEVELS)}; got {level!r}.")
    if system == "opaque" or level == "full":
        return code
    category = code[:4] if system == "icd9cm" and code.startswith("E") else code[:3]
    if level == "category":
        return category
    if level == "group":
        return group_of(code, system) or category
    return _chapter(category, system)


def featurise(raw_codes: Iterable[str], system: str, levels: Iterable[str]) -> Features:
    """Map the distinct raw codes of a column to features.

    Parameters
    ----------
    raw_codes
        The codes as they were written.
    system
        One of `SYSTEMS`.
    levels
        One or several of `LEVELS`.

    Returns
    -------
    Features
        The features of each raw code, and which raw codes were repaired, malformed, missing
        or too coarse.

    Examples
    --------
    >>> featurise(["428.0", "?"], "icd9cm", ["category", "chapter"]).of
    {'428.0': ('428', '390-459'), '?': ()}
    """
    raws = list(dict.fromkeys(raw_codes))
    levels = tuple(levels)
    floats = written_as_numbers(raws)
    codes = {raw: normalise(raw, system, floats) for raw in raws}

    def in_state(state: str) -> frozenset[str]:
        return frozenset(raw for raw, code in codes.items() if code.state == state)

    def features(code: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(roll_up(code, system, level) for level in levels))

    by_group = "group" in levels and system != "opaque"
    return Features(
        of={raw: features(code) if code else () for raw, (code, _) in codes.items()},
        repaired=in_state("repaired"),
        malformed=in_state("malformed"),
        missing=in_state("missing"),
        mixed=frozenset(
            raw
            for raw, (code, _) in codes.items()
            if by_group and code and group_of(code, system) is None
        ),
    )


def _looks_like_icd10(raw: str) -> bool:
    code = normalise(raw, "icd10cm").code
    return bool(code) and not _ATC.fullmatch(code)


def _which_icd10(counts: Mapping[str, int]) -> str:
    """Tell European from American ICD-10 by its marks, and by how many codes are billable."""
    if any(_EUROPEAN.search(raw) for raw in counts):
        return "icd10"
    billable = full_titles("icd10cm")
    american = unknown = 0
    for raw, count in counts.items():
        code = normalise(raw, "icd10cm").code
        if len(code) > 3:
            only = code in billable or not normalise(raw, "icd10").code
            american += count * only
            unknown += count * (not only)
    return "icd10" if unknown > _UNBILLABLE_SHARE * (american + unknown) else "icd10cm"


def _chapter(category: str, system: str) -> str:
    chapters = list(ICD9_CHAPTERS if system == "icd9cm" else ICD10_CHAPTERS)
    return chapters[bisect_right(chapters, category + "~") - 1]
