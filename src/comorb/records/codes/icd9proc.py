"""ICD-9-CM procedures: two digits, and one or two after the dot; its groups are its categories."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache, partial

from comorb.records.codes.system import CodingSystem, Normalised
from comorb.records.codes.tables import official_titles, own_table

_CODE = re.compile(r"[0-9]{2}(?:\.?[0-9]{1,2})?")
_SHORT = re.compile(r"(?P<head>[0-9])(?P<tail>\.[0-9]{1,2})")
_NUMBER = re.compile(r"[0-9]{1,4}")
_official = partial(official_titles, "ICD_9_CM_v32_master_descriptions/CMS32_DESC_LONG_SG.txt")
_categories = partial(own_table, "icd9proc_categories.csv")


def _fit(text: str) -> Normalised | None:
    """Return the canonical form; the zero lost from a dotted code is put back."""
    if _CODE.fullmatch(text):
        return Normalised(text.replace(".", ""), "ok")
    if short := _SHORT.fullmatch(text):
        return Normalised("0" + text.replace(".", ""), "repaired") if short["tail"] else None
    return None


def _mend(raws: Iterable[str]) -> Mapping[str, str]:
    """Put zeros back where a column was written as numbers.

    None of its codes begins with 0, most have four digits, and a shorter one is no code as it
    stands, but is one with zeros before it.
    """
    texts = {raw: raw.strip() for raw in raws}
    numbers = {raw: text for raw, text in texts.items() if _NUMBER.fullmatch(text)}
    whole = [text for text in numbers.values() if len(text) == 4]
    if any(text.startswith("0") for text in numbers.values()) or 2 * len(whole) < len(numbers):
        return {}
    return {
        raw: text.zfill(4)
        for raw, text in numbers.items()
        if len(text) < 4 and text not in _official() and text.zfill(4) in _official()
    }


def _category(code: str) -> str:
    return code[:2]


@cache
def _groups() -> Mapping[str, str | None]:
    return {code[:length]: code[:2] for code in _official() for length in (2, 3)}


@cache
def _titles() -> Mapping[str, str]:
    return _official() | _categories()


def _describe(code: str) -> str | None:
    return _titles().get(code) or _categories().get(_category(code))


SYSTEM = CodingSystem(
    "icd9proc",
    "ICD-9-CM procedures",
    _fit,
    _category,
    partial(own_table, "icd9proc_chapters.csv"),
    _groups,
    _describe,
    _official,
    edition=re.compile(r"(icd)?9(cm)?(proc\w*|pcs|sg|vol3)"),
    not_diseases=re.compile(r"(?!)"),
    kind="procedure",
    mend=_mend,
)
