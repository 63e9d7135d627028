"""Coverage: how many mentions of codes a level, a map or a score speaks of, for the ledger."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

from comorb.errors import RecordsError
from comorb.records.codes.coding import Coding
from comorb.records.codes.editions import Raw
from comorb.records.codes.features import NOT_DETERMINED, NOT_MAPPED, Features
from comorb.records.codes.own_map import CodeMap
from comorb.records.codes.scores import is_scored, score
from comorb.records.codes.systems import coding_system

Mentions = Callable[[Callable[[str], Collection[str]]], int]


def check_usable(fits: Mapping[str, Features], coding: Coding) -> None:
    """Refuse what can't be had of codes of these systems."""
    shown = " and ".join(sorted(fits))
    unknown = bool(fits) and not any(coding_system(key).kind for key in fits)
    if coding.chronic and unknown:
        raise RecordsError(
            f"Chronic conditions are told of ICD-9-CM and ICD-10 codes; these are {shown}. Read "
            "them without, or with a map of your own."
        )
    if coding.scores and unknown:
        raise RecordsError(
            f"The score {coding.scores[0]!r} is made of ICD-9-CM and ICD-10 codes; these are "
            f"{shown}. Read them without it, or name the coding system."
        )
    if coding.map and fits and not any(some for one in fits.values() for some in one.of.values()):
        raise RecordsError(
            f"No code of the records is in the map {coding.map.name}. Its columns are code, group "
            f"and name, in this order when it has no header; the records have codes of {shown}."
        )


def ledger_notes(
    counts: Mapping[Raw, int],
    systems: Mapping[Raw, str],
    fits: Mapping[str, Features],
    coding: Coding,
) -> tuple[str, ...]:
    """Return what the ledger says of repaired, coarse, shared, mapped and scored codes."""

    def mentions(chosen: Callable[[str], Collection[str]]) -> int:
        texts = {key: chosen(key) for key in fits}
        return sum(count for raw, count in counts.items() if raw[1] in texts[systems[raw]])

    notes = []
    if repaired := mentions(lambda key: fits[key].repaired):
        notes.append(f"{repaired:,} codes repaired: lost leading zeros, or the '.0' of a number")
    if mixed := mentions(lambda key: fits[key].mixed):
        notes.append(f"{mixed:,} codes too coarse for a group: their category stands in for it")
    if coding.chronic:
        notes += _of_chronic(mentions, fits)
    if coding.map is not None:
        notes += _of_map(mentions, fits, coding.map)
    elif "common" in coding.levels:
        total = mentions(lambda key: fits[key].codes)
        own = mentions(lambda key: fits[key].unshared)
        notes.append(
            f"{_share(total - own, total)} of {total:,} codes are in a group that coding systems "
            f"share; {own:,} keep their own category"
        )
    return (*notes, *_of_scores(mentions, fits, coding))


def _of_chronic(mentions: Mentions, fits: Mapping[str, Features]) -> list[str]:
    notes = []
    if doubtful := mentions(lambda key: fits[key].left_out.get(NOT_DETERMINED, ())):
        notes.append(
            f"{doubtful:,} codes left out: whether they are chronic isn't determined, or differs "
            "among their subdivisions"
        )
    if others := mentions(lambda key: () if coding_system(key).chronic else fits[key].codes):
        notes.append(f"{others:,} codes are of systems without an indicator of chronic conditions")
    return notes


def _of_map(mentions: Mentions, fits: Mapping[str, Features], code_map: CodeMap) -> list[str]:
    left = mentions(lambda key: fits[key].left_out.get(NOT_MAPPED, ()))
    total = left + mentions(lambda key: [raw for raw, some in fits[key].of.items() if some])
    notes = [
        *code_map.notes,
        f"{_share(total - left, total)} of {total:,} codes are in the map {code_map.name} "
        f"({code_map.digest}); {left:,} are left out",
    ]
    if covered := mentions(lambda key: fits[key].covered):
        notes.append(
            f"{covered:,} codes have the groups of their nearest line of the map alone: end a line "
            "in * to have it count beside nearer ones"
        )
    present = [key for key in fits if coding_system(key).fit]
    both = [
        line for line in code_map.lines if not line.system and _fits_several(line.code, present)
    ]
    if both:
        notes.append(
            f"{len(both):,} lines of the map are codes of {' and '.join(sorted(present))}: say "
            "which in a column 'system'"
        )
    return notes


def _fits_several(code: str, keys: Collection[str]) -> bool:
    return sum(bool(coding_system(key).normalise(code).code) for key in keys) > 1


def _of_scores(mentions: Mentions, fits: Mapping[str, Features], coding: Coding) -> list[str]:
    notes = []
    for one in coding.scores:
        table = score(one)

        def coarse(key: str, table: Any = table) -> list[str]:
            codes = fits[key].codes.items() if is_scored(key) else ()
            return [raw for raw, code in codes if table.is_coarse(code, key)]

        if some := mentions(coarse):
            notes.append(
                f"{some:,} codes are too coarse to tell whether they count for the score {one}, "
                "and don't"
            )
    if coding.scores and (
        others := mentions(lambda key: () if is_scored(key) else fits[key].codes)
    ):
        notes.append(f"{others:,} codes are of systems that no score speaks of")
    return notes


def _share(part: int, total: int) -> str:
    return f"{100 * part / max(1, total):.1f}%"
