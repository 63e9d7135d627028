"""ICD-10-CM: the American modification of the ICD-10; groups are those of the CCSR."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Collection
from functools import cache, partial
from html import unescape
from importlib.metadata import distribution
from pathlib import Path

from comorb.records.codes.chronic import icd10_indicator
from comorb.records.codes.common import GEM, common_titles, icd10_groups
from comorb.records.codes.system import CodingSystem, Normalised
from comorb.records.codes.tables import (
    equivalents,
    mapping_file,
    official_titles,
    own_table,
    with_prefixes,
)

_CODE = re.compile(r"[A-Z](?:[0-9][0-9A-Z]|A[0-9])(?:\.?[0-9A-Z]{1,4})?")
_DRUG = re.compile(r"[A-Z][0-9]{2}[A-WYZ]{2}(?:[0-9]{2})?")
_FILLER = re.compile(r"(?P<code>[A-Z][0-9][0-9A-Z])\.?X+")
billable = partial(official_titles, "ICD_10_CM_2024_release/icd10cm-codes-2024.txt")


def fit(text: str, pattern: re.Pattern[str] = _CODE) -> Normalised | None:
    """Return the canonical form, without the fillers of a code such as 'I10X'."""
    if filler := _FILLER.fullmatch(text):
        text = filler["code"]
    return Normalised(text.replace(".", ""), "ok") if pattern.fullmatch(text) else None


def _is_no_drug(code: str) -> bool:
    """Tell a code from those of the ATC, many of which could be one."""
    return bool(code) and not _DRUG.fullmatch(code)


@cache
def _groups() -> dict[str, str | None]:
    return with_prefixes(json.loads(mapping_file("ICD10_CM_CCSR/dx_cat1_mapping.json")))


@cache
def _titles() -> dict[str, str]:
    return common_titles() | own_table("ccsr_groups.csv") | billable()


@cache
def _listed() -> Collection[str]:
    """Return the codes of the last year, and those of earlier years that are mapped."""
    return {*billable(), *equivalents(GEM)}


def _describe(code: str) -> str | None:
    if code in _titles():
        return _titles()[code]
    titles, coined = _tabular()
    if code in coined:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            import simple_icd_10_cm as tree
        return str(tree.get_description(code))
    return titles.get(code, titles.get(code[:3]))


@cache
def _tabular() -> tuple[dict[str, str], Collection[str]]:
    """Return the titles of the tabular list, and the codes whose titles it has in parts alone.

    To import simple-icd-10-cm takes seconds, which are for those few: its files are read instead.
    """
    data = Path(str(distribution("simple-icd-10-cm").locate_file("simple_icd_10_cm/data")))
    text = next(data.glob("*.xml")).read_text(encoding="utf-8")
    found = re.findall(r"<diag[^>]*>\s*<name>([^<]+)</name>\s*<desc>([^<]*)</desc>", text)
    titles = {name.replace(".", ""): unescape(title) for name, title in found}
    codes = next(data.glob("*.txt")).read_text(encoding="utf-8").split()
    return titles, {code for code in codes if code not in titles}


def _category(code: str) -> str:
    return code[:3]


SYSTEM = CodingSystem(
    "icd10cm",
    "ICD-10-CM",
    fit,
    _category,
    partial(own_table, "icd10_chapters.csv"),
    _groups,
    _describe,
    _listed,
    family="icd10",
    claims=_is_no_drug,
    url="icd-10-cm",
    edition=re.compile(r"(icd)?(10|100)(cm)?|0"),
    not_diseases=re.compile(r"[R-Z][0-9]|(SYM|FAC|EXT|UNS)[0-9]"),
    kind="diagnosis",
    common=icd10_groups,
    chronic=icd10_indicator,
)
