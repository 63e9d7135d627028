"""Features: the raw codes of a column, each with what it becomes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from comorb.records.codes.own_map import CodeMap
from comorb.records.codes.system import CodingSystem, Normalised, written_as_numbers
from comorb.records.codes.systems import coding_system

NOT_CHRONIC = "not chronic"
NOT_DETERMINED = "not determined to be chronic"
NOT_MAPPED = "not in the map"


@dataclass(frozen=True)
class Features:
    """What the raw codes of a column become: their features, one a level, none for unusable ones.

    The sets say to which raw codes something happened. ``mixed`` are those without one group,
    mostly as the groups of their subdivisions differ: their category stands in for it; ``unshared``
    those without a group at the 'common' level, which keep their category. ``left_out`` are well
    formed and left out, by the reason; for ``covered`` ones a line of the map has groups that a
    nearer one hasn't. ``names`` are those of features that aren't codes of the system, which all
    systems share; ``codes`` has the canonical form of each raw code that has one.
    """

    of: dict[str, tuple[str, ...]]
    repaired: frozenset[str]
    malformed: frozenset[str]
    missing: frozenset[str]
    mixed: frozenset[str]
    unshared: frozenset[str]
    left_out: dict[str, frozenset[str]]
    covered: frozenset[str]
    names: dict[str, str]
    codes: dict[str, str]


def featurise(
    raw_codes: Iterable[str],
    system: str,
    levels: Iterable[str],
    *,
    code_map: CodeMap | None = None,
    chronic: bool = False,
) -> Features:
    """Map the distinct raw codes of a column to features at one or several levels.

    The groups of ``code_map`` take the place of the levels; ``chronic`` leaves out the codes that
    aren't of chronic conditions.

    >>> featurise(["428.0", "?"], "icd9cm", ["category", "chapter"]).of
    {'428.0': ('428', '390-459'), '?': ()}
    """
    raws = list(dict.fromkeys(raw_codes))
    levels = tuple(levels)
    coding = coding_system(system)
    normal = _normalised(raws, coding)
    codes = {raw: code for raw, (code, _) in normal.items() if code}

    def in_state(state: str) -> set[str]:
        return {raw for raw, (_, said) in normal.items() if said == state}

    left_out = _not_chronic(codes, coding) if chronic else {}
    kept = set(codes).difference(*left_out.values())
    malformed = in_state("malformed")
    if code_map is None:
        rolled = {raw: _rolled(code, coding, levels) for raw, code in codes.items()}
        of = {raw: tuple(rolled[raw]) if raw in kept else () for raw in raws}
        names = {code: name for some in rolled.values() for code, name in some.items() if name}
        covered: set[str] = set()
    else:
        index = code_map.index(coding)
        of = {raw: index.groups(codes[raw]) if raw in kept else () for raw in raws}
        of |= {raw: groups for raw in malformed if (groups := index.exact(raw))}
        malformed -= {raw for raw, groups in of.items() if groups}
        left_out[NOT_MAPPED] = frozenset(raw for raw in kept if not of[raw])
        names = code_map.titles
        covered = {raw for raw in kept if index.is_covered(codes[raw])}
    by_level = {raw: code for raw, code in codes.items() if raw in kept and code_map is None}
    by_group = by_level if "group" in levels and coding.fit is not None else {}
    by_meaning = by_level if "common" in levels else {}
    return Features(
        of,
        frozenset(in_state("repaired")),
        frozenset(malformed),
        frozenset(in_state("missing")),
        frozenset(raw for raw, code in by_group.items() if coding.group_of(code) is None),
        frozenset(raw for raw, code in by_meaning.items() if not coding.shared(code)),
        left_out,
        frozenset(covered),
        names,
        codes,
    )


def _normalised(raws: Sequence[str], coding: CodingSystem) -> dict[str, Normalised]:
    """Return the canonical form of each raw code, with the zeros that a column lost."""
    floats = written_as_numbers(raws)
    mended = coding.mend(raws) if coding.mend else {}
    normal = {raw: coding.normalise(mended.get(raw, raw), floats) for raw in raws}
    return normal | {raw: Normalised(normal[raw].code, "repaired") for raw in mended}


def _rolled(code: str, coding: CodingSystem, levels: Sequence[str]) -> dict[str, str]:
    """Return the features of a code, each with its name where it isn't a code of the system."""
    features: dict[str, str] = {}
    for level in levels:
        shared = coding.shared(code) if level == "common" else ()
        if level == "common" and coding.common and not shared:
            category = coding.roll_up(code, "category")
            features.setdefault(f"{coding.key}:{category}", coding.name(category))
        elif shared:
            features |= {group: coding.name(group) for group in shared}
        else:
            features.setdefault(coding.roll_up(code, level), "")
    return features


def _not_chronic(codes: Mapping[str, str], coding: CodingSystem) -> dict[str, frozenset[str]]:
    """Return the raw codes that aren't of chronic conditions, by the reason."""
    if coding.chronic is None:
        return {}
    said = {raw: coding.chronic(code) for raw, code in codes.items()}
    reasons = {NOT_CHRONIC: False, NOT_DETERMINED: None}
    return {
        reason: frozenset(raw for raw, chronic in said.items() if chronic is value)
        for reason, value in reasons.items()
    }
