"""Recognition: the coding system of a column's values and of each code, and how sure that is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from comorb.messages import Message
from comorb.records.codes.system import CodingSystem, written_as_numbers
from comorb.records.codes.systems import SYSTEMS, coding_system, systems_by_family

_RECOGNISED_SHARE = 0.8
_LISTED_SHARE = 0.5
_CLEAR_GAIN = 0.2
_SLIGHT_LOSS = 0.05
# Fewer different numbers of one or two digits are answers or labels, not codes that lost zeros.
_MIN_REPAIRED = 10
_SHORT_NUMBER = re.compile(r"[0-9]{1,2}(\.0)?")


@dataclass(frozen=True)
class Recognition:
    """The coding system that fits a column, by its key.

    Of ``total`` values that aren't missing, ``matched`` fit it and ``ambiguous`` fit both ICD-9 and
    ICD-10, as some E and V codes do. The values fit the ``rivals`` about as well: names decide.
    """

    system: str
    matched: int
    total: int
    ambiguous: int
    rivals: tuple[str, ...] = ()


@dataclass(frozen=True)
class Fit:
    """The shares of values that have the form of a system's codes, and that it lists."""

    written: float
    listed: float


def recognise(values: Iterable[str] | Mapping[str, int]) -> Recognition:
    """Recognise the coding system of a column by its distinct codes, or each with its count.

    It is 'opaque' when fewer than four in five values look like one system, or like ICD-9 and
    ICD-10 mixed, and when a few short numbers would all need leading zeros to be codes.

    >>> recognise(["428.0", "250.00", "V45.81"])
    Recognition(system='icd9cm', matched=3, total=3, ambiguous=1, rivals=())
    >>> recognise(["38.93", "96.04", "3.31"]).system
    'icd9proc'
    """
    present, floats = _present_values(values)
    diagnoses = _recognise_diagnoses(present, floats)
    total = sum(present.values())
    if len(present) < _MIN_REPAIRED and all(map(_SHORT_NUMBER.fullmatch, map(str.strip, present))):
        return Recognition("opaque", total, total, 0)
    good: dict[str, Fit] = {}
    for key, system in SYSTEMS.items():
        if system.kind in ("procedure", "drug"):
            # Lists of codes take time to load, so the form comes first.
            matched = sum(present[raw] for raw in _normalise_values(system, present, floats))
            if matched and matched >= _RECOGNISED_SHARE * total:
                good[key] = _measure_fit(system, present, floats)
    good = {key: fit for key, fit in good.items() if fit.listed >= _LISTED_SHARE}
    if not good:
        return diagnoses
    best = max(good, key=lambda key: (good[key].listed, good[key].written))
    chosen = Recognition(best, round(good[best].written * total), total, 0)
    short = coding_system(best).kind == "drug" and all(len(raw.strip()) <= 3 for raw in present)
    if diagnoses.system == "opaque":
        return diagnoses if short else chosen
    own = _measure_fit(coding_system(diagnoses.system), present, floats)
    gain = good[best].listed - own.listed
    if gain > _CLEAR_GAIN and not short:
        return chosen
    if good[best].written < own.written - _SLIGHT_LOSS or gain < -_CLEAR_GAIN:
        return diagnoses
    return replace(diagnoses, rivals=(best,))


def fits(values: Iterable[str] | Mapping[str, int]) -> dict[str, Fit]:
    """Return how well values, or each with its count, fit each system that knows its codes.

    Values may fit several: '3893' has the form of an ICD-9 diagnosis and of an ICD-9 procedure, and
    is listed as the latter alone.

    >>> fits(["3893", "8856"])["icd9cm"], fits(["3893", "8856"])["icd9proc"]
    (Fit(written=1.0, listed=0.0), Fit(written=1.0, listed=1.0))
    """
    present, floats = _present_values(values)
    return {
        key: _measure_fit(system, present, floats)
        for key, system in SYSTEMS.items()
        if system.fit is not None
    }


def _measure_fit(system: CodingSystem, present: Mapping[str, int], floats: bool) -> Fit:
    total = max(1, sum(present.values()))
    codes = _normalise_values(system, present, floats)
    written = sum(present[raw] for raw in codes)
    listed = sum(present[raw] for raw, code in codes.items() if _is_listed(system, code))
    return Fit(written / total, listed / total)


def _present_values(values: Iterable[str] | Mapping[str, int]) -> tuple[dict[str, int], bool]:
    counts = values if isinstance(values, Mapping) else dict.fromkeys(values, 1)
    floats, opaque = written_as_numbers(counts), coding_system("opaque")
    missing = {raw for raw in counts if opaque.normalise(raw, floats).state == "missing"}
    return {raw: count for raw, count in counts.items() if raw not in missing}, floats


def _normalise_values(system: CodingSystem, raws: Collection[str], floats: bool) -> dict[str, str]:
    codes = system.normalise_all(raws, floats).items()
    return {raw: code for raw, (code, _) in codes if code and system.claims(code)}


def _is_listed(system: CodingSystem, code: str) -> bool:
    """Return whether a code is known; a country may cut or subdivide one of ICD-10."""
    if system.family == "icd10" and len(code) > 3:
        return any(system.standing(code[:length]) for length in range(len(code), 3, -1))
    if system.kind == "drug":
        return system.group_of(code) is not None
    return bool(system.standing(code))


def _recognise_diagnoses(present: Mapping[str, int], floats: bool) -> Recognition:
    """Recognise a system of diagnoses, which may be two that are mixed."""
    total = sum(present.values())
    claims = {
        name: {raw for raw in present if first.claims(first.normalise(raw, floats).code)}
        for name, (first, *_) in systems_by_family().items()
    }

    def count(raws: Iterable[str]) -> int:
        return sum(present[raw] for raw in raws)

    if not total or count(set().union(*claims.values())) < _RECOGNISED_SHARE * total:
        return Recognition("opaque", total, total, 0)
    best = max(claims, key=lambda name: count(claims[name]))
    own = {raw: present[raw] for raw in claims[best]}
    system = next(one for one in reversed(systems_by_family()[best]) if one.is_likely(own))
    matched = count(raw for raw in present if system.normalise(raw, floats).code)
    several = [raw for raw in present if sum(raw in some for some in claims.values()) > 1]
    return Recognition(system.key, matched, total, count(several))


Raw = tuple[str | None, str]
# Ends an edition that is inferred from the date of a row, not stated.
PROBABLE_MARK = "?"

_MAX_SAMPLE_CODES = 2000
_MIXED_SHARE = 0.01
_FULL_CODE_SHARE = 0.8
_AGREEMENT_SHARE = 0.9


def assign_systems(
    counts: Mapping[Raw, int], system: str | None
) -> tuple[dict[Raw, str], tuple[str, ...]]:
    """Return the coding system of each raw code, and notes on what was doubtful.

    ``counts`` are by system, or None, and raw code. A system that ends in `PROBABLE_MARK` decides
    where a code may be of either edition, if it is right for nine in ten of the others. ``system``
    is that of codes without one, recognised when None.
    """
    loose: Counter[str] = Counter()
    for raw, count in counts.items():
        if not _stated_system(raw):
            loose[raw[1]] += count
    usual = sorted(loose, key=lambda code: (-loose[code], code))[:_MAX_SAMPLE_CODES]
    seen = None if system else recognise({code: loose[code] for code in usual})
    main = system or (seen.system if seen else "opaque")
    systems = {raw: _stated_system(raw) or main for raw in counts}
    notes: list[str] = [
        Message("note.rival_system", rival=rival, main=main)
        for rival in (seen.rivals if seen else ())
    ]
    if system is None and loose and coding_system(main).family:
        others = _find_strays(loose, main)
        systems |= {
            raw: others[raw[1]] for raw in counts if not _stated_system(raw) and raw[1] in others
        }
        by_date = _systems_by_date(counts, systems)
        systems |= by_date
        if others:
            dated = sum(counts[raw] for raw in by_date)
            notes.append(_describe_mixed(loose, main, next(iter(others.values())), dated))
    for stated in sorted({key for raw in counts if (key := _stated_system(raw))}):
        codes = {code: count for (edition, code), count in counts.items() if edition == stated}
        moved = _find_contradicted(codes, stated)
        systems.update({(stated, code): key for code, key in moved.items()})
        for key in sorted(set(moved.values())):
            mentions = sum(codes[code] for code in moved if moved[code] == key)
            notes.append(Message("note.contradicted", n=mentions, said=stated, key=key))
    return systems, tuple(notes)


def _describe_mixed(loose: Mapping[str, int], main: str, other: str, dated: int) -> str:
    """Return the note on two editions in a column without versions; dates decided on some."""
    higher = _compare_systems(loose, main, other)
    listed = sum(loose[code] for code, gain in higher.items() if gain)
    doubtful = sum(loose[code] for code in higher) - listed
    parts = [Message("note.mixed", main=main, other=other, n=doubtful - dated)]
    parts += [Message("note.mixed_by_list", n=listed)] if listed else []
    parts += [Message("note.mixed_by_date", n=dated)] if dated else []
    return Message("note.mixed_name_version", parts=parts)


def count_undecided(counts: Mapping[Raw, int], systems: Mapping[Raw, str]) -> int:
    """Return how many mentions without an edition fit both of two that are mixed."""
    return sum(counts[raw] for raw in _find_undecided(systems) if raw[0] is None)


def _stated_system(raw: Raw) -> str | None:
    return None if raw[0] is None or raw[0].endswith(PROBABLE_MARK) else raw[0]


def _find_undecided(systems: Mapping[Raw, str]) -> list[Raw]:
    """Return the raw codes that two editions know equally well, where both occur."""
    if len(set(systems.values())) < 2:
        return []
    loose = [raw for raw in systems if not _stated_system(raw)]
    keys = sorted({systems[raw] for raw in loose if coding_system(systems[raw]).family})
    if len(keys) < 2:
        return []
    higher = _compare_systems({code for _, code in loose}, keys[0], keys[1])
    return [raw for raw in loose if higher.get(raw[1]) == 0]


def _systems_by_date(counts: Mapping[Raw, int], systems: Mapping[Raw, str]) -> dict[Raw, str]:
    """Return the edition of undecided codes by the date of their rows, if dates fit the others."""
    undecided = set(_find_undecided(systems))
    dated = {
        raw: raw[0].removesuffix(PROBABLE_MARK)
        for raw in systems
        if raw[0] and not _stated_system(raw)
    }
    others = [raw for raw in dated if raw not in undecided]
    right = sum(counts[raw] for raw in others if dated[raw] == systems[raw])
    if right < _AGREEMENT_SHARE * sum(counts[raw] for raw in others):
        return {}
    return {raw: key for raw, key in dated.items() if raw in undecided}


def _rival_systems(key: str) -> list[CodingSystem]:
    """Return the first system of each other family."""
    own = coding_system(key).family
    return [some[0] for name, some in systems_by_family().items() if name != own]


def _find_strays(loose: Mapping[str, int], main: str) -> dict[str, str]:
    """Return the codes of another edition in a column without versions.

    The column is mixed when one mention in a hundred is none of the main system; then a code that
    fits both is of the edition that lists it.
    """
    own = coding_system(main)

    def mentions(codes: Iterable[str]) -> int:
        return sum(loose[code] for code in codes)

    foreign = [code for code in loose if own.normalise(code).state == "malformed"]
    strays = {
        rival.key: [code for code in foreign if rival.normalise(code).code]
        for rival in _rival_systems(main)
    }
    other = max(strays, key=lambda key: mentions(strays[key]))
    if mentions(strays[other]) < _MIXED_SHARE * mentions(loose):
        return {}
    gains = _compare_systems(loose, main, other)
    listed = [code for code, gain in gains.items() if gain > 0]
    return dict.fromkeys([*strays[other], *listed], other)


def _find_contradicted(codes: Mapping[str, int], stated: str) -> dict[str, str]:
    """Return the codes of a stated edition that another edition alone lists, with that edition."""
    own = coding_system(stated)
    if not own.family:
        return {}
    listed = {code for code in codes if own.standing_of(code) == 2}
    if sum(codes[code] for code in listed) < _FULL_CODE_SHARE * sum(codes.values()):
        return {}  # codes are truncated, and in no list
    return {
        code: other.key
        for other in _rival_systems(stated)
        for code in codes
        if code not in listed and other.standing_of(code) == 2
    }


def _compare_systems(codes: Iterable[str], main: str, other: str) -> dict[str, int]:
    """Return the codes that fit two systems, each with how much better the other one knows it."""
    one, two = coding_system(main), coding_system(other)
    both = (code for code in codes if one.normalise(code).code and two.normalise(code).code)
    return {code: two.standing_of(code) - one.standing_of(code) for code in both}
