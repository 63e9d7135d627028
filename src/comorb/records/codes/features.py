"""Features: recognise the coding system of a column, and map its raw codes to features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from comorb.records.codes.system import written_as_numbers
from comorb.records.codes.systems import coding_system, families

_RECOGNISED_SHARE = 0.8


@dataclass(frozen=True)
class Recognition:
    """The key of the system that fits a column, and how many of its values do.

    ``total`` are the values that aren't missing; ``ambiguous`` are those that fit both ICD-9 and
    ICD-10, as some E and V codes do.
    """

    system: str
    matched: int
    total: int
    ambiguous: int


@dataclass(frozen=True)
class Features:
    """What the raw codes of a column become: their features, one a level, none for unusable ones.

    The sets say to which raw codes something happened. ``mixed`` are those without one group,
    mostly as the groups of their subdivisions differ: their category stands in for it.
    """

    of: dict[str, tuple[str, ...]]
    repaired: frozenset[str]
    malformed: frozenset[str]
    missing: frozenset[str]
    mixed: frozenset[str]


def recognise(values: Iterable[str] | Mapping[str, int]) -> Recognition:
    """Recognise the coding system of a column by its distinct codes, or by each with its count.

    It is 'opaque' when fewer than four in five values look like ICD-9 or ICD-10.

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
    """Map the distinct raw codes of a column to features at one or several levels.

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

    by_group = "group" in levels and coding.fit is not None
    usable = {raw: code for raw, (code, _) in codes.items() if code and by_group}
    return Features(
        of={raw: features(code) if code else () for raw, (code, _) in codes.items()},
        repaired=in_state("repaired"),
        malformed=in_state("malformed"),
        missing=in_state("missing"),
        mixed=frozenset(raw for raw, code in usable.items() if coding.group_of(code) is None),
    )
