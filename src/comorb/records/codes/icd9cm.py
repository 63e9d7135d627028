"""ICD-9-CM: numbers of three to five digits, V and E codes; groups are those of the CCS."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache, partial

from comorb.records.codes.chronic import icd9_indicator
from comorb.records.codes.system import CodingSystem, Normalised, nearest
from comorb.records.codes.tables import (
    equivalents,
    mapping_file,
    official_titles,
    own_table,
    with_prefixes,
)

_CODE = re.compile(
    r"(?!000)[0-9]{3}(?:\.?[0-9]{1,2})?"
    r"|V(?:0[1-9]|[1-8][0-9]|9[01])(?:\.?[0-9]{1,2})?"
    r"|E(?:0[0-2][0-9]|030|[89][0-9]{2})(?:\.?[0-9])?"
)
_SHORT = re.compile(r"(?!0+(?:\.|$))(?P<head>[0-9]{1,2})(?P<tail>\.[0-9]{1,2})?")
_FLOAT = re.compile(r"(?P<code>[1-9][0-9]{3,4})\.0")
_CCS_LINE = re.compile(r"(?P<number>[0-9]+)\s+(?P<title>\S.*)")
_OFFICIAL = "ICD_9_CM_v32_master_descriptions/CMS32_DESC_LONG_DX.txt"


def _fit(text: str) -> Normalised | None:
    """Return the canonical form; zeros lost from a short code are put back."""
    if _CODE.fullmatch(text):
        return Normalised(text.replace(".", ""), "ok")
    if short := _SHORT.fullmatch(text):
        code = short["head"].zfill(3) + (short["tail"] or "").replace(".", "")
        return Normalised(code, "repaired")
    if number := _FLOAT.fullmatch(text):
        return Normalised(number["code"], "repaired")
    return None


def _category(code: str) -> str:
    return code[:4] if code.startswith("E") else code[:3]


@cache
def _groups() -> dict[str, str | None]:
    return with_prefixes(ccs()[0])


@cache
def ccs() -> tuple[dict[str, str], dict[str, str]]:
    """Return the CCS group of each code and the title of each group."""
    groups, titles, current = {}, {}, ""
    for line in mapping_file("CCS-SingleDiagnosisGrouper.txt").splitlines():
        if heading := _CCS_LINE.fullmatch(line):
            current = f"CCS{heading['number']}"
            titles[current] = heading["title"].strip()
        elif current:
            groups.update(dict.fromkeys(line.split(), current))
    return groups, titles


_categories = partial(own_table, "icd9_categories.csv")


@cache
def _titles() -> dict[str, str]:
    return ccs()[1] | official_titles(_OFFICIAL) | _categories()


@cache
def _listed() -> Collection[str]:
    """Return the codes of the last year, and those of earlier years that are mapped."""
    return {*official_titles(_OFFICIAL), *ccs()[0], *equivalents("icd9toicd10cmgem.csv")}


def _common(code: str) -> tuple[str, ...]:
    """Return the CCS group, which is the one that ICD-10 codes share."""
    group = nearest(_groups(), code)
    return (group,) if group else ()


def _describe(code: str) -> str | None:
    return _titles().get(code) or _categories().get(_category(code))


SYSTEM = CodingSystem(
    "icd9cm",
    "ICD-9-CM",
    _fit,
    _category,
    partial(own_table, "icd9_chapters.csv"),
    _groups,
    _describe,
    _listed,
    family="icd9",
    url="icd-9",
    edition=re.compile(r"(icd)?0?9(cm)?(0)?"),
    not_diseases=re.compile(r"[VE][0-9]|7[89][0-9]|CCS(10|45|24[5-9]|25[0-9]|26[0-9]+)$"),
    kind="diagnosis",
    common=_common,
    chronic=icd9_indicator,
)
