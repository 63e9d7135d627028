"""ICD-10: diagnoses of the American ICD-10-CM and as Europe writes them, and ICD-10-PCS procedures.

Groups of diagnoses are those of the CCSR. European codes have fewer digits, and dagger and asterisk
marks; their names and groups are those of the American codes. A procedure has seven characters: its
category is section, body system and operation, its group section and body system.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from html import unescape
from importlib.metadata import distribution
from pathlib import Path

from comorb.records.codes.icd9 import read_ccs
from comorb.records.codes.system import CodingSystem, NormalisedCode, nearest_entry
from comorb.records.codes.tables import (
    add_prefixes,
    icd10_is_chronic,
    read_equivalents,
    read_mapping_file,
    read_official_titles,
    read_titles,
)

GEM = "icd10cmtoicd9gem.csv"


def _common_groups(code: str) -> tuple[str, ...]:
    return nearest_entry(_common_group_table(), code) or ()


@cache
def _common_group_table() -> dict[str, tuple[str, ...] | None]:
    """Return the CCS groups of codes by their ICD-9 equivalents, and of prefixes that agree."""
    groups = read_ccs()[0]
    exact = {}
    for code, choices in read_equivalents(GEM).items():
        usual = {
            _most_common_group(groups[one] for one in some if one in groups) for some in choices
        }
        exact[code] = tuple(sorted(group for group in usual if group))
    return add_prefixes({code: some for code, some in exact.items() if some})


def _most_common_group(groups: Iterable[str]) -> str:
    """Return the group of most codes of a choice, the first by name when several are."""
    counts = Counter(groups)
    return min(counts, key=lambda group: (-counts[group], group), default="")


_CODE = re.compile(r"[A-Z](?:[0-9][0-9A-Z]|A[0-9])(?:\.?[0-9A-Z]{1,4})?")
_DRUG = re.compile(r"[A-Z][0-9]{2}[A-WYZ]{2}(?:[0-9]{2})?")
_FILLER = re.compile(r"(?P<code>[A-Z][0-9][0-9A-Z])\.?X+")
billable = partial(read_official_titles, "ICD_10_CM_2024_release/icd10cm-codes-2024.txt")


def normalise_icd10(text: str, pattern: re.Pattern[str] = _CODE) -> NormalisedCode | None:
    """Return the canonical form, without the fillers of a code such as 'I10X'."""
    if filler := _FILLER.fullmatch(text):
        text = filler["code"]
    return NormalisedCode(text.replace(".", ""), "ok") if pattern.fullmatch(text) else None


@cache
def _group_table() -> dict[str, str | None]:
    return add_prefixes(json.loads(read_mapping_file("ICD10_CM_CCSR/dx_cat1_mapping.json")))


@cache
def _all_titles() -> dict[str, str]:
    return read_ccs()[1] | read_titles("ccsr_groups.csv") | billable()


@cache
def _listed_codes() -> Collection[str]:
    """Return the codes of the last year, and those of earlier years that are mapped."""
    return {*billable(), *read_equivalents(GEM)}


def _describe_code(code: str) -> str | None:
    if code in _all_titles():
        return _all_titles()[code]
    titles, coined = _read_tabular_list()
    if code in coined:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            import simple_icd_10_cm as tree
        return str(tree.get_description(code))
    return titles.get(code, titles.get(code[:3]))


@cache
def _read_tabular_list() -> tuple[dict[str, str], Collection[str]]:
    """Return the titles of the tabular list, and the codes whose titles it has in parts alone."""
    # The files of simple-icd-10-cm are read, since importing it takes seconds.
    data = Path(str(distribution("simple-icd-10-cm").locate_file("simple_icd_10_cm/data")))
    text = next(data.glob("*.xml")).read_text(encoding="utf-8")
    found = re.findall(r"<diag[^>]*>\s*<name>([^<]+)</name>\s*<desc>([^<]*)</desc>", text)
    titles = {name.replace(".", ""): unescape(title) for name, title in found}
    codes = next(data.glob("*.txt")).read_text(encoding="utf-8").split()
    return titles, {code for code in codes if code not in titles}


DIAGNOSES = CodingSystem(
    "icd10cm",
    "ICD-10-CM",
    normalise_icd10,
    lambda code: code[:3],
    partial(read_titles, "icd10_chapters.csv"),
    _group_table,
    _describe_code,
    _listed_codes,
    family="icd10",
    claims=lambda code: bool(code) and not _DRUG.fullmatch(code),  # many drugs look like one
    url="icd-10-cm",
    edition=re.compile(r"(icd)?(10|100)(cm)?|0"),
    not_diseases=re.compile(r"[R-Z][0-9]|(SYM|FAC|EXT|UNS)[0-9]"),
    kind="diagnosis",
    common=_common_groups,
    chronic=icd10_is_chronic,
)


_EUROPEAN = re.compile(r"[A-Z][0-9]{2}(?:\.?[0-9]{1,3})?")
_DAGGER = re.compile(r"(?P<code>[A-Z][0-9]{2}\.?[0-9X])[DA]")
_DAGGER_MARK = re.compile(r"[+*!†‡]\s*$")
_UNBILLABLE_SHARE = 0.2


def _normalise_european(text: str) -> NormalisedCode | None:
    """Return the canonical form, without letters that stand for dagger and asterisk."""
    dagger = _DAGGER.fullmatch(text)
    return normalise_icd10(dagger["code"] if dagger else text, _EUROPEAN)


def _is_likely(counts: Mapping[str, int]) -> bool:
    """Return whether codes are European, by their marks or by how many America can't bill."""
    if any(_DAGGER_MARK.search(raw) for raw in counts):
        return True
    total = unbillable = 0
    for raw, count in counts.items():
        code = DIAGNOSES.normalise(raw).code
        if len(code) > 3:
            total += count
            unbillable += count * (code not in billable() and bool(EUROPEAN.normalise(raw).code))
    return unbillable > _UNBILLABLE_SHARE * total


EUROPEAN = replace(
    DIAGNOSES,
    key="icd10",
    title="ICD-10",
    fit=_normalise_european,
    is_likely=_is_likely,
    url="icd-10",
    edition=None,
)


_PROCEDURE = re.compile(r"[0-9BCDFGHX][0-9A-HJ-NP-Z]{6}")
_official_procedures = partial(
    read_official_titles, "ICD_10_CM_2024_release/icd10pcs-codes-2024.txt"
)
_part_titles = partial(read_titles, "icd10pcs_parts.csv")
_operation_titles = partial(read_titles, "icd10pcs_operations.csv")


def _normalise_procedure(text: str) -> NormalisedCode | None:
    return NormalisedCode(text, "ok") if _PROCEDURE.fullmatch(text) else None


@cache
def _procedure_groups() -> Mapping[str, str | None]:
    return {code[:3]: code[:2] for code in _official_procedures()}


@cache
def _procedure_titles() -> Mapping[str, str]:
    sections = read_titles("icd10pcs_sections.csv")
    parts = {code: f"{sections[code[0]]}: {title}" for code, title in _part_titles().items()}
    return parts | _official_procedures()


def _describe_procedure(code: str) -> str | None:
    """Return the title, or else the operation and the body part."""
    if code in _procedure_titles():
        return _procedure_titles()[code]
    operation, part = _operation_titles().get(code[:1] + code[2:3]), _part_titles().get(code[:2])
    return f"{operation}: {part}" if operation and part else None


PROCEDURES = CodingSystem(
    "icd10pcs",
    "ICD-10-PCS",
    _normalise_procedure,
    lambda code: code[:3],
    partial(read_titles, "icd10pcs_sections.csv"),
    _procedure_groups,
    _describe_procedure,
    _official_procedures,
    url="Coding/ICD10",
    edition=re.compile(r"(icd)?10(cm)?(pcs|proc\w*)"),
    not_diseases=re.compile(r"(?!)"),
    kind="procedure",
)
