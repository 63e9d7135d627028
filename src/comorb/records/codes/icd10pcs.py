"""ICD-10-PCS: procedures of seven characters, each of which is an axis.

A category is section, body system and operation; a group section and body system; a chapter the
section.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache, partial

from comorb.records.codes.system import CodingSystem, Normalised
from comorb.records.codes.tables import official_titles, own_table

_CODE = re.compile(r"[0-9BCDFGHX][0-9A-HJ-NP-Z]{6}")
_official = partial(official_titles, "ICD_10_CM_2024_release/icd10pcs-codes-2024.txt")
_parts = partial(own_table, "icd10pcs_parts.csv")
_operations = partial(own_table, "icd10pcs_operations.csv")


def _fit(text: str) -> Normalised | None:
    return Normalised(text, "ok") if _CODE.fullmatch(text) else None


def _category(code: str) -> str:
    return code[:3]


@cache
def _groups() -> Mapping[str, str | None]:
    return {code[:3]: code[:2] for code in _official()}


@cache
def _titles() -> Mapping[str, str]:
    sections = own_table("icd10pcs_sections.csv")
    parts = {code: f"{sections[code[0]]}: {title}" for code, title in _parts().items()}
    return parts | _official()


def _describe(code: str) -> str | None:
    """Return the title, or else the operation and where it is done."""
    if code in _titles():
        return _titles()[code]
    operation, part = _operations().get(code[:1] + code[2:3]), _parts().get(code[:2])
    return f"{operation}: {part}" if operation and part else None


SYSTEM = CodingSystem(
    "icd10pcs",
    "ICD-10-PCS",
    _fit,
    _category,
    partial(own_table, "icd10pcs_sections.csv"),
    _groups,
    _describe,
    _official,
    url="Coding/ICD10",
    edition=re.compile(r"(icd)?10(cm)?(pcs|proc\w*)"),
    not_diseases=re.compile(r"(?!)"),
    kind="procedure",
)
