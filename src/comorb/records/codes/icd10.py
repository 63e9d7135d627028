"""ICD-10 as Europe writes it: fewer digits, and dagger and asterisk marks.

Names and groups are those of the American codes, which are the nearest that are tabled.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from comorb.records.codes import icd10cm
from comorb.records.codes.system import CodingSystem, Normalised

_CODE = re.compile(r"[A-Z][0-9]{2}(?:\.?[0-9]{1,3})?")
_DAGGER = re.compile(r"(?P<code>[A-Z][0-9]{2}\.?[0-9X])[DA]")
_MARKED = re.compile(r"[+*!†‡]\s*$")
_UNBILLABLE_SHARE = 0.2


def _fit(text: str) -> Normalised | None:
    """Return the canonical form; letters that stand for dagger and asterisk go."""
    dagger = _DAGGER.fullmatch(text)
    return icd10cm.fit(dagger["code"] if dagger else text, _CODE)


def _is_likely(counts: Mapping[str, int]) -> bool:
    """Tell European codes by their marks, or by how many are not billable in America."""
    if any(_MARKED.search(raw) for raw in counts):
        return True
    billable = icd10cm.billable()
    total = unbillable = 0
    for raw, count in counts.items():
        code = icd10cm.SYSTEM.normalise(raw).code
        if len(code) > 3:
            total += count
            unbillable += count * (code not in billable and bool(SYSTEM.normalise(raw).code))
    return unbillable > _UNBILLABLE_SHARE * total


SYSTEM = CodingSystem(
    "icd10",
    "ICD-10",
    replace(icd10cm.GRAMMAR, fit=_fit),
    family="icd10",
    claims=icd10cm.is_no_drug,
    is_likely=_is_likely,
    url="icd-10",
    not_diseases=icd10cm.SYSTEM.not_diseases,
    kind="diagnosis",
    common=icd10cm.SYSTEM.common,
    chronic=icd10cm.SYSTEM.chronic,
)
