"""Editions: the coding system of each code, by what is said of it and by the published lists."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from comorb.records.codes.recognition import recognise
from comorb.records.codes.systems import coding_system, families

Raw = tuple[str | None, str]
# Ends an edition that isn't said of a code, but for which the day of its row speaks.
PROBABLY = "?"

_COMMON = 2000
_MIXED_SHARE = 0.01
_IN_FULL = 0.8
_AGREE = 0.9


def settle_editions(
    counts: Mapping[Raw, int], system: str | None
) -> tuple[dict[Raw, str], tuple[str, ...]]:
    """Return the coding system of each raw code, and notes on what was doubtful.

    Parameters
    ----------
    counts : mapping of (system or None, raw code) to count
        The distinct codes as they are written. A system that ends in `PROBABLY` counts where a code
        may be of either edition, and if it is right of nine in ten of the others.
    system : str, optional
        The coding system of those of which nothing is said; recognised when None.
    """
    loose: Counter[str] = Counter()
    for raw, count in counts.items():
        if not _said(raw):
            loose[raw[1]] += count
    usual = sorted(loose, key=lambda code: (-loose[code], code))[:_COMMON]
    seen = None if system else recognise({code: loose[code] for code in usual})
    main = system or (seen.system if seen else "opaque")
    systems = {raw: _said(raw) or main for raw in counts}
    notes = [
        f"the codes fit {rival} as well as {main}, as which they were read; name the coding system"
        for rival in (seen.rivals if seen else ())
    ]
    if system is None and loose and coding_system(main).family:
        others = _strays(loose, main)
        systems |= {raw: others[raw[1]] for raw in counts if not _said(raw) and raw[1] in others}
        systems |= _by_date(counts, systems)
        notes += [_told(loose, main, others, counts, systems)] if others else []
    for said in sorted({key for raw in counts if (key := _said(raw))}):
        codes = {code: count for (edition, code), count in counts.items() if edition == said}
        moved = _contradicted(codes, said)
        systems.update({(said, code): key for code, key in moved.items()})
        for key in sorted(set(moved.values())):
            mentions = sum(codes[code] for code in moved if moved[code] == key)
            notes.append(
                f"{mentions:,} mentions are said to be {said}, but are in the list of {key} alone "
                f"and were read as {key}; check the column with the version"
            )
    return systems, tuple(notes)


def _told(
    loose: Mapping[str, int],
    main: str,
    others: Mapping[str, str],
    counts: Mapping[Raw, int],
    systems: Mapping[Raw, str],
) -> str:
    """Return what the ledger says of two editions in a column without versions."""
    other = next(iter(others.values()))
    higher, both = _compared(loose, main, other)
    listed = sum(loose[code] for code in both if higher[code])
    doubtful = sum(loose[code] for code in both) - listed
    dated = sum(counts[raw] for raw in _by_date(counts, systems))
    note = (
        f"{main} and {other} are mixed and no column says which is which: {doubtful - dated:,} "
        f"mentions fit both and were taken as {main}"
    )
    note += f", {listed:,} by the list that has them" if listed else ""
    note += f", {dated:,} by their dates" if dated else ""
    return f"{note}; name the column with the version"


def undecided(counts: Mapping[Raw, int], systems: Mapping[Raw, str]) -> int:
    """Return how many mentions, of which nothing is said, fit two editions that are mixed."""
    return sum(counts[raw] for raw in _undecided(systems) if raw[0] is None)


def _said(raw: Raw) -> str | None:
    return None if raw[0] is None or raw[0].endswith(PROBABLY) else raw[0]


def _undecided(systems: Mapping[Raw, str]) -> list[Raw]:
    """Return the raw codes that two editions know equally well, where both occur."""
    if len(set(systems.values())) < 2:
        return []
    loose = [raw for raw in systems if not _said(raw)]
    keys = sorted({systems[raw] for raw in loose if coding_system(systems[raw]).family})
    if len(keys) < 2:
        return []
    higher, _ = _compared({code for _, code in loose}, keys[0], keys[1])
    return [raw for raw in loose if higher.get(raw[1]) == 0]


def _by_date(counts: Mapping[Raw, int], systems: Mapping[Raw, str]) -> dict[Raw, str]:
    """Return the edition of the undecided codes whose rows have a day, if such days tell others."""
    undecided = set(_undecided(systems))
    dated = {raw: raw[0].removesuffix(PROBABLY) for raw in systems if raw[0] and not _said(raw)}
    others = [raw for raw in dated if raw not in undecided]
    right = sum(counts[raw] for raw in others if dated[raw] == systems[raw])
    if right < _AGREE * sum(counts[raw] for raw in others):
        return {}
    return {raw: key for raw, key in dated.items() if raw in undecided}


def _rivals(key: str) -> list[str]:
    """Return the first system of each other family."""
    own = coding_system(key).family
    return [some[0].key for name, some in families().items() if name != own]


def _strays(loose: Mapping[str, int], main: str) -> dict[str, str]:
    """Return the codes of another edition in a column without versions.

    The column is mixed when one mention in a hundred is none of the main system; then a code that
    fits both is of the edition that lists it.
    """
    own = coding_system(main)

    def mentions(codes: Iterable[str]) -> int:
        return sum(loose[code] for code in codes)

    foreign = [code for code in loose if own.normalise(code).state == "malformed"]
    strays = {
        key: [code for code in foreign if coding_system(key).normalise(code).code]
        for key in _rivals(main)
    }
    other = max(strays, key=lambda key: mentions(strays[key]))
    if mentions(strays[other]) < _MIXED_SHARE * mentions(loose):
        return {}
    higher, _ = _compared(loose, main, other)
    listed = [code for code, gain in higher.items() if gain > 0]
    return dict.fromkeys([*strays[other], *listed], other)


def _contradicted(codes: Mapping[str, int], said: str) -> dict[str, str]:
    """Return the codes that are said to be of one edition and are listed in another alone.

    Only where the codes of that edition are written in full: a truncated code is in no list.
    """
    own = coding_system(said)
    if not own.family:
        return {}
    moved: dict[str, str] = {}
    for other in _rivals(said):
        known, here = _standing(other), _standing(said)
        listed = [code for code in codes if known(code) == 2 and here(code) < 2]
        moved |= dict.fromkeys(listed, other)
    if not moved:
        return {}
    standing = _standing(said)
    full = sum(count for code, count in codes.items() if standing(code) == 2)
    return moved if full >= _IN_FULL * sum(codes.values()) else {}


def _compared(codes: Iterable[str], main: str, other: str) -> tuple[dict[str, int], list[str]]:
    """Return the codes that fit two systems, each with how much better the other one knows it."""
    one, two = coding_system(main), coding_system(other)
    both = [code for code in codes if one.normalise(code).code and two.normalise(code).code]
    return {code: _standing(other)(code) - _standing(main)(code) for code in both}, both


def _standing(key: str) -> Callable[[str], int]:
    system = coding_system(key)
    return lambda raw: system.standing(system.normalise(raw).code)
