"""Vocabulary: the distinct codes of a source, as written, become the features of a cohort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from comorb.records.codes import Features, featurise, name, normalise, recognise

_MIXED_SHARE = 0.01

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
        The distinct codes as they are written.
    system : str, optional
        The coding system of those without an edition; recognised when None.
    levels : sequence of str
        One or several levels; each gives a feature.
    titles : mapping of raw code to name
        Names that the source brings along.
    """
    systems, warning = _systems(counts, system)
    used = sorted(set(systems.values()))
    fits: dict[str, Features] = {
        one: featurise((code for (_, code), its in systems.items() if its == one), one, levels)
        for one in used
    }

    def feature(code: str, its: str) -> str:
        return code if len(used) == 1 else f"{its}:{code}"

    found = [[feature(f, its) for f in fits[its].of[raw[1]]] for raw, its in systems.items()]
    codes = tuple(sorted({one for several in found for one in several}))
    number = {code: place for place, code in enumerate(codes)}
    places = np.full((len(found), max(1, len(levels))), -1, dtype=np.int32)
    for row, several in enumerate(found):
        places[row, : len(several)] = [number[one] for one in several]
    homes = {feature(f, one): (f, one) for one in used for fs in fits[one].of.values() for f in fs}
    return Vocabulary(
        codes,
        tuple(titles.get(code) or name(*homes[code]) for code in codes),
        "+".join(used) or "opaque",
        places,
        np.array([raw[1] in fits[its].malformed for raw, its in systems.items()], dtype=bool),
        np.array([raw[1] in fits[its].missing for raw, its in systems.items()], dtype=bool),
        _told(counts, systems, fits),
        warning,
    )


def _systems(counts: Mapping[Raw, int], system: str | None) -> tuple[dict[Raw, str], str | None]:
    """Return the coding system of each raw code, and what is to be said about the choice."""
    open_counts = {code: count for (edition, code), count in counts.items() if edition is None}
    seen = recognise(open_counts)
    main = system or seen.system
    systems = {raw: raw[0] or main for raw in counts}
    if system or main == "opaque":
        return systems, None
    other = "icd10cm" if main == "icd9cm" else "icd9cm"
    strays = {
        code: count
        for code, count in open_counts.items()
        if normalise(code, main).state == "malformed" and normalise(code, other).code
    }
    if sum(strays.values()) < _MIXED_SHARE * max(1, seen.total):
        return systems, None
    systems.update({(None, code): other for code in strays})
    note = (
        f"{main} and {other} are mixed and no column says which is which: {seen.ambiguous:,} "
        f"mentions fit both and were taken as {main}; name the column with the version"
    )
    return systems, note


def _told(
    counts: Mapping[Raw, int], systems: Mapping[Raw, str], fits: Mapping[str, Features]
) -> tuple[str, ...]:
    def mentions(kind: str) -> int:
        return sum(n for raw, n in counts.items() if raw[1] in getattr(fits[systems[raw]], kind))

    repaired, mixed = mentions("repaired"), mentions("mixed")
    notes = []
    if repaired:
        notes.append(f"{repaired:,} codes repaired: lost leading zeros, or the '.0' of a number")
    if mixed:
        notes.append(f"{mixed:,} codes too coarse for a group: their category stands in for it")
    return tuple(notes)
