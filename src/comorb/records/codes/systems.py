"""The coding systems that are known: to add one, write its module and name it in `SYSTEMS`."""

from __future__ import annotations

import re

from comorb.errors import RecordsError
from comorb.records.codes import atc, icd9, icd10
from comorb.records.codes.system import OPAQUE, CodingSystem

# The first of a family is the default.
SYSTEMS: dict[str, CodingSystem] = {
    system.key: system
    for system in (
        *(icd9.DIAGNOSES, icd10.DIAGNOSES, icd10.EUROPEAN, icd9.PROCEDURES, icd10.PROCEDURES),
        atc.SYSTEM,
        OPAQUE,
    )
}
# The system of procedures that belongs to one of diagnoses.
PROCEDURES = {"icd9cm": "icd9proc", "icd10cm": "icd10pcs", "icd10": "icd10pcs"}


def coding_system(key: str) -> CodingSystem:
    """Return a coding system by its key; one that isn't in `SYSTEMS` is refused.

    >>> coding_system("icd9cm").normalise(" 250.00")
    NormalisedCode(code='25000', state='ok')
    >>> coding_system("icd9cm").roll_up("42823", "group")
    'CCS108'
    >>> coding_system("icd9cm").name("390-459")
    'Diseases of the circulatory system'
    """
    if key not in SYSTEMS:
        raise RecordsError("codes.system", systems=SYSTEMS, key=key)
    return SYSTEMS[key]


def systems_by_kind(text: str) -> dict[str, str]:
    """Return the systems of the records' own codes, under '', and of each other kind.

    >>> systems_by_kind("icd9cm drug:atc")
    {'': 'icd9cm', 'drug': 'atc'}
    """
    words = [word.rpartition(":") for word in text.split()]
    return {kind: keys for kind, _, keys in words}


def format_systems(text: str) -> str:
    """Return the titles of one system or several; nothing for opaque codes.

    >>> format_systems("icd10cm+icd9cm drug:atc")
    'ICD-10-CM + ICD-9-CM + ATC'
    """
    keys = [key for some in systems_by_kind(text).values() for key in some.split("+")]
    known = [SYSTEMS[key] for key in dict.fromkeys(keys) if key in SYSTEMS]
    return " + ".join(system.title for system in known if system.fit)


def systems_by_family() -> dict[str, list[CodingSystem]]:
    """Return the systems that can be recognised by their codes, by family."""
    together: dict[str, list[CodingSystem]] = {}
    for system in SYSTEMS.values():
        if system.family:
            together.setdefault(system.family, []).append(system)
    return together


def system_by_edition(value: str) -> str | None:
    """Return the coding system that a value of a version column means."""
    text = re.sub(r"[^a-z0-9]", "", value.lower())
    known = ((key, system.edition) for key, system in SYSTEMS.items() if system.edition)
    return next((key for key, edition in known if edition.fullmatch(text)), None)


def system_by_url(url: str | None) -> str | None:
    """Return the coding system that a URL means, 'opaque' for one that isn't known."""
    if not url:
        return None
    named = [system for system in SYSTEMS.values() if system.url and system.url in url]
    return max(named, key=lambda system: len(system.url)).key if named else "opaque"
