"""ICD-9-CM: diagnoses of three to five digits, V and E codes; procedures of two to four digits.

Groups of diagnoses are those of the CCS; those of procedures are their categories.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import cache, partial

from comorb.records.codes.system import CodingSystem, NormalisedCode, nearest_entry
from comorb.records.codes.tables import (
    add_prefixes,
    icd9_is_chronic,
    read_equivalents,
    read_mapping_file,
    read_official_titles,
    read_titles,
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


def _normalise(text: str) -> NormalisedCode | None:
    """Return the canonical form, with the zeros that a short code lost."""
    if _CODE.fullmatch(text):
        return NormalisedCode(text.replace(".", ""), "ok")
    if short := _SHORT.fullmatch(text):
        code = short["head"].zfill(3) + (short["tail"] or "").replace(".", "")
        return NormalisedCode(code, "repaired")
    if number := _FLOAT.fullmatch(text):
        return NormalisedCode(number["code"], "repaired")
    return None


def _category(code: str) -> str:
    return code[:4] if code.startswith("E") else code[:3]


@cache
def _group_table() -> dict[str, str | None]:
    return add_prefixes(read_ccs()[0])


@cache
def read_ccs() -> tuple[dict[str, str], dict[str, str]]:
    """Return the CCS group of each code and the title of each group."""
    groups, titles, current = {}, {}, ""
    for line in read_mapping_file("CCS-SingleDiagnosisGrouper.txt").splitlines():
        if heading := _CCS_LINE.fullmatch(line):
            current = f"CCS{heading['number']}"
            titles[current] = heading["title"].strip()
        elif current:
            groups.update(dict.fromkeys(line.split(), current))
    return groups, titles


_category_titles = partial(read_titles, "icd9_categories.csv")


@cache
def _all_titles() -> dict[str, str]:
    return read_ccs()[1] | read_official_titles(_OFFICIAL) | _category_titles()


@cache
def _listed_codes() -> Collection[str]:
    """Return the codes of the last year, and those of earlier years that are mapped."""
    return {
        *read_official_titles(_OFFICIAL),
        *read_ccs()[0],
        *read_equivalents("icd9toicd10cmgem.csv"),
    }


def _common_groups(code: str) -> tuple[str, ...]:
    """Return the CCS group, which is the one that ICD-10 codes share."""
    group = nearest_entry(_group_table(), code)
    return (group,) if group else ()


def _describe_code(code: str) -> str | None:
    return _all_titles().get(code) or _category_titles().get(_category(code))


DIAGNOSES = CodingSystem(
    "icd9cm",
    "ICD-9-CM",
    _normalise,
    _category,
    partial(read_titles, "icd9_chapters.csv"),
    _group_table,
    _describe_code,
    _listed_codes,
    family="icd9",
    url="icd-9",
    edition=re.compile(r"(icd)?0?9(cm)?(0)?"),
    not_diseases=re.compile(r"[VE][0-9]|7[89][0-9]|CCS(10|45|24[5-9]|25[0-9]|26[0-9]+)$"),
    kind="diagnosis",
    common=_common_groups,
    chronic=icd9_is_chronic,
)


_PROCEDURE = re.compile(r"[0-9]{2}(?:\.?[0-9]{1,2})?")
_SHORT_PROCEDURE = re.compile(r"[0-9]\.[0-9]{1,2}")
_DIGITS = re.compile(r"[0-9]{1,4}")
_official_procedures = partial(
    read_official_titles, "ICD_9_CM_v32_master_descriptions/CMS32_DESC_LONG_SG.txt"
)
_procedure_categories = partial(read_titles, "icd9proc_categories.csv")


def _normalise_procedure(text: str) -> NormalisedCode | None:
    """Return the canonical form, with the zero that a dotted code lost."""
    if _PROCEDURE.fullmatch(text):
        return NormalisedCode(text.replace(".", ""), "ok")
    if _SHORT_PROCEDURE.fullmatch(text):
        return NormalisedCode("0" + text.replace(".", ""), "repaired")
    return None


def _restore_zeros(raws: Iterable[str]) -> Mapping[str, str]:
    """Restore the zeros of a column that was written as numbers.

    None of its codes begins with 0, most have four digits, and a shorter one is a code with zeros
    before it alone.
    """
    texts = {raw: raw.strip() for raw in raws}
    numbers = {raw: text for raw, text in texts.items() if _DIGITS.fullmatch(text)}
    whole = [text for text in numbers.values() if len(text) == 4]
    if any(text.startswith("0") for text in numbers.values()) or 2 * len(whole) < len(numbers):
        return {}
    return {
        raw: text.zfill(4)
        for raw, text in numbers.items()
        if len(text) < 4
        and text not in _official_procedures()
        and text.zfill(4) in _official_procedures()
    }


@cache
def _procedure_groups() -> Mapping[str, str | None]:
    return {code[:length]: code[:2] for code in _official_procedures() for length in (2, 3)}


def _describe_procedure(code: str) -> str | None:
    return _official_procedures().get(code) or _procedure_categories().get(code[:2])


PROCEDURES = CodingSystem(
    "icd9proc",
    "ICD-9-CM procedures",
    _normalise_procedure,
    lambda code: code[:2],
    partial(read_titles, "icd9proc_chapters.csv"),
    _procedure_groups,
    _describe_procedure,
    _official_procedures,
    edition=re.compile(r"(icd)?9(cm)?(proc\w*|pcs|sg|vol3)"),
    not_diseases=re.compile(r"(?!)"),
    kind="procedure",
    restore_zeros=_restore_zeros,
)
