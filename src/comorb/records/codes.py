"""Coding systems: recognise, normalise and roll up diagnosis codes.

A code is text from beginning to end: '001.0' is a code and '1E11' is not a number. The
canonical form has no dot, no padding and capital letters ('250.00 ' → '25000').
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from comorb.errors import RecordsError
from comorb.records.titles import ICD9_CHAPTERS, ICD10_CHAPTERS, full_titles, group_of, name

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

SYSTEMS = ("icd9cm", "icd10cm", "icd10", "opaque")
LEVELS = ("category", "full", "group", "chapter")

_MISSING = frozenset(
    {"", "?", ".", "-", "NULL", "NA", "N/A", "#N/A", "<NA>", "NAN", "NONE", "NIL", "\\N"}
    | {"UNK", "UNKNOWN", "MISSING", "NAT"}
)
_PADDING = re.compile(r"""^[\s'"\u200b\ufeff]+|[\s'"\u200b\ufeff]+$""")
_MARKS = re.compile(r"[.+*!#†‡–_-]+$")
_FLOAT = re.compile(r"[1-9][0-9]*\.0")
_DOTTED = re.compile(r"[0-9]+[.,][0-9]+")
_ICD9 = re.compile(
    r"(?!000)[0-9]{3}(?:\.?[0-9]{1,2})?"
    r"|V(?:0[1-9]|[1-8][0-9]|9[01])(?:\.?[0-9]{1,2})?"
    r"|E(?:0[0-2][0-9]|030|[89][0-9]{2})(?:\.?[0-9])?"
)
_ICD9_SHORT = re.compile(r"(?!0+(?:\.|$))(?P<head>[0-9]{1,2})(?P<tail>\.[0-9]{1,2})?")
_ICD9_FLOAT = re.compile(r"(?P<code>[1-9][0-9]{3,4})\.0")
_ICD10 = {
    "icd10cm": re.compile(r"[A-Z](?:[0-9][0-9A-Z]|A[0-9])(?:\.?[0-9A-Z]{1,4})?"),
    "icd10": re.compile(r"[A-Z][0-9]{2}(?:\.?[0-9]{1,3})?"),
}
_FILLER = re.compile(r"(?P<code>[A-Z][0-9][0-9A-Z])\.?X+")
_DAGGER = re.compile(r"(?P<code>[A-Z][0-9]{2}\.?[0-9X])[DA]")
_ATC = re.compile(r"[A-Z][0-9]{2}[A-WYZ]{2}(?:[0-9]{2})?")
_EUROPEAN = re.compile(r"[+*!†‡]\s*$")
_ICD_SHARE = 0.8
_UNBILLABLE_SHARE = 0.2


class Normalised(NamedTuple):
    """A code in its canonical form, and what had to be done to it.

    ``code`` is empty when ``state`` is 'missing' or 'malformed'; 'repaired' means that lost
    leading zeros were put back or that the '.0' of a number was taken off.
    """

    code: str
    state: Literal["ok", "repaired", "missing", "malformed"]


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
        Raw codes too coarse for the 'group' level: the groups of their subdivisions differ,
        so that their category stands in for the group.
    """

    of: dict[str, tuple[str, ...]]
    repaired: frozenset[str]
    malformed: frozenset[str]
    missing: frozenset[str]
    mixed: frozenset[str]


def normalise(raw: str, system: str, floats: bool = False) -> Normalised:
    """Bring a code into its canonical form.

    Parameters
    ----------
    raw
        The code as it was written.
    system
        One of `SYSTEMS`.
    floats
        The column was written as numbers: '250.0' means 250, not 250.0.

    Returns
    -------
    Normalised
        The code and its state.

    Examples
    --------
    >>> normalise(" 250.00", "icd9cm")
    Normalised(code='25000', state='ok')
    >>> normalise("38", "icd9cm")
    Normalised(code='038', state='repaired')
    >>> normalise("G01*", "icd10").code
    'G01'
    """
    _check_system(system)
    text = _PADDING.sub("", raw)
    if text.upper() in _MISSING:
        return Normalised("", "missing")
    repaired = floats and _FLOAT.fullmatch(text) is not None
    if repaired:
        text = text[:-2]
    if system != "opaque":
        text = _MARKS.sub("", text.upper().replace(",", "."))
        if not text:
            return Normalised("", "missing")
        fit = _fit_icd9(text) if system == "icd9cm" else _fit_icd10(text, system)
        if fit is None:
            return Normalised("", "malformed")
        repaired |= fit.state == "repaired"
        text = fit.code
    return Normalised(text, "repaired" if repaired else "ok")


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
    floats = _written_as_numbers(counts)
    nine = ten = both = total = 0
    tens: dict[str, int] = {}
    for raw, count in counts.items():
        as_nine = normalise(raw, "icd9cm", floats)
        if as_nine.state == "missing":
            continue
        total += count
        as_ten = normalise(raw, "icd10cm", floats)
        fits_ten = bool(as_ten.code) and not _ATC.fullmatch(as_ten.code)
        if fits_ten:
            tens[raw] = count
        both += count * bool(as_nine.code and fits_ten)
        nine += count * bool(as_nine.code and not fits_ten)
        ten += count * bool(fits_ten and not as_nine.code)
    if not total or nine + ten + both < _ICD_SHARE * total:
        return Recognition("opaque", total, total, 0)
    if ten > nine:
        return Recognition(_which_icd10(tens), ten + both, total, both)
    return Recognition("icd9cm", nine + both, total, both)


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
    _check_system(system)
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
    floats = _written_as_numbers(raws)
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


def _check_system(system: str) -> None:
    if system not in SYSTEMS:
        raise RecordsError(f"Expected a coding system out of {', '.join(SYSTEMS)}; got {system!r}.")


def _fit_icd9(text: str) -> Normalised | None:
    if _ICD9.fullmatch(text):
        return Normalised(text.replace(".", ""), "ok")
    if short := _ICD9_SHORT.fullmatch(text):
        code = short["head"].zfill(3) + (short["tail"] or "").replace(".", "")
        return Normalised(code, "repaired")
    if number := _ICD9_FLOAT.fullmatch(text):
        return Normalised(number["code"], "repaired")
    return None


def _fit_icd10(text: str, system: str) -> Normalised | None:
    if system == "icd10" and (dagger := _DAGGER.fullmatch(text)):
        text = dagger["code"]
    if filler := _FILLER.fullmatch(text):
        text = filler["code"]
    if _ICD10[system].fullmatch(text):
        return Normalised(text.replace(".", ""), "ok")
    return None


def _written_as_numbers(raw_codes: Iterable[str]) -> bool:
    """Tell whether every number among the codes ends in '.0', as a float column writes it."""
    numbers = [text for text in map(str.strip, raw_codes) if _DOTTED.fullmatch(text)]
    return len(numbers) > 1 and all(_FLOAT.fullmatch(text) for text in numbers)


def _which_icd10(counts: Mapping[str, int]) -> str:
    """Tell European from American ICD-10: dagger marks, or many codes that aren't billable."""
    known = full_titles("icd10cm")
    total = unknown = 0
    for raw, count in counts.items():
        code = normalise(raw, "icd10cm").code
        if len(code) > 3:
            total += count
            unknown += count * (code not in known)
    marked = any(_EUROPEAN.search(raw) for raw in counts)
    return "icd10" if marked or unknown > _UNBILLABLE_SHARE * total else "icd10cm"


def _chapter(category: str, system: str) -> str:
    chapters = list(ICD9_CHAPTERS if system == "icd9cm" else ICD10_CHAPTERS)
    return chapters[bisect_right(chapters, category + "~") - 1]
