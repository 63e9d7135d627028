"""Vocabulary: the distinct codes of a source, as written, become the features of a cohort."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from comorb.model.arrays import Indices, Mask
from comorb.records.codes.features import Features, featurise, recognise
from comorb.records.codes.systems import coding_system, families

_MIXED_SHARE = 0.01
_COMMON = 2000
_STATES = {
    "repaired": "codes repaired: lost leading zeros, or the '.0' of a number",
    "mixed": "codes too coarse for a group: their category stands in for it",
}

Raw = tuple[str | None, str]


@dataclass(frozen=True)
class Vocabulary:
    """Which features each raw code becomes, and how many mentions were repaired or lost.

    ``places`` has a row for each raw code and a column for each level: the number of the
    feature, or -1. ``malformed`` and ``missing`` mark raw codes that have none; ``notes`` are
    for the ledger.
    """

    codes: tuple[str, ...]
    names: tuple[str, ...]
    system: str
    places: Indices
    malformed: Mask
    missing: Mask
    notes: tuple[str, ...]


def build_vocabulary(
    counts: Mapping[Raw, int],
    system: str | None,
    levels: Sequence[str],
    titles: Mapping[str, str],
) -> Vocabulary:
    """Turn raw codes, each with the edition it is said to be from and its count, into features.

    A code that nothing mentions has no feature. ``system`` is that of the codes without an edition,
    recognised when None; each level gives a feature; ``titles`` are names that the source brings.
    """
    mentioned = {raw: count for raw, count in counts.items() if count}
    systems, fits, notes = _fit(mentioned, system, levels)
    keys = sorted(fits)

    def feature(code: str, key: str) -> str:
        return code if len(keys) == 1 else f"{key}:{code}"

    origins = {
        feature(code, key): (code, key)
        for key in keys
        for several in fits[key].of.values()
        for code in several
    }
    codes = tuple(sorted(origins))
    number = {code: place for place, code in enumerate(codes)}
    places = np.full((len(counts), max(1, len(levels))), -1, dtype=np.int32)
    malformed, missing = np.zeros((2, len(counts)), dtype=bool)
    for row, raw in enumerate(counts):
        if raw in systems:
            key, text = systems[raw], raw[1]
            numbers = [number[feature(code, key)] for code in fits[key].of[text]]
            places[row, : len(numbers)] = numbers
            malformed[row] = text in fits[key].malformed
            missing[row] = text in fits[key].missing

    def name(code: str) -> str:
        plain, key = origins[code]
        return titles.get(code) or coding_system(key).name(plain)

    return Vocabulary(
        codes,
        tuple(name(code) for code in codes),
        "+".join(keys) or "opaque",
        places,
        malformed,
        missing,
        (*notes, *_repairs(counts, systems, fits)),
    )


def _fit(
    counts: Mapping[Raw, int], system: str | None, levels: Sequence[str]
) -> tuple[dict[Raw, str], dict[str, Features], list[str]]:
    """Return the system of each raw code, the features in each system, and a note if mixed."""
    loose = {code: count for (edition, code), count in counts.items() if edition is None}
    common = sorted(loose, key=lambda code: (-loose[code], code))[:_COMMON]
    main = system or recognise({code: loose[code] for code in common}).system
    systems = {raw: raw[0] or main for raw in counts}
    by_system: dict[str, list[str]] = {}
    for raw, key in systems.items():
        by_system.setdefault(key, []).append(raw[1])
    fits = {key: featurise(codes, key, levels) for key, codes in by_system.items()}
    family = coding_system(main).family
    if system or not family or not loose:
        return systems, fits, []
    malformed = fits[main].malformed & set(loose)

    def strays(key: str) -> list[str]:
        return [code for code in malformed if coding_system(key).normalise(code).code]

    def mentions(codes: Sequence[str]) -> int:
        return sum(loose[code] for code in codes)

    rivals = [some[0].key for name, some in families().items() if name != family]
    other = max(rivals, key=lambda key: mentions(strays(key)))
    if mentions(strays(other)) < _MIXED_SHARE * sum(loose.values()):
        return systems, fits, []
    systems.update({(None, code): other for code in strays(other)})
    fits[other] = featurise([*by_system.get(other, []), *strays(other)], other, levels)
    note = (
        f"{main} and {other} are mixed and no column says which is which: "
        f"{recognise(loose).ambiguous:,} mentions fit both and were taken as {main}; name the "
        "column with the version"
    )
    return systems, fits, [note]


def _repairs(
    counts: Mapping[Raw, int], systems: Mapping[Raw, str], fits: Mapping[str, Features]
) -> list[str]:
    def mentions(state: str) -> int:
        codes = {key: getattr(features, state) for key, features in fits.items()}
        return sum(counts[raw] for raw, key in systems.items() if raw[1] in codes[key])

    return [f"{count:,} {note}" for state, note in _STATES.items() if (count := mentions(state))]
