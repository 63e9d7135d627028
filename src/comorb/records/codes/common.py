"""Common groups: one meaning for codes of ICD-9-CM and of ICD-10.

They are the CCS groups of ICD-9-CM. A code of ICD-10 has those of the ICD-9 codes that the general
equivalence mappings give for it: one group, or several where it says what took several codes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cache

from comorb.records.codes.icd9cm import ccs
from comorb.records.codes.system import nearest
from comorb.records.codes.tables import equivalents, with_prefixes

GEM = "icd10cmtoicd9gem.csv"


def common_titles() -> dict[str, str]:
    """Return the title of each common group."""
    return ccs()[1]


def icd10_groups(code: str) -> tuple[str, ...]:
    """Return the common groups of an ICD-10 code.

    A code above the finest level has the groups on which all its subdivisions agree, one below it
    those of its nearest known parent.
    """
    return nearest(_groups(), code) or ()


@cache
def _groups() -> dict[str, tuple[str, ...] | None]:
    groups = ccs()[0]
    exact = {}
    for code, choices in equivalents(GEM).items():
        usual = {_usual(groups[one] for one in some if one in groups) for some in choices}
        exact[code] = tuple(sorted(group for group in usual if group))
    return with_prefixes({code: some for code, some in exact.items() if some})


def _usual(groups: Iterable[str]) -> str:
    """Return the group of most codes of a choice, the first by name when several are."""
    counts = Counter(groups)
    return min(counts, key=lambda group: (-counts[group], group), default="")
