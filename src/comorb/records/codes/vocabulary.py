"""Vocabulary: the distinct codes of a source, as written, become the features of a cohort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from comorb.records.codes.features import Features, featurise, name, normalise, recognise

_MIXED_SHARE = 0.01
_COMMON = 2000

Raw = tuple[str | None, str]


@dataclass(frozen=True)
class Vocabulary:
    """Which features each raw code becomes, and how many mentions were repaired or lost.

    ``places`` has a row for each raw code and a column for each level: the number of the
    feature, or -1. ``malformed`` and ``missing`` mark raw codes that have none;
    ``warning`` says when two systems are mixed without a column that tells them apart.
    """

    codes: tuple[str, ...]
    names: tuple[str, ...]
    system: str
    places: NDArray[np.int32]
    malformed: NDArray[np.bool_]
    missing: NDArray[np.bool_]
    notes: tuple[str, ...]
    warning: str | None


def build_vocabulary(
    counts: Mapping[Raw, int],
    system: str | None,
    levels: Sequence[str],
    titles: Mapping[str, str],
) -> Vocabulary:
    """Turn raw codes, each with the edition it is said to be from and its count, into features.

    Parameters
    ----------
    counts : mapping of (system or None, raw code) to count
        The distinct codes as they are written; one that nothing mentions has no feature.
    system : str, optional
        The coding system of those without an edition; recognised when None.
    levels : sequence of str
        One or several levels; each gives a feature.
    titles : mapping of raw code to name
        Names that the source brings along.
    """
    systems, fits, warning = _fit({raw: n for raw, n in counts.items() if n}, system, levels)
    used = sorted(fits)

    def feature(code: str, its: str) -> str:
        return code if len(used) == 1 else f"{its}:{code}"

    homes = {feature(f, one): (f, one) for one in used for fs in fits[one].of.values() for f in fs}
    codes = tuple(sorted(homes))
    number = {code: place for place, code in enumerate(codes)}
    places = np.full((len(counts), max(1, len(levels))), -1, dtype=np.int32)
    malformed, missing = np.zeros((2, len(counts)), dtype=bool)
    for row, raw in enumerate(counts):
        if raw in systems:
            its, code = systems[raw], raw[1]
            found = [number[feature(one, its)] for one in fits[its].of[code]]
            places[row, : len(found)] = found
            malformed[row] = code in fits[its].malformed
            missing[row] = code in fits[its].missing
    return Vocabulary(
        codes,
        tuple(titles.get(code) or name(*homes[code]) for code in codes),
        "+".join(used) or "opaque",
        places,
        malformed,
        missing,
        _told(counts, systems, fits),
        warning,
    )


def _fit(
    counts: Mapping[Raw, int], system: str | None, levels: Sequence[str]
) -> tuple[dict[Raw, str], dict[str, Features], str | None]:
    """Return the system of each raw code, the features in each system, and a warning if mixed."""
    loose = {code: count for (edition, code), count in counts.items() if edition is None}
    common = sorted(loose, key=lambda code: (-loose[code], code))[:_COMMON]
    main = system or recognise({code: loose[code] for code in common}).system
    systems = {raw: raw[0] or main for raw in counts}
    by_system: dict[str, list[str]] = {}
    for raw, its in systems.items():
        by_system.setdefault(its, []).append(raw[1])
    fits = {its: featurise(codes, its, levels) for its, codes in by_system.items()}
    if system or main == "opaque" or not loose:
        return systems, fits, None
    other = "icd10cm" if main == "icd9cm" else "icd9cm"
    strays = [code for code in fits[main].malformed & set(loose) if normalise(code, other).code]
    if sum(loose[code] for code in strays) < _MIXED_SHARE * sum(loose.values()):
        return systems, fits, None
    systems.update({(None, code): other for code in strays})
    fits[other] = featurise([*by_system.get(other, []), *strays], other, levels)
    warning = (
        f"{main} and {other} are mixed and no column says which is which: "
        f"{recognise(loose).ambiguous:,} mentions fit both and were taken as {main}; name the "
        "column with the version"
    )
    return systems, fits, warning


def _told(
    counts: Mapping[Raw, int], systems: Mapping[Raw, str], fits: Mapping[str, Features]
) -> tuple[str, ...]:
    def mentions(kind: str) -> int:
        those = {one: getattr(fit, kind) for one, fit in fits.items()}
        return sum(counts[raw] for raw, its in systems.items() if raw[1] in those[its])

    repaired, mixed = mentions("repaired"), mentions("mixed")
    notes = []
    if repaired:
        notes.append(f"{repaired:,} codes repaired: lost leading zeros, or the '.0' of a number")
    if mixed:
        notes.append(f"{mixed:,} codes too coarse for a group: their category stands in for it")
    return tuple(notes)
