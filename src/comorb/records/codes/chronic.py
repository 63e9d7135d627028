"""Chronic conditions: the Chronic Condition Indicators, of ICD-9-CM and, refined, of ICD-10-CM."""

from __future__ import annotations

import re
from functools import cache

from comorb.records.codes.system import nearest
from comorb.records.codes.tables import mapping_file, with_prefixes

_LINE_OF_ICD9 = re.compile(r"'(?P<code>\w+) *',.*,'(?P<chronic>[01])','\w+ *' *")
_LINE_OF_ICD10 = re.compile(r"'(?P<code>\w+) *',.*,(?P<chronic>[019])")


def icd9_indicator(code: str) -> bool | None:
    """Tell whether an ICD-9-CM code is chronic; None when its subdivisions differ."""
    return nearest(_indicators("cci2015.csv", _LINE_OF_ICD9), code)


def icd10_indicator(code: str) -> bool | None:
    """Tell whether an ICD-10 code is chronic; None when that isn't determined."""
    return nearest(_indicators("CCIR_v2023-1.csv", _LINE_OF_ICD10), code)


@cache
def _indicators(file: str, line: re.Pattern[str]) -> dict[str, bool | None]:
    rows = map(line.fullmatch, mapping_file(file).splitlines())
    determined = {"1": True, "0": False}
    return with_prefixes({row["code"]: determined.get(row["chronic"]) for row in rows if row})
