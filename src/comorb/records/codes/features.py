"""Features: recognise the coding system of a column, and map its raw codes to features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from comorb.records.codes.system import written_as_numbers
from comorb.records.codes.systems import coding_system, families

_RECOGNISED_SHARE = 0.8


@dataclass(frozen=True)
class Recognition:
    """The coding system that fits a column.

    Attributes
    ----------
    system
        The key of a coding system.
    matched
        Values that fit the system.
    total
        Values that are not missing.
    ambiguous
        Values that fit both ICD-9 and ICD-10, as some E and V codes do.
    """

    system: str
    matched: int
    total: int
    ambiguous: int


@dataclass(frozen=True)
class Features:
    """What the raw codes of a column become.

    Attributes
    ----------
    of
        For each raw code its features, one a level; empty for missing and malformed codes.
    repaired, malformed, missing
        The raw codes to which that happened.
    mixed
        Raw codes without one group at the 'group' level, mostly because they are too coarse
        and the groups of their subdivisions differ: their category stands in for the group.
    """

    of: dict[str, tuple[str, ...]]
    repaired: frozenset[str]
    malformed: frozenset[str]
    missing: frozenset[str]
    mixed: frozenset[str]


def recognise(values: Iterable[str] | Mapping[str, int]) -> Recognition:
    """Recognise the coding system of a column.

    Parameters
    ----------
    values
        The distinct codes of the column, or each with its count.

    Returns
    -------
    Recognition
        'opaque' when fewer than four in five values look like ICD-9 or ICD-10.

    Examples
    --------
    >>> recognise(["428.0", "250.00", "V45.81"])
    Recognition(system='icd9cm', matched=3, total=3, ambiguous=1)
    """
    counts = values if isinstance(values, Mapping) else dict.fromkeys(values, 1)
    floats = written_as_numbers(counts)
    opaque = coding_system("opaque")
    present = {
        raw: count
        for raw, count in counts.items()
        if opaque.normalise(raw, floats).state != "missing"
    }
    total = sum(present.values())
    claims = {
        name: {raw for raw in present if first.claims(first.normalise(raw, floats).code)}
        for name, (first, *_) in families().items()
    }

    def count(raws: Iterable[str]) -> int:
        return sum(present[raw] for raw in raws)

    if not total or count(set().union(*claims.values())) < _RECOGNISED_SHARE * total:
        return Recognition("opaque", total, total, 0)
    best = max(claims, key=lambda name: count(claims[name]))
    own = {raw: present[raw] for raw in claims[best]}
    system = next(one for one in reversed(families()[best]) if one.is_likely(own))
    matched = count(raw for raw in present if system.normalise(raw, floats).code)
    several = [raw for raw in present if sum(raw in some for some in claims.values()) > 1]
    return Recognition(system.key, matched, total, count(several))


def featurise(raw_codes: Iterable[str], system: str, levels: Iterable[str]) -> Features:
    """Map the distinct raw codes of a column to features.

    Parameters
    ----------
    raw_codes
        The codes as they were written.
    system
        The key of a coding system.
    levels
        One or several of 'category', 'full', 'group' and 'chapter'.

    Returns
    -------
    Features
        The features of each raw code, and which raw codes were repaired, malformed, missing
        or too coarse.

    Examples
    --------
    >>> featurise(["428.0", "?"], "icd9cm", ["category", "chapter"]).of
    {'428.0': ('428', '390-459'), '?': ()}
    """
    raws = list(dict.fromkeys(raw_codes))
    levels = tuple(levels)
    floats = written_as_numbers(raws)
    coding = coding_system(system)
    codes = {raw: coding.normalise(raw, floats) for raw in raws}

    def in_state(state: str) -> frozenset[str]:
        return frozenset(raw for raw, code in codes.items() if code.state == state)

    def features(code: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(coding.roll_up(code, level) for level in levels))

    by_group = "group" in levels and coding.grammar is not None
    usable = {raw: code for raw, (code, _) in codes.items() if code and by_group}
    return Features(
        of={raw: features(code) if code else () for raw, (code, _) in codes.items()},
        repaired=in_state("repaired"),
        malformed=in_state("malformed"),
        missing=in_state("missing"),
        mixed=frozenset(raw for raw, code in usable.items() if coding.group_of(code) is None),
    )
